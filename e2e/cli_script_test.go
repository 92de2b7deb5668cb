package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestCommandLineScripts runs the transcripts in testdata/cli with the real binary against a real service. Each has an organization
// of its own, named after it, and beside the library's commands:
//
//	code N command…     runs it; its exit code has to be N
//	text FILE MARK N    writes a text of N notes with a mark
//	malware FILE        writes what every scanner takes for malware, and is none
//	held                waits until the third part of an upload is on its way to $RELAY, which holds it
//	release             lets that part fail, and all later ones through
func TestCommandLineScripts(t *testing.T) {
	t.Parallel()
	s := start(t, smallParts())
	testscript.Run(t, testscript.Params{
		Dir: "testdata/cli",
		Setup: func(env *testscript.Env) error {
			t, ok := env.T().(testing.TB)
			if !ok {
				return errors.New("no test to clean up after")
			}
			org := "cli-" + filepath.Base(env.WorkDir)
			between := newRelay(t, s, "/parts/3")
			env.Values["relay"] = between
			for name, token := range map[string]string{
				"upload.token": s.issue(org, "solution_company_upload"), "reader.token": s.issue(org, "ai_reader"), "admin.token": adminToken,
			} {
				if err := os.WriteFile(filepath.Join(env.WorkDir, name), []byte(token+"\n"), 0o600); err != nil {
					return err
				}
			}
			home := filepath.Join(env.WorkDir, "home")
			for name, value := range map[string]string{
				"URL": s.url, "RELAY": between.url, "ORG": org, "HOME": home, "PATH": filepath.Dir(binary) + ":/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8",
				"ACCESSION_CONSENT_USER_ID": "ada", "ACCESSION_CONSENT_EMAIL": "ada@harbour.example",
				"ACCESSION_CACHE": cache, "SIGNATURES": signatures(), "GONE": freeAddress(t),
			} {
				env.Setenv(name, value)
			}
			return os.Mkdir(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: code N command...")
				}
				got := 0
				var ended *exec.ExitError
				if err := ts.Exec(args[1], args[2:]...); errors.As(err, &ended) {
					got = ended.ExitCode()
				} else if err != nil {
					ts.Fatalf("%v", err)
				}
				if strconv.Itoa(got) != args[0] {
					ts.Fatalf("exit code %d, want %s", got, args[0])
				}
			},
			"text": func(ts *testscript.TestScript, _ bool, args []string) {
				n, err := strconv.Atoi(args[2])
				ts.Check(err)
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), bytes.Repeat(note(args[1]), n), 0o600))
			},
			"malware": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(eicar()), 0o600))
			},
			"held":    func(ts *testscript.TestScript, _ bool, _ []string) { <-ts.Value("relay").(*relay).held },
			"release": func(ts *testscript.TestScript, _ bool, _ []string) { close(ts.Value("relay").(*relay).release) },
		},
	})
}
