package custody_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/accession/accession/internal/custody"
)

// The client package is held to the same file.
func TestChainsArePinned(t *testing.T) {
	content, err := os.ReadFile("../../testdata/evidence/chains.json")
	if err != nil {
		t.Fatal(err)
	}
	var pinned struct {
		Audit   []custody.AuditLine
		Records []custody.Record
	}
	if err := json.Unmarshal(content, &pinned); err != nil {
		t.Fatal(err)
	}
	if len(pinned.Audit) != 3 || len(pinned.Records) != 2 {
		t.Fatalf("%d audit lines and %d records are pinned", len(pinned.Audit), len(pinned.Records))
	}
	previous := custody.FirstHash
	for _, want := range pinned.Audit {
		got := want
		if got.Link(previous); got != want {
			t.Errorf("%s has the hash %s after %s, want %s after %s", want.ID, got.Hash, got.PreviousHash, want.Hash, want.PreviousHash)
		}
		previous = want.Hash
	}
	previous = custody.FirstHash
	for _, want := range pinned.Records {
		got := want
		if got.Link(previous); got != want {
			t.Errorf("%s has the hash %s after %s, want %s after %s", want.ID, got.Hash, got.PreviousHash, want.Hash, want.PreviousHash)
		}
		previous = want.Hash
	}
}
