package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// SealedReader gives random access to the plaintext of a sealed object. Nothing that
// failed authentication is ever returned. Until Close it holds a window of
// 1 MiB, or the whole of a shorter object. Its methods are safe for concurrent use; reads take turns.
type SealedReader struct {
	store  string
	object Object
	cipher *segmentCipher
	size   int64 // plaintext
	last   int64 // number of the last segment

	mu     sync.Mutex
	window *block                   // nil after Close
	first  int64                    // segment at the start of the window
	plain  [segmentsPerBlock][]byte // decrypted segments of the window; nil: not yet
	count  int64                    // segments in the window
	next   int64                    // segment that a sequential reader asks for next
}

// OpenSealed opens an object that Seal wrote with the same dataKey (32 bytes) and aad.
// The last segment is authenticated at once, so the length is known to be true:
// ErrCorrupt when the object was altered there, cut or extended, or when key or aad
// are not its own; ErrNotFound when it is absent. ReadAt finds ErrCorrupt elsewhere.
// ctx must outlive the reads (Store.Open).
func OpenSealed(ctx context.Context, s Store, key string, dataKey, aad []byte) (*SealedReader, error) {
	object, err := s.Open(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("open sealed: %w", err)
	}
	r := &SealedReader{store: s.Name(), object: object, window: newBlock(min(BlockSize, object.Size()))}
	if err := r.authenticate(dataKey, aad); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: open sealed: %w", r.store, err), r.Close())
	}
	return r, nil
}

func (r *SealedReader) authenticate(dataKey, aad []byte) error {
	var ok bool
	if r.size, ok = plainSize(r.object.Size()); !ok {
		return ErrCorrupt
	}
	r.last = segments(r.size) - 1
	var header [headerSize]byte
	if err := r.readObject(header[:], 0); err != nil {
		return err
	}
	if header[0] != headerSize {
		return ErrCorrupt
	}
	var err error
	if r.cipher, err = newSegmentCipher(dataKey, aad, header); err != nil {
		return err
	}
	if r.last < segmentsPerBlock { // all of it fits, and will be wanted
		err = r.fetch(0)
	} else {
		err = r.fetch(r.last)
	}
	if err != nil {
		return err
	}
	_, err = r.segment(r.last)
	r.next = 0
	return err
}

// Size is the length of the plaintext in bytes.
func (r *SealedReader) Size() int64 { return r.size }

// Close releases the object. Reads after it fail with os.ErrClosed.
func (r *SealedReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.window == nil {
		return nil
	}
	clear(r.plain[:])
	r.window.release()
	r.window = nil
	return r.object.Close()
}

// ReadAt implements io.ReaderAt over the plaintext. Besides io.EOF it fails with
// ErrCorrupt, or with the store's own error when the bytes could not be had.
func (r *SealedReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("%s: read sealed: offset %d is negative", r.store, off)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.window == nil {
		return 0, fmt.Errorf("%s: read sealed: %w", r.store, os.ErrClosed)
	}
	n := 0
	for n < len(p) {
		if off >= r.size {
			return n, io.EOF
		}
		number := (off + headerSize) / plainPerSegment
		start := max(0, number*plainPerSegment-headerSize)
		plain, err := r.segment(number)
		if err != nil {
			return n, fmt.Errorf("%s: read sealed: %w", r.store, err)
		}
		m := copy(p[n:], plain[off-start:])
		n += m
		off += int64(m)
	}
	return n, nil
}

// segment returns the plaintext of one segment, decrypted once while in the window.
func (r *SealedReader) segment(number int64) ([]byte, error) {
	if number < r.first || number >= r.first+r.count {
		if err := r.fetch(number); err != nil {
			return nil, err
		}
	}
	i := number - r.first
	if r.plain[i] != nil {
		return r.plain[i], nil
	}
	start, end := i*segmentSize, min((i+1)*segmentSize, r.object.Size()-r.first*segmentSize)
	if number == 0 {
		start = headerSize
	}
	plain, err := r.cipher.open(r.window.buf[start:end], number, number == r.last)
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w", number, err)
	}
	r.plain[i] = plain
	return plain, nil
}

// fetch reads the segment into the window; a whole window full when the access is
// sequential, because a store may be far away.
func (r *SealedReader) fetch(number int64) error {
	count := int64(1)
	if number == r.next {
		count = min(segmentsPerBlock, r.last-number+1)
	}
	clear(r.plain[:])
	r.count = 0
	start := number * segmentSize
	end := min((number+count)*segmentSize, r.object.Size())
	if err := r.readObject(r.window.buf[:end-start], start); err != nil {
		return err
	}
	r.first, r.count, r.next = number, count, number+count
	return nil
}

// readObject fills p; ErrCorrupt when the object ends before.
func (r *SealedReader) readObject(p []byte, off int64) error {
	n, err := r.object.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return ErrCorrupt
	}
	return err
}
