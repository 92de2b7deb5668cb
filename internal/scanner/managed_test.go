package scanner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// start starts a managed clamd on the test signatures where the configuration names nothing else.
func start(t *testing.T, config ManagedConfig) *Managed {
	t.Helper()
	if config.Dir == "" {
		config.Dir = filepath.Join(t.TempDir(), "clamd")
	}
	if config.Database == "" {
		config.Database = testSignatures
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	m, err := StartManaged(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// signatures is a folder of its own with the test signatures, which a test may change.
func signatures(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(testSignatures)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func pidOf(m *Managed) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pid
}

func scanManaged(t *testing.T, m *Managed, content []byte) (Report, error) {
	t.Helper()
	return m.Scan(soon(t), bytes.NewReader(content), int64(len(content)))
}

func TestManagedInALongPrivateFolder(t *testing.T) {
	private := filepath.Join(t.TempDir(), "private") // closed to the account clamd runs as
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(private, strings.Repeat("long-folder-name/", 12), "clamd")
	m := start(t, ManagedConfig{Dir: dir})
	if err := m.WaitReady(soon(t)); err != nil {
		t.Fatal(err)
	}
	if got, err := scanManaged(t, m, eicar()); err != nil || got.Outcome != Infected {
		t.Errorf("got %+v, %v, want infected", got, err)
	}
	pid := pidOf(m)
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder of clamd: %v, %v, want 0700", info.Mode(), err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(status), "\nUid:\t0\t") {
		t.Error("clamd runs as root")
	}
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil || bytes.Contains(environment, []byte("HOME=")) {
		t.Errorf("clamd got our environment: %q, %v", environment, err)
	}

	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left in the folder of clamd: %v, %v", left, err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("clamd runs after Close: %v", err)
	}
	if _, err := scanManaged(t, m, nil); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("scan after Close: %v", err)
	}
	if err := m.WaitReady(soon(t)); !errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait after Close: %v", err)
	}
}

func TestManagedKilledWhileItScans(t *testing.T) {
	m := start(t, ManagedConfig{})
	if err := m.WaitReady(soon(t)); err != nil {
		t.Fatal(err)
	}
	first := pidOf(m)
	reads := 0
	content := readerAt(func(p []byte, _ int64) (int, error) {
		if reads++; reads == 3 {
			if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			// Once its end is noticed; the next one may be ready before this looks.
			if err := m.await(soon(t), func() bool { return !m.ready || m.pid != first && m.pid != 0 }); err != nil {
				t.Error(err)
			}
		}
		return len(p), nil
	})
	if report, err := m.Scan(soon(t), content, 64<<20); !errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("scan of a killed clamd: %+v, %v, want ErrUnavailable", report, err)
	}
	if err := m.WaitReady(soon(t)); err != nil {
		t.Fatalf("clamd does not come back: %v", err)
	}
	if pidOf(m) == first {
		t.Error("the same process is back")
	}
	if got, err := scanManaged(t, m, eicar()); err != nil || got.Outcome != Infected {
		t.Errorf("the new clamd: %+v, %v, want infected", got, err)
	}
}

