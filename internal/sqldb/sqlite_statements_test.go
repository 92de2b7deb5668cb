package sqldb_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/accession/accession/internal/sqldb"
)

// A statement is prepared once and run again and again, also while its own rows are being read, and after the schema has changed.
func TestStatementsRunInsideThemselves(t *testing.T) {
	db := open(t)
	for i := range 3 {
		exec(t, db, `INSERT INTO t VALUES ($1, $2)`, fmt.Sprint("row ", i), i)
	}
	const all = `SELECT n FROM t WHERE n >= $1 ORDER BY n`
	pairs := func(q sqldb.Querier) (seen string, err error) {
		err = q.Each(t.Context(), all, []any{0}, func(scan func(...any) error) error {
			var outer int
			if err := scan(&outer); err != nil {
				return err
			}
			seen += fmt.Sprint(outer, ":")
			var last int
			if err := q.Row(t.Context(), all, []any{2}, &last); err != nil || last != 2 {
				return fmt.Errorf("the last is %d, %v", last, err)
			}
			return q.Each(t.Context(), all, []any{outer}, func(scan func(...any) error) error {
				var inner int
				err := scan(&inner)
				if seen += fmt.Sprint(inner, " "); len(seen) > 100 {
					err = fmt.Errorf("the rows begin again and again: %s", seen)
				}
				return err
			})
		})
		return seen, err
	}
	const want = "0:0 1 2 1:1 2 2:2 "
	for turn := range 3 { // the first prepares
		if seen, err := pairs(db); err != nil || seen != want {
			t.Errorf("reads, turn %d: %q, %v", turn, seen, err)
		}
		if err := db.InTx(t.Context(), func(q sqldb.Querier) error {
			if seen, err := pairs(q); err != nil || seen != want {
				return fmt.Errorf("transaction %d: %q, %w", turn, seen, err)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		exec(t, db, fmt.Sprintf(`ALTER TABLE t ADD COLUMN more%d TEXT NOT NULL DEFAULT ''`, turn))
	}
	if err := db.Row(t.Context(), `SELECT nothing FROM t`, nil, new(int)); err == nil {
		t.Error("a statement that cannot be prepared ran")
	}
}

// A text that varies costs time, and no memory for ever.
func TestStatementsKeptAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "varying.db")
	db, err := sqldb.OpenSQLite(path, sqldb.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const texts = 3000
	for i := range texts {
		var n int
		if err := db.Row(t.Context(), fmt.Sprint("SELECT ", i), nil, &n); err != nil || n != i {
			t.Fatalf("read %d: %d, %v", i, n, err)
		}
	}
	if err := db.InTx(t.Context(), func(q sqldb.Querier) error {
		for i := range texts {
			var n int
			if err := q.Row(t.Context(), fmt.Sprint("SELECT ", i), nil, &n); err != nil || n != i {
				return fmt.Errorf("transaction, %d: %d, %w", i, n, err)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if reads, writes := sqldb.StatementsKept(db); reads != writes || reads >= texts {
		t.Errorf("%d and %d statements are kept of %d", reads, writes, texts)
	}
}

func BenchmarkStatements(b *testing.B) {
	db, err := sqldb.OpenSQLite(filepath.Join(b.TempDir(), "a.db"), sqldb.SQLiteOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	change := func(text string, args ...any) {
		if err := db.InTx(b.Context(), func(q sqldb.Querier) error {
			_, err := q.Exec(b.Context(), text, args...)
			return err
		}); err != nil {
			b.Fatal(err)
		}
	}
	change(`CREATE TABLE t (id TEXT PRIMARY KEY, a TEXT NOT NULL, b TEXT NOT NULL, n BIGINT NOT NULL)`)
	change(`INSERT INTO t VALUES ('one', 'a', 'b', 1)`)
	const read = `SELECT id, a, b, n FROM t WHERE id = $1`
	row := func(q sqldb.Querier) error {
		var id, x, y string
		var n int64
		return q.Row(b.Context(), read, []any{"one"}, &id, &x, &y, &n)
	}
	b.Run("read", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := row(db); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("transaction", func(b *testing.B) { // 32 at once, so that one sync serves many
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := db.InTx(b.Context(), func(q sqldb.Querier) error {
					if err := row(q); err != nil {
						return err
					}
					_, err := q.Exec(b.Context(), `UPDATE t SET n = n + 1 WHERE id = $1`, "one")
					return err
				}); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
