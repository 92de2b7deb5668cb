package sqldb_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/accession/accession/internal/sqldb"
)

// held are the files of a folder and what is in them, but for the index of a write-ahead log, which readers mark too.
func held(t *testing.T, dir string) map[string]string {
	t.Helper()
	held := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(e.Name()) == ".db-shm" {
			content = nil
		}
		held[e.Name()] = string(content)
	}
	return held
}

func TestInspectionChangesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a b?.db")
	live, err := sqldb.OpenSQLite(path, sqldb.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(statement string) {
		t.Helper()
		if err := live.InTx(t.Context(), func(q sqldb.Querier) error {
			_, err := q.Exec(t.Context(), statement)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(i *sqldb.Inspection) (n int) {
		t.Helper()
		if err := i.Row(t.Context(), `SELECT COUNT(*) FROM line`, nil, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	write(`CREATE TABLE line (n INTEGER)`)
	write(`INSERT INTO line VALUES (1)`)

	beside, err := sqldb.InspectSQLite(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(beside); n != 1 {
		t.Errorf("%d lines beside the service", n)
	}
	write(`INSERT INTO line VALUES (2)`) // the owner goes on
	if n := count(beside); n != 2 {
		t.Errorf("%d lines after another was written", n)
	}
	if _, err := beside.Exec(t.Context(), `INSERT INTO line VALUES (3)`); err == nil {
		t.Error("it wrote")
	}
	if err := beside.Close(); err != nil {
		t.Fatal(err)
	}
	if err := live.Close(); err != nil { // the last one takes the log with it
		t.Fatal(err)
	}

	for _, left := range []string{"closed", "with a log that was not taken in"} {
		if left != "closed" { // as a crash leaves it: a copy of a live one
			if live, err = sqldb.OpenSQLite(path, sqldb.SQLiteOptions{}); err != nil {
				t.Fatal(err)
			}
			write(`INSERT INTO line VALUES (3)`)
			crashed := t.TempDir()
			if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			if err := live.Close(); err != nil {
				t.Fatal(err)
			}
			dir, path = crashed, filepath.Join(crashed, filepath.Base(path))
		}
		before := held(t, dir)
		i, err := sqldb.InspectSQLite(path)
		if err != nil {
			t.Fatalf("%s: %v", left, err)
		}
		want := 2
		if left != "closed" {
			want = 3
		}
		if n := count(i); n != want {
			t.Errorf("%s: %d lines, want %d", left, n, want)
		}
		if during := held(t, dir); !maps.Equal(before, during) { // a log made by another user would lock the owner out
			t.Errorf("%s: %v became %v while it was read", left, slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(during)))
		}
		if err := i.Close(); err != nil {
			t.Fatal(err)
		}
		if after := held(t, dir); !maps.Equal(before, after) {
			t.Errorf("%s: %v became %v", left, slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
		}
	}
	if _, err := sqldb.InspectSQLite(filepath.Join(dir, "none.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
