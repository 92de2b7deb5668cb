package sqldb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	databasesql "github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/accession/accession/internal/crashpoint"
	"github.com/accession/accession/internal/custody"
)

const (
	// MinPostgresVersion is the oldest server that is used: 14.0.
	MinPostgresVersion = 140000
	// DefaultConnections of one process to one PostgreSQL.
	DefaultConnections = 16

	stepsAside     = 10 * time.Millisecond // at most twice that before the second attempt, and twice as long each time
	attempts       = 6                     // at a transaction that conflicts, or at a connection that turns out to be dead
	connectTimeout = 5 * time.Second
	readTimeout    = 12 * time.Second // a little above the server's own limit, for a server that is no longer reached
	txTimeout      = 20 * time.Second
	endTimeout     = 5 * time.Second // for a commit or a rollback, which no caller ends
)

// limits are settings of every connection: on the server's side nothing hangs either, and a replica that is cut off from it
// holds no row for long. Times are milliseconds, keep-alive times seconds.
var limits = map[string]string{
	"application_name":                    "accession",
	"statement_timeout":                   "10000",
	"lock_timeout":                        "5000",
	"idle_in_transaction_session_timeout": "10000",
	"tcp_keepalives_idle":                 "10",
	"tcp_keepalives_interval":             "5",
	"tcp_keepalives_count":                "3",
	"standard_conforming_strings":         "on",
	"client_encoding":                     "UTF8",
	"timezone":                            "UTC",
}

// Postgres is one schema of a PostgreSQL database, by which several processes work together.
type Postgres struct {
	pool   *pgxpool.Pool
	o      PostgresOptions
	ending context.CancelFunc
	ends   sync.WaitGroup

	scrubbing sync.Mutex // one at a time: each cleans for all

	mu      sync.Mutex
	changed chan struct{}
	work    chan struct{}
	resetAt time.Time
}

// PostgresOptions tell what one schema is for.
type PostgresOptions struct {
	Schema      string // made where it is not there; nothing outside of it is read or written
	Connections int    // at most, default DefaultConnections
	// Organizations holds every query to the organization scope of its context (custody.InOrganization), which the policies of
	// the schema enforce, and refuses a role that policies do not hold.
	Organizations bool
	// Listen hears what other processes commit: one connection more.
	Listen bool
	// Scrubbed are the tables that Scrub cleans of deleted rows.
	Scrubbed []string
	Log      *slog.Logger // default: nowhere
}

// IsPostgres tells whether url names a PostgreSQL database.
func IsPostgres(url string) bool {
	return strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")
}

// OpenPostgres connects to the database at url, as libpq knows it (postgres://USER:PASSWORD@HOST/DATABASE?sslmode=verify-full). Errors
// say what to change, and never the password. (Architecture, "Several replicas".)
func OpenPostgres(ctx context.Context, url string, o PostgresOptions) (*Postgres, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Connections == 0 {
		o.Connections = DefaultConnections
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("it is no URL of a PostgreSQL database, such as postgres://accession@db.example/accession?sslmode=verify-full")
	}
	for name, value := range limits {
		if _, set := cfg.ConnConfig.RuntimeParams[name]; !set {
			cfg.ConnConfig.RuntimeParams[name] = value
		}
	}
	cfg.ConnConfig.RuntimeParams["search_path"] = o.Schema
	cfg.ConnConfig.ConnectTimeout = connectTimeout
	cfg.ConnConfig.DialFunc = (&net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}}).DialContext
	cfg.MaxConns = int32(o.Connections)
	cfg.PingTimeout = 3 * time.Second // of a connection that was idle for a second, before it is used
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	listening, ending := context.WithCancel(context.Background())
	db := &Postgres{pool: pool, o: o, ending: ending, changed: make(chan struct{}), work: make(chan struct{})}
	if err := db.suits(ctx); err != nil {
		ending()
		pool.Close()
		return nil, err
	}
	if o.Listen {
		db.ends.Go(func() { db.listen(listening) })
		db.ends.Go(func() { db.remind(listening) })
	}
	return db, nil
}

