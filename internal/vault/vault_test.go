package vault_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/accession/accession/internal/blobstore"
	"github.com/accession/accession/internal/custody"
)

func TestPartsComeBackAsOneFileAndLieSealed(t *testing.T) {
	h := open(t)
	parts := [][]byte{text(2<<20 + 64), text(64), text(1)}
	if err := h.Admit(t.Context(), "upl_1"); err != nil {
		t.Fatal(err)
	}
	var ledger []custody.Part
	whole := sha256.New()
	for i, b := range parts {
		digest := sha256.New()
		key, err := h.SealPart(t.Context(), "upl_1", i+1, bytes.NewReader(b), int64(len(b)), digest, whole)
		if err != nil {
			t.Fatal(err)
		}
		if want := sha256.Sum256(b); !bytes.Equal(digest.Sum(nil), want[:]) {
			t.Errorf("part %d: another digest", i+1)
		}
		ledger = append(ledger, custody.Part{UploadID: "upl_1", Number: i + 1, SizeBytes: int64(len(b)), ObjectKey: key})
	}
	all := slices.Concat(parts...)
	if want := sha256.Sum256(all); !bytes.Equal(whole.Sum(nil), want[:]) {
		t.Error("the digest of the whole is another")
	}
	if got, err := readAll(h.Open(t.Context(), "upl_1", ledger)); err != nil || !bytes.Equal(got, all) {
		t.Errorf("read back: %v, equal: %v", err, bytes.Equal(got, all))
	}
	for key, b := range h.files(t, 0) {
		if bytes.Contains(b, []byte("plain text")) {
			t.Errorf("%s lies there in clear", key)
		}
		if !strings.HasPrefix(key, "uploads/upl_1/parts/00000") {
			t.Errorf("unexpected object %s", key)
		}
	}
	if len(h.files(t, 0)) != 3 || len(h.files(t, 1)) != 0 {
		t.Errorf("%d objects in staging, %d in quarantine; want 3 and 0", len(h.files(t, 0)), len(h.files(t, 1)))
	}
	again, err := h.SealPart(t.Context(), "upl_1", 3, bytes.NewReader(parts[2]), 1)
	if err != nil || again == ledger[2].ObjectKey {
		t.Errorf("the same part again is object %s, %v; want another one", again, err)
	}
	if err := h.DiscardPart(t.Context(), again); err != nil || len(h.files(t, 0)) != 3 {
		t.Errorf("discarding it: %v, %d objects", err, len(h.files(t, 0)))
	}
	if err := h.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestArtifactsComeBack(t *testing.T) {
	h := open(t)
	h.upload(t, "upl_1")
	for _, size := range []int{0, 1, 3 << 20} {
		a, err := h.SealArtifact(t.Context(), "upl_1", "text", text(size))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text(size))
		if a.UploadID != "upl_1" || a.Name != "text" || a.SizeBytes != int64(size) || a.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("artifact is %+v", a)
		}
		if got, err := h.OpenArtifact(t.Context(), a); err != nil || !bytes.Equal(got, text(size)) {
			t.Errorf("%d bytes: %v, equal: %v", size, err, bytes.Equal(got, text(size)))
		}
	}
}

// Every object is bound to its upload, its place and its kind: moved bytes do not open, even under the right key.
func TestMovedObjectsAreRefused(t *testing.T) {
	h := open(t)
	ledger := h.upload(t, "upl_1", text(64), text(64))
	h.upload(t, "upl_2")
	h.keys.held["upl_2"] = h.keys.held["upl_1"] // so that it is the binding that refuses
	a, err := h.SealArtifact(t.Context(), "upl_1", "text", text(64))
	if err != nil {
		t.Fatal(err)
	}
	swapped := []custody.Part{ledger[0], ledger[1]}
	swapped[0].ObjectKey, swapped[1].ObjectKey = ledger[1].ObjectKey, ledger[0].ObjectKey
	asPart := ledger[0]
	asPart.ObjectKey = a.ObjectKey
	shorter := ledger[0]
	shorter.SizeBytes--
	for what, c := range map[string]struct {
		uploadID string
		parts    []custody.Part
	}{
		"another upload's": {"upl_2", ledger}, "in another order": {"upl_1", swapped}, "an artifact": {"upl_1", []custody.Part{asPart}},
		"of another size": {"upl_1", []custody.Part{shorter}},
	} {
		if got, err := readAll(h.Open(t.Context(), c.uploadID, c.parts)); !errors.Is(err, blobstore.ErrCorrupt) {
			t.Errorf("%s: read %d bytes, %v; want ErrCorrupt", what, len(got), err)
		}
	}
	for what, moved := range map[string]custody.Artifact{
		"another upload's": {UploadID: "upl_2", Name: "text", ObjectKey: a.ObjectKey},
		"another name's":   {UploadID: "upl_1", Name: "summary", ObjectKey: a.ObjectKey},
		"a part":           {UploadID: "upl_1", Name: "text", ObjectKey: ledger[0].ObjectKey},
	} {
		if got, err := h.OpenArtifact(t.Context(), moved); !errors.Is(err, blobstore.ErrCorrupt) || got != nil {
			t.Errorf("%s: read %d bytes, %v; want ErrCorrupt", what, len(got), err)
		}
	}
	h.keys.held["upl_1"] = make([]byte, 32)
	if _, err := readAll(h.Open(t.Context(), "upl_1", ledger)); !errors.Is(err, blobstore.ErrCorrupt) {
		t.Errorf("under another key: %v, want ErrCorrupt", err)
	}
}

