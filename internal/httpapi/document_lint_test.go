package httpapi

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The published document is clean by the recommended rules of a linter that is not ours.
func TestDocumentLints(t *testing.T) {
	b := newBench(t)
	document := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(document, b.call("GET", "/api/v1/ai/openapi.json", nil).raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("../../scripts/lint-openapi.sh", document).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}
