package scanner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// orphanDir tells this test binary, started once more, to play a service that manages a clamd and is killed.
const orphanDir = "SCANNER_TEST_ORPHAN_DIR"

func runOrphan() {
	dir := os.Getenv(orphanDir)
	m, err := StartManaged(context.Background(), ManagedConfig{Dir: dir, Database: testSignatures, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = m.WaitReady(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(pidOf(m))
	select {}
}

func TestClamdDiesWithAKilledService(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "clamd")
	service := exec.CommandContext(soon(t), os.Args[0])
	service.Env = append(os.Environ(), orphanDir+"="+dir)
	service.Stderr = os.Stderr
	out, err := service.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(out).ReadString('\n')
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the service did not tell the process of its clamd: %q, %v, %v", line, readErr, service.Wait())
	}
	left := scratchFolders(t, dir) // now: later another service on this machine may clear them away
	if len(left) != 1 {
		t.Fatalf("clamd has %q, want one scratch folder", left)
	}
	clamd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(clamd)
	if err := service.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := service.Wait(); err == nil {
		t.Fatal("the killed service ended well")
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(clamd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n != 1 {
			unix.PidfdSendSignal(clamd, unix.SIGKILL, nil, 0)
			t.Fatalf("clamd outlived its service: %v", err)
		}
		break
	}

	// What the killed one left is cleared by the next, in memory and on disk.
	left = append(left, filepath.Join(dir, scratchName))
	for _, folder := range left {
		if err := os.MkdirAll(filepath.Join(folder, "unpacked"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m := start(t, ManagedConfig{Dir: dir})
	for _, folder := range left {
		if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("scratch of the killed clamd: %v", err)
		}
	}
	if err := m.WaitReady(soon(t)); err != nil {
		t.Error(err)
	}
}
