// Package sqldb lets one hand-written SQL text, with $n parameters bound in ascending order, run on every database engine.
// The engine's own driver stays behind Querier; what differs between engines stands in Dialect.
package sqldb

import (
	"context"
	"io/fs"
)

// Querier runs SQL: on the database (reads), or inside one transaction.
type Querier interface {
	// Exec returns the number of rows the statement changed.
	Exec(ctx context.Context, sql string, args ...any) (int64, error)
	// Row scans the first row into dst; custody.ErrNotFound where there is none.
	Row(ctx context.Context, sql string, args []any, dst ...any) error
	// Each calls fn for every row; fn calls scan once.
	Each(ctx context.Context, sql string, args []any, fn func(scan func(dst ...any) error) error) error
}

// DB is one database. Writes go through InTx only.
type DB interface {
	Querier
	// InTx runs fn in one transaction and returns once it is durable. fn touches nothing but its Querier and may be
	// run again on a conflict. An error from fn rolls back fn's own changes and is returned as it is.
	InTx(ctx context.Context, fn func(Querier) error) error
	// Changed is closed at the next commit; take it before reading what you wait on.
	Changed() <-chan struct{}
	Dialect() Dialect
	// Migrate brings the schema to the newest version in dir of files.
	Migrate(ctx context.Context, files fs.FS, dir string) error
	Close() error
}

// Dialect is every difference between engines that a query needs.
type Dialect struct {
	Name       string // of the folder with its migrations
	Now        string // the database's clock in Unix milliseconds
	SkipLocked string // ends a select that claims rows
	ForUpdate  string // ends a select that reads a row to change it
	Exclusive  string // with a table for %s, keeps its other writers out until the transaction ends; empty where there are none
}
