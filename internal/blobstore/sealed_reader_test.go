package blobstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/iotest"
)

func TestSealedReaderReadsEverySize(t *testing.T) {
	dataKey, aad := random(32), []byte("aad")
	for _, size := range borders {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			disk, want := newDisk(t), random(int(size))
			sealTo(t, disk, "a", dataKey, aad, want)
			r, err := OpenSealed(t.Context(), disk, "a", dataKey, aad)
			if err != nil {
				t.Fatal(err)
			}
			if r.Size() != size {
				t.Errorf("size %d, want %d", r.Size(), size)
			}
			// reads, seeks and reads at odd places, and compares
			if err := iotest.TestReader(io.NewSectionReader(r, 0, size), want); err != nil {
				t.Error(err)
			}
			if n, err := r.ReadAt(make([]byte, 1), size); n != 0 || err != io.EOF {
				t.Errorf("read at the end: %d, %v", n, err)
			}
			if _, err := r.ReadAt(make([]byte, 1), -1); err == nil {
				t.Error("a negative offset was accepted")
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if _, err := r.ReadAt(make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
				t.Errorf("read after close: %v, want os.ErrClosed", err)
			}
			if err := r.Close(); err != nil {
				t.Error("second close:", err)
			}
		})
	}
}

func TestSealedReaderIsSafeForConcurrentUse(t *testing.T) {
	disk, dataKey, want := newDisk(t), random(32), random(5<<20)
	sealTo(t, disk, "a", dataKey, nil, want)
	r, err := OpenSealed(t.Context(), disk, "a", dataKey, nil)
	if err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for range 40 {
				p := make([]byte, rand.IntN(200_000))
				off := rand.IntN(len(want) - len(p))
				if _, err := r.ReadAt(p, int64(off)); err != nil || !bytes.Equal(p, want[off:off+len(p)]) {
					t.Errorf("ReadAt(%d bytes, %d): %v, or other bytes", len(p), off, err)
				}
			}
		})
	}
	readers.Wait()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// Whatever is done to an object, no plaintext but the true one comes out, and either
// opening or reading it through is ErrCorrupt.
func TestSealedReaderFindsEveryChange(t *testing.T) {
	const size = 2*plainPerBlock + 1000 // two blocks and a last, short segment
	dataKey, aad, plain := random(32), []byte("upl_1/1"), random(size)
	disk := newDisk(t)
	sealTo(t, disk, "a", dataKey, aad, plain)
	sealTo(t, disk, "b", dataKey, aad, plain)
	raw, other := content(t, disk, "a"), content(t, disk, "b")

	changed := map[string][]byte{
		"empty":                       nil,
		"header only":                 raw[:headerSize],
		"cut by a byte":               raw[:len(raw)-1],
		"cut at a segment":            raw[:2*BlockSize],
		"cut at an early segment":     raw[:segmentSize],
		"extended by a byte":          append(slices.Clone(raw), 0),
		"extended by a segment":       append(slices.Clone(raw), raw[segmentSize:2*segmentSize]...),
		"first segment dropped":       raw[segmentSize:],
		"segments swapped":            slices.Concat(raw[:segmentSize], raw[2*segmentSize:3*segmentSize], raw[segmentSize:2*segmentSize], raw[3*segmentSize:]),
		"segment repeated":            slices.Concat(raw[:2*segmentSize], raw[segmentSize:2*segmentSize], raw[3*segmentSize:]),
		"segment of another attempt":  slices.Concat(raw[:segmentSize], other[segmentSize:2*segmentSize], raw[2*segmentSize:]),
		"header of another attempt":   slices.Concat(other[:headerSize], raw[headerSize:]),
		"last segment zeroed":         append(slices.Clone(raw[:2*BlockSize]), make([]byte, len(raw)-2*BlockSize)...),
		"segment in the middle zeros": slices.Concat(raw[:BlockSize], make([]byte, segmentSize), raw[BlockSize+segmentSize:]),
	}
	for i := 0; i < headerSize; i++ { // every byte of the header
		changed[fmt.Sprintf("byte %d flipped", i)] = flipped(raw, i)
	}
	for start := 0; start < len(raw); start += segmentSize { // both ends of every segment, and of its tag
		end := min(start+segmentSize, len(raw))
		for _, i := range []int{max(start, headerSize), end - tagSize - 1, end - tagSize, end - 1} {
			changed[fmt.Sprintf("byte %d flipped", i)] = flipped(raw, i)
		}
	}
	for name, object := range changed {
		t.Run(name, func(t *testing.T) {
			wantCorrupt(t, memory(object), dataKey, aad, plain)
		})
	}
	t.Run("wrong data key", func(t *testing.T) { wantCorrupt(t, memory(raw), random(32), aad, plain) })
	t.Run("wrong aad", func(t *testing.T) { wantCorrupt(t, memory(raw), dataKey, []byte("upl_1/2"), plain) })
	t.Run("no aad", func(t *testing.T) { wantCorrupt(t, memory(raw), dataKey, nil, plain) })
	if got := unsealed(t, memory(raw), "a", dataKey, aad); !bytes.Equal(got, plain) {
		t.Error("the unchanged object does not open")
	}
}

// The length is part of what is authenticated, before the first read.
func TestOpenSealedKnowsACutObject(t *testing.T) {
	dataKey, disk := random(32), newDisk(t)
	sealTo(t, disk, "a", dataKey, nil, random(2*plainPerBlock))
	raw := content(t, disk, "a")
	for length := segmentSize; length < len(raw); length += segmentSize {
		if _, err := OpenSealed(t.Context(), memory(raw[:length]), "a", dataKey, nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut to %d bytes: %v, want ErrCorrupt", length, err)
		}
	}
}

