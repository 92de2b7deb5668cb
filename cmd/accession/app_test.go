package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
	"github.com/accession/accession/client/clienttest"
)

// station is a service, and a person's machine in front of it.
type station struct {
	t        *testing.T
	service  *clienttest.Service
	env      map[string]string
	stdin    string
	terminal bool
	ask      func(prompt string) (string, error) // nil: no terminal to ask at
	state    string                              // the user's state folder
}

func newStation(t *testing.T) *station {
	t.Helper()
	service := clienttest.NewService()
	t.Cleanup(service.Close)
	state := t.TempDir()
	return &station{t: t, service: service, state: state, env: map[string]string{
		envServer: service.URL, envOrg: clienttest.Org, envToken: clienttest.UploadToken, "XDG_STATE_HOME": state,
		"XDG_CONFIG_HOME":           t.TempDir(),
		"ACCESSION_CONSENT_USER_ID": "ada", "ACCESSION_CONSENT_EMAIL": "ada@harbour.example",
	}}
}

type outcome struct {
	code           int
	stdout, stderr string
}

func (s *station) run(args ...string) outcome { return s.runContext(s.t.Context(), args...) }

func (s *station) runContext(ctx context.Context, args ...string) outcome {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	app := &App{
		Args: args, Getenv: func(name string) string { return s.env[name] },
		Stdin: strings.NewReader(s.stdin), Stdout: &stdout, Stderr: &stderr,
		StdoutIsTerminal: s.terminal, StderrIsTerminal: s.terminal, ReadSecret: s.ask,
		retry: client.Retry{First: time.Millisecond, Longest: 2 * time.Millisecond},
	}
	code := app.Run(ctx)
	got := outcome{code, stdout.String(), stderr.String()}
	for _, secret := range []string{clienttest.UploadToken, clienttest.ReaderToken, clienttest.AdminToken} {
		if strings.Contains(got.stderr, secret) || strings.Contains(got.stdout, secret) && !strings.HasPrefix(strings.Join(args, " "), "credentials issue") {
			s.t.Errorf("%v shows a token", args)
		}
	}
	return got
}

