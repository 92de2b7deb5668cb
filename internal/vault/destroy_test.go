package vault_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/blobstore"
	"github.com/accession/accession/internal/custody"
)

func TestDestroyLeavesNothingAndSaysSo(t *testing.T) {
	h := open(t)
	ledger := h.upload(t, "upl_1", text(64), text(9))
	beside := h.upload(t, "upl_11", text(64)) // its id begins with the other's
	if _, err := readAll(h.Quarantine(t.Context(), "upl_1", ledger)); err != nil {
		t.Fatal(err)
	}
	a, err := h.SealArtifact(t.Context(), "upl_1", "text", text(64))
	if err != nil {
		t.Fatal(err)
	}
	start := custody.Now()
	deletions, err := h.Destroy(t.Context(), "upl_1")
	if err != nil || len(deletions) != 3 {
		t.Fatalf("%+v, %v", deletions, err)
	}
	for i, want := range []custody.Deletion{{Backend: "staging", Objects: 3}, {Backend: "quarantine", Objects: 2}, {Backend: "key_store", Objects: 1}} {
		d := deletions[i]
		if d.Backend != want.Backend || d.Objects != want.Objects || d.Confirmation == "" || d.ConfirmedAt.Before(start) {
			t.Errorf("deletion %d is %+v, want %+v with what confirmed it", i, d, want)
		}
	}
	if _, held := h.keys.held["upl_1"]; held {
		t.Error("the data key is still there")
	}
	for root, want := range []int{1, 0} {
		if left := h.files(t, root); len(left) != want {
			t.Errorf("%s still holds %d objects, want %d", h.roots[root], len(left), want)
		}
	}
	if got, err := readAll(h.Open(t.Context(), "upl_11", beside)); err != nil || !bytes.Equal(got, text(64)) {
		t.Errorf("the upload beside it: %v", err)
	}

	_, sealErr := h.SealPart(t.Context(), "upl_1", 3, bytes.NewReader(text(1)), 1)
	_, openErr := h.Open(t.Context(), "upl_1", ledger)
	_, copyErr := h.Quarantine(t.Context(), "upl_1", ledger)
	_, keepErr := h.SealArtifact(t.Context(), "upl_1", "text", text(1))
	_, readErr := h.OpenArtifact(t.Context(), a)
	for what, err := range map[string]error{"SealPart": sealErr, "Open": openErr, "SealArtifact": keepErr, "OpenArtifact": readErr} {
		if !errors.Is(err, custody.ErrDestroyed) {
			t.Errorf("%s of a destroyed upload: %v, want ErrDestroyed", what, err)
		}
	}
	if copyErr == nil {
		t.Error("a destroyed upload went into quarantine")
	}
	if len(h.files(t, 0)) != 1 || len(h.files(t, 1)) != 0 {
		t.Error("something was written for a destroyed upload")
	}
	if again, err := h.Destroy(t.Context(), "upl_1"); err != nil || len(again) != 3 || again[0].Objects != 0 {
		t.Errorf("destroying it again: %+v, %v", again, err)
	}
}

func TestOneBackendThatDoesNotConfirm(t *testing.T) {
	errKeys := errors.New("key store is away")
	for what, c := range map[string]struct {
		inject    func(*house)
		confirmed []string
		want      error
	}{
		"staging does not delete":     {func(h *house) { h.staging.delete = errFault }, []string{"quarantine", "key_store"}, errFault},
		"staging does not list":       {func(h *house) { h.staging.list = errFault }, []string{"quarantine", "key_store"}, errFault},
		"staging deletes nothing":     {func(h *house) { h.staging.pretend = true }, []string{"quarantine", "key_store"}, blobstore.ErrNotEmpty},
		"quarantine does not delete":  {func(h *house) { h.quarantine.delete = errFault }, []string{"staging", "key_store"}, errFault},
		"quarantine deletes nothing":  {func(h *house) { h.quarantine.pretend = true }, []string{"staging", "key_store"}, blobstore.ErrNotEmpty},
		"the key store does not":      {func(h *house) { h.keys.fail = errKeys }, []string{"staging", "quarantine"}, errKeys},
		"neither backend does answer": {func(h *house) { h.staging.list, h.quarantine.list = errFault, errFault }, []string{"key_store"}, errFault},
	} {
		h := open(t)
		ledger := h.upload(t, "upl_1", text(64), text(9))
		if _, err := readAll(h.Quarantine(t.Context(), "upl_1", ledger)); err != nil {
			t.Fatal(err)
		}
		c.inject(h)
		deletions, err := h.Destroy(t.Context(), "upl_1")
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", what, err, c.want)
		}
		var confirmed []string
		for _, d := range deletions {
			confirmed = append(confirmed, d.Backend)
		}
		if !slices.Equal(confirmed, c.confirmed) {
			t.Errorf("%s: %v confirmed, want %v", what, confirmed, c.confirmed)
		}
		for root, backend := range []string{"staging", "quarantine"} {
			if gone := len(h.files(t, root)) == 0; gone != slices.Contains(c.confirmed, backend) {
				t.Errorf("%s: %s is empty: %v", what, backend, gone)
			}
		}
		h.keys.fail = nil
		*h.quarantine, *h.staging = flaky{Store: h.quarantine.Store}, flaky{Store: h.staging.Store}
		if deletions, err := h.Destroy(t.Context(), "upl_1"); err != nil || len(deletions) != 3 || len(h.files(t, 0))+len(h.files(t, 1)) != 0 {
			t.Errorf("%s: tried again: %+v, %v", what, deletions, err)
		}
	}
}