func TestQuarantineResumesAndConfirmsTheCopy(t *testing.T) {
	h := open(t)
	parts := [][]byte{text(2<<20 + 5), text(70_000), text(64), text(9)}
	ledger := h.upload(t, "upl_1", parts...)
	staged := h.files(t, 0)
	flipped := slices.Clone(staged[ledger[1].ObjectKey])
	flipped[len(flipped)/2] ^= 1
	h.write(t, 1, ledger[0].ObjectKey, staged[ledger[0].ObjectKey][:1<<20])            // a crash cut it short
	h.write(t, 1, ledger[1].ObjectKey, flipped)                                        // as long as it should be, but not written through
	h.write(t, 1, ledger[2].ObjectKey, staged[ledger[2].ObjectKey])                    // whole
	h.write(t, 1, ledger[3].ObjectKey, make([]byte, len(staged[ledger[3].ObjectKey]))) // room that was reserved and never filled
	whole := filepath.Join(h.roots[1], ledger[2].ObjectKey)
	before, err := os.Stat(whole)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds everything there
		if got, err := readAll(h.Quarantine(t.Context(), "upl_1", ledger)); err != nil || !bytes.Equal(got, slices.Concat(parts...)) {
			t.Fatalf("quarantine reads back: %v", err)
		}
		copied := h.files(t, 1)
		for key, b := range staged {
			if !bytes.Equal(copied[key], b) {
				t.Errorf("%s: the copy is another", key)
			}
		}
		if len(copied) != len(staged) {
			t.Errorf("%d objects in quarantine, want %d", len(copied), len(staged))
		}
		if after, err := os.Stat(whole); err != nil || !os.SameFile(before, after) {
			t.Errorf("a whole copy was copied again: %v", err)
		}
	}
	// What is confirmed is the copy: staging is no longer needed to read it.
	if _, err := blobstore.Purge(t.Context(), h.staging, "uploads/upl_1"); err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(h.Quarantine(t.Context(), "upl_1", ledger)); err != nil || !bytes.Equal(got, slices.Concat(parts...)) {
		t.Errorf("without staging: %v", err)
	}
	if err := os.Remove(whole); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Quarantine(t.Context(), "upl_1", ledger); !errors.Is(err, blobstore.ErrNotFound) {
		t.Errorf("a part that is in no store: %v, want ErrNotFound", err)
	}
}

func TestQuarantineDoesNotSwallowFaults(t *testing.T) {
	h := open(t)
	ledger := h.upload(t, "upl_1", text(3<<20))
	for what, inject := range map[string]func(){
		"list":   func() { h.quarantine.list = errFault },
		"create": func() { h.quarantine.create = errFault },
		"write":  func() { h.quarantine.write = errFault },
		"commit": func() { h.quarantine.commit = errFault },
		"open":   func() { h.staging.open = errFault },
	} {
		inject()
		content, err := h.Quarantine(t.Context(), "upl_1", ledger)
		if !errors.Is(err, errFault) || content != nil {
			t.Errorf("%s: got %v, want the fault", what, err)
		}
		*h.quarantine, *h.staging = flaky{Store: h.quarantine.Store}, flaky{Store: h.staging.Store}
		if left := h.files(t, 1); len(left) != 0 {
			t.Errorf("%s: a copy that failed left %d objects", what, len(left))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Quarantine(ctx, "upl_1", ledger); !errors.Is(err, context.Canceled) {
		t.Errorf("after its caller left: %v", err)
	}
}

func TestWhatAClientSees(t *testing.T) {
	h := open(t)
	h.upload(t, "upl_1")
	for what, c := range map[string]struct {
		body   string
		length int64
		full   string // where the store is full
		want   custody.Code
	}{
		"shorter than announced":  {"abc", 4, "", custody.CodePartLengthInvalid},
		"longer than announced":   {"abc", 2, "", custody.CodePartLengthInvalid},
		"full before it began":    {"abc", 3, "create", custody.CodeStorageFull},
		"full while it came":      {"abc", 3, "write", custody.CodeStorageFull},
		"full when it was synced": {"abc", 3, "commit", custody.CodeStorageFull},
	} {
		switch c.full {
		case "create":
			h.staging.create = blobstore.ErrNoSpace
		case "write":
			h.staging.write = blobstore.ErrNoSpace
		case "commit":
			h.staging.commit = blobstore.ErrNoSpace
		}
		_, err := h.SealPart(t.Context(), "upl_1", 1, strings.NewReader(c.body), c.length)
		*h.staging = flaky{Store: h.staging.Store}
		var e *custody.Error
		if !errors.As(err, &e) || e.Code != c.want || (c.want == custody.CodeStorageFull) != (e.RetryAfter > 0) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		} else if strings.Contains(e.Message, "uploads/") || strings.Contains(e.Message, h.roots[0]) {
			t.Errorf("%s: the client is shown %q", what, e.Message)
		}
		if left := h.files(t, 0); len(left) != 0 {
			t.Errorf("%s: %d objects stay", what, len(left))
		}
	}
	gone := errors.New("connection reset")
	if _, err := h.SealPart(t.Context(), "upl_1", 1, io.MultiReader(strings.NewReader("a"), &failingReader{gone}), 9); !errors.Is(err, gone) {
		t.Errorf("a reader's own error: %v", err)
	}
	h.keys.fail = errFault
	if _, err := h.SealPart(t.Context(), "upl_1", 1, strings.NewReader("a"), 1); !errors.Is(err, errFault) {
		t.Errorf("without a key: %v", err)
	}
	if err := h.Admit(t.Context(), "upl_2"); !errors.Is(err, errFault) {
		t.Errorf("admitted without a key: %v", err)
	}
	h.keys.fail = nil
	if err := h.Dismiss(t.Context(), "upl_1"); err != nil || len(h.keys.held) != 0 {
		t.Errorf("dismissed: %v, %d keys", err, len(h.keys.held))
	}
}
