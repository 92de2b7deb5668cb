package e2e

import (
	"maps"
	"path/filepath"
	"testing"
)

// What was acknowledged survives a power cut: the bytes of an object, its name in its folder, and the names of the folders above
// are synced before the answer that tells of it, or before the gate that made it has passed.
func TestObjectsAreDurableBeforeTheirAnswer(t *testing.T) {
	t.Parallel()
	o := smallParts()
	o.data = filepath.Join(t.TempDir(), "data")
	k := watch(t, &o)
	s := start(t, o)
	p := s.partner("harbour")
	durable, known := k.durable(), map[string]bool{}
	check := func(after string, least int) {
		t.Helper()
		objects := s.objects()
		if len(objects) < least {
			t.Fatalf("after %s: %d objects, want %d: this proves nothing", after, len(objects), least)
		}
		lately := k.durable()
		maps.Copy(durable, lately)
		for _, object := range objects {
			if known[object] {
				continue
			}
			known[object] = true
			if !lately[object] {
				t.Errorf("after %s: the bytes of %s are not synced", after, object)
			}
			if !lately[filepath.Dir(object)] {
				t.Errorf("after %s: the name of %s is not synced", after, object)
			}
			for folder := filepath.Dir(object); folder != s.data; folder = filepath.Dir(folder) {
				if !durable[filepath.Dir(folder)] {
					t.Errorf("after %s: the name of the folder %s is not synced", after, folder)
				}
			}
		}
	}
	content := note("dry-keel")
	for len(content) <= partSize {
		content = append(content, content...)
	}
	parts := cut(content, partSize)
	id := p.initiate("note.txt", "text/plain", len(content))
	for i, part := range parts {
		p.part(id, i+1, part).want(t, 200, "")
		check("a part", i+1)
	}
	p.complete(id, parts).want(t, 202, "")
	p.wantReady(id)
	check("the gates", 2*len(parts)+3) // quarantine has its copy; extraction, summary and context are published
}
