package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// visit runs the flow e2e/browser/<flow>.mjs against the service, with credentials for harbour, and returns what it printed.
func (s *service) visit(t testing.TB, flow string, env ...string) string {
	t.Helper()
	return browse(t, flow, append([]string{
		"ACCESSION_URL=" + s.url, "ACCESSION_ORG=harbour", "ACCESSION_ADMIN_TOKEN=" + adminToken,
		"ACCESSION_KEY=" + s.issue("harbour", "solution_company_upload"), "ACCESSION_READER_KEY=" + s.issue("harbour", "ai_reader"),
	}, env...)...)
}

// browse runs a flow in the system's Chromium. Screenshots go to .cache/screenshots, if env does not say otherwise.
func browse(t testing.TB, flow string, env ...string) string {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("a browser is needed for this test (scripts/engines.sh --for-tests installs it): %v", err)
	}
	screenshots, err := filepath.Abs("../.cache/screenshots")
	if err != nil {
		t.Fatal(err)
	}
	dir := npmProject(t, "browser")
	home := t.TempDir()
	leavesNothing(t, home)
	cmd := exec.CommandContext(t.Context(), mcpClients(t).node, filepath.Join(dir, flow+".mjs"))
	cmd.Dir = dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + t.TempDir(), "CHROMIUM=" + browser, "SCREENSHOTS=" + screenshots,
	}, env...)
	// Asked to end, it ends its browser first.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s in the browser: %v\n%s", flow, err, out)
	}
	if said := strings.TrimSpace(string(out)); said != "" {
		t.Logf("%s in the browser:\n%s", flow, said)
	}
	return string(out)
}

// The first pages are small and few; the flow prints how long they took.
func TestBrowserBudget(t *testing.T) {
	t.Parallel()
	start(t, options{}).visit(t, "budget")
}

func TestBrowserPages(t *testing.T) {
	t.Parallel()
	start(t, options{}).visit(t, "pages")
}

// The frame notices what it is there for.
func TestBrowserFrame(t *testing.T) {
	t.Parallel()
	pages := http.NewServeMux()
	page := func(name, script, body string) {
		pages.HandleFunc("GET /"+name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Security-Policy", "default-src 'self' http://other.example; style-src 'unsafe-inline' 'self'; img-src data: 'self'")
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, `<!doctype html><html lang="en"><title>%[1]s</title><link rel="icon" href="data:,">`+
				`<script src="/%[1]s.js"></script><main><h1>%[1]s</h1><button>Press</button>%[2]s</main></html>`, name, body)
		})
		pages.HandleFunc("GET /"+name+".js", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, script)
		})
	}
	page("good", `fetch("/refused")`, "")
	page("script", "", `<script>console.log("never")</script>`)
	page("elsewhere", `fetch("http://other.example/").catch(() => {})`, "")
	page("exception", `throw new Error("thrown on purpose")`, "")
	page("rejection", `Promise.reject(new Error("rejected on purpose"))`, "")
	page("console", `console.warn("said on purpose")`, "")
	page("asset", "", `<img src="/none.png" alt="none">`)
	page("broken", `fetch("/five-hundred")`, "")
	page("nameless", "", `<button style="width: 3em; height: 3em"></button>`)
	page("pale", "", `<p style="color: #ccc; background: #fff">hardly to be read</p>`)
	page("wide", "", `<div style="width: 2000px">wide</div>`)
	page("unreachable", `addEventListener("keydown", (e) => { if (document.activeElement?.id === "before") e.preventDefault() })`,
		`<button id="before">A trap</button><button>Hidden from Tab</button>`)
	page("unseen", "", `<button style="outline: none; box-shadow: none">No ring</button>`)
	page("address", "", "")
	pages.HandleFunc("GET /refused", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	pages.HandleFunc("GET /five-hundred", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)
	browse(t, "faults", "ACCESSION_URL="+server.URL, "ACCESSION_KEY=a-credential", "SCREENSHOTS="+t.TempDir())
}
