package blobstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/accession/accession/internal/blobstore"
	"github.com/accession/accession/internal/storetest/s3server"
)

// fault handles a request instead of the service; pass hands it on.
type fault func(w http.ResponseWriter, r *http.Request, pass http.HandlerFunc)

// patient is longer than a machine that is busy with other tests keeps anybody waiting. A store is hasty where it meets silence: what
// that test does before and after, a patient one does.
const (
	patient = 2 * time.Minute
	hasty   = 5 * time.Second
)

// brokenS3 is a way to a real service on which requests meet faults.
type brokenS3 struct {
	*blobstore.S3 // patient
	server        *s3server.Server
	address       blobstore.S3Address
	front         *httptest.Server

	mu    sync.Mutex
	hits  int
	match func(*http.Request) bool
	times int
	fault fault
}

func newBrokenS3(t *testing.T, server *s3server.Server) *brokenS3 {
	t.Helper()
	b := &brokenS3{server: server}
	back := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: server.Address})
	back.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	b.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		strike := b.fault != nil && b.match(r)
		if strike {
			b.hits++
			strike = b.hits <= b.times
		}
		do := b.fault
		b.mu.Unlock()
		if strike {
			do(w, r, back.ServeHTTP)
			return
		}
		back.ServeHTTP(w, r)
	}))
	t.Cleanup(b.front.Close)
	var err error
	b.address, err = blobstore.ParseS3("s3://" + server.Bucket(t, minio.MakeBucketOptions{}) + "?path_style=true&region=us-east-1&endpoint=" + b.front.URL)
	if err != nil {
		t.Fatal(err)
	}
	b.S3 = b.waiting(t, patient)
	return b
}

// waiting is a store there that gives up on what is silent for so long.
func (b *brokenS3) waiting(t *testing.T, stall time.Duration) *blobstore.S3 {
	t.Helper()
	s, err := blobstore.OpenS3(t.Context(), "staging", b.address, blobstore.S3Options{AccessKeyID: b.server.AccessKey, SecretAccessKey: b.server.SecretKey, Stall: stall})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

const always = 1 << 30

// strike has the next requests that match meet a fault; nil ends it. It returns how many requests matched the one before.
func (b *brokenS3) strike(times int, match func(*http.Request) bool, f fault) (hits int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	hits, b.hits = b.hits, 0
	b.times, b.match, b.fault = times, match, f
	return hits
}

func method(names ...string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		for _, name := range names {
			if r.Method == name {
				return true
			}
		}
		return false
	}
}

