// Package sqldb lets one hand-written SQL text, with $n parameters bound in ascending order, run on every database engine.
// A limit that is a parameter is written LIMIT $n + 0 where a text runs often: SQLite looks at a bare one to plan, and so prepares
// the statement anew at every run.
// The engine's own driver stays behind Querier; what differs between engines stands in Dialect.
package sqldb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// ErrLaterSchema says that a later version of the service has changed the schema, so that this one must not write to it.
var ErrLaterSchema = errors.New("the schema was made by a later version of accession")

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
	// Work is closed when rows may have become due, and at least each second where other processes make them so; take it before
	// looking for them.
	Work() <-chan struct{}
	Dialect() Dialect
	// Migrate brings the schema to the newest version in dir of files. Error: ErrLaterSchema where it is newer than that.
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

// migrate applies what is missing, and refuses a schema that is ahead: goose would leave it and say nothing.
func migrate(ctx context.Context, p *goose.Provider) error {
	if _, err := p.Up(ctx); err != nil {
		return err
	}
	at, known, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if at > known {
		return fmt.Errorf("%w: it has schema %d, this one knows up to %d; start the later version, or restore the backup from before it", ErrLaterSchema, at, known)
	}
	return nil
}
