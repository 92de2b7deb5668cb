package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// While some small objects are being made durable, those that come share one sync of their file system. None of them is
// acknowledged before it, all of them learn that it failed, and the same requests succeed once the disk works.
func TestObjectsThatShareASyncAreAcknowledgedAfterIt(t *testing.T) {
	t.Parallel()
	const alone, sharing = 4, 6
	o := options{data: filepath.Join(t.TempDir(), "data"), flags: []string{"--rate-limits", "off"}}
	k := watch(t, &o)
	s := start(t, o)
	p := s.partner("harbour")
	content := note("dry-keel")
	send := func(n int) (ids []string, answers chan reply) {
		answers = make(chan reply, n)
		for range n {
			id := p.initiate("note.txt", "text/plain", len(content))
			ids = append(ids, id)
			go func() { answers <- p.part(id, 1, content) }()
		}
		return ids, answers
	}
	holding := func(n int) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); k.holding() != n; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d syncs are under way, want %d", k.holding(), n)
			}
		}
	}
	shared := func(path string) bool { return strings.HasPrefix(path, wholeFileSystem) }
	t.Cleanup(k.release) // else a test that fails would never end
	k.slows(func(path string) bool { return strings.Contains(path, "/uploads/") && !shared(path) })
	_, first := send(alone)
	holding(alone)

	k.breaksIf(shared)
	ids, refused := send(sharing)
	for range sharing {
		if r := (<-refused).want(t, 503, "service_unavailable"); r.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	k.breaks("")
	k.slows(shared)
	again := make(chan reply, sharing)
	for _, id := range ids {
		go func() { again <- p.part(id, 1, content) }()
	}
	holding(alone + 1)
	if len(first)+len(again) != 0 {
		t.Error("a part is acknowledged before it is durable")
	}
	k.release()
	for range alone {
		(<-first).want(t, 200, "")
	}
	for range sharing {
		(<-again).want(t, 200, "")
	}
}
