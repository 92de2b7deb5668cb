package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sandbox"
)

// newSandbox is the real one: it has nothing that a test would have to stand in for.
func newSandbox(t testing.TB, now func() time.Time) *sandbox.Service {
	t.Helper()
	s, err := sandbox.New(sandbox.Config{Key: bytes.Repeat([]byte("k"), sandbox.KeyBytes), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (b *bench) sandboxToken() string {
	b.t.Helper()
	token, _ := b.post(sandboxPath+"/keys", "").succeeds(b.t, 201)["token"].(string)
	return token
}

func TestSandboxInfo(t *testing.T) {
	b := newBench(t)
	for path, want := range map[string]string{
		sandboxPath: `{"environment":"sandbox","status":"available","production_data_access":false,"credential_endpoint":"URL/api/v1/sandbox/keys",` +
			`"echo_endpoint":"URL/api/v1/sandbox/echo","customer_uploads":false,"ai_context":false}`,
		sandboxPath + "/keys": `{"method":"POST","endpoint":"URL/api/v1/sandbox/keys","free":true,"production_data_access":false,"status":"available",` +
			`"account_required":false,"credential_scope":"sandbox:echo"}`,
	} {
		want = strings.ReplaceAll(want, "URL", b.url)
		r := b.call("GET", path+"?include_limits=false", nil)
		r.succeeds(t, 200)
		if !strings.Contains(string(r.raw), want) {
			t.Errorf("%s: %s, want data %s", path, r.raw, want)
		}
		limits := fmt.Sprint(b.call("GET", path, nil).succeeds(t, 200)["limits"])
		if limits != "map[credential_lifetime_seconds:3600 max_input_characters:1000 max_operations:8 min_operations:1]" {
			t.Errorf("%s: limits %s", path, limits)
		}
		b.call("GET", path+"?include_limits=perhaps", nil).wants(t, 400, custody.CodeInvalidRequest, "/query/include_limits")
	}
}

func TestSandboxKeys(t *testing.T) {
	b := newBench(t)
	for _, body := range []string{"", "{}", `{"email":"ada@example.org"}`} {
		data := b.post(sandboxPath+"/keys", body).succeeds(t, 201)
		if data["scope"] != "sandbox:echo" || data["production_data_access"] != false || data["credential_id"] == "" || data["expires_at"] == "" {
			t.Errorf("data %v", data)
		}
	}
	b.call("POST", sandboxPath+"/keys", nil).succeeds(t, 201) // neither body nor Idempotency-Key
	for body, path := range map[string]string{
		`{"email":"hidden-word"}`: "/email", `{"email":""}`: "/email", `{"email":1}`: "/email", `{"mail":"ada@example.org"}`: "", `[]`: "", `{"email":"a@b.org","email":"c@d.org"}`: "",
	} {
		r := b.post(sandboxPath+"/keys", body)
		r.wants(t, 400, custody.CodeInvalidRequest, path)
		if strings.Contains(string(r.raw), "hidden-word") {
			t.Errorf("it echoes: %s", r.raw)
		}
	}
	b.call("POST", sandboxPath+"/keys", nil, "Idempotency-Key: short").wants(t, 400, custody.CodeIdempotencyKeyInvalid)
	b.stop()
	if strings.Contains(b.log.String(), "ada@example.org") {
		t.Error("the address is logged")
	}
}

func TestSandboxEcho(t *testing.T) {
	b := newBench(t)
	token := b.sandboxToken()
	for _, as := range []string{"X-Api-Key: " + token, "Authorization: Bearer " + token} {
		for _, input := range []string{"", "hello", strings.Repeat("ü", 1000), "\u2028\"\\<&>"} {
			sent, err := json.Marshal(map[string]string{"input": input})
			if err != nil {
				t.Fatal(err)
			}
			data := b.post(sandboxPath+"/echo", string(sent), as).succeeds(t, 200)
			if data["echo"] != input || data["status"] != "sandbox_ok" || data["production_data_access"] != false || data["persisted"] != false || data["credential_id"] == "" {
				t.Errorf("data %v", data)
			}
		}
	}
	as := "X-Api-Key: " + token
	for body, path := range map[string]string{
		`{}`: "/input", "": "", `{"input":1}`: "/input", `{"input":"x","more":1}`: "", `{"input":"` + strings.Repeat("ü", 1001) + `"}`: "/input",
	} {
		b.post(sandboxPath+"/echo", body, as).wants(t, 400, custody.CodeInvalidRequest, path)
	}
	b.post(sandboxPath+"/echo", `{"input":"hello"}`).wants(t, 401, custody.CodeAuthenticationRequired)
}

func TestSandboxBatch(t *testing.T) {
	b := newBench(t)
	as := "X-Api-Key: " + b.sandboxToken()
	batch := func(n int) string {
		return `{"operations":[` + strings.TrimSuffix(strings.Repeat(`{"input":"a"},`, n), ",") + `]}`
	}
	data := b.post(sandboxPath+"/batch", `{"operations":[{"input":"one"},{}]}`, as).succeeds(t, 200)
	if got := fmt.Sprint(data["results"]); got != "[map[echo:one index:0 status:sandbox_ok] map[echo: index:1 status:sandbox_ok]]" {
		t.Errorf("results %s", got)
	}
	if data["status"] != "sandbox_ok" || data["production_data_access"] != false || data["persisted"] != false {
		t.Errorf("data %v", data)
	}
	b.post(sandboxPath+"/batch", batch(8), as).succeeds(t, 200)
	for body, path := range map[string]string{
		`{}`: "/operations", batch(0): "/operations", batch(9): "/operations", `{"operations":null}`: "/operations", `{"operations":["a"]}`: "/operations/0",
		`{"operations":[{},{"input":"` + strings.Repeat("ü", 1001) + `"}]}`: "/operations/1/input",
	} {
		b.post(sandboxPath+"/batch", body, as).wants(t, 400, custody.CodeInvalidRequest, path)
	}
	b.post(sandboxPath+"/batch", batch(1)).wants(t, 401, custody.CodeAuthenticationRequired)
}

// No credential of one world opens the other.
func TestSandboxCredentialsStayInTheSandbox(t *testing.T) {
	b := newBench(t)
	token := b.sandboxToken()
	for _, as := range []string{"X-Api-Key: " + token, "Authorization: Bearer " + token} {
		b.post(partners+"/initiate", initiateJSON, as).wants(t, 401, custody.CodeCredentialInvalid)
		b.call("GET", base+"/ai-context/up_1", nil, as).wants(t, 401, custody.CodeCredentialInvalid)
		b.post("/admin/tenant-keys/issue", `{"org_id":"o","role":"ai_reader"}`, as).wants(t, 401, custody.CodeCredentialInvalid)
	}
	for _, as := range []string{asUp, asAI, admin, "X-Api-Key: " + adminToken, "X-Api-Key: " + token + "x", "X-Api-Key: " + strings.ToUpper(token)} {
		b.post(sandboxPath+"/echo", `{"input":"a"}`, as).wants(t, 401, custody.CodeCredentialInvalid)
		b.post(sandboxPath+"/batch", `{"operations":[{}]}`, as).wants(t, 401, custody.CodeCredentialInvalid)
	}
	if b.got != nil {
		t.Errorf("it reached a room: %v", b.got)
	}
}

func TestSandboxCredentialEnds(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	b := newBench(t, func(c *Config) { c.Sandbox = newSandbox(t, func() time.Time { return now }) })
	as := "X-Api-Key: " + b.sandboxToken()
	b.post(sandboxPath+"/echo", `{"input":"a"}`, as).succeeds(t, 200)
	now = now.Add(sandbox.DefaultLifetime)
	b.post(sandboxPath+"/echo", `{"input":"a"}`, as).wants(t, 401, custody.CodeCredentialInvalid)
}
