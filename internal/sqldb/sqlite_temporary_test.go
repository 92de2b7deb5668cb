package sqldb_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/accession/accession/internal/sqldb"
)

// What a transaction may have to take back is in no temporary file, where it would outlive its deletion; and it is taken back.
func TestNothingToTakeBackInTemporaryFiles(t *testing.T) {
	db := open(t)
	if err := db.Migrate(t.Context(), fstest.MapFS{"m/1_one.sql": {Data: []byte("-- +goose Up\nCREATE TABLE one (id TEXT);")}}, "m"); err != nil {
		t.Fatal(err)
	}
	const rows = 2000 // on far more pages than SQLite keeps in memory by itself
	exec(t, db, fmt.Sprintf(`WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %d) INSERT INTO t SELECT printf('%%0200d', i), 1 FROM c`, rows))
	refused := errors.New("refused")
	if err := db.InTx(t.Context(), func(q sqldb.Querier) error {
		if changed, err := q.Exec(t.Context(), `UPDATE t SET n = 2`); err != nil || changed != rows {
			return fmt.Errorf("%d rows changed, %w", changed, err)
		}
		open, err := filepath.Glob("/proc/self/fd/*")
		if err != nil || len(open) == 0 {
			return fmt.Errorf("no open files: %w", err)
		}
		for _, fd := range open {
			if file, err := os.Readlink(fd); err == nil && strings.Contains(file, "etilqs_") { // SQLite's own word
				t.Errorf("a temporary file: %s", file)
			}
		}
		return refused
	}); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	var sum int
	if err := db.Row(t.Context(), `SELECT SUM(n) FROM t`, nil, &sum); err != nil || sum != rows {
		t.Errorf("the sum is %d, want %d: it was not taken back; %v", sum, rows, err)
	}
}
