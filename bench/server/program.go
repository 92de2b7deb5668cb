package server

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build makes the service as a release is built, in folder, and returns its path.
func Build(ctx context.Context, folder string) (binary string, err error) {
	binary = filepath.Join(folder, "accession")
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", "grpcnotrace", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./cmd/accession")
	tie(cmd)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it waits for its compilers then
	cmd.Env, cmd.Stderr = append(os.Environ(), "CGO_ENABLED=0", "GOTMPDIR="+folder), os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build ./cmd/accession (run this at the top of the repository): %w", err)
	}
	return binary, nil
}

// Reference is the path of a program that a script makes sure of: scripts/tusd.sh, scripts/versitygw.sh.
func Reference(ctx context.Context, script string) (string, error) {
	cmd := exec.CommandContext(ctx, script)
	tie(cmd)
	cmd.Stderr = os.Stderr
	path, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s (run this at the top of the repository): %w", script, err)
	}
	return strings.TrimSpace(string(path)), nil
}
