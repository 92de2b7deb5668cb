package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accession/accession/internal/crashpoint"
	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/planted"
	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver named "sqlite"
)

const (
	readers   = 4  // connections that only read
	batchSize = 64 // transactions in one durable commit
	// busyTimeout is how long one statement waits for another process that holds the file, in milliseconds.
	busyTimeout = 5000
	// turnTimeout is how long a transaction waits for its batch to begin, behind a writer that has to wait itself.
	turnTimeout = 8 * time.Second
)

// SQLite is one database file: a single writer that commits waiting transactions together, and four readers.
type SQLite struct {
	sqlQuerier // reads
	write      *writer
	read       *sql.DB
	queue      chan *unit
	closing    chan struct{}
	closed     sync.WaitGroup
	damaged    *damage

	mu      sync.Mutex
	changed chan struct{}
}

// unit is one caller's transaction, waiting for or inside a batch.
type unit struct {
	ctx   context.Context
	fn    func(Querier) error
	taken atomic.Bool // by the writer, which runs it, or by its caller, who gave up
	err   error
	done  chan struct{}
}

// SQLiteOptions tune one file.
type SQLiteOptions struct {
	// SecureDelete overwrites deleted content, and Scrub then also empties the write-ahead log.
	SecureDelete bool
}

// OpenSQLite opens or creates the file at path. Commits are durable (WAL, synchronous FULL). (Architecture,
// "The state is the queue".)
func OpenSQLite(path string, o SQLiteOptions) (*SQLite, error) {
	// The driver would make it readable for everybody; log and shared memory take the file's mode.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	// recursive_triggers lets the triggers that keep evidence see a REPLACE too.
	pragmas := []string{fmt.Sprintf("busy_timeout(%d)", busyTimeout), "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "recursive_triggers(1)"}
	if o.SecureDelete {
		pragmas = append(pragmas, "secure_delete(1)")
	}
	base := "file:" + (&url.URL{Path: path}).EscapedPath()
	// What a savepoint would take back stays in memory until it is released: it is small, and in a temporary file it would outlive what is
	// deleted here.
	write, err := sql.Open("sqlite", base+"?"+url.Values{"_pragma": append(slices.Clone(pragmas), "temp_store(MEMORY)"), "_txlock": {"immediate"}}.Encode())
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	if err := write.Ping(); err != nil { // creates the file before any reader looks for it
		return nil, errors.Join(fmt.Errorf("open database: %w", err), write.Close())
	}
	if o.SecureDelete {
		// A process that was killed between a deletion and its Scrub left what it deleted in the log. Where that is in use, by a
		// backup, it stays until the next Scrub; a file that is damaged says so at its first use.
		_, _ = write.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
	}
	read, err := sql.Open("sqlite", base+"?"+url.Values{"_pragma": append(pragmas, "query_only(1)")}.Encode())
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	damaged := &damage{}
	db := &SQLite{
		sqlQuerier: sqlQuerier{&prepared{DB: read}, damaged}, write: &writer{write, map[string]*sql.Stmt{}}, read: read, damaged: damaged,
		queue: make(chan *unit, 4*batchSize), closing: make(chan struct{}), changed: make(chan struct{}),
	}
	db.closed.Go(db.commitLoop)
	return db, nil
}

// Close waits for the running batch; transactions that still wait fail.
func (db *SQLite) Close() error {
	close(db.closing)
	db.closed.Wait()
	return errors.Join(db.read.Close(), db.write.Close())
}

// Dialect of SQLite: one writer, so nothing needs locking.
func (db *SQLite) Dialect() Dialect {
	return Dialect{Name: "sqlite", Now: sqliteNow}
}

// Changed is closed at the next commit.
func (db *SQLite) Changed() <-chan struct{} {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.changed
}

// Work is closed at every commit: there is one process, and looking costs it little.
func (db *SQLite) Work() <-chan struct{} { return db.Changed() }

func (db *SQLite) broadcast() {
	db.mu.Lock()
	defer db.mu.Unlock()
	close(db.changed)
	db.changed = make(chan struct{})
}

// Migrate runs the SQL files of dir that this database has not seen yet.
func (db *SQLite) Migrate(ctx context.Context, files fs.FS, dir string) error {
	sub, err := fs.Sub(files, dir)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db.write.DB, sub, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	crashpoint.Hit("sqldb: before migrate")
	// A migration may change every page there is: too much for memory.
	if _, err = db.write.ExecContext(ctx, `PRAGMA temp_store = DEFAULT`); err == nil {
		err = migrate(ctx, p)
		_, back := db.write.ExecContext(context.WithoutCancel(ctx), `PRAGMA temp_store = MEMORY`)
		err = errors.Join(err, back)
	}
	crashpoint.Hit("sqldb: after migrate")
	return err
}

// Scrub moves everything from the write-ahead log into the file and empties the log, so that what was deleted with
// SecureDelete is in neither.
func (db *SQLite) Scrub(ctx context.Context) error {
	crashpoint.Hit("sqldb: before scrub")
	var busy, log, moved int
	if err := db.write.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &log, &moved); err != nil {
		return db.visible(err)
	}
	if busy != 0 {
		return custody.Unavailable(errors.New("write-ahead log is in use and could not be emptied"))
	}
	crashpoint.Hit("sqldb: after scrub")
	return nil
}

