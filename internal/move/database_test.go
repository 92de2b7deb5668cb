package move_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/accession/accession/internal/move"
	"github.com/accession/accession/internal/storetest/cluster"
)

const schema = "moved"

// pair is a database of SQLite with rows that are easily spoilt, and an empty one of PostgreSQL with the same tables.
func pair(t *testing.T) (from, to *sql.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	write, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		`CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY)`,
		`CREATE TABLE b_parent (id TEXT PRIMARY KEY, n BIGINT NOT NULL, raw BLOB NOT NULL)`,
		`CREATE TABLE a_child (name TEXT NOT NULL, id TEXT NOT NULL REFERENCES b_parent, said TEXT NOT NULL, PRIMARY KEY (name, id))`,
		`INSERT INTO b_parent VALUES ('', -9223372036854775808, X''), ('Z', 9223372036854775807, X'00FF'), ('ä', 0, X'5A'), ('a', 1, CAST('text' AS BLOB))`,
		`INSERT INTO a_child VALUES ('z', 'a', ''), ('Z', 'a', 'größer'), ('_', 'ä', CAST('bytes in a text column' AS BLOB)), ('a', 'Z', 'line
two')`,
	} {
		exec(t, write, s)
	}
	exec(t, write, `WITH RECURSIVE rows (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM rows WHERE n < 1199)
		INSERT INTO b_parent SELECT format('row-%04d', n), n, CAST(n AS BLOB) FROM rows`) // more than one statement takes
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	if from, err = move.OpenSQLite(path); err != nil {
		t.Fatal(err)
	}
	if to, err = move.OpenPostgres(t.Context(), cluster.Database(t), schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(from.Close(), to.Close()); err != nil {
			t.Error(err)
		}
	})
	for _, s := range []string{
		`CREATE SCHEMA moved`, `CREATE TABLE goose_db_version (id BIGINT PRIMARY KEY)`, `CREATE UNLOGGED TABLE rates (who TEXT PRIMARY KEY)`,
		`CREATE TABLE b_parent (raw BYTEA NOT NULL, n BIGINT NOT NULL, id TEXT PRIMARY KEY)`,
		`CREATE TABLE a_child (name TEXT NOT NULL, id TEXT NOT NULL REFERENCES b_parent, said TEXT NOT NULL, PRIMARY KEY (name, id))`,
	} {
		exec(t, to, s)
	}
	return from, to
}

func exec(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatal(err)
	}
}

func TestEveryRowIsMovedOnce(t *testing.T) {
	from, to := pair(t)
	if empty, err := move.Empty(t.Context(), to, schema); err != nil || !empty {
		t.Errorf("empty: %v, %v", empty, err)
	}
	first, moved, err := move.Database(t.Context(), from, to, schema)
	if err != nil || !moved || len(first) != 2 || first[0].Name != "b_parent" || first[0].Rows != 1204 || first[1].Rows != 4 {
		t.Fatalf("%+v, moved %v, %v", first, moved, err)
	}
	var n int64
	var raw []byte
	if err := to.QueryRow(`SELECT n, raw FROM b_parent WHERE id = 'Z'`).Scan(&n, &raw); err != nil || n != 1<<63-1 || string(raw) != "\x00\xff" {
		t.Errorf("%d %x, %v", n, raw, err)
	}
	if empty, err := move.Empty(t.Context(), to, schema); err != nil || empty {
		t.Errorf("empty: %v, %v", empty, err)
	}
	again, moved, err := move.Database(t.Context(), from, to, schema)
	if err != nil || moved || fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("again: %+v, moved %v, %v", again, moved, err)
	}
	for _, change := range []string{
		`UPDATE a_child SET said = said || ' ' WHERE name = 'z'`, `DELETE FROM a_child WHERE name = '_'`,
		`UPDATE b_parent SET n = 2 WHERE id = 'ä'`, `INSERT INTO b_parent VALUES ('', 0, 'another')`,
	} {
		tx, err := to.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(change); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if _, moved, err := move.Database(t.Context(), from, to, schema); !errors.Is(err, move.ErrOccupied) || moved {
			t.Errorf("after %s: moved %v, %v", change, moved, err)
		}
		exec(t, to, `DELETE FROM a_child`)
		exec(t, to, `DELETE FROM b_parent`)
		if _, moved, err := move.Database(t.Context(), from, to, schema); err != nil || !moved {
			t.Fatalf("moved %v, %v", moved, err)
		}
	}
}

// What the target makes of a row is read back before it counts.
func TestRowsThatTheTargetChangesAreNotMoved(t *testing.T) {
	from, to := pair(t)
	exec(t, to, `CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.said := trim(NEW.said) || '.'; RETURN NEW; END $$`)
	exec(t, to, `CREATE TRIGGER spoil BEFORE INSERT ON a_child FOR EACH ROW WHEN (NEW.name = 'Z') EXECUTE FUNCTION spoil()`)
	_, moved, err := move.Database(t.Context(), from, to, schema)
	if !errors.Is(err, move.ErrDiffers) || moved || !strings.Contains(err.Error(), "a_child") {
		t.Errorf("moved %v, %v", moved, err)
	}
	if empty, err := move.Empty(t.Context(), to, schema); err != nil || !empty {
		t.Errorf("something stayed: %v", err)
	}
}

func TestOtherTablesAreNotMoved(t *testing.T) {
	for _, change := range []string{
		`ALTER TABLE a_child ADD COLUMN more TEXT NOT NULL DEFAULT ''`, `ALTER TABLE a_child DROP COLUMN said`, `CREATE TABLE more (id TEXT PRIMARY KEY)`,
		`DROP TABLE a_child`, `ALTER TABLE b_parent ALTER COLUMN n TYPE INT`,
	} {
		from, to := pair(t)
		exec(t, to, change)
		if _, moved, err := move.Database(t.Context(), from, to, schema); !errors.Is(err, move.ErrLayout) || moved {
			t.Errorf("%s: moved %v, %v", change, moved, err)
		}
	}
}
