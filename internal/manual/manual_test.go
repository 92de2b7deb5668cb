package manual_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/accession/accession/internal/manual"
)

func serve(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(manual.New("https://harbour.example/"))
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, address string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

var (
	idMark   = regexp.MustCompile(` id="([^"]*)"`)
	linkMark = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
)

// portal is what the other pages serve: the room beside this one.
func portal(at string) bool {
	switch name := strings.TrimPrefix(at, "/portal/"); {
	case at == "/":
		return true
	case strings.HasPrefix(at, "/assets/"):
		_, err := os.Stat("../portal/site" + at)
		return err == nil
	case name != at:
		_, err := os.Stat("../portal/site/" + name + ".html")
		return err == nil
	}
	return false
}

// Every page can be reached from the start, none has a dead link or names a heading that is not there, and nothing on it stands
// against the policy.
func TestNoLinkIsDead(t *testing.T) {
	s := serve(t)
	seen, ids := map[string]bool{}, map[string]map[string]bool{}
	type link struct{ from, to, id string }
	var links []link
	for queue := []string{"/docs"}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if seen[at] {
			continue
		}
		seen[at] = true
		answer, body := get(t, s.URL+at)
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", at, answer.Status)
			continue
		}
		if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
			continue
		}
		for _, forbidden := range []string{" style=", "<style", "javascript:", " onclick=", "<script>"} {
			if strings.Contains(body, forbidden) {
				t.Errorf("%s has %q, which the policy refuses", at, forbidden)
			}
		}
		ids[at] = map[string]bool{}
		for _, m := range idMark.FindAllStringSubmatch(body, -1) {
			if ids[at][m[1]] {
				t.Errorf("%s has the id %q twice", at, m[1])
			}
			ids[at][m[1]] = true
		}
		for _, m := range linkMark.FindAllStringSubmatch(body, -1) {
			to, id, _ := strings.Cut(m[1], "#")
			if to == "" {
				to = at
			}
			switch {
			case strings.HasPrefix(to, "https://github.com/accession/accession/blob/main/"):
				if _, err := os.Stat("../../" + strings.TrimPrefix(to, "https://github.com/accession/accession/blob/main/")); err != nil {
					t.Errorf("%s links to %s, and there is no such file", at, to)
				}
			case strings.Contains(to, "://"), portal(to):
			case strings.HasPrefix(to, "/docs"):
				links = append(links, link{at, to, id})
				queue = append(queue, to)
			default:
				t.Errorf("%s links to %q, and there is no such page", at, m[1])
			}
		}
	}
	for _, l := range links {
		if l.id != "" && !ids[l.to][l.id] {
			t.Errorf("%s links to %s#%s, and there is no such heading", l.from, l.to, l.id)
		}
	}
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".md"); name != "index" && !seen["/docs/"+name] {
			t.Errorf("nothing leads to the page of %s: name it in chapters", file)
		}
	}
}

var fileLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// The links of the files that no page is made from, as the repository shows them.
func TestNoLinkOfTheReadmesIsDead(t *testing.T) {
	for _, file := range []string{"README.md", "CONTRIBUTING.md", "clients/typescript/README.md"} {
		content, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fileLink.FindAllStringSubmatch(string(content), -1) {
			to, id, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") || to == "" {
				continue
			}
			at := path.Join(path.Dir(file), to)
			if _, err := os.Stat("../../" + at); err != nil {
				t.Errorf("%s links to %s, and there is no such file", file, m[1])
				continue
			}
			if page := strings.TrimSuffix(strings.TrimPrefix(at, "docs/"), ".md"); id != "" && page != at {
				if _, body := get(t, serve(t).URL+"/docs/"+page); !strings.Contains(body, ` id="`+id+`"`) {
					t.Errorf("%s links to %s, and there is no such heading", file, m[1])
				}
			}
		}
	}
}

func TestPagesSayWhatABrowserMayDo(t *testing.T) {
	s := serve(t)
	for at, kind := range map[string]string{
		"/docs": "text/html; charset=utf-8", "/docs/errors": "text/html; charset=utf-8", "/docs/errors.md": "text/markdown; charset=utf-8",
		"/docs/assets/docs.css": "text/css; charset=utf-8", "/docs/assets/docs.js": "text/javascript; charset=utf-8", "/docs/assets/headings.json": "application/json",
	} {
		answer, body := get(t, s.URL+at)
		h := answer.Header
		if answer.StatusCode != 200 || h.Get("Content-Type") != kind || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") ||
			strings.Contains(h.Get("Content-Security-Policy"), "unsafe") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" ||
			h.Get("Cross-Origin-Opener-Policy") != "same-origin" || h.Get("Cache-Control") != "no-cache" || h.Get("ETag") == "" || body == "" {
			t.Errorf("%s: %s, %v", at, answer.Status, h)
		}
		if again, body := get(t, s.URL+at, "If-None-Match", h.Get("ETag")); again.StatusCode != http.StatusNotModified || body != "" {
			t.Errorf("%s, known already: %s", at, again.Status)
		}
	}
	for _, at := range []string{"/docs/nothing", "/docs/", "/docs/assets/", "/docs/assets/../docs.css", "/docs/embed.go"} {
		if answer, body := get(t, s.URL+at); answer.StatusCode != http.StatusNotFound || !strings.Contains(body, "There is no such page") {
			t.Errorf("%s: %s", at, answer.Status)
		}
	}
}

// Examples show the address of this service, Markdown shows no raw HTML, and what a test reads is not shown.
func TestPagesAreTheReadersOwn(t *testing.T) {
	s := serve(t)
	for _, at := range []string{"/docs/mcp", "/docs/mcp.md"} {
		if _, body := get(t, s.URL+at); !strings.Contains(body, "https://harbour.example/mcp") || strings.Contains(body, "custody.example") {
			t.Errorf("%s does not show the service's own address", at)
		}
	}
	if _, body := get(t, s.URL+"/docs/mcp"); strings.Contains(body, "not run:") || strings.Contains(body, "<!--") {
		t.Error("a comment for tests is shown")
	}
	_, body := get(t, s.URL+"/docs/assets/headings.json")
	var index []struct{ Page, Title, URL string }
	if err := json.Unmarshal([]byte(body), &index); err != nil {
		t.Fatal(err)
	}
	for _, e := range index {
		if e.Title == "Withdrawal receipts" && e.Page == "API at a glance" && e.URL == "/docs/api#withdrawal-receipts" {
			return
		}
	}
	t.Errorf("the search does not know a heading: %s", body)
}
