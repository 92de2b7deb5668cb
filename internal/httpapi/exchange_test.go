package httpapi

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
)

func TestRoutes(t *testing.T) {
	b := newBench(t)
	for _, path := range []string{"/", "/nothing", "/api/v1", partners + "/", "//api/v1/ai/openapi.json", "/api/../healthz", oneUpload + "/parts", "/HEALTHZ"} {
		b.call("GET", path, nil, asUp).wants(t, 404, custody.CodeRouteNotFound)
	}
	for _, c := range []struct{ method, path, allow string }{
		{"DELETE", oneUpload, "GET, HEAD"}, {"GET", oneUpload + "/withdraw", "POST"}, {"POST", oneUpload + "/parts/1", "PUT"}, {"OPTIONS", base + "/quota", "GET, HEAD"},
	} {
		r := b.call(c.method, c.path, nil, asUp)
		r.wants(t, 405, custody.CodeMethodNotAllowed)
		if r.Header.Get("Allow") != c.allow {
			t.Errorf("%s %s: Allow %q, want %q", c.method, c.path, r.Header.Get("Allow"), c.allow)
		}
	}
	if r := b.call("HEAD", base+"/quota", nil, asUp); r.StatusCode != 200 || len(r.raw) != 0 {
		t.Errorf("HEAD answered %d %q", r.StatusCode, r.raw)
	}
	for _, accept := range []string{"text/html", "a;", ";,;q", "application/json;q=0.1,*/*"} {
		if r := b.call("GET", base+"/request-records?limit=x", nil, asAI, "Accept: "+accept); r.StatusCode != 400 || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("Accept %q: %d %s", accept, r.StatusCode, r.Header.Get("Content-Type"))
		}
	}
}

func TestTraceparent(t *testing.T) {
	const id, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	b := newBench(t)
	for sent, taken := range map[string]bool{
		"00-" + id + "-" + span + "-01":                      true,
		"cc-" + id + "-" + span + "-01-what":                 true,
		"00-" + id + "-" + span + "-01-x":                    false,
		"ff-" + id + "-" + span + "-01":                      false,
		"00-" + strings.ToUpper(id) + "-" + span + "-01":     false,
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01": false,
		"00-" + id + "-0000000000000000-01":                  false,
		"00-" + id:                                           false,
	} {
		r := b.call("GET", "/healthz", nil, "Traceparent: "+sent, "X-Request-Id: mine")
		if (r.body.TraceID == id) != taken || len(r.body.TraceID) != 32 || strings.Trim(r.body.TraceID, "0") == "" {
			t.Errorf("%s: trace_id %s", sent, r.body.TraceID)
		}
		if !strings.HasPrefix(r.body.RequestID, "req_") {
			t.Errorf("request_id %s", r.body.RequestID)
		}
	}
}

func TestHealth(t *testing.T) {
	b := newBench(t)
	if data := b.call("GET", "/healthz", nil).succeeds(t, 200); data["status"] != "ok" {
		t.Errorf("data %v", data)
	}
	if data := b.call("GET", "/readyz", nil).succeeds(t, 200); data["status"] != "ready" {
		t.Errorf("data %v", data)
	}
	b.err = errors.New("secret")
	r := b.call("GET", "/readyz", nil)
	r.wants(t, 503, custody.CodeUnavailable)
	if raw := string(r.raw); strings.Contains(raw, "secret") || !strings.Contains(raw, `"checks":{"database":"failing"}`) {
		t.Errorf("body %s", raw)
	}
	b.call("GET", "/healthz", nil).succeeds(t, 200)
}

func TestLogLine(t *testing.T) {
	b := newBench(t)
	r := b.post("/api/v1/organizations/org_1/partner-uploads/initiate?x=private", initiateJSON, asUp)
	b.call("GET", "/api/v1/organizations/org_stranger/quota", nil)
	b.stop()
	line := ""
	for l := range strings.Lines(b.log.String()) {
		if strings.Contains(l, r.body.RequestID) {
			line += l
		}
	}
	for _, want := range []string{"method=POST", `route="POST /api/v1/organizations/{org_id}/partner-uploads/initiate"`, "status=200", "bytes=" + strconv.Itoa(len(r.raw)),
		"duration=", "trace_id=" + r.body.TraceID, "org_id=org_1", "credential_id=cred_u"} {
		if !strings.Contains(line, want) {
			t.Errorf("the log line lacks %s: %s", want, line)
		}
	}
	if strings.Count(line, "\n") != 1 {
		t.Errorf("%d lines", strings.Count(line, "\n"))
	}
	for _, private := range []string{uploaderToken, "pump.pdf", "ada@", "private", "org_stranger"} {
		if strings.Contains(b.log.String(), private) {
			t.Errorf("the log holds %s", private)
		}
	}
}