// Each and every byte, in an object small enough for it.
func TestSealedReaderFindsEveryFlippedByte(t *testing.T) {
	dataKey, plain, disk := random(32), random(300), newDisk(t)
	sealTo(t, disk, "a", dataKey, nil, plain)
	raw := content(t, disk, "a")
	for i := range raw {
		wantCorrupt(t, memory(flipped(raw, i)), dataKey, nil, plain)
	}
	for n := range raw {
		wantCorrupt(t, memory(raw[:n]), dataKey, nil, plain)
	}
}

func TestSealedReaderTellsAnUnreadableObjectFromACorruptOne(t *testing.T) {
	dataKey, disk := random(32), newDisk(t)
	sealTo(t, disk, "a", dataKey, nil, random(100))
	_, err := OpenSealed(t.Context(), unreadable{disk}, "a", dataKey, nil)
	if !errors.Is(err, errReader) || errors.Is(err, ErrCorrupt) {
		t.Errorf("error %v, want that of the store", err)
	}
	if _, err = OpenSealed(t.Context(), disk, "a", dataKey[:31], nil); err == nil || errors.Is(err, ErrCorrupt) {
		t.Errorf("short data key: %v", err)
	}
}

// A corrupt segment stays corrupt when read again, and harms no other.
func TestSealedReaderGoesOnAfterACorruptSegment(t *testing.T) {
	dataKey, plain, disk := random(32), random(8*plainPerSegment), newDisk(t)
	sealTo(t, disk, "a", dataKey, nil, plain)
	r, err := OpenSealed(t.Context(), memory(flipped(content(t, disk, "a"), 3*segmentSize+5)), "a", dataKey, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 10)
	for range 2 {
		if _, err := r.ReadAt(p, 3*plainPerSegment); !errors.Is(err, ErrCorrupt) || !bytes.Equal(p, make([]byte, 10)) {
			t.Errorf("corrupt segment: %v, %x", err, p)
		}
		for _, off := range []int64{0, plainPerSegment, 5 * plainPerSegment} {
			got := make([]byte, 10)
			if _, err := r.ReadAt(got, off); err != nil || !bytes.Equal(got, plain[off:off+10]) {
				t.Errorf("segment beside it: %v, or other bytes", err)
			}
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// Reading through in small steps must decrypt and fetch every segment once.
func TestSequentialReadsFetchEveryByteOnce(t *testing.T) {
	dataKey, plain, disk := random(32), random(6<<20), newDisk(t)
	sealTo(t, disk, "a", dataKey, nil, plain)
	counted := &counting{Store: disk}
	if got := unsealed(t, counted, "a", dataKey, nil); !bytes.Equal(got, plain) {
		t.Fatal("other bytes")
	}
	// header and last segment come once more, when the object is opened
	if most := SealedSize(6<<20) + headerSize + segmentSize; counted.bytes > most {
		t.Errorf("%d bytes were read, want at most %d", counted.bytes, most)
	}
	if counted.reads > 7+2 {
		t.Errorf("%d reads for 7 blocks", counted.reads)
	}
}

func wantCorrupt(t *testing.T, s Store, dataKey, aad, plain []byte) {
	t.Helper()
	r, err := OpenSealed(t.Context(), s, "a", dataKey, aad)
	if err == nil {
		var got []byte
		got, err = io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
		if !bytes.HasPrefix(plain, got) {
			t.Error("false plaintext came out")
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("error %v, want ErrCorrupt", err)
	}
}

func flipped(raw []byte, i int) []byte {
	raw = slices.Clone(raw)
	raw[i] ^= 0x40
	return raw
}

func sealTo(t testing.TB, s Store, key string, dataKey, aad, plain []byte) {
	t.Helper()
	if err := Seal(t.Context(), s, key, dataKey, aad, bytes.NewReader(plain), int64(len(plain))); err != nil {
		t.Fatal(err)
	}
}

// tampered holds one object, under every key.
type tampered struct {
	Store
	object []byte
}

func memory(object []byte) Store { return tampered{object: object} }

func (s tampered) Name() string { return "memory" }

func (s tampered) Open(context.Context, string) (Object, error) {
	return tamperedObject{bytes.NewReader(s.object)}, nil
}

type tamperedObject struct{ *bytes.Reader }

func (tamperedObject) Close() error { return nil }

// unreadable opens objects whose reads fail.
type unreadable struct{ Store }

func (s unreadable) Open(ctx context.Context, key string) (Object, error) {
	object, err := s.Store.Open(ctx, key)
	return unreadableObject{object}, err
}

type unreadableObject struct{ Object }

func (unreadableObject) ReadAt([]byte, int64) (int, error) { return 0, errReader }

// counting counts what is read and what is open.
type counting struct {
	Store
	bytes       int64
	reads       int
	open, opens int
}

func (s *counting) Open(ctx context.Context, key string) (Object, error) {
	object, err := s.Store.Open(ctx, key)
	if err == nil {
		s.open++
		s.opens++
	}
	return countingObject{object, s}, err
}

type countingObject struct {
	Object
	store *counting
}

func (o countingObject) ReadAt(p []byte, off int64) (int, error) {
	n, err := o.Object.ReadAt(p, off)
	o.store.bytes += int64(n)
	o.store.reads++
	return n, err
}

func (o countingObject) Close() error {
	o.store.open--
	return o.Object.Close()
}
