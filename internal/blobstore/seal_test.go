package blobstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/tink-crypto/tink-go/v2/streamingaead/subtle"
)

// borders are plaintext sizes around every border of the format and the pipeline.
var borders = []int64{
	0, 1, 100,
	plainPerSegment - headerSize - 1, plainPerSegment - headerSize, plainPerSegment - headerSize + 1,
	plainPerSegment, plainPerSegment + 1, 2*plainPerSegment - headerSize, 2*plainPerSegment - headerSize + 1,
	plainPerBlock - headerSize - 1, plainPerBlock - headerSize, plainPerBlock - headerSize + 1,
	2*plainPerBlock - headerSize, 2*plainPerBlock - headerSize + 1,
	5*plainPerBlock - headerSize, 6<<20 + 4097,
}

var modes = map[string]writeMode{"direct": writeDirect, "dontcache": writeDontCache, "buffered": writeBuffered}

func TestTinkReadsWhatSealWrites(t *testing.T) {
	dataKey, aad := random(32), []byte("upl_1/7")
	oracle, err := subtle.NewAESGCMHKDF(dataKey, "SHA256", keySize, segmentSize, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range modes {
		for _, size := range borders {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				disk := newDisk(t)
				disk.mode = mode
				want := random(int(size))
				part, whole := sha256.New(), sha256.New()
				whole.Write([]byte("parts before"))
				if err := Seal(t.Context(), disk, "a", dataKey, aad, bytes.NewReader(want), size, part, whole); err != nil {
					t.Fatal(err)
				}
				raw := content(t, disk, "a")
				if int64(len(raw)) != SealedSize(size) {
					t.Errorf("object has %d bytes, SealedSize says %d", len(raw), SealedSize(size))
				}
				plain, err := oracle.NewDecryptingReader(bytes.NewReader(raw), aad)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(plain); err != nil || !bytes.Equal(got, want) {
					t.Errorf("tink: %v, or other bytes", err)
				}
				if sum := sha256.Sum256(want); !bytes.Equal(part.Sum(nil), sum[:]) {
					t.Error("other part digest")
				}
				if sum := sha256.Sum256(append([]byte("parts before"), want...)); !bytes.Equal(whole.Sum(nil), sum[:]) {
					t.Error("other running digest")
				}
			})
		}
	}
}

func TestSealReadsAnyReader(t *testing.T) {
	want := random(3<<20 + 5)
	for name, r := range map[string]io.Reader{
		"halves":         iotest.HalfReader(bytes.NewReader(want)),
		"end with data":  iotest.DataErrReader(bytes.NewReader(want)),
		"single bytes":   io.MultiReader(iotest.OneByteReader(bytes.NewReader(want[:5000])), bytes.NewReader(want[5000:])),
		"plain":          bytes.NewReader(want),
		"section reader": io.NewSectionReader(bytes.NewReader(want), 0, int64(len(want))),
	} {
		disk, dataKey := newDisk(t), random(32)
		if err := Seal(t.Context(), disk, "a", dataKey, nil, r, int64(len(want))); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := unsealed(t, disk, "a", dataKey, nil); !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes", name)
		}
	}
}

func TestEverySealIsFresh(t *testing.T) {
	disk, dataKey, plain := newDisk(t), random(32), random(1000)
	for _, key := range []string{"a", "b"} {
		if err := Seal(t.Context(), disk, key, dataKey, nil, bytes.NewReader(plain), 1000); err != nil {
			t.Fatal(err)
		}
	}
	a, b := content(t, disk, "a"), content(t, disk, "b")
	if bytes.Equal(a[1:1+saltSize], b[1:1+saltSize]) || bytes.Equal(a[headerSize:], b[headerSize:]) {
		t.Error("two attempts share a salt or ciphertext")
	}
}

var errReader = errors.New("connection is gone")