func refuse(status int, code string) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>in bucket secret-place</Message></Error>`, code)
	}
}

// reset breaks the connection off after some bytes of the body.
func reset(after int64) fault {
	return func(w http.ResponseWriter, r *http.Request, _ http.HandlerFunc) {
		if _, err := io.CopyN(io.Discard, r.Body, after); err != nil {
			return
		}
		cutOff(w)
	}
}

func cutOff(w http.ResponseWriter) {
	if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
}

// silent takes everything and answers nothing.
func silent(_ http.ResponseWriter, r *http.Request, _ http.HandlerFunc) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// answerLost has the service do what it was asked for, and the answer get lost.
func answerLost(w http.ResponseWriter, r *http.Request, pass http.HandlerFunc) {
	pass(httptest.NewRecorder(), r)
	cutOff(w)
}

// answerCut gives half of the answer's body, then breaks off or falls silent.
func answerCut(hold bool) fault {
	return func(w http.ResponseWriter, r *http.Request, pass http.HandlerFunc) {
		whole := httptest.NewRecorder()
		pass(whole, r)
		for name, values := range whole.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(whole.Code)
		_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
		if hold {
			<-r.Context().Done()
		}
		cutOff(w)
	}
}

// lie answers as if it were done.
func lie(w http.ResponseWriter, r *http.Request, _ http.HandlerFunc) {
	if r.Method == http.MethodDelete {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	fmt.Fprint(w, `<?xml version="1.0"?><DeleteResult></DeleteResult>`)
}

var dataKey = bytes.Repeat([]byte{7}, 32)

func sealIn(ctx context.Context, s *blobstore.S3, key string, content []byte) error {
	return blobstore.Seal(ctx, s, key, dataKey, nil, bytes.NewReader(content), int64(len(content)))
}

func readFrom(ctx context.Context, s *blobstore.S3, key string) ([]byte, error) {
	r, err := blobstore.OpenSealed(ctx, s, key, dataKey, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
}

func (b *brokenS3) seal(ctx context.Context, key string, content []byte) error {
	return sealIn(ctx, b.S3, key, content)
}

func (b *brokenS3) read(ctx context.Context, key string) ([]byte, error) {
	return readFrom(ctx, b.S3, key)
}

func (b *brokenS3) keys(t *testing.T) (keys []string) {
	t.Helper()
	for info, err := range b.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

var threeBlocks = bytes.Repeat([]byte("sealed in custody "), 3<<20/18)

func TestS3WritesThroughFaults(t *testing.T) {
	server := s3server.New(t)
	for name, c := range map[string]struct {
		times int
		fault fault
		stall time.Duration
		want  error
		tries int // PUT requests
	}{
		"throttled for a moment":      {2, refuse(503, "SlowDown"), patient, nil, 3},
		"429 for a moment":            {1, refuse(429, "TooManyRequests"), patient, nil, 2},
		"throttled for good":          {always, refuse(503, "SlowDown"), patient, blobstore.ErrUnavailable, 3},
		"not allowed":                 {always, refuse(403, "AccessDenied"), patient, blobstore.ErrUnavailable, 1},
		"full":                        {always, refuse(507, "XMinioStorageFull"), patient, blobstore.ErrNoSpace, 1},
		"reset before the body":       {1, reset(0), patient, nil, 2},
		"reset in the body":           {1, reset(1 << 20), patient, blobstore.ErrUnavailable, 1},
		"half-open":                   {1, silent, hasty, blobstore.ErrUnavailable, 1},
		"the answer is lost":          {1, answerLost, patient, blobstore.ErrUnavailable, 1},
		"taken by somebody meanwhile": {1, refuse(412, "PreconditionFailed"), patient, blobstore.ErrExists, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBrokenS3(t, server)
			if err := b.seal(t.Context(), "uploads/before", []byte("acknowledged")); err != nil {
				t.Fatal(err)
			}
			b.strike(c.times, method(http.MethodPut), c.fault)
			err := sealIn(t.Context(), b.waiting(t, c.stall), "uploads/a", threeBlocks)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), "secret-place") || strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "uploads/a")) {
				t.Errorf("the error tells too much: %v", err)
			}
			if tries := b.strike(0, nil, nil); tries != c.tries {
				t.Errorf("%d requests, want %d", tries, c.tries)
			}
			want := 1
			if c.want == nil {
				want = 2
				if got, err := b.read(t.Context(), "uploads/a"); err != nil || !bytes.Equal(got, threeBlocks) {
					t.Errorf("read: %v, or other bytes", err)
				}
			}
			if keys := b.keys(t); len(keys) != want {
				t.Errorf("the store holds %q", keys)
			}
			if got, err := b.read(t.Context(), "uploads/before"); err != nil || string(got) != "acknowledged" {
				t.Errorf("what was acknowledged: %q, %v", got, err)
			}
			if err := b.seal(t.Context(), "uploads/again", threeBlocks); err != nil {
				t.Errorf("once it is over: %v", err)
			}
		})
	}
}

func TestS3ReadsThroughFaults(t *testing.T) {
	server := s3server.New(t)
	for name, c := range map[string]struct {
		times int
		fault fault
		stall time.Duration
		want  error
	}{
		"throttled for a moment": {2, refuse(503, "SlowDown"), patient, nil},
		"reset for a moment":     {1, reset(0), patient, nil},
		"cut for a moment":       {2, answerCut(false), patient, nil},
		"stalled for a moment":   {1, answerCut(true), 2 * hasty, nil},
		"half-open for a moment": {1, silent, 2 * hasty, nil},
		"throttled":              {always, refuse(503, "SlowDown"), patient, blobstore.ErrUnavailable},
		"cut":                    {always, answerCut(false), patient, blobstore.ErrUnavailable},
		"stalled":                {always, answerCut(true), hasty, blobstore.ErrUnavailable},
		"half-open":              {always, silent, hasty, blobstore.ErrUnavailable},
		"the bucket is gone":     {always, refuse(404, "NoSuchBucket"), patient, blobstore.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBrokenS3(t, server)
			if err := b.seal(t.Context(), "a", threeBlocks); err != nil {
				t.Fatal(err)
			}
			b.strike(c.times, method(http.MethodGet), c.fault)
			got, err := readFrom(t.Context(), b.waiting(t, c.stall), "a")
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || errors.Is(err, blobstore.ErrCorrupt) || errors.Is(err, blobstore.ErrNotFound) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if c.want == nil && !bytes.Equal(got, threeBlocks) {
				t.Error("other bytes came back")
			}
			if b.strike(0, nil, nil) == 0 {
				t.Error("no request met the fault")
			}
		})
	}
}

func TestS3DeletesThroughFaults(t *testing.T) {
	server := s3server.New(t)
	deleting := func(r *http.Request) bool { return r.Method == http.MethodDelete || r.Method == http.MethodPost }
	listing := func(r *http.Request) bool {
		return r.Method == http.MethodGet && (r.URL.Query().Has("versions") || r.URL.Query().Has("uploads"))
	}
	for name, c := range map[string]struct {
		times int
		match func(*http.Request) bool
		fault fault
		stall time.Duration
		want  error
	}{
		"throttled for a moment":    {2, deleting, refuse(503, "SlowDown"), patient, nil},
		"the answer is lost":        {1, deleting, answerLost, patient, nil},
		"a lie":                     {always, deleting, lie, patient, blobstore.ErrNotEmpty},
		"not allowed":               {always, deleting, refuse(403, "AccessDenied"), patient, blobstore.ErrNotEmpty},
		"half-open":                 {always, deleting, silent, hasty, blobstore.ErrNotEmpty},
		"the listing is throttled":  {always, listing, refuse(503, "SlowDown"), patient, blobstore.ErrUnavailable},
		"the listing is cut":        {always, listing, answerCut(false), patient, blobstore.ErrUnavailable},
		"the listing is not there":  {always, listing, refuse(404, "NoSuchBucket"), patient, blobstore.ErrUnavailable},
		"the listing is not for us": {always, listing, refuse(403, "AccessDenied"), patient, blobstore.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBrokenS3(t, server)
			for i := range 3 {
				if err := b.seal(t.Context(), fmt.Sprintf("uploads/upl_1/%d", i), []byte("x")); err != nil {
					t.Fatal(err)
				}
			}
			store := b.waiting(t, c.stall)
			b.strike(c.times, c.match, c.fault)
			_, purgeErr := blobstore.Purge(t.Context(), store, "uploads/upl_1/")
			b.strike(0, nil, nil)
			left := len(b.keys(t))
			if !errors.Is(purgeErr, c.want) || (purgeErr == nil) != (left == 0) {
				t.Errorf("purge: %v with %d left, want %v", purgeErr, left, c.want)
			}
			if n, err := blobstore.Purge(t.Context(), b.S3, "uploads/upl_1/"); n != left || err != nil || len(b.keys(t)) != 0 {
				t.Errorf("once it is over: %d deleted, %v", n, err)
			}

			if err := b.seal(t.Context(), "single", []byte("x")); err != nil {
				t.Fatal(err)
			}
			b.strike(c.times, c.match, c.fault)
			if err := store.Delete(t.Context(), "single"); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("delete: %v, want %v", err, c.want)
			}
		})
	}
}

func TestS3Latency(t *testing.T) {
	b := newBrokenS3(t, s3server.New(t))
	b.strike(always, func(*http.Request) bool { return true }, func(w http.ResponseWriter, r *http.Request, pass http.HandlerFunc) {
		select {
		case <-time.After(50 * time.Millisecond): // far below what is waited for
		case <-r.Context().Done():
		}
		pass(w, r)
	})
	if err := b.seal(t.Context(), "a", threeBlocks); err != nil {
		t.Fatal(err)
	}
	if got, err := b.read(t.Context(), "a"); err != nil || !bytes.Equal(got, threeBlocks) {
		t.Errorf("%v, or other bytes", err)
	}
	if n, err := blobstore.Purge(t.Context(), b.S3, "a"); n != 1 || err != nil {
		t.Errorf("purge: %d, %v", n, err)
	}
}

// A connection that the service closed while nobody used it costs nothing: the body is not begun before the service answers.
func TestS3ClosedIdleConnections(t *testing.T) {
	b := newBrokenS3(t, s3server.New(t))
	for i := range 5 {
		if err := b.seal(t.Context(), fmt.Sprintf("a/%d", i), threeBlocks); err != nil {
			t.Fatal(err)
		}
		b.front.CloseClientConnections()
	}
}

// Whoever goes away in the middle of a body leaves nothing, and nothing waits for him.
func TestS3AbandonedWrites(t *testing.T) {
	b := newBrokenS3(t, s3server.New(t))
	ctx, cancel := context.WithCancel(t.Context())
	size := int64(len(threeBlocks))
	body := io.MultiReader(bytes.NewReader(threeBlocks[:2<<20]), iotest.ErrReader(errors.New("the client is gone")))
	if err := blobstore.Seal(ctx, b, "a", dataKey, nil, body, size); err == nil {
		t.Error("an abandoned body was sealed")
	}
	body = io.MultiReader(bytes.NewReader(threeBlocks[:2<<20]), readerFunc(func(p []byte) (int, error) {
		cancel()
		return len(p), nil
	}))
	if err := blobstore.Seal(ctx, b, "a", dataKey, nil, body, size); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if keys := b.keys(t); len(keys) != 0 {
		t.Errorf("the store holds %q", keys)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
