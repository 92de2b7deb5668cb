package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/accession/accession/internal/custody"
)

// sqliteCode is SQLite's primary result code, 0 where err is none of its errors. (sqlite.org/rescode.html.)
func sqliteCode(err error) int {
	var answer *sqlite.Error
	if errors.As(err, &answer) {
		return answer.Code() & 0xff
	}
	return 0
}

// damage is what statements found out about a file.
type damage struct {
	met  atomic.Bool // a page is not as it was written
	kept atomic.Bool // the writer may have it in memory
}

// Sound tells whether the file is readable and, once any statement has met a damaged page, looks at every page until none is: the
// file may have been put back. That takes as long as the file is large, and does not end with ctx.
func (db *SQLite) Sound(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if !db.damaged.met.Load() {
		return db.Row(ctx, `SELECT COUNT(*) FROM sqlite_schema`, nil, new(int))
	}
	forget(db.read, readers)
	var verdict string
	if err := db.Row(ctx, `PRAGMA quick_check(1)`, nil, &verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return errors.New("the database is damaged: " + verdict)
	}
	db.damaged.met.Store(false)
	return nil
}

// forget closes connections that nobody uses, with the pages that they keep in memory: those may be damaged ones.
func forget(connections *sql.DB, idle int) {
	connections.SetMaxIdleConns(0)
	connections.SetMaxIdleConns(idle)
}

// visible is what a caller gets to see of SQLite: storage_full where there is no room, service_unavailable where the file, the
// file system or another process kept it from working, so that the request may be repeated; any other error as it is.
func (q sqlQuerier) visible(err error) error {
	var known *custody.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	switch sqliteCode(err) {
	case sqlite3.SQLITE_FULL:
		return custody.StorageFull(err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		q.damaged.met.Store(true)
		q.damaged.kept.Store(true)
		return custody.Unavailable(err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, // another process holds it
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, // no file descriptor, no memory
		sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR:
		return custody.Unavailable(err)
	}
	return err
}

// undone tells that a commit surely did not happen: it was refused, had to wait for somebody else, or found no room for its last
// frame. After any other failure all of its frames may lie in the write-ahead log, and count after a restart.
func undone(err error) bool {
	switch sqliteCode(err) {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL:
		return true
	}
	return false
}
