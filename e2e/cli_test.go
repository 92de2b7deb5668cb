package e2e

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

var consenting = []string{"--accept", "--consent-user-id", "ada", "--consent-email", "ada@harbour.example"}

// written puts content into a file of that name.
func written(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// wantCLI runs a command and fails the test unless it ends with this exit code.
func (s *service) wantCLI(exit int, token string, args ...string) (stdout, stderr string) {
	s.t.Helper()
	stdout, stderr, got := s.cli(token, args...)
	if got != exit {
		s.t.Fatalf("accession %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, exit, stdout, stderr)
	}
	return stdout, stderr
}

// object decodes what --json printed.
func object(t testing.TB, stdout string) (o map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(stdout), &o); err != nil {
		t.Fatalf("no JSON object: %v: %s", err, stdout)
	}
	return o
}

// wantKeys fails the test unless o has all these members.
func wantKeys(t testing.TB, o map[string]any, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, ok := o[name]; !ok {
			t.Errorf("no %s in %v", name, o)
		}
	}
}

func TestCommandLineDoesTheMainJob(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	issued, _ := s.wantCLI(0, "", "credentials", "issue", "--org", "harbour", "--role", "solution_company_upload", "--json")
	wantKeys(t, object(t, issued), "credential_id", "org_id", "role", "scope", "expires_at", "token")
	token := object(t, issued)["token"].(string)
	plain, aside := s.wantCLI(0, "", "credentials", "issue", "--org", "harbour", "--role", "ai_reader")
	reader := strings.TrimSpace(plain)
	if !regexp.MustCompile(`^acc_[A-Za-z0-9_-]+$`).MatchString(reader) || strings.Contains(aside, reader) {
		t.Fatalf("the token alone goes to standard output: %q", plain)
	}

	file := written(t, "note.txt", note("brass-bell"))
	shown, _ := s.wantCLI(0, token, append([]string{"upload", file, "--org", "harbour"}, consenting...)...)
	at := -1
	for _, gate := range gateNames { // as they pass, in order
		now := strings.Index(shown, gate)
		if now <= at || strings.Contains(shown, "\x1b") {
			t.Errorf("gate %s: %q", gate, shown)
		}
		at = now
	}
	id := regexp.MustCompile(`upl_[a-z0-9]+`).FindString(shown)
	if id == "" || !strings.Contains(shown, "READY") {
		t.Fatalf("upload: %s", shown)
	}

	status, _ := s.wantCLI(0, token, "status", id, "--org", "harbour", "--json")
	wantKeys(t, object(t, status), "upload_id", "pipeline_id", "status", "sequence", "gates", "filename", "size_bytes", "received_bytes", "next_part_number", "created_at", "updated_at")
	if text, _ := s.wantCLI(0, token, "status", "harbour", id); !strings.Contains(text, "READY") || strings.Count(text, "passed") != 6 {
		t.Errorf("status: %s", text)
	}
	served, _ := s.wantCLI(0, reader, "context", id, "--org", "harbour", "--json")
	wantKeys(t, object(t, served), "upload_id", "org_id", "visibility", "context")
	if text, _ := s.wantCLI(0, reader, "context", id, "--org", "harbour"); !strings.Contains(text, "brass-bell") || !strings.Contains(text, "customer-submitted, unverified") {
		t.Errorf("context: %s", text)
	}
	quota, _ := s.wantCLI(0, token, "quota", "--org", "harbour", "--json")
	if object(t, quota)["used_bytes"] != float64(len(note("brass-bell"))) {
		t.Errorf("quota: %s", quota)
	}
	withdrawn, _ := s.wantCLI(0, token, "withdraw", id, "--org", "harbour", "--reason", "moved out", "--json")
	wantKeys(t, object(t, withdrawn), "upload_id", "status", "deleted", "withdrawal_receipt_id", "quota_bytes")
	s.wantNoObjects()

	whole, progress := s.wantCLI(0, token, append([]string{"upload", file, "--org", "harbour", "--json"}, consenting...)...)
	if o := object(t, whole); o["status"] != "READY" || !strings.Contains(progress, "ai_context") {
		t.Errorf("upload --json: %s%s", whole, progress)
	}
	// Without an organization's credential the admin token withdraws.
	s.wantCLI(0, "", "withdraw", "harbour", object(t, whole)["upload_id"].(string))
	if strings.Contains(s.log.String(), "brass-bell") || strings.Contains(s.log.String(), token) {
		t.Error("the log tells content or credential")
	}
}