// suits refuses a server or a role that cannot keep what the service promises.
func (db *Postgres) suits(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var version int
	var role, encoding string
	var free bool
	if err := db.pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::INT, current_user::TEXT, current_setting('server_encoding'),
		(SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user)`).Scan(&version, &role, &encoding, &free); err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	switch {
	case version < MinPostgresVersion:
		return errors.New("PostgreSQL must be 14 or newer")
	case encoding != "UTF8":
		return fmt.Errorf("the database has the encoding %s; make one with ENCODING 'UTF8'", encoding)
	case free && db.o.Organizations:
		return fmt.Errorf("the role %q is a superuser or has BYPASSRLS, so the database would not keep organizations apart; use a role with neither", role)
	}
	return nil
}

// Close ends every connection; who still waits for one gets an error.
func (db *Postgres) Close() error {
	db.ending()
	db.ends.Wait()
	db.pool.Close()
	return nil
}

// Dialect of PostgreSQL. Its clock is that of the statement, which an index can be searched with.
func (db *Postgres) Dialect() Dialect {
	return Dialect{
		Name:       "postgres",
		Now:        `FLOOR(EXTRACT(EPOCH FROM statement_timestamp()) * 1000)::BIGINT`,
		SkipLocked: ` FOR NO KEY UPDATE SKIP LOCKED`,
		ForUpdate:  ` FOR NO KEY UPDATE`, // not FOR UPDATE: foreign keys of other transactions need not wait, nor deadlock
		Exclusive:  `LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE`,
	}
}

// Migrate makes the schema and runs the SQL files of dir that it has not seen yet. Replicas that start together wait for each other.
func (db *Postgres) Migrate(ctx context.Context, files fs.FS, dir string) error {
	sub, err := fs.Sub(files, dir)
	if err != nil {
		return err
	}
	cfg := db.pool.Config().ConnConfig
	for _, limit := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		cfg.RuntimeParams[limit] = "0"
	}
	cfg.RuntimeParams["accession.organization"] = custody.OrganizationScope(custody.AcrossOrganizations(ctx))
	std := databasesql.OpenDB(*cfg)
	defer std.Close()
	var there bool
	if err := std.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)`, db.o.Schema).Scan(&there); err != nil {
		return unavailable(ctx, err)
	}
	if !there { // the lock, for one transaction, because IF NOT EXISTS fails where another replica makes it at the same moment
		if _, err := std.ExecContext(ctx, `DO $$ BEGIN PERFORM pg_advisory_xact_lock(4097083627); CREATE SCHEMA IF NOT EXISTS `+
			pgx.Identifier{db.o.Schema}.Sanitize()+`; END $$`); err != nil {
			return fmt.Errorf("make schema %s: %w", db.o.Schema, err)
		}
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 600)) // seconds between looks, and how many
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, std, sub, goose.WithDisableGlobalRegistry(true), goose.WithSessionLocker(locker))
	if err != nil {
		return err
	}
	crashpoint.Hit("sqldb: before migrate")
	err = migrate(ctx, p)
	crashpoint.Hit("sqldb: after migrate")
	return err
}

// Scrub takes what was deleted out of the tables' pages, unless another process is at it. What PostgreSQL keeps elsewhere, in
// its log and in replicas, it cannot reach. (docs/custody.md.)
func (db *Postgres) Scrub(ctx context.Context) error {
	db.scrubbing.Lock()
	defer db.scrubbing.Unlock()
	for _, table := range db.o.Scrubbed {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		_, err := db.pool.Exec(ctx, `VACUUM (SKIP_LOCKED) `+pgx.Identifier{table}.Sanitize())
		cancel()
		if err != nil {
			return unavailable(ctx, err)
		}
	}
	return nil
}

// InTx runs fn in one transaction, read committed. On a conflict, or where the connection was dead before it began, fn runs again.
// Error: custody.ErrInDoubt where the server did not answer the commit.
func (db *Postgres) InTx(ctx context.Context, fn func(Querier) error) error {
	for try := 1; ; try++ {
		begun, err := db.transact(ctx, fn)
		if err == nil {
			db.broadcast()
			return nil
		}
		again := conflicts(err) || !begun && disconnected(err)
		if try == attempts || !again || ctx.Err() != nil {
			return unavailable(ctx, err)
		}
		stepAside(ctx, try)
	}
}

// stepAside lets the transaction that won go first: one that lost and runs again at once can take its row from under it.
func stepAside(ctx context.Context, try int) {
	select {
	case <-time.After(rand.N(stepsAside << try)):
	case <-ctx.Done():
	}
}

