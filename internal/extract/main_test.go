package extract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The test binary is its own worker: started as "extract.test worker extract …" it does what the product's hidden
// commands do. Worker modes that misbehave exist in this binary only (cage_test.go).
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "worker" {
		os.Exit(Worker(os.Args[2], os.Args[3:], os.Stdin, os.Stdout))
	}
	os.Exit(testMain(m))
}

var workerBinary, workerCache string

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "extract")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	workerBinary, workerCache = "/proc/self/exe", filepath.Join(dir, "cache")
	if !memoryLimited {
		// Under the race detector the workers are built without it, so that their memory wall is tested too.
		workerBinary = filepath.Join(dir, "extract.test")
		if out, err := exec.Command("go", "test", "-c", "-o", workerBinary, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the worker: %v\n%s", err, out)
			return 1
		}
	}
	return m.Run()
}

// extractor returns an Extractor on the shared cache; change adjusts its configuration.
func extractor(t testing.TB, change ...func(*Config)) *Extractor {
	t.Helper()
	config := Config{Executable: workerBinary, CacheDir: workerCache}
	for _, c := range change {
		c(&config)
	}
	return New(config)
}

// within is the longest that any extraction of the tests may take; nothing measures by it.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func extract(t testing.TB, e *Extractor, content []byte, declared string) *Document {
	t.Helper()
	doc, err := e.Extract(within(t), bytes.NewReader(content), int64(len(content)), declared, nil)
	if err != nil {
		t.Fatalf("extract: %v", err)
	}
	return doc
}

func refused(t testing.TB, e *Extractor, content []byte, declared, code string) {
	t.Helper()
	doc, err := e.Extract(within(t), bytes.NewReader(content), int64(len(content)), declared, nil)
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("want refusal %s, got document %v, error %v", code, doc, err)
	}
	if refusal.Code != code || refusal.Message == "" {
		t.Fatalf("want refusal %s, got %q: %q", code, refusal.Code, refusal.Message)
	}
}
