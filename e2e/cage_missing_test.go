package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// The test binary is also the launcher of machines that lack walls: with these in its environment it has the kernel answer as one
// without them does, and becomes the program.
const (
	launchWithout = "ACCESSION_TEST_WITHOUT" // landlock, seccomp
	launchProgram = "ACCESSION_TEST_PROGRAM"
)

func init() {
	without := os.Getenv(launchWithout)
	if without == "" {
		return
	}
	for wall := range strings.SplitSeq(without, ",") {
		if err := takeAway(wall); err != nil {
			fmt.Fprintln(os.Stderr, "take away", wall, err)
			os.Exit(3)
		}
	}
	os.Unsetenv(launchWithout) // or the program would become the launcher again
	fmt.Fprintln(os.Stderr, syscall.Exec(os.Getenv(launchProgram), os.Args, os.Environ()))
	os.Exit(3)
}

// takeAway has every later call answered as by a kernel that was built or booted without the wall. Landlock must go first.
func takeAway(wall string) error {
	missing := map[string]seccomp.SyscallGroup{
		"landlock": {Names: []string{"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"}},
		"seccomp": {
			Names:              []string{"seccomp"},
			NamesWithCondtions: []seccomp.NameWithConditions{{Name: "prctl", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.Equal, Value: unix.PR_SET_SECCOMP}}}},
		},
	}[wall]
	missing.Action = seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)
	return seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{missing},
	}})
}

// launched is the environment that has the launcher start program on a machine without walls.
func launched(t *testing.T, program, without string) (launcher string, env []string) {
	t.Helper()
	launcher, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return launcher, []string{launchWithout + "=" + without, launchProgram + "=" + program}
}

var missingWalls = []struct {
	without string   // the kernel has none of these
	risks   []string // what doctor and the log say of it
}{
	{"landlock", []string{"a worker that runs another program can read files"}},
	{"seccomp", []string{"workers can reach the network and start processes"}},
	{"landlock,seccomp", []string{"a worker that runs another program can read files", "workers can reach the network and start processes"}},
}

func TestDoctorNamesMissingWalls(t *testing.T) {
	t.Parallel()
	for _, c := range missingWalls {
		t.Run(c.without, func(t *testing.T) {
			t.Parallel()
			launcher, env := launched(t, binary, c.without)
			said := func(flags ...string) (exit int, said string) {
				cmd := exec.Command(launcher, append([]string{"doctor"}, flags...)...)
				cmd.Env = append(env, "PATH="+os.Getenv("PATH"), "HOME="+t.TempDir(), "ACCESSION_CACHE="+cache, "ACCESSION_CLAMD_ADDRESS="+clamd, "ACCESSION_LISTEN=127.0.0.1:0")
				out, _ := cmd.Output() // the exit code says how it ended
				return cmd.ProcessState.ExitCode(), string(out)
			}
			refused, refusing := said()
			allowed, allowing := said("--missing-walls", "allow")
			if refused != 1 || allowed != 0 {
				t.Errorf("exit %d:\n%s\nallowed, exit %d:\n%s", refused, refusing, allowed, allowing)
			}
			for wall := range strings.SplitSeq(c.without, ",") {
				if !strings.Contains(refusing, "✗ "+wall) || !strings.Contains(allowing, "! "+wall) {
					t.Errorf("%s:\n%s\nallowed:\n%s", wall, refusing, allowing)
				}
			}
			if !strings.Contains(refusing, "✗ extraction worker") || !strings.Contains(refusing, "--missing-walls allow") {
				t.Errorf("what to do is not said:\n%s", refusing)
			}
			for _, risk := range c.risks {
				if !strings.Contains(refusing, risk) || !strings.Contains(allowing, "allowed to be missing: "+risk) {
					t.Errorf("the risk %q is not named:\n%s\nallowed:\n%s", risk, refusing, allowing)
				}
			}
		})
	}
}

// Without a wall nothing is read, until the operator allows it.
func TestMissingWallsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range missingWalls {
		t.Run(c.without, func(t *testing.T) {
			t.Parallel()
			launcher, env := launched(t, binary, c.without)
			s := start(t, options{binary: launcher, env: env, flags: []string{"--gate-deadlines", "malware_scan=60s,extraction=20s"}})
			if warned := s.log.lines("THE CAGE CANNOT BE CLOSED"); len(warned) != 1 || !strings.Contains(warned[0], c.risks[0]) {
				t.Errorf("said at the start: %q", warned)
			}
			p := s.partner("harbour")
			id := p.send("note.txt", "text/plain", note("unread-mark"))
			mail := p.send("note.eml", "message/rfc822", append([]byte("From: a@example.org\nSubject: note\n\n"), note("unread-mark")...))
			st := p.wantEnd(id, "FAILED", "extraction", "extractor_unavailable")
			if !strings.Contains(st.Failure.Message, "cannot lock in what reads documents") {
				t.Errorf("the gate says %q", st.Failure.Message)
			}
			if len(s.log.lines("this kernel has no")) == 0 {
				t.Error("the log does not say which wall is missing")
			}
			p.wantEnd(mail, "FAILED", "malware_scan", "extractor_unavailable")
			s.wantUnseen("unread-mark")
		})
	}
}

// Where they are allowed to be missing, documents are read, and the walls that are left hold.
func TestMissingWallsAreAllowed(t *testing.T) {
	t.Parallel()
	misbehaving := misbehavingBinary(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hidden-compass-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range missingWalls {
		t.Run(c.without, func(t *testing.T) {
			t.Parallel()
			launcher, env := launched(t, misbehaving, c.without)
			s := start(t, options{binary: launcher, env: env, flags: []string{"--missing-walls", "allow", "--gate-deadlines", "extraction=60s"}})
			if warned := s.log.lines("THE CAGE IS OPEN"); len(warned) != 1 || !strings.Contains(warned[0], c.risks[0]) {
				t.Errorf("said at the start: %q", warned)
			}
			p := s.partner("harbour")
			uploads := map[string]string{}
			for _, what := range []string{"allocate", "loop", "print"} {
				uploads[what] = p.send("bad.txt", "text/plain", fmt.Appendf(nil, "misbehave text %s -\nThe harbour office keeps this note.\n", what))
			}
			file := p.send("bad.txt", "text/plain", fmt.Appendf(nil, "misbehave text file %s\nThe harbour office keeps this note.\n", secret))
			p.wantReady(p.send("note.txt", "text/plain", note("innocent-mark")))
			for what, id := range uploads {
				p.wantEnd(id, "FAILED", "extraction", "extraction_unfinished")
				if !strings.Contains(strings.Join(s.log.lines(id), "\n"), reasons[what]) {
					t.Errorf("%s: no reason %q in the log", what, reasons[what])
				}
			}
			// Either wall keeps a worker from a file by itself. Without both it is open, as doctor says.
			through := c.without == "landlock,seccomp"
			if st := p.follow(file); (st.Status == "READY") != through {
				t.Errorf("a worker that opens a file is %s: %q", st.Status, s.log.lines(file))
			}
		})
	}
}
