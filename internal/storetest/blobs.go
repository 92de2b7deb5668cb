package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/accession/accession/internal/blobstore"
)

// Blobs proves that a blobstore.Store keeps what its documentation promises. open
// returns an empty store each time; it registers its own cleanup.
func Blobs(t *testing.T, open func(t *testing.T) blobstore.Store) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, blobstore.Store)
	}{
		{"objects come back as written", blobRoundTrip},
		{"ReadAt keeps to io.ReaderAt", blobReadAt},
		{"a taken key is refused and keeps its object", blobTakenKey},
		{"one of many racing attempts wins", blobRace},
		{"the declared size is exact", blobDeclaredSize},
		{"abort removes and repeats", blobAbort},
		{"deletion", blobDelete},
		{"malformed keys are refused", blobKeys},
		{"listing keeps to folders", blobList},
		{"an ended context ends every operation", blobContext},
		{"purge", blobPurge},
		{"neighbours come and go at once", blobNeighbours},
		{"sealed objects", blobSealed},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

func blobRoundTrip(t *testing.T, s blobstore.Store) {
	if s.Name() == "" {
		t.Error("the store has no name")
	}
	for _, size := range []int{0, 1, 4095, 4096, 4097, blobstore.BlockSize, blobstore.BlockSize + 1, 3*blobstore.BlockSize + 8191} {
		key := fmt.Sprintf("round/%d/trip", size)
		want := blobBytes(size)
		putBlob(t, s, key, want)
		if got := getBlob(t, s, key); !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %d other bytes came back", size, len(got))
		}
	}
}

func blobReadAt(t *testing.T, s blobstore.Store) {
	want := blobBytes(10_000)
	putBlob(t, s, "a", want)
	object, err := s.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if object.Size() != 10_000 {
		t.Errorf("size %d, want 10000", object.Size())
	}
	for _, test := range []struct {
		off    int64
		length int
		n      int
		eof    bool
	}{
		{0, 100, 100, false}, {4090, 20, 20, false}, {9_990, 20, 10, true}, {10_000, 1, 0, true}, {20_000, 1, 0, true},
	} {
		p := make([]byte, test.length)
		n, err := object.ReadAt(p, test.off)
		if n != test.n || (err == io.EOF) != test.eof || !test.eof && err != nil {
			t.Errorf("ReadAt(%d bytes, %d) = %d, %v", test.length, test.off, n, err)
		}
		if n > 0 && !bytes.Equal(p[:n], want[test.off:test.off+int64(n)]) {
			t.Errorf("ReadAt(%d bytes, %d): other bytes", test.length, test.off)
		}
	}
	var readers sync.WaitGroup
	for i := range 8 {
		readers.Go(func() {
			p := make([]byte, 1000)
			if _, err := object.ReadAt(p, int64(i)*1000); err != nil || !bytes.Equal(p, want[i*1000:(i+1)*1000]) {
				t.Errorf("concurrent read %d: %v or other bytes", i, err)
			}
		})
	}
	readers.Wait()
	if err := object.Close(); err != nil {
		t.Error(err)
	}
}

func blobTakenKey(t *testing.T, s blobstore.Store) {
	putBlob(t, s, "taken/key", []byte("first"))
	if err := tryPutBlob(t.Context(), s, "taken/key", []byte("other")); !errors.Is(err, blobstore.ErrExists) {
		t.Errorf("second attempt: %v, want ErrExists", err)
	}
	if got := getBlob(t, s, "taken/key"); string(got) != "first" {
		t.Errorf("the object is now %q", got)
	}
}

func blobRace(t *testing.T, s blobstore.Store) {
	var mu sync.Mutex
	var won []int
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			err := tryPutBlob(t.Context(), s, "new/folder/race", []byte{byte(i)})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, i)
			} else if !errors.Is(err, blobstore.ErrExists) {
				t.Errorf("attempt %d: %v, want ErrExists", i, err)
			}
		})
	}
	writers.Wait()
	if len(won) != 1 {
		t.Fatalf("attempts %v won, want one", won)
	}
	if got := getBlob(t, s, "new/folder/race"); !bytes.Equal(got, []byte{byte(won[0])}) {
		t.Errorf("the object is %v, want that of attempt %d", got, won[0])
	}
}