// file writes a document of size bytes, the same each time.
func (s *station) file(name string, size int) string {
	s.t.Helper()
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(content)
	path := filepath.Join(s.t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// notes are the files in the state folder.
func (s *station) notes() []string {
	s.t.Helper()
	var found []string
	err := filepath.WalkDir(s.state, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

func (o outcome) want(t *testing.T, code int, inStdout, inStderr string) {
	t.Helper()
	if o.code != code || !strings.Contains(o.stdout, inStdout) || !strings.Contains(o.stderr, inStderr) {
		t.Errorf("exit code %d, want %d with %q and %q\nstdout: %s\nstderr: %s", o.code, code, inStdout, inStderr, o.stdout, o.stderr)
	}
}

func TestExitCodes(t *testing.T) {
	plain := func(*station) {}
	fault := func(operation string, fault clienttest.Fault) func(*station) {
		return func(s *station) {
			for range 8 {
				s.service.Inject(operation, fault)
			}
		}
	}
	for _, test := range []struct {
		args    []string
		prepare func(*station)
		code    int
		stderr  string
	}{
		{[]string{"quota"}, plain, exitOK, ""},
		{[]string{"frobnicate"}, plain, exitUsage, "is no command"},
		{[]string{"statsu"}, plain, exitUsage, "did you mean status"},
		{[]string{"credentials", "destroy"}, plain, exitUsage, "is no command"},
		{[]string{"help", "frobnicate"}, plain, exitUsage, "is no command of accession;"},
		{[]string{"help", "credentials", "destroy"}, plain, exitUsage, "is no command of accession credentials"},
		{[]string{"--version"}, plain, exitOK, ""},
		{[]string{"retention", "show", "--org", ""}, plain, exitUsage, "no organization"},
		{[]string{"retention", "set", "harbour", "0"}, plain, exitUsage, "DAYS has to be"},
		{[]string{"quota", "set", "--org", "harbour", "lots"}, plain, exitUsage, "BYTES has to be"},
		{[]string{"quota", "--nonsense"}, plain, exitUsage, "see accession quota --help"},
		{[]string{"quota", "--token=" + clienttest.UploadToken}, plain, exitUsage, "never given on the command line"},
		{[]string{"quota", "extra"}, plain, exitUsage, "takes"},
		{[]string{"status"}, plain, exitUsage, "UPLOAD_ID"},
		{[]string{"quota", "--org", ""}, plain, exitUsage, "--org"},
		{[]string{"quota", "--server", "custody.example"}, plain, exitUsage, "--server"},
		{[]string{"quota", "--token-file", "/nonexistent/token"}, plain, exitUsage, "token file"},
		{[]string{"quota"}, func(s *station) { s.env[envToken] = "" }, exitUsage, envToken},
		{[]string{"quota"}, func(s *station) { s.env[envToken] = "acc_other" }, exitNotAuthorised, "next: check the token"},
		{[]string{"context", "up_1"}, plain, exitNotAuthorised, "ai_reader"},
		{[]string{"status", "up_9"}, plain, exitNotFound, "request_id req-1"},
		{[]string{"status", "elsewhere", "up_9"}, plain, exitNotFound, "check the upload id"},
		{[]string{"context", "up_1"}, func(s *station) {
			s.env[envToken] = clienttest.ReaderToken
			s.service.Inject("context", clienttest.Fault{Status: 404, Code: "context_not_ready"})
		}, exitNotFound, "only a READY one has a context"},
		{[]string{"status", "up_9"}, fault("status", clienttest.Fault{Status: 404, Code: "route_not_found"}), exitNotFound, "check the path in --server"},
		{[]string{"receipt", "show", "rct_9"}, fault("receipt", clienttest.Fault{Status: 404, Code: "receipt_not_found"}), exitNotFound, "check the receipt id"},
		{[]string{"quota"}, func(s *station) { s.env[envServer] = strings.Replace(s.service.URL, "http", "https", 1) }, exitUnavailable, "speaks no TLS"},
		{[]string{"withdraw", "up_9"}, plain, exitNotFound, "upload_not_found"},
		{[]string{"withdraw", "up_9", "--reason", strings.Repeat("x", 501)}, plain, exitUsage, "500"},
		{[]string{"withdraw", "up_9"}, fault("withdraw", clienttest.Fault{Status: 409, Code: "idempotency_conflict"}), exitConflict, "idempotency_conflict"},
		{[]string{"quota"}, fault("quota", clienttest.Fault{Status: 503, Code: "unavailable"}), exitUnavailable, "trying again"},
		{[]string{"quota"}, fault("quota", clienttest.Fault{DropAfter: -1}), exitUnavailable, "no answer from"},
		{[]string{"quota"}, fault("quota", clienttest.Fault{Status: 429, RetryAfter: 3600}), exitUnavailable, "try again in 1h"},
		{[]string{"quota"}, fault("quota", clienttest.Fault{Status: 400, Details: map[string]any{"fields": []any{
			map[string]any{"path": "/org", "reason": "is bad"}}}}), exitFailure, "/org: is bad"},
		{[]string{"credentials", "issue", "--role", "ai_reader"}, plain, exitUsage, envAdminToken},
		{[]string{"credentials", "issue", "--role", "king"}, plain, exitUsage, "--role has to be"},
		{[]string{"credentials", "issue", "--role", "ai_reader", "--expires-at", "soon"}, plain, exitUsage, "2027-05-01"},
		{[]string{"credentials", "issue", "--role", "ai_reader"}, func(s *station) { s.env[envAdminToken] = "wrong" }, exitNotAuthorised, "admin"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			s := newStation(t)
			test.prepare(s)
			s.run(test.args...).want(t, test.code, "", test.stderr)
		})
	}
}

func TestHelpFitsAScreen(t *testing.T) {
	got := newStation(t).run("--help")
	got.want(t, exitOK, "Documents", "")
	lines := strings.Split(strings.TrimRight(got.stdout, "\n"), "\n")
	if len(lines) > 23 { // of 24: the last is the next prompt's
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if len(line) > 80 {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
	for _, entry := range commands {
		command := entry.make(&App{Getenv: func(string) string { return "" }})
		shown := strings.Contains(got.stdout, "  "+command.Name()+" ")
		if shown == command.Hidden {
			t.Errorf("%s: shown %v, hidden %v", command.Name(), shown, command.Hidden)
		}
		if _, ok := briefs[command.Name()]; shown && !ok {
			t.Errorf("%s has no line of the overview: give it one in help.go", command.Name())
		}
	}
}

func TestHelpOfEachCommand(t *testing.T) {
	s := newStation(t)
	for args, says := range map[string]string{
		"upload --help": "--concurrency int", "help upload": "accession upload FILE...", "credentials": "accession credentials COMMAND [flags]",
		"profile --help": "remove", "serve --help": "--listen", "receipt verify --help": "Examples:",
	} {
		got := s.run(strings.Fields(args)...)
		got.want(t, exitOK, says, "")
		if !strings.Contains(got.stdout, "Usage:") {
			t.Errorf("%s: %s", args, got.stdout)
		}
		about, _, _ := strings.Cut(got.stdout, "\nUsage:")
		for line := range strings.Lines(about) {
			if len(line) > 81 { // the line's end included
				t.Errorf("%s: a line of %d characters: %s", args, len(line), line)
			}
		}
	}
}

func TestTokenSources(t *testing.T) {
	s := newStation(t)
	s.env[envToken] = "acc_wrong"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(clienttest.UploadToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := s.run("quota", "--token-file", file)
	got.want(t, exitOK, "allowance", "")
	if got.stderr != "" {
		t.Errorf("a private file was complained about: %s", got.stderr)
	}
	s.stdin = clienttest.UploadToken
	s.run("quota", "--token-file", "-").want(t, exitOK, "allowance", "")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	s.run("quota", "--token-file", file).want(t, exitOK, "allowance", "chmod 600")
	if got := s.run("quota", "--token-file", file, "--quiet"); got.stderr != "" {
		t.Errorf("--quiet: %s", got.stderr)
	}
	if err := os.WriteFile(file, []byte(clienttest.UploadToken+"\n"+clienttest.UploadToken), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run("quota", "--token-file", file).want(t, exitUsage, "", "copy it again")
}

func TestCredentialIsPrintedOnce(t *testing.T) {
	s := newStation(t)
	s.env[envAdminToken] = clienttest.AdminToken
	got := s.run("credentials", "issue", "--role", "ai_reader", "--scope", "ai_context,mcp", "--expires-at", "2027-05-01T00:00:00Z")
	got.want(t, exitOK, clienttest.ReaderToken+"\n", "scope ai_context mcp")
	if strings.Count(got.stdout+got.stderr, clienttest.ReaderToken) != 1 || got.stdout != clienttest.ReaderToken+"\n" {
		t.Errorf("stdout is not the token alone: %q", got.stdout)
	}
	var data struct{ Token, Role string }
	if err := json.Unmarshal([]byte(s.run("credentials", "issue", "--role", "ai_reader", "--json").stdout), &data); err != nil || data.Token != clienttest.ReaderToken {
		t.Errorf("--json: %+v, %v", data, err)
	}
}

func TestContextIsPrintedSafely(t *testing.T) {
	s := newStation(t)
	s.run("upload", s.file("record.bin", 1000), "--accept").want(t, exitOK, "READY", "")
	s.env[envToken] = clienttest.ReaderToken
	s.terminal = true
	got := s.run("context", "up_1")
	got.want(t, exitOK, "customer-submitted, unverified", "")
	if strings.Contains(got.stdout, "\x1b") || !strings.Contains(got.stdout, `\u001b[31m Nothing leaked.`) {
		t.Errorf("an escape sequence of the document reached the terminal: %q", got.stdout)
	}
	for _, part := range []string{"not_evaluated", "untrusted", "page 1", "Pump 2 was overhauled.", "hidden text 1", "truncated"} {
		if !strings.Contains(got.stdout, part) {
			t.Errorf("%q is missing in %s", part, got.stdout)
		}
	}
	// Fields without a name here are kept for machines.
	s.run("context", "up_1", "--json").want(t, exitOK, `"x_extra": "kept"`, "")
}

func TestWithdraw(t *testing.T) {
	s := newStation(t)
	s.run("upload", s.file("record.bin", 1000), "--accept").want(t, exitOK, "READY", "")
	s.run("withdraw", "up_1", "--reason", "sent by mistake").want(t, exitOK, "wr_up_1", "")
	s.run("status", "up_1").want(t, exitOK, "WITHDRAWN", "")
	s.env[envToken], s.env[envAdminToken] = "", clienttest.AdminToken
	s.run("withdraw", "up_1", "--json").want(t, exitOK, `"deleted": true`, "")
}

func TestAgreementIsWhatIsHashed(t *testing.T) {
	s := newStation(t)
	got := s.run("agreement")
	got.want(t, exitOK, client.AgreementVersion, "")
	if client.TextSHA256([]byte(got.stdout)) != client.TextSHA256([]byte(client.AgreementText)) {
		t.Error("the printed agreement has another hash")
	}
	if !strings.HasPrefix(s.run("version").stdout, "accession ") {
		t.Error("version")
	}
}

func TestUnencryptedConnectionIsNamed(t *testing.T) {
	var stderr bytes.Buffer
	app := &App{Getenv: func(name string) string { return map[string]string{envToken: "acc_t"}[name] }, Stderr: &stderr, Stdout: io.Discard}
	for server, warned := range map[string]bool{
		"http://custody.example": true, "https://custody.example": false, "http://localhost:1": false, "http://[::1]:1": false,
	} {
		stderr.Reset()
		conn := connection{app: app, server: server}
		if _, err := conn.open(false); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(stderr.String(), "unencrypted"); got != warned {
			t.Errorf("%s: warned %v", server, got)
		}
	}
}
