package blobstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"testing/iotest"
)

// sealParts seals content in parts of at most size bytes.
func sealParts(t testing.TB, s Store, dataKey, content []byte, size int) []Part {
	t.Helper()
	var parts []Part
	for start := 0; start < len(content); start += size {
		n := min(size, len(content)-start)
		part := Part{Key: fmt.Sprintf("parts/%06d", len(parts)+1), AAD: fmt.Appendf(nil, "upl_1/%d", len(parts)+1), Size: int64(n)}
		if err := Seal(t.Context(), s, part.Key, dataKey, part.AAD, bytes.NewReader(content[start:start+n]), part.Size); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
	}
	return parts
}

func TestConcatIsTheWholeFile(t *testing.T) {
	dataKey := random(32)
	for _, test := range []struct{ size, partSize int }{
		{0, 10}, {1, 10}, {10, 10}, {95, 10}, {300_000, 100_000}, {5<<20 + 1, 2 << 20},
	} {
		t.Run(fmt.Sprintf("%d in parts of %d", test.size, test.partSize), func(t *testing.T) {
			want := random(test.size)
			store := &counting{Store: newDisk(t)}
			parts := sealParts(t, store, dataKey, want, test.partSize)
			file, err := Concat(t.Context(), store, dataKey, parts...)
			if err != nil {
				t.Fatal(err)
			}
			if file.Size() != int64(test.size) {
				t.Errorf("size %d, want %d", file.Size(), test.size)
			}
			if store.opens != 0 {
				t.Errorf("%d parts were opened before any read", store.opens)
			}
			if err := iotest.TestReader(io.NewSectionReader(file, 0, file.Size()), want); err != nil {
				t.Error(err)
			}
			if store.open > maxOpenParts {
				t.Errorf("%d parts are open, want at most %d", store.open, maxOpenParts)
			}
			if err := file.Close(); err != nil {
				t.Error(err)
			}
			if store.open != 0 {
				t.Errorf("%d parts are open after close", store.open)
			}
			if _, err := file.ReadAt(make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
				t.Errorf("read after close: %v, want os.ErrClosed", err)
			}
		})
	}
}

func TestConcatOpensEveryPartOnceWhenReadThrough(t *testing.T) {
	dataKey, want := random(32), random(100_000)
	store := &counting{Store: newDisk(t)}
	parts := sealParts(t, store, dataKey, want, 9_000)
	file, err := Concat(t.Context(), store, dataKey, parts...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(io.NewSectionReader(file, 0, file.Size()))
	if err := errors.Join(err, file.Close()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v, or other bytes", err)
	}
	if store.opens != len(parts) {
		t.Errorf("%d parts were opened %d times", len(parts), store.opens)
	}
}

func TestConcatRefuses(t *testing.T) {
	dataKey, content := random(32), random(3000)
	disk := newDisk(t)
	for name, test := range map[string]struct {
		change func(parts []Part)
		want   error
	}{
		"swapped parts":  {func(p []Part) { p[0].Key, p[1].Key = p[1].Key, p[0].Key }, ErrCorrupt},
		"a smaller size": {func(p []Part) { p[1].Size-- }, ErrCorrupt},
		"a larger size":  {func(p []Part) { p[1].Size++ }, ErrCorrupt},
		"other aad":      {func(p []Part) { p[2].AAD = []byte("upl_2/3") }, ErrCorrupt},
		"missing part":   {func(p []Part) { p[1].Key = "parts/000009" }, ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			store := &counting{Store: disk}
			parts := sealParts(t, newDisk(t), dataKey, content, 1000) // for the descriptions
			if len(keys(t, disk, "")) == 0 {
				sealParts(t, disk, dataKey, content, 1000)
			}
			test.change(parts)
			file, err := Concat(t.Context(), store, dataKey, parts...)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = io.Copy(io.Discard, io.NewSectionReader(file, 0, file.Size())); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if err := file.Close(); err != nil || store.open != 0 {
				t.Errorf("close: %v, %d parts open", err, store.open)
			}
		})
	}
	for _, size := range []int64{0, -1, 1 << 62} {
		if _, err := Concat(t.Context(), disk, dataKey, Part{Key: "a", Size: 1}, Part{Key: "b", Size: size}); err == nil {
			t.Errorf("a part of size %d was accepted", size)
		}
	}
}

func TestConcatHeedsItsContext(t *testing.T) {
	dataKey := random(32)
	disk := newDisk(t)
	ctx, cancel := context.WithCancel(t.Context())
	file, err := Concat(ctx, disk, dataKey, sealParts(t, disk, dataKey, random(100), 50)...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.ReadAt(make([]byte, 10), 0); err != nil {
		t.Error(err)
	}
	cancel()
	if _, err := file.ReadAt(make([]byte, 10), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}
