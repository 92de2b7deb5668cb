package sqldb

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
)

// To prepare a statement costs SQLite more than to run it, so each text is prepared once for each connection. The texts are those
// in the code, so there are few, and they are kept until the database is closed; mostKept of them, should a text vary after all.
const mostKept = 1024

// prepared runs statements on connections that only read. Each use has a connection of its own for as long as it takes.
type prepared struct {
	*sql.DB
	kept  sync.Map // text: *sql.Stmt
	count atomic.Int32
}

// statement is nil where it cannot be prepared, and running it then says why; or where enough are kept.
func (p *prepared) statement(ctx context.Context, text string) *sql.Stmt {
	if s, ok := p.kept.Load(text); ok {
		return s.(*sql.Stmt)
	}
	if p.count.Load() >= mostKept {
		return nil
	}
	s, err := p.PrepareContext(ctx, text)
	if err != nil {
		return nil
	}
	p.count.Add(1)
	first, already := p.kept.LoadOrStore(text, s)
	if already {
		_ = s.Close() // nobody has used it
	}
	return first.(*sql.Stmt)
}

func (p *prepared) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if s := p.statement(ctx, text); s != nil {
		return s.QueryContext(ctx, args...)
	}
	return p.DB.QueryContext(ctx, text, args...)
}

func (p *prepared) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	if s := p.statement(ctx, text); s != nil {
		return s.QueryRowContext(ctx, args...)
	}
	return p.DB.QueryRowContext(ctx, text, args...)
}

// writer keeps the statements of the one connection that writes. Only the goroutine that commits uses it.
type writer struct {
	*sql.DB
	kept map[string]*sql.Stmt
}

// batch is one transaction on that connection.
type batch struct {
	*sql.Tx
	writer *writer
	used   map[string]*sql.Stmt
	open   map[string]bool // whose rows are being read
}

func (w *writer) begin(ctx context.Context) (*batch, error) {
	tx, err := w.BeginTx(ctx, nil)
	return &batch{tx, w, map[string]*sql.Stmt{}, map[string]bool{}}, err
}

// keep prepares what a batch has used for the batches after it; while it runs it has the connection.
func (w *writer) keep(ctx context.Context, b *batch) {
	for text := range b.used {
		if w.kept[text] != nil || len(w.kept) >= mostKept {
			continue
		}
		if s, err := w.PrepareContext(ctx, text); err == nil { // or else the next batch tries
			w.kept[text] = s
		}
	}
}

// statement is nil where it cannot be prepared, or where its rows are being read: to run it again would begin them anew.
func (b *batch) statement(ctx context.Context, text string) *sql.Stmt {
	if b.open[text] {
		return nil
	}
	s := b.used[text]
	if s != nil {
		return s
	}
	if kept := b.writer.kept[text]; kept != nil {
		s = b.StmtContext(ctx, kept)
	} else {
		var err error
		if s, err = b.PrepareContext(ctx, text); err != nil {
			return nil
		}
	}
	b.used[text] = s
	return s
}

func (b *batch) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	if s := b.statement(ctx, text); s != nil {
		return s.ExecContext(ctx, args...)
	}
	return b.Tx.ExecContext(ctx, text, args...)
}

func (b *batch) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if s := b.statement(ctx, text); s != nil {
		return s.QueryContext(ctx, args...)
	}
	return b.Tx.QueryContext(ctx, text, args...)
}

func (b *batch) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	if s := b.statement(ctx, text); s != nil {
		return s.QueryRowContext(ctx, args...)
	}
	return b.Tx.QueryRowContext(ctx, text, args...)
}

// reading marks a text as being read until the returned function is called.
func (b *batch) reading(text string) func() {
	if b.open[text] {
		return func() {} // by one further out
	}
	b.open[text] = true
	return func() { delete(b.open, text) }
}
