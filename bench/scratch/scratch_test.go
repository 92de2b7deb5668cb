package scratch_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/accession/accession/bench/scratch"
)

func TestNothingIsLeftBehind(t *testing.T) {
	for name, end := range map[string]func(context.Context) error{
		"done": func(context.Context) error { return nil },
		"asked to end": func(ctx context.Context) error {
			if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, written := t.TempDir(), false
			err := scratch.Run(dir, "test", 1, func(ctx context.Context, folder string) error {
				written = true
				if err := os.WriteFile(filepath.Join(folder, "part"), []byte("x"), 0o600); err != nil {
					return err
				}
				return end(ctx)
			})
			if (err != nil) != (name == "asked to end") || !written {
				t.Errorf("written: %v, error: %v", written, err)
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestAFullDiskIsSaidBefore(t *testing.T) {
	err := scratch.Run(t.TempDir(), "test", math.MaxInt64, func(context.Context, string) error {
		t.Error("it began")
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "-dir") {
		t.Error(err)
	}
}