func TestManagedWithoutWhatItNeeds(t *testing.T) {
	empty := t.TempDir()
	closed := signatures(t)
	if err := os.Chmod(filepath.Join(closed, "accession-test.ndb"), 0); err != nil {
		t.Fatal(err)
	}
	damaged := signatures(t)
	if err := os.WriteFile(filepath.Join(damaged, "bad.ndb"), []byte("not a signature\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		config ManagedConfig
		reason string
	}{
		"no clamd":             {ManagedConfig{Binary: "no-such-clamd"}, "clamd is not installed: apt-get install clamav-daemon"},
		"no folder":            {ManagedConfig{Database: filepath.Join(empty, "none")}, "none: run freshclam"},
		"no signatures":        {ManagedConfig{Database: empty}, "no signature database in " + empty + ": run freshclam"},
		"unreadable signature": {ManagedConfig{Database: closed}, "chmod -R o+rX " + closed},
		"damaged signature":    {ManagedConfig{Database: damaged}, "Malformed database"},
		"program that ends":    {ManagedConfig{Binary: "/bin/true"}, "clamd stopped and is started again"},
		"program that is none": {ManagedConfig{Binary: "/etc/passwd"}, "not installed"},
	} {
		t.Run(name, func(t *testing.T) {
			m := start(t, tc.config)
			if err := m.await(soon(t), func() bool { return strings.Contains(m.reason, tc.reason) }); err != nil {
				t.Fatalf("reason is never %q: %v", tc.reason, err)
			}
			if report, err := scanManaged(t, m, nil); !errors.Is(err, ErrUnavailable) || report != (Report{}) {
				t.Errorf("scan: %+v, %v", report, err)
			}
			if _, err := m.Health(t.Context()); !errors.Is(err, ErrUnavailable) {
				t.Errorf("health: %v", err)
			}
		})
	}
}

func TestManagedSignaturesArriveAndChange(t *testing.T) {
	database := t.TempDir()
	if err := os.Chmod(database, 0o755); err != nil {
		t.Fatal(err)
	}
	m := start(t, ManagedConfig{Database: database, CheckEvery: time.Second})
	if err := m.await(soon(t), func() bool { return strings.Contains(m.reason, "run freshclam") }); err != nil {
		t.Fatal(err)
	}
	arrive := func(name string, content []byte) { // whole, at once
		t.Helper()
		path := filepath.Join(database, name)
		if err := errors.Join(os.WriteFile(path+".part", content, 0o644), os.Rename(path+".part", path)); err != nil {
			t.Fatal(err)
		}
	}
	// What comes first finds nothing that the scanner must prove to find: it waits for more.
	arrive("first.ndb", fmt.Appendf(nil, "Added.First:0:*:%x\n", "the first of the harmless markers"))
	if err := m.await(soon(t), func() bool { return strings.Contains(m.reason, "its signatures are not usable") }); err != nil {
		t.Fatal(err)
	}
	usable, err := os.ReadFile(filepath.Join(testSignatures, "accession-test.ndb"))
	if err != nil {
		t.Fatal(err)
	}
	arrive("second.ndb", usable)
	if err := m.WaitReady(soon(t)); err != nil {
		t.Fatalf("signatures arrived, but: %v", err)
	}
	before, err := m.Engine()
	if err != nil {
		t.Fatal(err)
	}

	newcomer := "a newcomer among the harmless markers"
	added := filepath.Join(database, "added.ndb")
	if err := os.WriteFile(added+".part", fmt.Appendf(nil, "Added.Later:0:*:%x\n", newcomer), 0o644); err != nil {
		t.Fatal(err)
	}
	future := before.SignatureDate.Add(time.Hour)
	if err := errors.Join(os.Chtimes(added+".part", future, future), os.Rename(added+".part", added)); err != nil {
		t.Fatal(err)
	}
	if err := m.await(soon(t), func() bool { return m.engine.SignatureDate.After(before.SignatureDate) }); err != nil {
		t.Fatalf("the new date is not seen: %v", err)
	}
	got, err := m.Scan(soon(t), strings.NewReader(newcomer), int64(len(newcomer)))
	if err != nil || got.Outcome != Infected || got.Engine.Identity() == before.Identity() {
		t.Fatalf("the new signature is loaded, and the scan says %+v, %v", got, err)
	}
}

// Who asks for it does not wait for the next check, and gets the new signatures or none.
func TestManagedRefresh(t *testing.T) {
	database := signatures(t)
	m := start(t, ManagedConfig{Database: database, CheckEvery: time.Hour})
	if err := m.WaitReady(soon(t)); err != nil {
		t.Fatal(err)
	}
	if err := m.Refresh(soon(t)); err != nil { // nothing changed
		t.Fatal(err)
	}
	var identities []string
	for i := range 2 {
		word := fmt.Sprintf("newcomer number %d", i)
		if err := os.WriteFile(filepath.Join(database, word[len(word)-1:]+".ndb"), fmt.Appendf(nil, "Added.Later:0:*:%x\n", word), 0o644); err != nil {
			t.Fatal(err)
		}
		before, err := m.Scan(soon(t), strings.NewReader(word), int64(len(word)))
		if err != nil || before.Outcome != Clean {
			t.Fatalf("before the refresh: %+v, %v", before, err)
		}
		if err := m.Refresh(soon(t)); err != nil {
			t.Fatal(err)
		}
		after, err := m.Scan(soon(t), strings.NewReader(word), int64(len(word)))
		if err != nil || after.Outcome != Infected {
			t.Fatalf("after the refresh: %+v, %v", after, err)
		}
		identities = append(identities, before.Engine.Identity(), after.Engine.Identity())
	}
	if identities[0] == identities[1] || identities[1] != identities[2] || identities[2] == identities[3] {
		t.Errorf("identities: %q", identities)
	}

	// Signatures that clamd refuses change nothing, and are not tried for ever.
	if err := os.WriteFile(filepath.Join(database, "broken.ndb"), []byte("no signature\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := m.Refresh(soon(t)); err != nil {
			t.Fatal(err)
		}
	}
	after, err := m.Scan(soon(t), strings.NewReader("newcomer number 1"), 17)
	if err != nil || after.Outcome != Infected || after.Engine.Identity() != identities[3] {
		t.Errorf("with refused signatures: %+v, %v; want those before", after, err)
	}
}

func TestManagedEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m, err := StartManaged(ctx, ManagedConfig{Dir: t.TempDir(), Database: testSignatures, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.WaitReady(soon(t)); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-m.done:
	case <-soon(t).Done():
		t.Fatal("clamd does not stop")
	}
}

// A clamd that ignores SIGTERM, as one does that loads its signatures, is killed.
func TestManagedStopsAStubbornClamd(t *testing.T) {
	stubborn := filepath.Join(t.TempDir(), "stubborn")
	script := "#!/bin/sh\ntrap '' TERM\necho 'ERROR: deaf now'\nkill -STOP $$\n"
	if err := os.WriteFile(stubborn, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Dir(stubborn), filepath.Dir(filepath.Dir(stubborn))} { // for the account clamav
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var log lines
	m := start(t, ManagedConfig{Binary: stubborn, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err := log.await(soon(t), "deaf now"); err != nil {
		t.Fatal(err)
	}
	if err := m.await(soon(t), func() bool { return m.pid != 0 }); err != nil { // it may say so before its start is noted
		t.Fatal(err)
	}
	pid := pidOf(m)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestManagedLog(t *testing.T) {
	var log lines
	m := start(t, ManagedConfig{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err := m.WaitReady(soon(t)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`level=DEBUG msg="clamd says"`, "no full signature database", "is loading"} {
		if err := log.await(soon(t), want); err != nil {
			t.Error(err)
		}
	}
}

func TestStartManagedRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	for name, config := range map[string]ManagedConfig{
		"no folder": {Log: log}, "no logger": {Dir: t.TempDir()}, "a file for a folder": {Dir: file, Log: log},
	} {
		if m, err := StartManaged(t.Context(), config); err == nil {
			m.Close()
			t.Errorf("%s: no error", name)
		}
	}
}

func TestLogLines(t *testing.T) {
	var log lines
	l := &logLines{log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, piece := range []string{"Archive sup", "port enabled.\n\nWARNING: old\nLibClamAV Er", "ror: first\nERROR: last\nhalf",
		strings.Repeat("x", replyLimit), "\nafter\n"} {
		if n, err := io.WriteString(l, piece); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	for _, want := range []string{`level=DEBUG msg="clamd says" line="Archive support enabled."`, `level=WARN msg="clamd says" line=old`,
		`level=ERROR msg="clamd says" line=first`, `line=after`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in %s", want, &log)
		}
	}
	if strings.Contains(log.String(), "xxx") || l.lastComplaint() != "last" {
		t.Errorf("complaint %q, log %s", l.lastComplaint(), &log)
	}
}

// lines collects a log and lets a test wait for words in it.
type lines struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) await(ctx context.Context, words string) error {
	for {
		l.mu.Lock()
		found := strings.Contains(l.text.String(), words)
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		if found {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("no %q in the log: %s", words, l)
		}
	}
}
