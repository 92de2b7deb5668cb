package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// npmPackages is the folder of what the lock file in the folder from names, shared by all runs.
func npmPackages(t testing.TB, from string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../scripts/npm-packages.sh", from)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	return strings.TrimSpace(string(out))
}

// npmProject is a copy of the folder from, out of the tree, with its packages installed.
func npmProject(t testing.TB, from string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(npmPackages(t, from), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}
