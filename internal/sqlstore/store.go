// Package sqlstore keeps the metadata of custody: one set of queries for every engine behind sqldb. No content is ever in
// it, nor a key: only names, sizes, digests, states and evidence.
package sqlstore

import (
	"context"
	"embed"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Store is the metadata of one installation. Its methods read; changes go through InTx.
type Store struct {
	queries
	db sqldb.DB
}

// Tx is one transaction: it reads what Store reads, and changes it.
type Tx struct{ queries }

// queries are the reads, on the database or inside a transaction.
type queries struct {
	q sqldb.Querier
	d sqldb.Dialect
}

// Open brings the schema up to date and returns the store. Close db yourself.
func Open(ctx context.Context, db sqldb.DB) (*Store, error) {
	if err := db.Migrate(ctx, migrations, "migrations/"+db.Dialect().Name); err != nil {
		return nil, err
	}
	return &Store{queries{db, db.Dialect()}, db}, nil
}

// InTx runs fn in one transaction and returns once its changes are durable. fn may be run more than once.
func (s *Store) InTx(ctx context.Context, fn func(*Tx) error) error {
	return s.db.InTx(ctx, func(q sqldb.Querier) error { return fn(&Tx{queries{q, s.d}}) })
}

// Changed is closed at the next commit; take it before reading what you wait on.
func (s *Store) Changed() <-chan struct{} { return s.db.Changed() }

// Work is closed when an upload or a delivery may have become due; take it before looking for one.
func (s *Store) Work() <-chan struct{} { return s.db.Work() }

// Scrub leaves nothing of what was overwritten or deleted in the database's files, where the engine can do that.
func (s *Store) Scrub(ctx context.Context) error {
	if db, ok := s.db.(interface{ Scrub(context.Context) error }); ok {
		return db.Scrub(ctx)
	}
	return nil
}

// Ping answers whether the database does, and whether its file is sound where there is one.
func (s *Store) Ping(ctx context.Context) error {
	if db, ok := s.db.(interface{ Sound(context.Context) error }); ok {
		return db.Sound(ctx)
	}
	var one int
	return s.q.Row(ctx, `SELECT 1`, nil, &one)
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// one turns "no row changed" into the conflict that it is.
func one(n int64, err error) error {
	if err == nil && n != 1 {
		return custody.ErrConflict
	}
	return err
}
