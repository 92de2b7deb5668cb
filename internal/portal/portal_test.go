package portal_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/accession/accession/internal/portal"
)

// ask returns the answer to a request and its body. Headers are names and values in turn.
func ask(t testing.TB, method, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	portal.New().ServeHTTP(w, r)
	answer := w.Result()
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

func TestEveryAnswerIsGuarded(t *testing.T) {
	for path, want := range map[string]struct {
		status int
		kind   string
	}{
		"/":                    {200, "text/html; charset=utf-8"},
		"/portal":              {200, "text/html; charset=utf-8"},
		"/portal/customer":     {200, "text/html; charset=utf-8"},
		"/portal/company":      {200, "text/html; charset=utf-8"},
		"/portal/reader":       {200, "text/html; charset=utf-8"},
		"/portal/operator":     {200, "text/html; charset=utf-8"},
		"/assets/base.css":     {200, "text/css; charset=utf-8"},
		"/assets/api.js":       {200, "text/javascript; charset=utf-8"},
		"/assets/seal.svg":     {200, "image/svg+xml"},
		"/portal/nowhere":      {404, "text/html; charset=utf-8"},
		"/portal/home":         {404, "text/html; charset=utf-8"}, // a page has one address
		"/portal/reader.html":  {404, "text/html; charset=utf-8"},
		"/portal/assets/x":     {404, "text/html; charset=utf-8"},
		"/assets/":             {404, "text/html; charset=utf-8"},
		"/assets/nothing.js":   {404, "text/html; charset=utf-8"},
		"/assets/../home.html": {404, "text/html; charset=utf-8"},
	} {
		got, body := ask(t, "GET", path)
		if got.StatusCode != want.status || got.Header.Get("Content-Type") != want.kind || body == "" {
			t.Errorf("%s: %d %s, %d bytes; want %d %s", path, got.StatusCode, got.Header.Get("Content-Type"), len(body), want.status, want.kind)
		}
		policy := got.Header.Get("Content-Security-Policy")
		for _, rule := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'self'"} {
			if !strings.Contains(policy, rule) {
				t.Errorf("%s: the policy does not say %s: %s", path, rule, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
			t.Errorf("%s: the policy lets in more than this service: %s", path, policy)
		}
		for name, value := range map[string]string{"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"} {
			if got.Header.Get(name) != value {
				t.Errorf("%s: %s is %q, want %q", path, name, got.Header.Get(name), value)
			}
		}
	}
}

// A browser that has a file asks whether it changed, and gets it no second time.
func TestFilesAreSentOnce(t *testing.T) {
	first, body := ask(t, "GET", "/assets/base.css")
	etag := first.Header.Get("ETag")
	if etag == "" {
		t.Fatal("no ETag")
	}
	again, rest := ask(t, "GET", "/assets/base.css", "If-None-Match", etag)
	if again.StatusCode != 304 || rest != "" {
		t.Errorf("%d and %d bytes", again.StatusCode, len(rest))
	}
	if changed, all := ask(t, "GET", "/assets/base.css", "If-None-Match", `"another"`); changed.StatusCode != 200 || all != body {
		t.Errorf("%d and %d bytes", changed.StatusCode, len(all))
	}
	head, none := ask(t, "HEAD", "/portal")
	if head.StatusCode != 200 || none != "" || head.Header.Get("Content-Length") == "" {
		t.Errorf("HEAD: %d, %d bytes, length %q", head.StatusCode, len(none), head.Header.Get("Content-Length"))
	}
	if lost, none := ask(t, "HEAD", "/portal/nowhere"); lost.StatusCode != 404 || none != "" {
		t.Errorf("HEAD: %d, %d bytes", lost.StatusCode, len(none))
	}
}
