package sqldb_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/accession/accession/internal/sqldb"
)

// A process that is killed between a deletion and its Scrub leaves what it deleted in the log; the next start does not.
func TestDeletedBeforeAKillIsGoneAfterTheStart(t *testing.T) {
	const secret = "who consented, in so many words"
	path := filepath.Join(t.TempDir(), "a.db")
	db, err := sqldb.OpenSQLite(path, sqldb.SQLiteOptions{SecureDelete: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	exec(t, db, `CREATE TABLE t (id TEXT PRIMARY KEY)`)
	exec(t, db, `INSERT INTO t (id) VALUES ('`+secret+`')`)
	exec(t, db, `DELETE FROM t`)

	dead := filepath.Join(t.TempDir(), "a.db") // what is on the disk now is what a kill leaves
	files := func(of string) (all []byte) {
		for _, name := range []string{of, of + "-wal"} {
			b, err := os.ReadFile(name)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			all = append(all, b...)
		}
		return all
	}
	for _, end := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + end)
		if err == nil {
			err = os.WriteFile(dead+end, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Contains(files(dead), []byte(secret)) {
		t.Fatal("it cannot be found although nobody scrubbed: the search proves nothing")
	}
	started, err := sqldb.OpenSQLite(dead, sqldb.SQLiteOptions{SecureDelete: true})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(files(dead), []byte(secret)) {
		t.Error("what was deleted is still in the files after the start")
	}
	if err := started.Close(); err != nil {
		t.Error(err)
	}
}
