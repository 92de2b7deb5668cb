package sqldb_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
)

// A damaged file is no verdict on a request: it is refused as unavailable, the health of the database tells, and goes on telling
// until the file is as it was; then all works again, without a restart.
func TestSQLiteTellsOfADamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	db, err := sqldb.OpenSQLite(path, sqldb.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	exec(t, db, `CREATE TABLE t (id TEXT PRIMARY KEY, n BIGINT NOT NULL CHECK (n >= 0))`)
	for _, id := range []string{"a", "b", "c"} {
		exec(t, db, `INSERT INTO t VALUES ($1, 1)`, strings.Repeat(id, 9000)) // some pages each
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(content []byte) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_WRONLY, 0) // in place: the service has it open
		if err == nil {
			_, err = f.WriteAt(content, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	damaged := append([]byte(nil), whole...)
	for i := 4096; i < len(damaged); i++ { // all but the page that says what is where
		damaged[i] = 0xee
	}
	write(damaged)
	if db, err = sqldb.OpenSQLite(path, sqldb.SQLiteOptions{}); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := t.Context()
	if err := db.Sound(ctx); err != nil {
		t.Errorf("before anybody met the damage: %v", err)
	}
	if err := db.Row(ctx, `SELECT MAX(n) FROM t`, nil, new(int)); !unavailable(err) {
		t.Errorf("a read of a damaged page: %v", err)
	}
	if err := db.InTx(ctx, func(q sqldb.Querier) error {
		_, err := q.Exec(ctx, `UPDATE t SET n = 2`)
		return err
	}); !unavailable(err) {
		t.Errorf("a change of a damaged page: %v", err)
	}
	for range 2 {
		if err := db.Sound(ctx); err == nil {
			t.Error("a damaged database is said to be sound")
		}
	}
	write(whole)
	if err := db.Sound(context.WithoutCancel(ctx)); err != nil {
		t.Errorf("put back: %v", err)
	}
	exec(t, db, `UPDATE t SET n = 2`)
	if n := count(t, db); n != 3 {
		t.Errorf("%d rows", n)
	}
}

// An engine that gives up the whole transaction, as SQLite does when a page cannot be written, leaves no savepoint to go back to: that is
// unavailable for everybody in the batch, and the next batch begins anew.
func TestSQLiteGivesUpATransaction(t *testing.T) {
	db := open(t)
	err := db.InTx(t.Context(), func(q sqldb.Querier) error {
		if _, err := q.Exec(t.Context(), `ROLLBACK`); err != nil {
			t.Error(err)
		}
		return custody.ErrConflict
	})
	if !unavailable(err) || errors.Is(err, custody.ErrConflict) {
		t.Errorf("got %v", err)
	}
	exec(t, db, `INSERT INTO t VALUES ('after', 1)`)
	if n := count(t, db); n != 1 {
		t.Errorf("%d rows", n)
	}
}