func TestSealLeavesNothingBehindOnError(t *testing.T) {
	const size = 6 << 20
	plain := random(size + 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancelling := readerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	for _, test := range []struct {
		name   string
		ctx    context.Context
		r      io.Reader
		size   int64
		faults faultyStore
		want   error
	}{
		{name: "no body", r: bytes.NewReader(nil), size: size, want: ErrShortBody},
		{name: "short by one", r: bytes.NewReader(plain[:size-1]), size: size, want: ErrShortBody},
		{name: "short of a whole block", r: bytes.NewReader(plain[:plainPerBlock-headerSize]), size: size, want: ErrShortBody},
		{name: "long by one", r: bytes.NewReader(plain), size: size, want: ErrLongBody},
		{name: "not empty", r: bytes.NewReader(plain), size: 0, want: ErrLongBody},
		{name: "reader fails", r: io.MultiReader(bytes.NewReader(plain[:size/2]), iotest.ErrReader(errReader)), size: size, want: errReader},
		{name: "reader fails past the end", r: io.MultiReader(bytes.NewReader(plain[:size]), iotest.ErrReader(errReader)), size: size, want: errReader},
		{name: "connection cut", r: io.MultiReader(bytes.NewReader(plain[:size/2]), iotest.ErrReader(io.ErrUnexpectedEOF)), size: size, want: io.ErrUnexpectedEOF},
		{name: "cancelled", ctx: ctx, r: cancelling, size: size, want: context.Canceled},
		{name: "full at once", r: bytes.NewReader(plain[:size]), size: size, faults: faultyStore{create: ErrNoSpace}, want: ErrNoSpace},
		{name: "full on the way", r: bytes.NewReader(plain[:size]), size: size, faults: faultyStore{write: ErrNoSpace, writes: 2}, want: ErrNoSpace},
		{name: "full on the way, endless body", r: readerFunc(func(p []byte) (int, error) { return len(p), nil }), size: maxSealed, faults: faultyStore{write: ErrNoSpace, writes: 2, size: 4 << 20}, want: ErrNoSpace},
		{name: "full at the end", r: bytes.NewReader(plain[:size]), size: size, faults: faultyStore{commit: ErrNoSpace}, want: ErrNoSpace},
	} {
		t.Run(test.name, func(t *testing.T) {
			disk := newDisk(t)
			test.faults.Store = disk
			if test.ctx == nil {
				test.ctx = t.Context()
			}
			err := Seal(test.ctx, &test.faults, "x/a", random(32), nil, test.r, test.size, sha256.New(), sha256.New())
			if !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if errors.Is(err, ErrShortBody) && test.want != ErrShortBody {
				t.Errorf("%v is also called a short body", err)
			}
			if left := keys(t, disk, ""); len(left) != 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func TestSealChecksItsArguments(t *testing.T) {
	for name, seal := range map[string]func(Store) error{
		"short key":     func(s Store) error { return Seal(t.Context(), s, "a", random(16), nil, bytes.NewReader(nil), 0) },
		"negative size": func(s Store) error { return Seal(t.Context(), s, "a", random(32), nil, bytes.NewReader(nil), -1) },
		"vast size":     func(s Store) error { return Seal(t.Context(), s, "a", random(32), nil, bytes.NewReader(nil), 1<<62) },
		"bad key":       func(s Store) error { return Seal(t.Context(), s, "A", random(32), nil, bytes.NewReader(nil), 0) },
	} {
		disk := newDisk(t)
		if err := seal(disk); err == nil || len(keys(t, disk, "")) != 0 {
			t.Errorf("%s: error %v, store holds %q", name, err, keys(t, disk, ""))
		}
	}
}

func TestSealRemovesItsObjectWhenTheReaderPanics(t *testing.T) {
	disk := newDisk(t)
	synctest.Test(t, func(t *testing.T) { // fails when goroutines stay
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		body := io.MultiReader(bytes.NewReader(random(3<<20)), readerFunc(func([]byte) (int, error) { panic("reader") }))
		err := Seal(t.Context(), disk, "a", random(32), nil, body, 4<<20)
		t.Errorf("returned %v", err)
	})
	if left := keys(t, disk, ""); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

// Every goroutine must have ended with Seal: the bubble's end would find it blocked.
func TestSealEndsItsGoroutines(t *testing.T) {
	for name, faults := range map[string]faultyStore{"success": {}, "write fails": {write: errReader, writes: 1}, "commit fails": {commit: errReader}} {
		for _, have := range []int64{0, 3 << 20, 5 << 20, 6 << 20} {
			disk := newDisk(t)
			faults.Store = disk
			synctest.Test(t, func(t *testing.T) {
				err := Seal(t.Context(), &faults, "a", random(32), nil, bytes.NewReader(random(int(have))), 5<<20, sha256.New(), sha256.New())
				if wantOK := name == "success" && have == 5<<20; (err == nil) != wantOK {
					t.Errorf("%s, %d bytes: %v", name, have, err)
				}
			})
		}
	}
}

// All of it is counted, also what was freed at once: eight parts of 64 MiB may take
// the blocks of eight Seals and no more.
func TestParallelSealsShareFewBlocks(t *testing.T) {
	const uploads, size = 8, 64 << 20
	dataKey := random(32)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var running sync.WaitGroup
	for i := range uploads {
		running.Go(func() {
			err := Seal(t.Context(), discard{}, fmt.Sprint(i), dataKey, nil, io.LimitReader(zeros{}, size), size, sha256.New(), hash.Hash(sha256.New()))
			if err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 48<<20 {
		t.Errorf("%d MiB were allocated for %d × %d MiB", got>>20, uploads, size>>20)
	}
}

func TestSealGivesItsBlocksBack(t *testing.T) {
	const seals = 40
	runtime.GC() // empties the pool; what it held falls to the second
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range seals {
		if err := Seal(t.Context(), discard{}, "a", random(32), nil, io.LimitReader(zeros{}, 4<<20), 4<<20, sha256.New()); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	// the race detector makes sync.Pool drop every fourth block
	if got := after.TotalAlloc - before.TotalAlloc; got > seals*(plainBlocks+sealedBlocks)*BlockSize*35/100 {
		t.Errorf("%d MiB were allocated for %d seals in a row", got>>20, seals)
	}
}

// Hundreds of customers' texts are under way at once: each of them may take its own length and a little, not 1 MiB.
func TestShortObjectsTakeLittleMemory(t *testing.T) {
	const objects, size, most = 200, 4000, 48 << 10
	dataKey, disk := random(32), newDisk(t)
	sealTo(t, disk, "uploads/a", dataKey, nil, random(size))
	allocated := func(what string, work func()) {
		t.Helper()
		runtime.GC() // empties the pools; what they held falls to the second
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		work()
		runtime.ReadMemStats(&after)
		if each := (after.TotalAlloc - before.TotalAlloc) / objects; each > most {
			t.Errorf("%s takes %d bytes for each of %d, %d at once", what, each, size, objects)
		}
	}
	allocated("sealing", func() {
		all := &gathering{Store: discard{}, all: make(chan struct{})}
		all.missing.Store(objects)
		var running sync.WaitGroup
		for i := range objects {
			running.Go(func() {
				if err := Seal(t.Context(), all, fmt.Sprint(i), dataKey, nil, io.LimitReader(zeros{}, size), size, sha256.New()); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
	})
	allocated("reading", func() {
		for range objects {
			r, err := OpenSealed(t.Context(), disk, "uploads/a", dataKey, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close() // at the end: all are open at once
		}
	})
}

// gathering lets nobody write before all are there to.
type gathering struct {
	Store
	missing atomic.Int64
	all     chan struct{}
}

func (g *gathering) Create(context.Context, string, int64) (Writer, error) { return g, nil }
func (g *gathering) WriteBlock([]byte) error {
	if g.missing.Add(-1) == 0 {
		close(g.all)
	}
	<-g.all
	return nil
}
func (*gathering) Commit() error { return nil }
func (*gathering) Abort() error  { return nil }

// A digest holds up neither writing nor commit, but Seal returns only with it.
func TestSealWaitsForItsDigestsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		committed := make(chan struct{})
		slow := slowHash{Hash: sha256.New(), start: committed}
		if err := Seal(t.Context(), commitSignal{discard{}, committed}, "a", random(32), nil, io.LimitReader(zeros{}, 2<<20), 2<<20, slow); err != nil {
			t.Fatal(err)
		}
		if want := sha256.Sum256(make([]byte, 2<<20)); !bytes.Equal(slow.Sum(nil), want[:]) {
			t.Error("other digest")
		}
	})
}

// slowHash begins when start is closed, and then takes its time.
type slowHash struct {
	hash.Hash
	start <-chan struct{}
}

func (h slowHash) Write(p []byte) (int, error) {
	<-h.start
	time.Sleep(time.Second) // of the bubble's clock
	return h.Hash.Write(p)
}

// commitSignal is a discard that closes a channel on commit.
type commitSignal struct {
	discard
	committed chan struct{}
}

func (s commitSignal) Create(context.Context, string, int64) (Writer, error) { return s, nil }
func (s commitSignal) Commit() error                                         { close(s.committed); return nil }

func TestSizesAreInverse(t *testing.T) {
	valid := map[int64]bool{}
	for _, plain := range borders {
		sealed := SealedSize(plain)
		if got, ok := plainSize(sealed); !ok || got != plain {
			t.Errorf("plainSize(%d) = %d, %v; want %d", sealed, got, ok, plain)
		}
		valid[sealed] = true
	}
	for _, sealed := range []int64{0, 1, headerSize, headerSize + tagSize - 1, segmentSize + 1, segmentSize + tagSize, 2*segmentSize + tagSize} {
		if plain, ok := plainSize(sealed); ok {
			t.Errorf("plainSize(%d) = %d, but no plaintext gives that length", sealed, plain)
		}
	}
}

// faultyStore is a Store that fails where told to.
type faultyStore struct {
	Store
	create, write, commit, del error
	writes                     int   // WriteBlock fails after so many
	size                       int64 // reserved instead of what is asked for
}

func (s *faultyStore) Create(ctx context.Context, key string, size int64) (Writer, error) {
	if s.create != nil {
		return nil, s.create
	}
	if s.size > 0 {
		size = s.size
	}
	w, err := s.Store.Create(ctx, key, size)
	return &faultyWriter{Writer: w, store: s}, err
}

func (s *faultyStore) Delete(ctx context.Context, key string) error {
	if s.del != nil {
		return s.del
	}
	return s.Store.Delete(ctx, key)
}

type faultyWriter struct {
	Writer
	store  *faultyStore
	writes int
}

func (w *faultyWriter) WriteBlock(p []byte) error {
	if w.writes++; w.store.write != nil && w.writes > w.store.writes {
		return w.store.write
	}
	return w.Writer.WriteBlock(p)
}

func (w *faultyWriter) Commit() error {
	if w.store.commit != nil {
		return w.store.commit
	}
	return w.Writer.Commit()
}

// discard takes every object and keeps none.
type discard struct{ Store }

func (discard) Name() string                                          { return "discard" }
func (discard) Create(context.Context, string, int64) (Writer, error) { return discard{}, nil }
func (discard) WriteBlock([]byte) error                               { return nil }
func (discard) Commit() error                                         { return nil }
func (discard) Abort() error                                          { return nil }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func newDisk(t testing.TB) *Disk {
	t.Helper()
	disk, err := NewDisk("staging", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	return disk
}

func content(t *testing.T, s Store, key string) []byte {
	t.Helper()
	object, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(io.NewSectionReader(object, 0, object.Size()))
	if err := errors.Join(err, object.Close()); err != nil {
		t.Fatal(err)
	}
	return raw
}

func unsealed(t *testing.T, s Store, key string, dataKey, aad []byte) []byte {
	t.Helper()
	r, err := OpenSealed(t.Context(), s, key, dataKey, aad)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return plain
}

func keys(t *testing.T, s Store, prefix string) []string {
	t.Helper()
	var all []string
	for info, err := range s.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, info.Key)
	}
	slices.Sort(all)
	return all
}

func random(n int) []byte {
	p := make([]byte, n)
	rand.Read(p) // never fails (crypto/rand)
	return p
}
