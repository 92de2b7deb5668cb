package scanner

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// clamdWith runs a real clamd on the managed settings after an edit, as an operator's own clamd might be set.
func clamdWith(t *testing.T, edit *strings.Replacer) *Clamd {
	t.Helper()
	as, err := account()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "clamd")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := prepareFolder(dir, as, edit.Replace(managedConf(2))); err != nil {
		t.Fatal(err)
	}
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	database, err := os.Open(testSignatures)
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	scratches, err := scratchesOf(dir, folder)
	if err != nil {
		t.Fatal(err)
	}
	scratch, err := scratches.open(as)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(scratch.Close(), scratches.clear(as)); err != nil {
			t.Error(err)
		}
	})
	binary, err := findBinary("")
	if err != nil {
		t.Fatal(err)
	}
	var log lines
	ctx, cancel := context.WithCancel(context.Background())
	cmd := command(ctx, binary, folder, database, scratch, as,
		&logLines{log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	runtime.LockOSThread() // until the test ends: clamd dies with the thread that started it
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		cmd.Wait()
	})
	if err := log.await(soon(t), "Self checking"); err != nil {
		t.Fatal(err)
	}
	return &Clamd{network: "unix", address: filepath.Join(dir, socketName), zone: time.UTC}
}

// Health must see on a real clamd that a setting is missing which makes it pass what it did not look at.
func TestHealthOfClamdWithOpenSettings(t *testing.T) {
	for _, setting := range []string{"AlertEncrypted", "AlertExceedsMax"} {
		t.Run(setting, func(t *testing.T) {
			c := clamdWith(t, strings.NewReplacer(setting+" yes", setting+" no"))
			_, err := c.Health(soon(t))
			if !errors.Is(err, errUnhealthy) || !strings.Contains(err.Error(), "set "+setting+" yes") {
				t.Errorf("got %v, want advice to set %s", err, setting)
			}
		})
	}
}

func TestScanOverTheLimits(t *testing.T) {
	t.Run("StreamMaxLength", func(t *testing.T) {
		c := clamdWith(t, strings.NewReplacer("StreamMaxLength 2047M", "StreamMaxLength 1M"))
		if got := scan(t, c, noise(1<<20)); got.Outcome != Clean {
			t.Errorf("at the limit: %+v, want clean", got)
		}
		for _, size := range []int{1<<20 + 1, 64 << 20} {
			content := noise(size)
			if got := scan(t, c, content); got.Outcome != Unscannable || !strings.Contains(got.Reason, "StreamMaxLength") {
				t.Errorf("%d bytes: %+v, want unscannable", size, got)
			}
		}
		c.WindowBytes, c.OverlapBytes = 1<<20, 1<<10
		content := append(noise(3<<20), eicar()...)
		if got := scan(t, c, content); got.Outcome != Infected || got.Windows != 4 {
			t.Errorf("in windows of the limit: %+v, want infected in the fourth", got)
		}
	})
	t.Run("MaxFileSize", func(t *testing.T) {
		c := clamdWith(t, strings.NewReplacer("MaxFileSize 2047M", "MaxFileSize 1M"))
		if got := scan(t, c, append(noise(1<<20), eicar()...)); got.Outcome != Unscannable || !strings.Contains(got.Reason, "MaxFileSize") {
			t.Errorf("got %+v, want unscannable", got)
		}
	})
	t.Run("MaxScanSize", func(t *testing.T) {
		c := clamdWith(t, strings.NewReplacer("MaxScanSize 4000M", "MaxScanSize 1M"))
		content := zipOf(t, 8, bytes.Repeat([]byte("An ordinary sentence. "), 100_000))
		if got := scan(t, c, content); got.Outcome != Unscannable {
			t.Errorf("got %+v, want unscannable", got)
		}
	})
}
