package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"sync"
)

// maxOpenParts bounds the memory of a SealedFile: each open part holds 1 MiB at most.
const maxOpenParts = 4

// Part is one sealed object of a file.
type Part struct {
	Key  string // in the store
	AAD  []byte // as given to Seal
	Size int64  // plaintext bytes, 1 or more
}

// SealedFile presents the plaintext of a file's parts as one. Parts are opened when
// first read; the four used last stay open. Its methods are safe for concurrent use;
// reads take turns.
type SealedFile struct {
	ctx     context.Context // of the reads, which io.ReaderAt gives none
	store   Store
	dataKey []byte
	parts   []Part
	ends    []int64 // offset after each part

	mu     sync.Mutex
	open   []openPart // used last comes last
	closed bool
}

type openPart struct {
	index  int
	reader *SealedReader
}

// Concat joins the parts, in their order, that Seal wrote to s with dataKey. It opens
// nothing yet: ErrNotFound and ErrCorrupt come from ReadAt, ErrCorrupt also for a part
// whose size is not the one stated. It fails when a size is below 1 byte. ctx governs
// the reads. To stream it: io.NewSectionReader(f, 0, f.Size()).
func Concat(ctx context.Context, s Store, dataKey []byte, parts ...Part) (*SealedFile, error) {
	f := &SealedFile{ctx: ctx, store: s, dataKey: slices.Clone(dataKey), parts: slices.Clone(parts)}
	end := int64(0)
	for i, part := range parts {
		if part.Size < 1 || part.Size > maxSealed-end {
			return nil, fmt.Errorf("%s: concat: part %d of %d has size %d", s.Name(), i+1, len(parts), part.Size)
		}
		end += part.Size
		f.ends = append(f.ends, end)
	}
	return f, nil
}

// Size is the length of the whole plaintext in bytes.
func (f *SealedFile) Size() int64 {
	if len(f.ends) == 0 {
		return 0
	}
	return f.ends[len(f.ends)-1]
}

// ReadAt implements io.ReaderAt over the whole plaintext.
func (f *SealedFile) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("%s: read sealed: offset %d is negative", f.store.Name(), off)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, fmt.Errorf("%s: read sealed: %w", f.store.Name(), os.ErrClosed)
	}
	n := 0
	for n < len(p) {
		i := sort.Search(len(f.ends), func(i int) bool { return f.ends[i] > off })
		if i == len(f.ends) {
			return n, io.EOF
		}
		if err := f.ctx.Err(); err != nil {
			return n, fmt.Errorf("%s: read sealed: %w", f.store.Name(), err)
		}
		part, err := f.part(i)
		if err != nil {
			return n, fmt.Errorf("part %d of %d: %w", i+1, len(f.parts), err)
		}
		want := p[n : n+int(min(int64(len(p)-n), f.ends[i]-off))]
		m, err := part.ReadAt(want, off-(f.ends[i]-f.parts[i].Size))
		n += m
		off += int64(m)
		if err != nil {
			return n, fmt.Errorf("part %d of %d: %w", i+1, len(f.parts), err)
		}
	}
	return n, nil
}

// part returns the open reader of a part; the one not used for longest makes room.
func (f *SealedFile) part(index int) (*SealedReader, error) {
	if i := slices.IndexFunc(f.open, func(o openPart) bool { return o.index == index }); i >= 0 {
		used := f.open[i]
		f.open = append(slices.Delete(f.open, i, i+1), used)
		return used.reader, nil
	}
	if len(f.open) == maxOpenParts {
		oldest := f.open[0].reader
		f.open = slices.Delete(f.open, 0, 1)
		if err := oldest.Close(); err != nil {
			return nil, err
		}
	}
	reader, err := OpenSealed(f.ctx, f.store, f.parts[index].Key, f.dataKey, f.parts[index].AAD)
	if err != nil {
		return nil, err
	}
	if reader.Size() != f.parts[index].Size {
		err := fmt.Errorf("%s: has %d bytes, not %d: %w", f.store.Name(), reader.Size(), f.parts[index].Size, ErrCorrupt)
		return nil, errors.Join(err, reader.Close())
	}
	f.open = append(f.open, openPart{index, reader})
	return reader, nil
}

// Close closes the open parts. Reads after it fail with os.ErrClosed.
func (f *SealedFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	var errs []error
	for _, o := range f.open {
		errs = append(errs, o.reader.Close())
	}
	f.open = nil
	return errors.Join(errs...)
}
