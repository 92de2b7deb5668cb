package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// The documentation comes out of the real door: with its ids, its refusals, and the address of this service; and llms.txt leads there.
func TestDocumentationIsServed(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	get := func(method, path string) (*http.Response, string) {
		request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := s.http.Do(request)
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
	for _, c := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"GET", "/docs", 200, "<h1"},
		{"HEAD", "/docs", 200, ""},
		{"GET", "/docs/mcp", 200, s.url + "/mcp"},
		{"GET", "/docs/index.md", 200, "# Documentation"},
		{"GET", "/docs/assets/reference.js", 200, "/api/v1/ai/openapi.json"},
		{"GET", "/docs/nothing", 404, "There is no such page"},
		{"POST", "/docs", 405, "method_not_allowed"},
		{"GET", "/llms.txt", 200, s.url + "/docs/index.md"},
	} {
		answer, body := get(c.method, c.path)
		if answer.StatusCode != c.status || !strings.Contains(body, c.says) || answer.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s: %s, %v\n%.300s", c.method, c.path, answer.Status, answer.Header, body)
		}
		if policy := answer.Header.Get("Content-Security-Policy"); strings.HasPrefix(c.path, "/docs") && c.method != "POST" && !strings.Contains(policy, "script-src 'self'") {
			t.Errorf("%s: the policy is %q", c.path, policy)
		}
	}
}
