package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
)

// Pages stand beside the operations: none hides one, and each has the door's ids, headers and log line.
func TestPagesAreMounted(t *testing.T) {
	page := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-cache")
			if strings.HasSuffix(r.URL.Path, "/missing") {
				w.WriteHeader(404)
			}
			fmt.Fprintf(w, "%s %s", name, r.URL.Path)
		})
	}
	b := newBench(t, func(c *Config) { c.Pages, c.Manual = page("portal"), page("manual") })
	get := func(method, path string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequest(method, b.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(body)
	}
	for path, from := range map[string]string{"/": "portal", "/portal": "portal", "/portal/customer": "portal", "/assets/a/b.css": "portal", "/docs": "manual", "/docs/a/b": "manual"} {
		res, body := get("GET", path)
		if res.StatusCode != 200 || body != from+" "+path || !strings.HasPrefix(res.Header.Get("X-Request-Id"), "req_") || res.Header.Get("Traceparent") == "" ||
			res.Header.Get("Cache-Control") != "no-cache" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s answered %d %v %q", path, res.StatusCode, res.Header, body)
		}
		if res, body := get("HEAD", path); res.StatusCode != 200 || body != "" {
			t.Errorf("HEAD %s answered %d %q", path, res.StatusCode, body)
		}
		b.call("POST", path, nil).wants(t, 405, custody.CodeMethodNotAllowed)
	}
	if res, _ := get("GET", "/portal/missing"); res.StatusCode != 404 || !strings.Contains(b.log.String(), "route=\"GET /portal/{page}\" status=404 code=route_not_found") {
		t.Errorf("a page that is not there: %d, %s", res.StatusCode, b.log)
	}
	b.call("GET", "/portal/config", nil).succeeds(t, 200)
	b.call("GET", "/portal/session", nil).wants(t, 401, custody.CodeAuthenticationRequired)
	for _, path := range []string{"/portal/a/b", "/portal/", "/docs/", "/assets", "/assets/", "/index.html", "/assets//x", "/assets/../portal"} {
		b.call("GET", path, nil).wants(t, 404, custody.CodeRouteNotFound)
	}
}

func TestDoorsWithoutPages(t *testing.T) {
	b := newBench(t)
	for _, path := range []string{"/", "/portal", "/portal/customer", "/assets/base.css", "/docs", "/docs/a"} {
		b.call("GET", path, nil).wants(t, 404, custody.CodeRouteNotFound)
	}
}
