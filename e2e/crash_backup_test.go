package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// command runs one command of the armed binary, to die at its n-th crash point (0: it lives and counts). It returns what it said.
func (s *service) command(armed string, n int, args ...string) (said string, died bool) {
	s.t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(armed, args...)
	cmd.Env = []string{"HOME=" + s.t.TempDir(), fmt.Sprintf("ACCESSION_CRASH_AT=%d", n)}
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		s.t.Fatal(err)
	}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if died = status.Signaled() && status.Signal() == syscall.SIGKILL; err != nil && !died {
		s.t.Fatalf("accession %s: %v\n%s", strings.Join(args, " "), err, &out)
	}
	return out.String(), died
}

// digests are the files below root by their names.
func digests(t testing.TB, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, path := range files(t, root) {
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		found[name] = hexSum(readFile(t, path))
	}
	return found
}

func there(t testing.TB, path string) bool {
	t.Helper()
	_, err := os.Lstat(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return err == nil
}

// A backup or restore that is killed at any point leaves nothing that is later taken for whole; done again it succeeds, and what the
// dead one left is gone.
func TestKilledBackupsAndRestoresAreNeverTakenForWhole(t *testing.T) {
	t.Parallel()
	armed := armedBinary(t)
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	ids := []string{p.submit(text("The keel block was moved.", nil)), p.submit(text("The crane was greased.", nil))}
	was := []string{s.served("harbour", reader, ids[0]), s.served("harbour", reader, ids[1])}
	good := t.TempDir()
	whole, keys, restored := filepath.Join(good, "backup"), filepath.Join(good, "keys"), filepath.Join(good, "restored")
	s.wantCLI(0, "", "backup", "--data", s.data, "--out", whole)
	s.wantCLI(0, "", "backup", "keys", "--data", s.data, "--out", keys)
	s.wantCLI(0, "", "restore", "--from", whole, "--data", restored)
	wantObjects, wantRestored := digests(t, filepath.Join(whole, "objects")), digests(t, restored)
	s.wantCLI(0, "", "restore", "keys", "--from", keys, "--data", restored)
	wantKeys := hexSum(readFile(t, filepath.Join(restored, "keys.db")))

	restores := func(t *testing.T, backup string) bool {
		t.Helper()
		data := filepath.Join(t.TempDir(), "restored")
		_, stderr, exit := s.cli("", "restore", "--from", backup, "--data", data)
		if exit != 0 {
			if !strings.Contains(stderr, "broken") {
				t.Errorf("refused for another reason: %s", stderr)
			}
			return false
		}
		got := digests(t, data)
		delete(got, "metadata.db") // another moment's
		want := maps.Clone(wantRestored)
		delete(want, "metadata.db")
		if !maps.Equal(got, want) {
			t.Errorf("%s was taken for whole", backup)
		}
		return true
	}
	for _, c := range []struct {
		name  string
		made  func(dir string) string         // what the command makes
		args  func(made string) []string      // the command
		whole func(t *testing.T, made string) // fails the test where what has its name is not whole
	}{
		{"backup", func(dir string) string { return filepath.Join(dir, "backup") },
			func(made string) []string { return []string{"backup", "--data", s.data, "--out", made} },
			func(t *testing.T, made string) {
				if !maps.Equal(digests(t, filepath.Join(made, "objects")), wantObjects) || !restores(t, made) {
					t.Error("the backup is not whole")
				}
			}},
		{"backup keys", func(dir string) string { return filepath.Join(dir, "keys") },
			func(made string) []string { return []string{"backup", "keys", "--data", s.data, "--out", made} },
			func(t *testing.T, made string) {
				s.wantCLI(0, "", "restore", "keys", "--from", made, "--data", t.TempDir())
			}},
		{"restore", func(dir string) string { return filepath.Join(dir, "restored") },
			func(made string) []string { return []string{"restore", "--from", whole, "--data", made} },
			func(t *testing.T, made string) {
				if !maps.Equal(digests(t, made), wantRestored) {
					t.Error("the restored folder is not whole")
				}
			}},
		{"restore keys", func(dir string) string { return filepath.Join(dir, "keys.db") },
			func(made string) []string {
				return []string{"restore", "keys", "--from", keys, "--data", filepath.Dir(made)}
			},
			func(t *testing.T, made string) {
				if hexSum(readFile(t, made)) != wantKeys {
					t.Error("the key store is not whole")
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			said, _ := s.command(armed, 0, c.args(c.made(t.TempDir()))...)
			points := strings.Count(said, "crashpoint ")
			if points < 4 {
				t.Fatalf("%d crash points: %s", points, said)
			}
			for n := 1; n <= points; n++ {
				dir := t.TempDir()
				made := c.made(dir)
				said, died := s.command(armed, n, c.args(made)...)
				if !died {
					t.Fatalf("it outlived point %d: %s", n, said)
				}
				named := there(t, made)
				if named {
					c.whole(t, made)
				} else if c.name == "backup" { // what it left may be tried
					left, err := os.ReadDir(dir)
					if err != nil || len(left) != 1 {
						t.Fatalf("%s left %v, %v", said, left, err)
					}
					restores(t, filepath.Join(dir, left[0].Name()))
				}
				if named {
					continue
				}
				s.wantCLI(0, "", c.args(made)...)
				c.whole(t, made)
				if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
					t.Errorf("after %s and another run: %v, %v", said, left, err)
				}
			}
			t.Logf("%d points", points)
		})
	}
	placed(t, s.data, restored, keyFile)
	again := start(t, options{data: restored})
	for i, id := range ids {
		if now := again.served("harbour", reader, id); now != was[i] {
			t.Errorf("restored: %q, was %q", now, was[i])
		}
	}
}
