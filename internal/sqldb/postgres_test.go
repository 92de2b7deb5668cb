package sqldb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
	"github.com/accession/accession/internal/storetest/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Run(m)) }

const table = `CREATE TABLE t (id TEXT PRIMARY KEY, n BIGINT NOT NULL CHECK (n >= 0))`

func openPostgres(t *testing.T, url string, o sqldb.PostgresOptions) *sqldb.Postgres {
	t.Helper()
	o.Schema = "accession"
	db, err := sqldb.OpenPostgres(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	migrate(t, db)
	return db
}

func migrate(t *testing.T, db *sqldb.Postgres) {
	t.Helper()
	files := fstest.MapFS{"m/00001_t.sql": {Data: []byte("-- +goose Up\n" + table + `;
-- +goose StatementBegin
CREATE FUNCTION said() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('accession', ''); RETURN NULL; END $$;
-- +goose StatementEnd
CREATE TRIGGER said AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION said();`)}}
	if err := db.Migrate(t.Context(), files, "m"); err != nil {
		t.Fatal(err)
	}
}

func unavailable(err error) bool {
	var e *custody.Error
	return errors.As(err, &e) && e.Code == custody.CodeUnavailable && e.RetryAfter > 0
}

func TestPostgresCommitsAndTakesBack(t *testing.T) {
	db := openPostgres(t, cluster.Database(t), sqldb.PostgresOptions{})
	exec(t, db, `INSERT INTO t VALUES ($1, $2)`, custody.StatusReady, 7) // a word of the domain is text
	var id custody.Status
	var n int
	if err := db.Row(t.Context(), `SELECT id, n FROM t`, nil, &id, &n); err != nil || id != custody.StatusReady || n != 7 {
		t.Errorf("%s %d, %v", id, n, err)
	}
	if err := db.Row(t.Context(), `SELECT n FROM t WHERE id = $1`, []any{"none"}, &n); err != custody.ErrNotFound {
		t.Errorf("no row: %v", err)
	}
	refusal := errors.New("refused")
	for what, fn := range map[string]func(q sqldb.Querier) error{
		"an error": func(q sqldb.Querier) error {
			_, err := q.Exec(t.Context(), `INSERT INTO t VALUES ('lost', 1)`)
			return errors.Join(err, refusal)
		},
		"a panic": func(q sqldb.Querier) error {
			if _, err := q.Exec(t.Context(), `INSERT INTO t VALUES ('lost', 1)`); err != nil {
				return err
			}
			panic("gone")
		},
		"a broken rule, overlooked": func(q sqldb.Querier) error {
			_, _ = q.Exec(t.Context(), `INSERT INTO t VALUES ('lost', -1)`)
			return nil
		},
	} {
		if err := db.InTx(t.Context(), fn); err == nil || unavailable(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := db.InTx(t.Context(), func(q sqldb.Querier) error { return q.Row(t.Context(), `SELECT COUNT(*) FROM t`, nil, &n) }); err != nil || n != 1 {
		t.Errorf("%d rows, %v", n, err)
	}
	if _, err := db.Exec(t.Context(), `DELETE FROM t`); err == nil {
		t.Error("a write outside of a transaction")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for what, err := range map[string]error{
		"a read":        db.Row(gone, `SELECT 1`, nil, &n),
		"a transaction": db.InTx(gone, func(sqldb.Querier) error { return nil }),
	} {
		if !errors.Is(err, context.Canceled) || unavailable(err) {
			t.Errorf("%s for who left: %v", what, err)
		}
	}
}

// Two transactions that hold what the other wants: PostgreSQL ends one, which runs again.
func TestPostgresRunsADeadlockedTransactionAgain(t *testing.T) {
	db := openPostgres(t, cluster.Database(t), sqldb.PostgresOptions{})
	exec(t, db, `INSERT INTO t VALUES ('a', 0), ('b', 0)`)
	var runs atomic.Int64
	var both, group sync.WaitGroup
	both.Add(2)
	for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
		first := true
		group.Go(func() {
			if err := db.InTx(t.Context(), func(q sqldb.Querier) error {
				runs.Add(1)
				for i, id := range order {
					if _, err := q.Exec(t.Context(), `UPDATE t SET n = n + 1 WHERE id = $1`, id); err != nil {
						return err
					}
					if i == 0 && first {
						first = false
						both.Done()
						both.Wait()
					}
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	var sum int
	if err := db.Row(t.Context(), `SELECT SUM(n)::BIGINT FROM t`, nil, &sum); err != nil || sum != 4 || runs.Load() < 3 {
		t.Errorf("%d updates in %d runs, %v; want 4, and one transaction to run again", sum, runs.Load(), err)
	}
}

func TestPostgresHangsNowhere(t *testing.T) {
	url := cluster.Database(t)
	db := openPostgres(t, url+"&idle_in_transaction_session_timeout=120000&lock_timeout=60000&statement_timeout=60000", sqldb.PostgresOptions{})
	exec(t, db, `INSERT INTO t VALUES ('a', 0)`)
	// Each limit is that of who meets it alone: on a busy machine it would end what nobody holds up, too.
	hasty := openPostgres(t, url+"&statement_timeout=3000", sqldb.PostgresOptions{})
	if err := hasty.Row(t.Context(), `SELECT 1 FROM pg_sleep(60)`, nil, new(int)); !unavailable(err) {
		t.Errorf("a statement without end: %v", err)
	}
	waiting := openPostgres(t, url+"&lock_timeout=100", sqldb.PostgresOptions{})
	if err := db.InTx(t.Context(), func(q sqldb.Querier) error {
		if _, err := q.Exec(t.Context(), `UPDATE t SET n = 1`); err != nil {
			return err
		}
		err := waiting.InTx(t.Context(), func(q sqldb.Querier) error {
			_, err := q.Exec(t.Context(), `UPDATE t SET n = 2`)
			return err
		})
		if !unavailable(err) {
			t.Errorf("a lock that is not given: %v", err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	idle := openPostgres(t, url+"&idle_in_transaction_session_timeout=300", sqldb.PostgresOptions{})
	if err := idle.InTx(t.Context(), func(q sqldb.Querier) error {
		if _, err := q.Exec(t.Context(), `UPDATE t SET n = 3`); err != nil {
			return nil // the server was faster
		}
		exec(t, db, `UPDATE t SET n = 4`) // gets the lock once the server has ended who does nothing
		return nil
	}); err == nil {
		t.Error("a transaction that did nothing was committed")
	}
}

// A commit without an answer may have happened; nobody may believe that it did not.
func TestPostgresSaysWhenACommitIsInDoubt(t *testing.T) {
	server := cluster.Start(t)
	db := openPostgres(t, server.Database(t), sqldb.PostgresOptions{})
	err := db.InTx(t.Context(), func(q sqldb.Querier) error {
		if _, err := q.Exec(t.Context(), `INSERT INTO t VALUES ('a', 0)`); err != nil {
			return err
		}
		return server.Down()
	})
	if !errors.Is(err, custody.ErrInDoubt) || !unavailable(err) {
		t.Errorf("got %v, want in doubt and unavailable", err)
	}
	if err := server.Up(); err != nil {
		t.Fatal(err)
	}
	err = db.InTx(t.Context(), func(q sqldb.Querier) error {
		_, err := q.Exec(t.Context(), `INSERT INTO t VALUES ('b', -1)`)
		return err
	})
	if err == nil || errors.Is(err, custody.ErrInDoubt) {
		t.Errorf("refused by the server: %v", err)
	}
}

func TestPostgresComesBack(t *testing.T) {
	server := cluster.Start(t)
	url := server.Database(t)
	here, there := openPostgres(t, url, sqldb.PostgresOptions{Listen: true}), openPostgres(t, url, sqldb.PostgresOptions{})
	exec(t, here, `INSERT INTO t VALUES ('a', 0)`)
	if err := server.Down(); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"a read":        here.Row(t.Context(), `SELECT 1`, nil, new(int)),
		"a transaction": here.InTx(t.Context(), func(sqldb.Querier) error { return nil }),
	} {
		if !unavailable(err) || strings.Contains(err.(*custody.Error).Message, "127.0.0.1") {
			t.Errorf("%s without a server: %v", what, err)
		}
	}
	if err := server.Up(); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := here.Row(t.Context(), `SELECT COUNT(*) FROM t`, nil, &n); err != nil || n != 1 {
		t.Errorf("after the restart: %d rows, %v", n, err)
	}
	exec(t, here, `INSERT INTO t VALUES ('b', 0)`)
	exec(t, there, `INSERT INTO t VALUES ('c', 0)`)
	changed := here.Changed()
	for i := 0; ; i++ { // hangs if notifications, and the reminder, do not come back
		select {
		case <-changed:
			return
		default:
			exec(t, there, `INSERT INTO t VALUES ($1, 0)`, fmt.Sprint(i))
		}
	}
}

func TestPostgresHearsOtherProcesses(t *testing.T) {
	url := cluster.Database(t)
	here, there := openPostgres(t, url, sqldb.PostgresOptions{Listen: true}), openPostgres(t, url, sqldb.PostgresOptions{})
	<-here.Changed() // it listens, or reminds: both within a second
	for i := range 20 {
		changed, began := here.Changed(), time.Now()
		exec(t, there, `INSERT INTO t VALUES ($1, 0)`, fmt.Sprint(i))
		<-changed
		if i == 0 {
			t.Logf("heard after %s", time.Since(began))
		}
	}
}

// Each transaction and each read sees what its context says, also for ids that are made to break out of their quotes.
func TestPostgresCarriesTheScope(t *testing.T) {
	url := cluster.Database(t)
	carriesTheScope(t, openPostgres(t, url, sqldb.PostgresOptions{Organizations: true}))
	// A server may be set so that \ escapes what follows it.
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	carriesTheScope(t, openPostgres(t, url+separator+"standard_conforming_strings=off", sqldb.PostgresOptions{Organizations: true}))
}

func carriesTheScope(t *testing.T, db sqldb.DB) {
	t.Helper()
	const said = `SELECT COALESCE(current_setting('accession.organization', true), '')`
	for _, ctx := range []context.Context{
		t.Context(), custody.InOrganization(t.Context(), ""), custody.AcrossOrganizations(t.Context()),
		custody.InOrganization(t.Context(), "acme"), custody.InOrganization(t.Context(), "*"), custody.InOrganization(t.Context(), `O'Neill \' , true); DROP TABLE t; --`),
		custody.InOrganization(custody.AcrossOrganizations(t.Context()), "größer"), t.Context(),
	} {
		want := custody.OrganizationScope(ctx)
		var read, written string
		err := errors.Join(
			db.Row(ctx, said, nil, &read),
			db.InTx(ctx, func(q sqldb.Querier) error { return q.Row(ctx, said, nil, &written) }))
		if err != nil || read != want || written != want {
			t.Errorf("scope %q: reads have %q, transactions %q, %v", want, read, written, err)
		}
	}
}

func TestPostgresRefusesRolesThatSeeEverything(t *testing.T) {
	url := cluster.Database(t)
	for what, bad := range map[string]string{"superuser": cluster.Superuser(url), "no URL": "postgres://[", "other": "mysql://x/y", "not there": strings.Replace(url, cluster.Role, "nobody_such:pass-4711", 1)} {
		db, err := sqldb.OpenPostgres(t.Context(), bad, sqldb.PostgresOptions{Schema: "accession", Organizations: true})
		if err == nil {
			t.Errorf("%s: opened", what)
			db.Close()
		} else if strings.Contains(err.Error(), "pass-4711") {
			t.Errorf("%s: says the password: %v", what, err)
		}
	}
}

func TestReplicasMigrateOneAfterTheOther(t *testing.T) {
	url := cluster.Database(t)
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			db, err := sqldb.OpenPostgres(t.Context(), url, sqldb.PostgresOptions{Schema: "accession", Connections: 2})
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			migrate(t, db)
		})
	}
	group.Wait()
}

// From a commit in one process to the moment when another knows.
func BenchmarkPostgresNotification(b *testing.B) {
	url := cluster.Database(b)
	var dbs [2]*sqldb.Postgres
	for i := range dbs {
		db, err := sqldb.OpenPostgres(b.Context(), url, sqldb.PostgresOptions{Schema: "accession", Listen: i == 0})
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		dbs[i] = db
	}
	<-dbs[0].Changed()
	for b.Loop() {
		changed := dbs[0].Changed()
		if err := dbs[1].InTx(b.Context(), func(q sqldb.Querier) error {
			_, err := q.Exec(b.Context(), `SELECT pg_notify('accession', '')`)
			return err
		}); err != nil {
			b.Fatal(err)
		}
		<-changed
	}
}
