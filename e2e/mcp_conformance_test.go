package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// notApplicable is why a scenario of the suite does not apply to this server, and the checks of it that say so.
type notApplicable struct {
	Reason string
	Checks []string
}

// conformanceRuns are the suite's own choice of revision per scenario, and each revision before the newest alone.
var conformanceRuns = map[string][]string{"all": nil, "2025-11-25": {"--spec-version", "2025-11-25"}, "2025-06-18": {"--spec-version", "2025-06-18"}}

// Every scenario of the official suite passes, or stands in testdata/mcp/not-applicable.json with a reason and exactly the checks
// that do not.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	n := mcpClients(t)
	s := start(t, options{flags: []string{"--rate-limits", "off"}})
	var excused map[string]notApplicable
	b, err := os.ReadFile("testdata/mcp/not-applicable.json")
	if err == nil {
		err = json.Unmarshal(b, &excused)
	}
	if err != nil {
		t.Fatal(err)
	}
	// The suite sends no headers of its user's: the credential joins on the way.
	to, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	key := s.issue("harbour", "ai_reader")
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // one of the scenarios is about it
		r.Out.Header.Set("X-Api-Key", key)
		// Whole, and before: the proxy's server closes a body that it has not seen the end of when the answer begins, and cuts the answer then.
		body, err := io.ReadAll(r.In.Body)
		if err != nil {
			body = nil // the suite went away
		}
		r.Out.Body = io.NopCloser(bytes.NewReader(body))
	}})
	t.Cleanup(proxy.Close)
	if resp, err := http.Get(proxy.URL + "/readyz"); err != nil || resp.StatusCode != 200 || resp.Body.Close() != nil {
		t.Fatalf("the proxy: %v", err)
	}
	patience, err := filepath.Abs("testdata/mcp/patience.cjs")
	if err != nil {
		t.Fatal(err)
	}
	for run, args := range conformanceRuns {
		t.Run(run, func(t *testing.T) {
			results := t.TempDir()
			cmd := n.command(t, nil, "--require="+patience, append([]string{n.script("conformance/dist/index.js"), "server", "--url", proxy.URL + "/mcp", "--suite", "all", "-o", results}, args...)...)
			said, _ := cmd.CombinedOutput() // it fails where a scenario does; the results say which
			seen := map[string]bool{}
			files, err := filepath.Glob(filepath.Join(results, "*", "checks.json"))
			if err != nil || len(files) < 20 {
				t.Fatalf("%d results, %v\n%s", len(files), err, said)
			}
			for _, file := range files {
				name := resultFolder.FindStringSubmatch(filepath.Base(filepath.Dir(file)))
				if name == nil {
					t.Fatalf("a result of no scenario: %s", file)
				}
				seen[name[1]] = true
				passed, not := readChecks(t, file)
				excuse, known := excused[name[1]]
				switch {
				case known && excuse.Reason == "":
					t.Errorf("%s: no reason", name[1])
				case run == "all" && !slices.Equal(not, excuse.Checks):
					t.Errorf("%s: checks that do not pass: %q, excused %q", name[1], not, excuse.Checks)
				case slices.ContainsFunc(not, func(id string) bool { return !slices.Contains(excuse.Checks, id) }):
					t.Errorf("%s: checks that do not pass: %q, excused %q", name[1], not, excuse.Checks)
				case passed == 0 && !known:
					t.Errorf("%s: nothing was checked", name[1])
				}
			}
			for name := range excused {
				if run == "all" && !seen[name] {
					t.Errorf("%s is excused, and no scenario", name)
				}
			}
			t.Logf("%d scenarios", len(files))
		})
	}
}

var resultFolder = regexp.MustCompile(`^server-(.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z$`)

// readChecks counts the checks of a scenario that passed, and names the others, in order.
func readChecks(t *testing.T, file string) (passed int, not []string) {
	t.Helper()
	var checks []struct{ ID, Status string }
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &checks)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			passed++
		case "INFO":
		default:
			not = append(not, c.ID)
		}
	}
	slices.Sort(not)
	return passed, slices.Compact(not)
}
