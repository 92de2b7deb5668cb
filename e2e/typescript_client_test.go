package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// nodePackage is clients/typescript, built as its users build it.
type nodePackage struct {
	t   *testing.T
	dir string
}

// typescriptClient installs what the lock file names and compiles, out of the tree; the compiler checks every type on the way.
func typescriptClient(t *testing.T) nodePackage {
	t.Helper()
	n := nodePackage{t, t.TempDir()}
	root := os.DirFS("../clients/typescript")
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if entry.Name() == "node_modules" || entry.Name() == "dist" { // of a developer
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(n.dir, path), 0o755)
		}
		content, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(n.dir, path), content, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	packages := npmPackages(t, "../clients/typescript")
	if err := os.Symlink(filepath.Join(packages, "node_modules"), filepath.Join(n.dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	n.want(0, nil, "node", "node_modules/typescript/bin/tsc")
	return n
}

// want runs a program in the package and returns what it printed; another exit code fails the test.
func (n nodePackage) want(exit int, env []string, program string, args ...string) string {
	n.t.Helper()
	cmd := exec.CommandContext(n.t.Context(), program, args...)
	cmd.Dir = n.dir
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		n.t.Fatalf("%s (scripts/engines.sh --for-tests installs it): %v", program, err)
	}
	if got := cmd.ProcessState.ExitCode(); got != exit {
		n.t.Fatalf("%s %s: exit %d, want %d\n%s\n%s", program, strings.Join(args, " "), got, exit, &out, &errs)
	}
	return out.String()
}

func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	n := typescriptClient(t)
	s := start(t, options{flags: append([]string{"--part-size-bytes", "1048576"}, hookFlags...)})

	t.Run("its types are the served document's", func(t *testing.T) {
		t.Parallel()
		n := nodePackage{t, n.dir}
		n.want(0, nil, "node", "scripts/generate.mjs", s.url+"/api/v1/ai/openapi.json", "fresh.ts")
		fresh, err := os.ReadFile(filepath.Join(n.dir, "fresh.ts"))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile("../clients/typescript/src/openapi.ts")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(fresh, kept) {
			t.Error("clients/typescript/src/openapi.ts is not what the served document gives: in clients/typescript, npm run generate -- ADDRESS-OF-openapi.json")
		}
	})

	t.Run("it does its work", func(t *testing.T) {
		t.Parallel()
		n, s := nodePackage{t, n.dir}, s.in(t)
		hook := receive(t, nil)
		secret := s.setWebhook("harbour", hook.URL)
		p := s.partner("harbour")
		seen := hook.until(t, "text", arrivedAs(p.submit(text("Gänsefüßchen, €, 水.", nil)), "READY"))
		last := seen[len(seen)-1]
		headers := map[string]string{}
		for name := range last.Header {
			if lower := strings.ToLower(name); strings.HasPrefix(lower, "webhook-") {
				headers[lower] = last.Header.Get(name)
			}
		}
		delivery, err := json.Marshal(map[string]any{"headers": headers, "body": base64.StdEncoding.EncodeToString(last.Body)})
		if err != nil {
			t.Fatal(err)
		}
		_, port, err := net.SplitHostPort(freeAddress(t))
		if err != nil {
			t.Fatal(err)
		}
		limited := start(t, options{env: []string{"ACCESSION_RATE_LIMITS=read=1/1"}})
		oauth := s.oauthClient("harbour", "solution_company_upload")
		n.want(0, []string{
			"ACCESSION_URL=" + s.url, "ACCESSION_ORG=harbour", "ACCESSION_TOKEN=" + p.token, "ACCESSION_READER_KEY=" + s.issue("harbour", "ai_reader"),
			"ACCESSION_CLIENT_ID=" + oauth.id, "ACCESSION_CLIENT_SECRET=" + oauth.secret,
			"ACCESSION_LIMITED_URL=" + limited.url, "ACCESSION_LIMITED_KEY=" + limited.issue("harbour", "solution_company_upload"),
			"WEBHOOK_SECRET=" + secret, "ACCESSION_DELIVERY=" + string(delivery), "WEBHOOK_PORT=" + port,
		}, "npm", "test")
	})
	t.Run("it goes on after both died", n.resumesAfterBothDied)
}

// The client dies in the middle of 40 MiB, then the service; another process goes on with nothing but the upload's id and the file.
func (n nodePackage) resumesAfterBothDied(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	var content bytes.Buffer
	for day := 1; content.Len() < 40<<20; day++ {
		fmt.Fprintf(&content, "%d %s\n", day, strings.Repeat("0123456789abcdef", 64)) // few words: what is tested is the way here
	}
	content.Truncate(40 << 20)
	file := filepath.Join(t.TempDir(), "log.txt")
	if err := os.WriteFile(file, content.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	idFile := filepath.Join(t.TempDir(), "id")
	n = nodePackage{t, n.dir}
	n.want(7, []string{"ACCESSION_URL=" + s.url, "ACCESSION_ORG=harbour", "ACCESSION_TOKEN=" + p.token, "FILE=" + file, "ID_FILE=" + idFile, "STOP_AT=16777216"}, "node", "test/interrupted.mjs")
	id, err := os.ReadFile(idFile)
	if err != nil {
		t.Fatal(err)
	}
	s.kill()
	s = start(t, options{data: s.data})
	out := n.want(0, []string{"ACCESSION_URL=" + s.url, "ACCESSION_ORG=harbour", "ACCESSION_TOKEN=" + p.token, "FILE=" + file, "UPLOAD_ID=" + string(id)}, "node", "test/interrupted.mjs")
	var did struct {
		Verify, Send, Complete int
		Status                 string
	}
	if err := json.Unmarshal([]byte(out), &did); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if did.Verify != 1 || did.Send != 2 || did.Complete != 1 || did.Status != "READY" {
		t.Errorf("the second process: %s", out)
	}
	if st := (partner{s, "harbour", p.token}).status(string(id)); st.Status != "READY" || st.ReceivedBytes != 40<<20 {
		t.Errorf("the upload: %+v", st)
	}
}