func blobDeclaredSize(t *testing.T, s blobstore.Store) {
	w, err := s.Create(t.Context(), "a", 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteBlock(make([]byte, 9)); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteBlock(make([]byte, 2)); err == nil {
		t.Error("11 of 10 bytes were accepted")
	}
	if err := w.Commit(); err == nil {
		t.Error("commit accepted 9 of 10 bytes")
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
	absentBlob(t, s, "a")
	if _, err := s.Create(t.Context(), "b", -1); err == nil {
		t.Error("a negative size was accepted")
	}
}

func blobAbort(t *testing.T, s blobstore.Store) {
	w, err := s.Create(t.Context(), "x/a", 4)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteBlock([]byte("abcd")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Abort(); err != nil {
			t.Error(err)
		}
	}
	absentBlob(t, s, "x/a")
	if err := w.Commit(); err == nil {
		t.Error("commit after abort succeeded")
	}

	putBlob(t, s, "x/a", []byte("again")) // the key is free
	w, err = s.Create(t.Context(), "x/b", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.WriteBlock([]byte("b")), w.Commit(), w.Abort()); err != nil {
		t.Fatal(err)
	}
	if got := getBlob(t, s, "x/b"); string(got) != "b" {
		t.Errorf("abort after commit left %q", got)
	}
}

func blobDelete(t *testing.T, s blobstore.Store) {
	putBlob(t, s, "d/e/f", []byte("1"))
	putBlob(t, s, "d/g", []byte("2"))
	if _, err := s.Open(t.Context(), "d/e"); !errors.Is(err, blobstore.ErrNotFound) {
		t.Errorf("open of a folder: %v, want ErrNotFound", err)
	}
	for range 2 {
		if err := s.Delete(t.Context(), "d/e/f"); err != nil {
			t.Fatal(err)
		}
		absentBlob(t, s, "d/e/f")
	}
	for _, key := range []string{"d", "d/g/h", "never/was"} { // folder, below an object, nothing
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("deleting absent %s: %v", key, err)
		}
	}
	if got := getBlob(t, s, "d/g"); string(got) != "2" {
		t.Errorf("the neighbour is now %q", got)
	}
	putBlob(t, s, "d/e/f", []byte("3"))
	if got := getBlob(t, s, "d/e/f"); string(got) != "3" {
		t.Errorf("the key's second object is %q", got)
	}
}

func blobKeys(t *testing.T, s blobstore.Store) {
	long := string(bytes.Repeat([]byte("a"), 256))
	for _, key := range []string{"", "/", "/a", "a/", "a//b", ".", "a/.", "..", "a/../b", "a..b", "A", "a b", "a\\b", "a\x00", "ä", "a\n", long, long[:250] + "/" + long[:250] + "/" + long[:250] + "/" + long[:250] + "/" + long[:250]} {
		_, createErr := s.Create(t.Context(), key, 1)
		_, openErr := s.Open(t.Context(), key)
		for operation, err := range map[string]error{"create": createErr, "open": openErr, "delete": s.Delete(t.Context(), key)} {
			if !errors.Is(err, blobstore.ErrKey) {
				t.Errorf("%s %q: %v, want ErrKey", operation, key, err)
			}
		}
	}
	putBlob(t, s, "a_0.z-9/.b", []byte("x"))
}

func blobList(t *testing.T, s blobstore.Store) {
	all := []string{"a/b", "a/bc", "a/c/d", "a/c/e", "aa", "b"}
	for i, key := range all {
		putBlob(t, s, key, make([]byte, i))
	}
	for prefix, want := range map[string][]string{
		"": all, "a": all[:4], "a/": all[:4], "a/c": all[2:4], "a/b": all[:1], "aa": {"aa"}, "a/c/d": {"a/c/d"}, "c": nil, "a/b/c": nil,
	} {
		if got := listedBlobs(t, s, prefix); !slices.Equal(got, want) {
			t.Errorf("list %q: %q, want %q", prefix, got, want)
		}
	}
	for info, err := range s.List(t.Context(), "a/c/e") {
		if err != nil || info.Size != 3 || info.ModTime.IsZero() {
			t.Errorf("list: %+v, %v; want 3 bytes and a time", info, err)
		}
	}
	for range s.List(t.Context(), "") {
		break // must be allowed to
	}
	for _, err := range s.List(t.Context(), "a/../b") {
		if !errors.Is(err, blobstore.ErrKey) {
			t.Errorf("list of a malformed prefix: %v, want ErrKey", err)
		}
	}
}

func blobContext(t *testing.T, s blobstore.Store) {
	putBlob(t, s, "a", []byte("x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, createErr := s.Create(ctx, "b", 1)
	_, openErr := s.Open(ctx, "a")
	var listErr error
	for _, err := range s.List(ctx, "") {
		listErr = err
	}
	_, purgeErr := blobstore.Purge(ctx, s, "a")
	for operation, err := range map[string]error{
		"create": createErr, "open": openErr, "delete": s.Delete(ctx, "a"), "list": listErr, "purge": purgeErr,
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", operation, err)
		}
	}
	if got := listedBlobs(t, s, ""); !slices.Equal(got, []string{"a"}) {
		t.Errorf("store holds %q, want only a", got)
	}
}

func blobPurge(t *testing.T, s blobstore.Store) {
	for i := range 300 { // more than any store lists at once on disk
		putBlob(t, s, fmt.Sprintf("uploads/upl_1/parts/%06d", i), nil)
	}
	putBlob(t, s, "uploads/upl_1/whole", []byte("x"))
	putBlob(t, s, "uploads/upl_12/whole", []byte("y"))
	for _, prefix := range []string{"", "/", "..", "Uploads"} {
		if _, err := blobstore.Purge(t.Context(), s, prefix); !errors.Is(err, blobstore.ErrKey) {
			t.Errorf("purge of %q: %v, want ErrKey", prefix, err)
		}
	}
	for _, want := range []int{301, 0} {
		if deleted, err := blobstore.Purge(t.Context(), s, "uploads/upl_1"); deleted != want || err != nil {
			t.Errorf("purge deleted %d, %v; want %d", deleted, err, want)
		}
	}
	if got := listedBlobs(t, s, ""); !slices.Equal(got, []string{"uploads/upl_12/whole"}) {
		t.Errorf("store holds %q, want the other upload", got)
	}
	if deleted, err := blobstore.Purge(t.Context(), s, "uploads/upl_12/whole"); deleted != 1 || err != nil {
		t.Errorf("purge of one object deleted %d, %v", deleted, err)
	}
}

// blobNeighbours makes folders appear and vanish under each other's feet.
func blobNeighbours(t *testing.T, s blobstore.Store) {
	var workers sync.WaitGroup
	for i := range 8 {
		workers.Go(func() {
			key := fmt.Sprintf("busy/folder/%d", i)
			for range 25 {
				err := tryPutBlob(t.Context(), s, key, []byte{byte(i)})
				for try := 0; errors.Is(err, blobstore.ErrUnavailable) && try < 10; try++ {
					// An S3 service over folders refuses a PUT while it removes the folder; nobody was told that the object is there.
					err = tryPutBlob(t.Context(), s, key, []byte{byte(i)})
				}
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Delete(t.Context(), key); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	if got := listedBlobs(t, s, ""); len(got) != 0 {
		t.Errorf("store holds %q, want nothing", got)
	}
}

func blobSealed(t *testing.T, s blobstore.Store) {
	dataKey, aad, want := blobBytes(32), []byte("upl_1/1"), blobBytes(2*blobstore.BlockSize+12_345)
	digest := sha256.New()
	if err := blobstore.Seal(t.Context(), s, "sealed", dataKey, aad, bytes.NewReader(want), int64(len(want)), digest); err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(want); !bytes.Equal(digest.Sum(nil), sum[:]) {
		t.Error("other digest")
	}
	if raw := getBlob(t, s, "sealed"); int64(len(raw)) != blobstore.SealedSize(int64(len(want))) || bytes.Contains(raw, want[:64]) {
		t.Error("the object has another length, or holds plaintext")
	}
	r, err := blobstore.OpenSealed(t.Context(), s, "sealed", dataKey, aad)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	if err = errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v, or other bytes came back", err)
	}
	err = blobstore.Seal(t.Context(), s, "short", dataKey, aad, bytes.NewReader(want[1:]), int64(len(want)))
	if !errors.Is(err, blobstore.ErrShortBody) {
		t.Errorf("short body: %v, want ErrShortBody", err)
	}
	absentBlob(t, s, "short")
	if _, err := blobstore.OpenSealed(t.Context(), s, "short", dataKey, aad); !errors.Is(err, blobstore.ErrNotFound) {
		t.Errorf("open sealed: %v, want ErrNotFound", err)
	}
}

func tryPutBlob(ctx context.Context, s blobstore.Store, key string, content []byte) error {
	w, err := s.Create(ctx, key, int64(len(content)))
	if err != nil {
		return err
	}
	for block := range slices.Chunk(content, blobstore.BlockSize) {
		if err := w.WriteBlock(block); err != nil {
			return errors.Join(err, w.Abort())
		}
	}
	if err := w.Commit(); err != nil {
		return errors.Join(err, w.Abort())
	}
	return nil
}

func putBlob(t *testing.T, s blobstore.Store, key string, content []byte) {
	t.Helper()
	if err := tryPutBlob(t.Context(), s, key, content); err != nil {
		t.Fatal(err)
	}
}

func getBlob(t *testing.T, s blobstore.Store, key string) []byte {
	t.Helper()
	object, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(io.NewSectionReader(object, 0, object.Size()))
	if err := errors.Join(err, object.Close()); err != nil {
		t.Fatal(err)
	}
	return content
}

func absentBlob(t *testing.T, s blobstore.Store, key string) {
	t.Helper()
	if _, err := s.Open(t.Context(), key); !errors.Is(err, blobstore.ErrNotFound) {
		t.Errorf("open %s: %v, want ErrNotFound", key, err)
	}
	if got := listedBlobs(t, s, key); len(got) != 0 {
		t.Errorf("%s is still listed", key)
	}
}

func listedBlobs(t *testing.T, s blobstore.Store, prefix string) []string {
	t.Helper()
	var keys []string
	for info, err := range s.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	slices.Sort(keys)
	return keys
}

func blobBytes(n int) []byte {
	p := make([]byte, n)
	rand.Read(p) // never fails (crypto/rand)
	return p
}
