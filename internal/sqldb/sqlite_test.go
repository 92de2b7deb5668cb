package sqldb_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
	"github.com/accession/accession/internal/storetest/cluster"
)

func open(t *testing.T) *sqldb.SQLite {
	t.Helper()
	db, err := sqldb.OpenSQLite(filepath.Join(t.TempDir(), "a ?#%.db"), sqldb.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	exec(t, db, `CREATE TABLE t (id TEXT PRIMARY KEY, n BIGINT NOT NULL CHECK (n >= 0))`)
	return db
}

func exec(t *testing.T, db sqldb.DB, sql string, args ...any) {
	t.Helper()
	if err := db.InTx(t.Context(), func(q sqldb.Querier) error {
		_, err := q.Exec(t.Context(), sql, args...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, db sqldb.DB) (n int) {
	t.Helper()
	if err := db.Row(t.Context(), `SELECT COUNT(*) FROM t`, nil, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Transactions that share one commit must not share their failures: error, broken constraint, panic, or a caller that left.
func TestBatchedTransactionsFailAlone(t *testing.T) {
	db := open(t)
	ctx := t.Context()
	left, leave := context.WithCancel(ctx)
	leave()
	boom := errors.New("boom")
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			insert := func(q sqldb.Querier) error {
				_, err := q.Exec(ctx, `INSERT INTO t (id, n) VALUES ($1, $2)`, fmt.Sprint(i), i)
				return err
			}
			var err error
			switch i % 5 {
			case 0, 1:
				if err = db.InTx(ctx, insert); err != nil {
					t.Errorf("transaction %d: %v", i, err)
				}
			case 2:
				err = db.InTx(ctx, func(q sqldb.Querier) error { return errors.Join(insert(q), boom) })
				if !errors.Is(err, boom) {
					t.Errorf("transaction %d: got %v, want boom", i, err)
				}
			case 3:
				err = db.InTx(ctx, func(q sqldb.Querier) error {
					if err := insert(q); err != nil {
						return err
					}
					panic("mad")
				})
				if err == nil {
					t.Errorf("transaction %d: a panic was acknowledged", i)
				}
			case 4:
				if err = db.InTx(left, insert); !errors.Is(err, context.Canceled) {
					t.Errorf("transaction %d: got %v, want context.Canceled", i, err)
				}
			}
		})
	}
	group.Wait()
	if got := count(t, db); got != 16 {
		t.Errorf("%d rows, want the 16 of the transactions that succeeded", got)
	}
}

func TestRowsArriveWithChanged(t *testing.T) {
	db := open(t)
	changed := db.Changed()
	exec(t, db, `INSERT INTO t (id, n) VALUES ('a', 1)`)
	<-changed // hangs if a commit tells nobody
	if got := count(t, db); got != 1 {
		t.Errorf("%d rows after the signal, want 1", got)
	}
	var n int
	if err := db.Row(t.Context(), `SELECT n FROM t WHERE id = 'b'`, nil, &n); !errors.Is(err, custody.ErrNotFound) {
		t.Errorf("missing row: got %v, want ErrNotFound", err)
	}
}

// Leases and due times are told by Dialect.Now; the suite of the stores has a clock of its own in its place.
func TestNowIsUnixTimeInMilliseconds(t *testing.T) {
	for name, open := range map[string]func(*testing.T) sqldb.DB{
		"SQLite":     func(t *testing.T) sqldb.DB { return open(t) },
		"PostgreSQL": func(t *testing.T) sqldb.DB { return openPostgres(t, cluster.Database(t), sqldb.PostgresOptions{}) },
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			begun := time.Now().UnixMilli()
			var now int64
			if err := db.Row(t.Context(), `SELECT `+db.Dialect().Now, nil, &now); err != nil {
				t.Fatal(err)
			}
			if done := time.Now().UnixMilli(); now < begun-1 || now > done { // the engine's fraction may be rounded down
				t.Errorf("now is %d, want between %d and %d", now, begun, done)
			}
		})
	}
}

func TestReadsCannotWrite(t *testing.T) {
	db := open(t)
	if _, err := db.Exec(t.Context(), `INSERT INTO t (id, n) VALUES ('a', 1)`); err == nil {
		t.Error("a write outside a transaction was accepted")
	}
	if got := count(t, db); got != 0 {
		t.Errorf("%d rows, want 0", got)
	}
}

func TestClosedDatabaseAnswers(t *testing.T) {
	db, err := sqldb.OpenSQLite(filepath.Join(t.TempDir(), "a.db"), sqldb.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.InTx(t.Context(), func(sqldb.Querier) error { return nil }); err == nil {
		t.Error("a transaction on a closed database succeeded")
	}
}

func BenchmarkCommit(b *testing.B) {
	db, err := sqldb.OpenSQLite(filepath.Join(b.TempDir(), "a.db"), sqldb.SQLiteOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	if err := db.InTx(b.Context(), func(q sqldb.Querier) error {
		_, err := q.Exec(b.Context(), `CREATE TABLE t (id INTEGER PRIMARY KEY)`)
		return err
	}); err != nil {
		b.Fatal(err)
	}
	for _, writers := range []int{1, 32} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			b.SetParallelism(writers)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := db.InTx(b.Context(), func(q sqldb.Querier) error {
						_, err := q.Exec(b.Context(), `INSERT INTO t DEFAULT VALUES`)
						return err
					}); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// A version from before would write what a later one no longer expects.
func TestLaterSchemaIsRefused(t *testing.T) {
	sqlite := open(t)
	postgres := openPostgres(t, cluster.Database(t), sqldb.PostgresOptions{}) // with version 1
	for name, db := range map[string]sqldb.DB{"sqlite": sqlite, "postgres": postgres} {
		now := fstest.MapFS{"m/00002_now.sql": {Data: []byte("-- +goose Up\nSELECT 1;")}}
		later := fstest.MapFS{"m/00002_now.sql": now["m/00002_now.sql"], "m/00003_later.sql": {Data: []byte("-- +goose Up\nSELECT 1;")}}
		for _, version := range []fstest.MapFS{now, later, later} {
			if err := db.Migrate(t.Context(), version, "m"); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if err := db.Migrate(t.Context(), now, "m"); !errors.Is(err, sqldb.ErrLaterSchema) || !strings.Contains(err.Error(), "it has schema 3, this one knows up to 2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