func TestUploadsAndStrays(t *testing.T) {
	h := open(t)
	ledger := h.upload(t, "upl_1", text(64), text(9))
	h.upload(t, "upl_2", text(64))
	h.write(t, 1, "uploads/upl_3/parts/000001-x", []byte("left in quarantine alone"))
	h.write(t, 0, "ready", []byte("not of an upload"))
	ids, err := h.Uploads(t.Context())
	if err != nil || len(ids) != 3 || !ids["upl_1"] || !ids["upl_2"] || !ids["upl_3"] {
		t.Errorf("uploads are %v, %v", ids, err)
	}
	now := time.Now()
	old := filepath.Join(h.roots[0], ledger[1].ObjectKey)
	if err := os.Chtimes(old, now.Add(-3*time.Hour), now.Add(-3*time.Hour)); err != nil {
		t.Fatal(err)
	}
	both := map[string]bool{ledger[0].ObjectKey: true, ledger[1].ObjectKey: true}
	for what, c := range map[string]struct {
		named  map[string]bool
		before time.Time
		want   int
	}{
		"all named":               {both, now.Add(time.Hour), 0},
		"none named, one is old":  {nil, now.Add(-time.Hour), 1},
		"none named, both old":    {nil, now.Add(time.Hour), 2},
		"the young one is named":  {map[string]bool{ledger[0].ObjectKey: true}, now.Add(time.Hour), 1},
		"the old one is named":    {map[string]bool{ledger[1].ObjectKey: true}, now.Add(-time.Hour), 0},
		"none is older than that": {nil, now.Add(-4 * time.Hour), 0},
	} {
		strays, err := h.Strays(t.Context(), "upl_1", c.named, c.before)
		if err != nil || len(strays) != c.want {
			t.Errorf("%s: strays %v, %v; want %d", what, strays, err, c.want)
		}
		if c.want == 1 && strays[0] != ledger[1].ObjectKey {
			t.Errorf("%s: stray is %s", what, strays[0])
		}
	}
	h.staging.list = errFault
	_, uploadsErr := h.Uploads(t.Context())
	_, straysErr := h.Strays(t.Context(), "upl_1", nil, now)
	for what, err := range map[string]error{"Uploads": uploadsErr, "Strays": straysErr, "Ready": h.Ready(t.Context())} {
		if !errors.Is(err, errFault) {
			t.Errorf("%s while the store does not list: %v", what, err)
		}
	}
}

func TestDropDerivedLeavesTheParts(t *testing.T) {
	h := open(t)
	parts := h.upload(t, "upl_1", text(100))
	h.upload(t, "upl_2", text(100))
	for _, id := range []string{"upl_1", "upl_2"} {
		for _, name := range []string{"text", "summary", "context"} {
			if _, err := h.SealArtifact(t.Context(), id, name, text(50)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n, err := h.DropDerived(t.Context(), "upl_1"); err != nil || n != 3 {
		t.Errorf("dropped %d objects, %v", n, err)
	}
	if b, err := readAll(h.Open(t.Context(), "upl_1", parts)); err != nil || !bytes.Equal(b, text(100)) {
		t.Errorf("the document reads %d bytes, %v", len(b), err)
	}
	left := map[bool]int{}
	for path := range h.files(t, 0) {
		if strings.Contains(path, "/derived/") {
			left[strings.Contains(path, "upl_1")]++
		}
	}
	if left[true] != 0 || left[false] != 3 {
		t.Errorf("%d derived objects are left, and %d of another upload", left[true], left[false])
	}
}

func TestWhatIsNotNotedIsNotDeleted(t *testing.T) {
	h := open(t)
	ledger := h.upload(t, "upl_1", text(64), text(9))
	h.upload(t, "upl_2", text(64))
	if _, err := readAll(h.Quarantine(t.Context(), "upl_1", ledger)); err != nil {
		t.Fatal(err)
	}
	errNote := errors.New("the notebook is away")
	deletions, err := h.DestroyNoting(t.Context(), "upl_1", func([]custody.StoredObject) error { return errNote })
	if !errors.Is(err, errNote) || len(h.files(t, 0)) != 3 || len(h.files(t, 1)) != 2 {
		t.Errorf("%v, %d and %d objects left", err, len(h.files(t, 0)), len(h.files(t, 1)))
	}
	if _, held := h.keys.held["upl_1"]; held || len(deletions) != 1 || deletions[0].Backend != custody.BackendKeys {
		t.Errorf("the data key must go in any case; confirmed: %+v", deletions)
	}
	noted := map[string]int{}
	var bytes int64
	if _, err := h.DestroyNoting(t.Context(), "upl_1", func(objects []custody.StoredObject) error {
		for _, o := range objects {
			noted[o.Backend]++
			bytes += o.SizeBytes
			if !strings.HasPrefix(o.Key, "uploads/upl_1/") {
				t.Errorf("noted %+v", o)
			}
			if _, there := h.files(t, map[string]int{"staging": 0, "quarantine": 1}[o.Backend])[o.Key]; !there {
				t.Errorf("%+v was noted after its deletion", o)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := 2 * (blobstore.SealedSize(64) + blobstore.SealedSize(9)); noted["staging"] != 2 || noted["quarantine"] != 2 || noted[custody.BackendKeys] != 0 || bytes != want {
		t.Errorf("noted %v, %d bytes, want %d", noted, bytes, want)
	}
}
