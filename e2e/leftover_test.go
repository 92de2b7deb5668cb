package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// leavesNothing kills, when the test ends, whatever runs with home as its HOME: of a command that was killed, what it started may go on
// in groups and sessions of its own, as a shell's jobs and a browser do. home is this test's alone.
func leavesNothing(t testing.TB, home string) {
	t.Helper()
	t.Cleanup(func() {
		// One look may miss who forks and ends while it goes on: the child came after the list was made. None in two looks is none.
		for deadline, none := time.Now().Add(2*time.Minute), 0; none < 2; {
			left := running(home)
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			if len(left) == 0 {
				none++
				continue
			}
			none = 0
			if time.Now().After(deadline) {
				t.Errorf("processes %v do not end", left)
				return
			}
		}
	})
}

// running are the processes that have HOME=home in their environment.
func running(home string) (pids []int) {
	environments, _ := filepath.Glob("/proc/[0-9]*/environ") // fails for a bad pattern only
	for _, path := range environments {
		environment, err := os.ReadFile(path)
		if err != nil || !slices.ContainsFunc(bytes.Split(environment, []byte{0}), func(v []byte) bool { return string(v) == "HOME="+home }) {
			continue // ended, or another user's
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// What a killed shell leaves in groups and sessions of its own is ended.
func TestNothingIsLeftRunning(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if !t.Run("a shell is killed", func(t *testing.T) {
		leavesNothing(t, home)
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -m; sleep 1000 >/dev/null & setsid sleep 1000 >/dev/null & wait")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(2 * time.Minute); len(running(home)) < 3; { // the shell and both of its
			if time.Now().After(deadline) {
				t.Fatalf("only %v run", running(home))
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}) {
		return
	}
	if left := running(home); len(left) > 0 {
		t.Errorf("%v still run", left)
	}
}
