package move_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/accession/accession/internal/blobstore"
	"github.com/accession/accession/internal/move"
)

func disk(t *testing.T) (*blobstore.Disk, string) {
	t.Helper()
	root := t.TempDir()
	d, err := blobstore.NewDisk("staging", root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, root
}

func written(t *testing.T, root, name string, content []byte) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestObjectsAreCopiedOnceAndWhole(t *testing.T) {
	from, source := disk(t)
	to, target := disk(t)
	content := map[string][]byte{
		"uploads/upl_1/parts/000001-a": bytes.Repeat([]byte("0123456789abcdef"), 200_000), // several blocks, the last not full
		"uploads/upl_1/derived/text-b": []byte("x"),
		"uploads/upl_2/parts/000001-c": {},
	}
	for name, b := range content {
		written(t, source, name, b)
	}
	written(t, source, "lost+found/What", []byte("of the file system"))
	written(t, target, "uploads/upl_1/parts/000001-a", content["uploads/upl_1/parts/000001-a"][:5000]) // as a death leaves it
	for _, before := range []int64{0, 3} {
		c, err := move.Objects(t.Context(), from, to, func(move.Copied) {})
		if err != nil || c.Objects != 3 || c.Bytes != 3_200_001 || c.Before != before || !slices.Equal(c.LeftOut, []string{"lost+found/What"}) {
			t.Fatalf("%+v, %v; want %d of an earlier run", c, err, before)
		}
	}
	for name, want := range content {
		if got, err := os.ReadFile(filepath.Join(target, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if n, err := move.Clear(t.Context(), from); err != nil || n != 3 {
		t.Errorf("cleared %d, %v", n, err)
	}
}

// lying changes one byte of what is written.
type lying struct{ blobstore.Store }

type lyingWriter struct{ blobstore.Writer }

func (l lying) Create(ctx context.Context, key string, size int64) (blobstore.Writer, error) {
	w, err := l.Store.Create(ctx, key, size)
	return lyingWriter{w}, err
}

func (w lyingWriter) WriteBlock(p []byte) error {
	p = bytes.Clone(p)
	p[0] ^= 1
	return w.Writer.WriteBlock(p)
}

func TestObjectsAreReadBack(t *testing.T) {
	from, source := disk(t)
	to, _ := disk(t)
	written(t, source, "uploads/upl_1/parts/000001-a", []byte("sealed"))
	if _, err := move.Objects(t.Context(), from, lying{to}, func(move.Copied) {}); !errors.Is(err, move.ErrDiffers) {
		t.Errorf("got %v", err)
	}
}

func TestDestroyedFilesAreOverwrittenFirst(t *testing.T) {
	dir := t.TempDir()
	path, kept := filepath.Join(dir, "keys.db"), filepath.Join(dir, "kept")
	written(t, dir, "keys.db", bytes.Repeat([]byte("wrapped"), 300_000))
	written(t, dir, "keys.db-wal", []byte("wrapped"))
	if err := os.Link(path, kept); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := move.Destroy(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{path, path + "-wal"} {
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := os.ReadFile(kept); err != nil || len(b) != 2_100_000 || len(bytes.Trim(b, "\x00")) != 0 {
		t.Errorf("%d bytes left, %v", len(b), err)
	}
}
