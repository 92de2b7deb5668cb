package scanner

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const (
	testSignatures = "../../testdata/clamav"
	patience       = 3 * time.Minute // for what must happen on a busy machine, too
)

// shared is a managed clamd on the test signatures, ready, for the tests that do not break it.
var shared *Managed

func TestMain(m *testing.M) {
	if os.Getenv(orphanDir) != "" {
		runOrphan()
		return
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "scanner-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	shared, err = StartManaged(context.Background(), ManagedConfig{
		Dir: filepath.Join(dir, "clamd"), Database: testSignatures, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.Close()
	if err := shared.WaitReady(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "the tests need a real clamd:", err)
		return 1
	}
	return m.Run()
}

// client returns a client of the shared clamd that the test may change.
func client() *Clamd {
	c := *shared.clamd
	return &c
}

func scan(t *testing.T, c *Clamd, content []byte) Report {
	t.Helper()
	report, err := c.Scan(t.Context(), bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatalf("scan: %v", err)
	}
	return report
}

// soon bounds what must happen, so that a failure is a failure and not a hang.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