func (db *Postgres) transact(outer context.Context, fn func(Querier) error) (begun bool, err error) {
	ctx, cancel := context.WithTimeout(outer, txTimeout)
	defer cancel()
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return false, db.reset(err)
	}
	defer conn.Release()
	begin := `BEGIN ISOLATION LEVEL READ COMMITTED`
	if db.o.Organizations { // in one round trip; it takes no parameters
		begin += `; SELECT set_config('accession.organization', ` + quoted(custody.OrganizationScope(outer)) + `, true)`
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin})
	if err != nil {
		return false, db.reset(err)
	}
	end := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.WithoutCancel(outer), endTimeout)
	}
	if err := run(fn, txQuerier{tx, ctx}); err != nil {
		ctx, cancel := end()
		defer cancel()
		_ = tx.Rollback(ctx) // a connection that cannot is closed, and its server rolls back
		return true, db.reset(err)
	}
	crashpoint.Hit("sqldb: before commit")
	ctx, cancelEnd := end()
	defer cancelEnd()
	err = tx.Commit(ctx)
	crashpoint.Hit("sqldb: after commit")
	if err != nil && !refused(err) {
		err = errors.Join(custody.ErrInDoubt, err)
	}
	return true, db.reset(err)
}

// quoted is a literal that means text whatever standard_conforming_strings says.
func quoted(text string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(text) + "'"
}

// Exec refuses: writes go through InTx.
func (db *Postgres) Exec(context.Context, string, ...any) (int64, error) {
	return 0, errors.New("writes go through InTx")
}

// Row implements Querier.
func (db *Postgres) Row(ctx context.Context, text string, args []any, dst ...any) error {
	found := false
	err := db.read(ctx, text, args, func(rows pgx.Rows) error {
		if found {
			return nil
		}
		found = true
		return rows.Scan(dst...)
	})
	if err == nil && !found {
		return custody.ErrNotFound
	}
	return err
}

// Each implements Querier.
func (db *Postgres) Each(ctx context.Context, text string, args []any, fn func(func(...any) error) error) error {
	return db.read(ctx, text, args, func(rows pgx.Rows) error { return fn(rows.Scan) })
}

func (db *Postgres) read(ctx context.Context, text string, args []any, row func(pgx.Rows) error) error {
	for try := 1; ; try++ {
		seen := false
		err := db.readOnce(ctx, text, args, func(rows pgx.Rows) error {
			seen = true
			return row(rows)
		})
		if err == nil || seen || try == attempts || !disconnected(err) || ctx.Err() != nil {
			return unavailable(ctx, err)
		}
	}
}

// readOnce sends the scope and the query together: one round trip, one transaction of their own.
func (db *Postgres) readOnce(ctx context.Context, text string, args []any, row func(pgx.Rows) error) (err error) {
	scope := custody.OrganizationScope(ctx)
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	defer func() { err = db.reset(err) }()
	if !db.o.Organizations {
		rows, err := db.pool.Query(ctx, text, args...)
		if err != nil {
			return err
		}
		return each(rows, row)
	}
	batch := &pgx.Batch{}
	batch.Queue(`SELECT set_config('accession.organization', $1, true)`, scope)
	batch.Queue(text, args...)
	results := db.pool.SendBatch(ctx, batch)
	defer func() {
		if closing := results.Close(); err == nil {
			err = closing
		}
	}()
	if _, err := results.Exec(); err != nil {
		return err
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	return each(rows, row)
}

func each(rows pgx.Rows, row func(pgx.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// txQuerier queries inside a transaction, within its time.
type txQuerier struct {
	tx    pgx.Tx
	bound context.Context
}

func (q txQuerier) within(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, _ := q.bound.Deadline()
	return context.WithDeadline(ctx, deadline)
}

func (q txQuerier) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	ctx, cancel := q.within(ctx)
	defer cancel()
	tag, err := q.tx.Exec(ctx, text, args...)
	return tag.RowsAffected(), err
}

func (q txQuerier) Row(ctx context.Context, text string, args []any, dst ...any) error {
	ctx, cancel := q.within(ctx)
	defer cancel()
	err := q.tx.QueryRow(ctx, text, args...).Scan(dst...)
	if errors.Is(err, pgx.ErrNoRows) {
		return custody.ErrNotFound
	}
	return err
}

func (q txQuerier) Each(ctx context.Context, text string, args []any, fn func(func(...any) error) error) error {
	ctx, cancel := q.within(ctx)
	defer cancel()
	rows, err := q.tx.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	return each(rows, func(rows pgx.Rows) error { return fn(rows.Scan) })
}
