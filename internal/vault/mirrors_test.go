package vault_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/accession/accession/internal/blobstore"
	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/vault"
)

func TestMirrorsGetEveryCopyAndConfirmDeletion(t *testing.T) {
	h := open(t)
	root := t.TempDir()
	disk, err := blobstore.NewDisk("mirror-1", root)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	mirror := &flaky{Store: disk}
	h.Vault = vault.New(h.keys, h.staging, h.quarantine, mirror)
	if got := h.Backends(); !slices.Equal(got, []string{"staging", "quarantine", "mirror-1", custody.BackendKeys}) {
		t.Errorf("backends are %q", got)
	}
	ledger := h.upload(t, "upl_1", text(64), text(9))
	mirror.commit = errFault
	if _, err := readAll(h.Quarantine(t.Context(), "upl_1", ledger)); !errors.Is(err, errFault) {
		t.Errorf("a mirror that keeps nothing: %v", err)
	}
	mirror.commit = nil
	if got, err := readAll(h.Quarantine(t.Context(), "upl_1", ledger)); err != nil || !bytes.Equal(got, append(text(64), text(9)...)) {
		t.Fatalf("%v, or other bytes", err)
	}
	altered := filepath.Join(root, ledger[0].ObjectKey)
	sealed, err := os.ReadFile(altered)
	if err != nil {
		t.Fatal(err)
	}
	sealed[len(sealed)-1] ^= 1
	if err := os.WriteFile(altered, sealed, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(h.Quarantine(t.Context(), "upl_1", ledger)); err != nil { // the altered copy is made again
		t.Fatal(err)
	}
	sealed[len(sealed)-1] ^= 1
	if again, err := os.ReadFile(altered); err != nil || !bytes.Equal(again, sealed) {
		t.Errorf("the altered copy stays: %v", err)
	}
	held, err := h.Held(t.Context(), "upl_1")
	_, copies := h.Expected(ledger, nil)
	if err != nil || len(held) != 6 || len(copies) != 4 || copies[1].Backend != "mirror-1" {
		t.Errorf("%d objects held, copies %+v, %v", len(held), copies, err)
	}
	mirror.pretend = true
	if deletions, err := h.Destroy(t.Context(), "upl_1"); !errors.Is(err, blobstore.ErrNotEmpty) || len(deletions) != 3 {
		t.Errorf("a mirror that deletes nothing: %+v, %v", deletions, err)
	}
	mirror.pretend = false
	if deletions, err := h.Destroy(t.Context(), "upl_1"); err != nil || len(deletions) != 4 || deletions[2].Backend != "mirror-1" || deletions[2].Objects != 2 {
		t.Errorf("%+v, %v", deletions, err)
	}
}

// A store that does not answer is what a client may see, without the store's own words.
func TestUnavailableStorageIsNoInternalError(t *testing.T) {
	h := open(t)
	ledger := h.upload(t, "upl_1", text(64))
	h.staging.create, h.staging.open = blobstore.ErrUnavailable, blobstore.ErrUnavailable
	_, sealErr := h.SealPart(t.Context(), "upl_1", 2, bytes.NewReader(text(9)), 9)
	_, keepErr := h.SealArtifact(t.Context(), "upl_1", "text", text(9))
	_, copyErr := h.Quarantine(t.Context(), "upl_1", ledger)
	_, readErr := readAll(h.Open(t.Context(), "upl_1", ledger))
	for what, err := range map[string]error{"SealPart": sealErr, "SealArtifact": keepErr, "Quarantine": copyErr, "Open": readErr} {
		var visible *custody.Error
		if !errors.As(err, &visible) || visible.Code != custody.CodeUnavailable || visible.RetryAfter == 0 {
			t.Errorf("%s: %v, want service_unavailable", what, err)
		}
	}
}
