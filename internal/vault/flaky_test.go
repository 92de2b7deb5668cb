package vault_test

import (
	"context"
	"errors"
	"iter"

	"github.com/accession/accession/internal/blobstore"
)

var errFault = errors.New("injected fault")

// flaky is a store that fails where it is told to.
type flaky struct {
	blobstore.Store
	create, open, write, commit, delete, list error
	pretend                                   bool // deletions succeed and do nothing
}

func (f *flaky) Create(ctx context.Context, key string, size int64) (blobstore.Writer, error) {
	if f.create != nil {
		return nil, f.create
	}
	w, err := f.Store.Create(ctx, key, size)
	if err != nil {
		return nil, err
	}
	return &flakyWriter{w, f.write, f.commit}, nil
}

func (f *flaky) Open(ctx context.Context, key string) (blobstore.Object, error) {
	if f.open != nil {
		return nil, f.open
	}
	return f.Store.Open(ctx, key)
}

func (f *flaky) Delete(ctx context.Context, key string) error {
	if f.delete != nil || f.pretend {
		return f.delete
	}
	return f.Store.Delete(ctx, key)
}

func (f *flaky) List(ctx context.Context, prefix string) iter.Seq2[blobstore.Info, error] {
	if f.list != nil {
		return func(yield func(blobstore.Info, error) bool) { yield(blobstore.Info{}, f.list) }
	}
	return f.Store.List(ctx, prefix)
}

type flakyWriter struct {
	blobstore.Writer
	write, commit error
}

func (w *flakyWriter) WriteBlock(p []byte) error {
	if w.write != nil {
		return w.write
	}
	return w.Writer.WriteBlock(p)
}

func (w *flakyWriter) Commit() error {
	if w.commit != nil {
		return w.commit
	}
	return w.Writer.Commit()
}

type failingReader struct{ err error }

func (r *failingReader) Read([]byte) (int, error) { return 0, r.err }