// InTx waits for its turn in a batch. Once the batch has begun, ctx no longer ends it: one cancelled caller must not roll
// back everybody's work. Errors: service_unavailable where its turn does not come, storage_full, and custody.ErrInDoubt where
// SQLite failed in the middle of the commit.
func (db *SQLite) InTx(ctx context.Context, fn func(Querier) error) error {
	u := &unit{ctx: ctx, fn: fn, done: make(chan struct{})}
	turn := time.NewTimer(turnTimeout)
	defer turn.Stop()
	select {
	case db.queue <- u:
	case <-ctx.Done():
		return left(ctx)
	case <-turn.C:
		return custody.Unavailable(errNoTurn)
	case <-db.closing:
		return custody.Unavailable(errClosed)
	}
	select {
	case <-u.done:
		return u.err
	case <-ctx.Done():
		if u.taken.CompareAndSwap(false, true) {
			return left(ctx)
		}
	case <-turn.C:
		if u.taken.CompareAndSwap(false, true) {
			return custody.Unavailable(errNoTurn)
		}
	case <-db.closing:
	}
	select {
	case <-u.done:
		return u.err
	case <-db.closing:
		db.closed.Wait() // the loop answered it, or never will
		select {
		case <-u.done:
			return u.err
		default:
			return custody.Unavailable(errClosed)
		}
	}
}

// left is why nobody waits any more: the caller went away, or had given the database so much time and no more.
func left(ctx context.Context) error {
	if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return custody.Unavailable(context.DeadlineExceeded)
}

var (
	errClosed = errors.New("database is closed")
	errNoTurn = errors.New("the database is busy with earlier transactions")
)

func (db *SQLite) commitLoop() {
	for {
		select {
		case first := <-db.queue:
			db.commit(db.fill(first))
		case <-db.closing:
			return
		}
	}
}

// fill takes whatever else waits already.
func (db *SQLite) fill(first *unit) []*unit {
	batch := []*unit{first}
	for len(batch) < batchSize {
		select {
		case u := <-db.queue:
			batch = append(batch, u)
		default:
			return batch
		}
	}
	return batch
}

// commit makes every unit a savepoint of one durable commit: a unit that fails takes back its own changes only.
func (db *SQLite) commit(batch []*unit) {
	err := db.runBatch(batch)
	for _, u := range batch {
		if err != nil {
			u.err = db.visible(fmt.Errorf("commit: %w", err))
		}
		close(u.done)
	}
	if err == nil {
		db.broadcast()
	}
}

func (db *SQLite) runBatch(batch []*unit) error {
	ctx := context.Background()
	if db.damaged.kept.CompareAndSwap(true, false) {
		forget(db.write.DB, 1)
	}
	tx, err := db.write.begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		_ = tx.Rollback() // after Commit this does nothing
		db.write.keep(ctx, tx)
	}()
	for _, u := range batch {
		if !u.taken.CompareAndSwap(false, true) {
			continue // gave up while waiting
		}
		if u.ctx.Err() != nil {
			u.err = left(u.ctx)
			continue
		}
		if _, err := tx.ExecContext(ctx, "SAVEPOINT unit"); err != nil {
			return err
		}
		if u.err = run(u.fn, sqlQuerier{tx, db.damaged}); u.err != nil {
			if _, err := tx.ExecContext(ctx, "ROLLBACK TO unit"); err != nil {
				// The engine has given up the whole transaction, of which the unit's error says why; it is no answer for the others.
				return custody.Unavailable(fmt.Errorf("%w, after: %v", err, u.err))
			}
		}
		if _, err := tx.ExecContext(ctx, "RELEASE unit"); err != nil {
			return err
		}
	}
	if planted.Bug("acknowledged-before-commit") {
		for i, u := range batch {
			close(u.done)
			batch[i] = &unit{done: make(chan struct{})} // nobody waits for what becomes of it
		}
	}
	crashpoint.Hit("sqldb: before commit")
	err = tx.Commit()
	crashpoint.Hit("sqldb: after commit")
	if err != nil && !undone(err) {
		err = errors.Join(custody.ErrInDoubt, err)
	}
	return err
}

// run turns a panic into this unit's error: the writer serves everybody.
func run(fn func(Querier) error, q Querier) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("transaction panicked: %v", r)
		}
	}()
	return fn(q)
}

type stdlib interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

type sqlQuerier struct {
	std     stdlib
	damaged *damage
}

func (q sqlQuerier) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	r, err := q.std.ExecContext(context.WithoutCancel(ctx), text, args...)
	if err != nil {
		return 0, q.visible(err)
	}
	return r.RowsAffected()
}

func (q sqlQuerier) Row(ctx context.Context, text string, args []any, dst ...any) error {
	err := q.std.QueryRowContext(context.WithoutCancel(ctx), text, args...).Scan(dst...)
	if errors.Is(err, sql.ErrNoRows) {
		return custody.ErrNotFound
	}
	return q.visible(err)
}

func (q sqlQuerier) Each(ctx context.Context, text string, args []any, fn func(func(...any) error) error) error {
	rows, err := q.std.QueryContext(context.WithoutCancel(ctx), text, args...)
	if err != nil {
		return q.visible(err)
	}
	if b, ok := q.std.(*batch); ok {
		defer b.reading(text)()
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows.Scan); err != nil {
			return err
		}
	}
	return q.visible(rows.Err())
}
