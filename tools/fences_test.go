// Package tools proves that the lint step's own fences hold.
package tools

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/accession/accession"

// A module of empty packages takes the place of ours, with one import planted.
// Each case says whether .depguard.yml must object.
func TestFencesRefuseAPlantedImport(t *testing.T) {
	cases := []struct {
		file, imports string
		refused       bool
	}{
		{"internal/intake/planted.go", "internal/custody", false},
		{"internal/intake/planted.go", "internal/tenant", true},
		{"internal/intake/planted.go", "client", true},
		{"internal/scanner/planted.go", "internal/extract", true},
		{"internal/keystore/planted.go", "internal/sqldb", false},
		{"internal/pipeline/planted.go", "internal/sqldb", true},
		{"internal/httpapi/planted.go", "internal/tenant", false},
		{"internal/httpapi/planted.go", "internal/sqlstore", true},
		{"internal/vault/planted.go", "internal/blobstore", false},
		{"internal/vault/planted.go", "internal/sqldb", true},
		{"internal/custody/planted.go", "internal/intake", true},
		{"internal/blobstore/planted.go", "internal/storetest", true},
		{"internal/blobstore/planted_test.go", "internal/storetest", false},
		{"internal/blobstore/planted_test.go", "internal/intake", true},
		{"client/planted.go", "internal/custody", true},
		{"internal/manual/planted.go", "docs", false},
		{"internal/manual/planted.go", "internal/portal", true},
		{"cmd/accession/planted.go", "internal/intake", false},
	}

	depguard := buildDepguard(t)
	fences, err := os.ReadFile("../.depguard.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.file+" imports "+c.imports, func(t *testing.T) {
			t.Parallel()
			house := t.TempDir()
			write(t, house, ".depguard.yml", string(fences))
			write(t, house, "go.mod", "module "+module+"\n\ngo 1.26\n")
			write(t, house, c.imports+"/empty.go", "package empty\n")
			room := filepath.Base(filepath.Dir(c.file))
			write(t, house, filepath.Dir(c.file)+"/room.go", "package "+room+"\n")
			write(t, house, c.file, "package "+room+"\n\nimport _ \""+module+"/"+c.imports+"\"\n")

			run := exec.Command(depguard, "./...")
			run.Dir = house
			said, err := run.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			objected := err != nil && strings.Contains(string(said), "is not allowed from list")
			if objected != c.refused || (err != nil) != c.refused {
				t.Errorf("refused = %v, want %v; depguard said:\n%s", objected, c.refused, said)
			}
		})
	}
}

func buildDepguard(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "depguard")
	build := exec.Command("go", "build", "-o", binary, "github.com/OpenPeeDeeP/depguard/v2/cmd/depguard")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build depguard: %v\n%s", err, said)
	}
	return binary
}

func write(t *testing.T, house, name, text string) {
	t.Helper()
	full := filepath.Join(house, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
