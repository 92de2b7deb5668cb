package e2e

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// A power cut takes whatever was not made durable, names of folders too. Every folder that the first start made, and the data
// folder itself, is synced in the folder above it before the service says that it is ready; and at each start again, since the
// process that made it may have died in between.
func TestFoldersAreMadeDurable(t *testing.T) {
	above := t.TempDir()
	o := options{data: filepath.Join(above, "srv", "custody", "data")}
	k := watch(t, &o)
	s := start(t, o)
	durable := k.durable()
	for _, folder := range []string{above, filepath.Join(above, "srv"), filepath.Join(above, "srv", "custody"), o.data} {
		if !durable[folder] {
			t.Errorf("first start: %s is not synced", folder)
		}
	}
	s.kill()
	start(t, o)
	if again := k.durable(); !again[filepath.Dir(o.data)] {
		t.Error("second start: the folder of the data folder is not synced")
	}
}

// A commit whose sync fails lies in the log all the same, and counts once the service starts again: the data key of an upload that
// may be there must not be destroyed because the request failed.
func TestACommitWithoutItsSyncIsInDoubt(t *testing.T) {
	o := options{data: filepath.Join(t.TempDir(), "data"), flags: []string{"--rate-limits", "off"}}
	k := watch(t, &o)
	s := start(t, o)
	p := s.partner("harbour")
	initiating := call{
		method: "POST", path: p.path("/partner-uploads/initiate"), token: p.token, key: client.NewIdempotencyKey(),
		json: map[string]any{"filename": "note.txt", "content_type": "text/plain", "size_bytes": 3, "consent": consent()},
	}
	k.breaks("/metadata.db-wal")
	if r := p.do(initiating).want(t, 503, "service_unavailable"); r.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	k.breaks("")
	p.do(initiating).want(t, 200, "") // the same request, once the disk works: by itself
	s.kill()
	site := &site{o: o}
	if keys := count(t, site.database(t, "keys.db"), `SELECT COUNT(*) FROM data_keys`); keys != 2 {
		t.Errorf("%d data keys, want 2: the one of the upload in doubt was taken back", keys)
	}
}

// A key service that takes the request and says nothing holds up no request for long; when it speaks again, all goes on.
func TestASilentKeyService(t *testing.T) {
	t.Parallel()
	v := newTransit(t)
	var mu sync.Mutex
	speaks := make(chan struct{})
	close(speaks)
	may := func() chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		return speaks
	}
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-may():
			v.answer(w, r)
		case <-t.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	fast := v.URL
	o := v.options("")
	for i := range o.env {
		o.env[i] = strings.ReplaceAll(o.env[i], fast, slow.URL)
	}
	s := start(t, o)
	p := s.partner("harbour")
	initiating := call{
		method: "POST", path: p.path("/partner-uploads/initiate"), token: p.token, key: client.NewIdempotencyKey(),
		json: map[string]any{"filename": "note.txt", "content_type": "text/plain", "size_bytes": 3, "consent": consent()},
	}
	mu.Lock()
	speaks = make(chan struct{})
	mu.Unlock()
	if r := p.do(initiating).want(t, 503, "service_unavailable"); r.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	for deadline := time.Now().Add(2 * time.Minute); ; { // on a busy machine the store's check may take too long once
		r := s.do(call{method: "GET", path: "/readyz"}).want(t, 503, "service_unavailable")
		checks, _ := r.Details["checks"].(map[string]any)
		if checks["keys"] == "failing" && checks["store"] == "ok" {
			break
		}
		if checks["keys"] != "failing" || time.Now().After(deadline) {
			t.Fatalf("readyz: %s", r.Raw)
		}
	}
	close(may())
	p.do(initiating).want(t, 200, "")
	s.awaitReady()
}

// The same of a key store that another process holds.
func TestALockedKeyStore(t *testing.T) {
	t.Parallel()
	o := options{data: filepath.Join(t.TempDir(), "data")}
	s := start(t, o)
	p := s.partner("harbour")
	initiating := call{
		method: "POST", path: p.path("/partner-uploads/initiate"), token: p.token, key: client.NewIdempotencyKey(),
		json: map[string]any{"filename": "note.txt", "content_type": "text/plain", "size_bytes": 3, "consent": consent()},
	}
	other := (&site{o: o}).database(t, "keys.db")
	other.SetMaxOpenConns(1)
	if _, err := other.Exec(`BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	if r := p.do(initiating).want(t, 503, "service_unavailable"); r.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if _, err := other.Exec(`ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	p.do(initiating).want(t, 200, "")
}

// A deletion whose sync fails is back after a power cut, though nobody sees the file any more: there is no receipt for it before the
// disk works.
func TestADeletionWithoutItsSyncIsNotConfirmed(t *testing.T) {
	o := options{data: filepath.Join(t.TempDir(), "data"), flags: []string{"--rate-limits", "off"}}
	k := watch(t, &o)
	s := start(t, o)
	p := s.partner("harbour")
	id := p.send("note.txt", "text/plain", note("wet-rope"))
	p.wantReady(id)
	k.breaks("/uploads/" + id + "/parts")
	p.withdraw(id).want(t, 502, "deletion_not_confirmed")
	k.breaks("")
	p.follow(id) // an attempt that failed may be counted only now
	if _, durable := p.wantWithdrawn(id, len(note("wet-rope"))), k.durable(); !durable[filepath.Join(o.data, "blobs", "uploads", id, "parts")] {
		t.Error("the folder that was not synced is confirmed without its sync")
	}
}
