package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/ratelimit"
)

// messages stands in for the MCP server: it keeps what reached it.
type messages struct {
	mu      sync.Mutex
	caller  custody.Caller
	refused *custody.Error
	body    string
}

func (m *messages) Answer(w http.ResponseWriter, r *http.Request, c custody.Caller, refused *custody.Error) custody.Code {
	body, err := io.ReadAll(r.Body)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.caller, m.refused, m.body = c, refused, string(body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	if err != nil {
		return custody.CodeInternal
	}
	return ""
}

func (m *messages) Card() json.RawMessage {
	return json.RawMessage(`{"$schema":"https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json","name":"io.github.accession/accession","title":"accession","description":"d","version":"1","websiteUrl":"https://custody.example","remotes":[]}`)
}

// An MCP message has the door's ids, limits and authentication.
func TestMCPBehindTheDoor(t *testing.T) {
	said := &messages{}
	b := newBench(t, func(c *Config) { c.MCP = said })
	at := b.url
	send := func(body io.Reader, headers ...string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequest("POST", at+"/mcp", body)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			req.Header.Add(name, value)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(raw)
	}
	res, _ := send(strings.NewReader("{}"), asAI)
	if res.StatusCode != 200 || said.caller.OrgID != "org_1" || said.caller.RequestID != res.Header.Get("X-Request-Id") || said.caller.TraceID == "" || said.refused != nil || said.body != "{}" {
		t.Errorf("%d, caller %+v, refused %v, body %q", res.StatusCode, said.caller, said.refused, said.body)
	}
	if res, _ = send(strings.NewReader("{}")); res.StatusCode != 200 || said.caller.CredentialID != "" || said.refused != nil {
		t.Errorf("a stranger: %d, %+v, %v", res.StatusCode, said.caller, said.refused)
	}
	for name, header := range map[string]string{"unknown": "X-Api-Key: acc_unknown", "admin token as a key": "X-Api-Key: " + adminToken, "Basic": "Authorization: Basic YTpi"} {
		if res, _ = send(strings.NewReader("{}"), header); said.refused == nil || said.refused.Code != custody.CodeCredentialInvalid || said.caller.CredentialID != "" {
			t.Errorf("%s: %d, %v, %+v", name, res.StatusCode, said.refused, said.caller)
		}
	}
	if res, raw := send(strings.NewReader(strings.Repeat(" ", maxMessageBytes+1))); res.StatusCode != 413 || !strings.Contains(raw, "body_too_large") {
		t.Errorf("a long message: %d %s", res.StatusCode, raw)
	}
	if res, _ := send(strings.NewReader(strings.Repeat(" ", maxMessageBytes))); res.StatusCode != 200 {
		t.Errorf("a message of the limit: %d", res.StatusCode)
	}
	if res, raw := send(strings.NewReader("{}"), "Content-Encoding: gzip"); res.StatusCode != 415 {
		t.Errorf("a packed message: %d %s", res.StatusCode, raw)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if r := b.call(method, "/mcp", nil); r.StatusCode != 405 || r.Header.Get("Allow") != "POST" || r.body.Code != "method_not_allowed" {
			t.Errorf("%s: %d, Allow %q, %s", method, r.StatusCode, r.Header.Get("Allow"), r.raw)
		}
	}
	slow, _ := io.Pipe()
	defer slow.Close()
	at = newBench(t, func(c *Config) { c.BodyTimeout = 100 * time.Millisecond }).url
	if res, raw := send(slow); res.StatusCode != 408 || !strings.Contains(raw, "request_timeout") {
		t.Errorf("a message that does not come: %d %s", res.StatusCode, raw)
	}
}

func TestMCPNeedsAPathOfItsOwn(t *testing.T) {
	for _, at := range []string{"https://tools.example", "https://tools.example/"} {
		b := &rooms{}
		if _, err := New(Config{BaseURL: "https://custody.example", MCPURL: at, MCP: &messages{}, Sandbox: newSandbox(t, nil)}, b, b, b, b, b, b, b); err == nil {
			t.Errorf("%s: no error", at)
		}
	}
}

// What describes the MCP server stands at the path that clients know.
func TestMCPElsewhere(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MCPURL = "https://tools.example/agents/v1" })
	get := func(path string) (int, string) {
		t.Helper()
		res, err := http.Get(b.url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(raw)
	}
	for path, want := range map[string]string{
		"/.well-known/oauth-protected-resource/agents/v1": `"resource":"https://tools.example/agents/v1"`,
		"/agents/v1/server-card":                          `"remotes"`,
		"/.well-known/mcp/server-card.json":               `"remotes"`,
		"/llms.txt":                                       "[MCP server](https://tools.example/agents/v1)",
	} {
		if status, body := get(path); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource/mcp", "/mcp/server-card"} {
		if status, _ := get(path); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
}

func TestSecurityText(t *testing.T) {
	now := time.Date(2026, 11, 20, 22, 30, 0, 0, time.FixedZone("", 3600))
	got := securityText(Config{BaseURL: "https://custody.example", SecurityContact: "mailto:security@custody.example"}, now)
	want := "Contact: mailto:security@custody.example\nExpires: 2027-02-18T00:00:00Z\nPreferred-Languages: en\nCanonical: https://custody.example/.well-known/security.txt\n"
	if got != want {
		t.Errorf("%s", got)
	}
	if c := (Config{}).withDefaults(); !strings.HasPrefix(c.SecurityContact, "https://") {
		t.Errorf("contact %q", c.SecurityContact)
	}
}

func TestSignpostsArePublicText(t *testing.T) {
	b := newBench(t)
	for _, path := range []string{"/llms.txt", "/.well-known/security.txt"} {
		res, err := http.Get(b.url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if res.Body.Close() != nil || err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/plain; charset=utf-8" || res.Header.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(string(body), b.url) {
			t.Errorf("%s: %d %s\n%s", path, res.StatusCode, res.Header, body)
		}
	}
}

// Messages count as reads: of a credential, and of the address of those who send none.
func TestMCPIsRateLimited(t *testing.T) {
	b, _ := limited(t, ratelimit.Rates{ratelimit.Read: {PerSecond: 0.4, Burst: 2}})
	for _, key := range []string{readerToken, uploaderToken, ""} {
		for i, want := range []int{200, 200, 429} {
			req, err := http.NewRequest("POST", b.url+"/mcp", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if key != "" {
				req.Header.Set("X-Api-Key", key)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if res.Body.Close() != nil || res.StatusCode != want || res.Header.Get("RateLimit-Limit") != "2" || (want == 429) != (res.Header.Get("Retry-After") != "") {
				t.Errorf("%q, message %d: %d %v", key, i+1, res.StatusCode, res.Header)
			}
		}
	}
}