func TestExitCodesOfTheCommandLine(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"ACCESSION_QUOTA_BYTES=1000"}})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	upload := func(content []byte, more ...string) []string {
		return append(append([]string{"upload", written(t, "note.txt", content), "--org", "harbour"}, consenting...), more...)
	}
	for _, c := range []struct {
		name  string
		exit  int
		token string
		args  []string
		says  string // on standard error
	}{
		{"nobody agreed", 2, p.token, []string{"upload", written(t, "n.txt", note("x")), "--org", "harbour"}, "--accept"},
		{"no organization", 2, p.token, []string{"quota"}, "--org"},
		{"no credential", 2, "", []string{"quota", "--org", "harbour"}, "ACCESSION_TOKEN"},
		{"no such command", 2, p.token, []string{"uplod"}, "upload"},
		{"an empty file", 2, p.token, upload(nil), "empty"},
		{"a forged credential", 3, p.token[:len(p.token)-3] + "AAA", []string{"quota", "--org", "harbour"}, "credential_invalid"},
		{"a reader uploads", 3, reader, upload(note("x")), "credential_not_bound"},
		{"an uploader reads", 3, p.token, []string{"context", missing, "--org", "harbour"}, "access_denied"},
		{"no such upload", 4, p.token, []string{"status", missing, "--org", "harbour"}, "upload_not_found"},
		{"no such context", 4, reader, []string{"context", missing, "--org", "harbour"}, "upload_not_found"},
		{"over quota", 5, p.token, upload(noise(1001, 1)), "quota_exceeded"},
		{"malware", 6, p.token, upload([]byte(eicar())), "malware_found"},
		{"malware, for machines", 6, p.token, upload([]byte(eicar()), "--json"), "malware_found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr := s.in(t).wantCLI(c.exit, c.token, c.args...)
			if !strings.Contains(stderr, c.says) {
				t.Errorf("said %q, want %q", stderr, c.says)
			}
			if c.token != "" && strings.Contains(stdout+stderr, c.token) {
				t.Error("the credential is printed")
			}
		})
	}
}

// relay stands between the command line and the service: it counts parts, and holds one back.
type relay struct {
	url     string
	holds   string // suffix of the path that waits for release
	held    chan struct{}
	release chan struct{}

	mu    sync.Mutex
	parts []string
}

func newRelay(t testing.TB, s *service, holds string) *relay {
	t.Helper()
	to, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{url: "http://" + listener.Addr().String(), holds: holds, held: make(chan struct{}), release: make(chan struct{})}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPut {
			r.mu.Lock()
			r.parts = append(r.parts, filepath.Base(req.URL.Path))
			r.mu.Unlock()
			if strings.HasSuffix(req.URL.Path, r.holds) {
				select {
				case <-r.release:
				default:
					close(r.held)
					<-r.release
					w.WriteHeader(http.StatusBadGateway) // the held one never arrives, whoever sent it
					return
				}
			}
		}
		proxy.ServeHTTP(w, req)
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		select {
		case <-r.release:
		default:
			close(r.release)
		}
		server.Close()
		<-served
	})
	return r
}

func TestInterruptedUploadGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	s := start(t, smallParts())
	p := s.partner("harbour")
	content := bytes.Repeat(note("long-haul"), 200)
	parts := cut(content, partSize)
	between := newRelay(t, s, "/parts/3")
	home, file := t.TempDir(), written(t, "note.txt", content)
	command := func() (*exec.Cmd, *tail) {
		cmd := exec.Command(binary, append([]string{"upload", file, "--org", "harbour"}, consenting...)...)
		cmd.Env = []string{"HOME=" + home, "ACCESSION_URL=" + between.url, "ACCESSION_TOKEN=" + p.token}
		out := &tail{}
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd, out
	}
	first, said := command()
	<-between.held
	if err := first.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // its exit code says how it ended
	if exit := first.ProcessState.ExitCode(); exit != 130 || !strings.Contains(said.String(), "run the same command again") {
		t.Fatalf("exit %d: %s", exit, said)
	}
	close(between.release)
	second, said := command()
	_ = second.Wait()
	if exit := second.ProcessState.ExitCode(); exit != 0 || !strings.Contains(said.String(), "resuming upload") || !strings.Contains(said.String(), "READY") {
		t.Fatalf("exit %d: %s", exit, said)
	}
	want := []string{"1", "2", "3"} // the third was never answered
	for n := 3; n <= len(parts); n++ {
		want = append(want, string('0'+rune(n)))
	}
	between.mu.Lock()
	sent := between.parts
	between.mu.Unlock()
	if len(parts) > 9 || !slices.Equal(sent, want) {
		t.Errorf("parts sent: %v, want %v", sent, want)
	}
	if q := s.quota("harbour", p.token); q.UploadCount != 1 || q.UsedBytes != int64(len(content)) {
		t.Errorf("quota: %+v", q)
	}
	if left := files(t, home); len(left) != 0 {
		t.Errorf("notes of a finished upload: %v", left)
	}
}

func TestCommandLineUploadsTheScannedDocument(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	shown, _ := s.wantCLI(0, p.token, append([]string{"upload", "../testdata/scans/pump-station-record.pdf", "--org", "harbour", "--json"}, consenting...)...)
	served, _ := s.wantCLI(0, reader, "context", object(t, shown)["upload_id"].(string), "--org", "harbour")
	if !strings.Contains(strings.ToLower(served), "pump") || !strings.Contains(served, "page ") {
		t.Errorf("context: %s", served)
	}
}
