package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// Tables 4.1 to 4.4 and 4.7: discovery, sandbox, tokens, issuance, and reading.

// wantSwitch has a query switch leave out one field of data, and refuse what is no boolean; it is on unless it is set.
func (w witness) wantSwitch(t *testing.T, c call, name, field string) {
	t.Helper()
	path := c.path
	ask := func(value string) reply { c.path = path + value; return w.do(c) }
	full := ask("").want(t, 200, "").data(t)
	if full[field] == nil || full[field] == any("") {
		t.Errorf("no %s: %v", field, full)
	}
	if on := ask("?"+name+"=true").want(t, 200, "").data(t); len(on) != len(full) {
		t.Errorf("%s=true: %v, want %v", name, on, full)
	}
	off := ask("?"+name+"=false").want(t, 200, "").data(t)
	switch left := off[field].(type) {
	case nil:
	case map[string]any:
		if len(left) != 0 {
			t.Errorf("%s=false leaves %v", name, left)
		}
	default:
		t.Errorf("%s=false leaves %v", name, left)
	}
	ask("?"+name+"=perhaps").wantWrong(t, "invalid_request", "/query/"+name)
}

var discoveryProofs = proofs{
	"4.1 capabilities": func(t *testing.T, w witness) {
		w.wantSwitch(t, call{method: "GET", path: "/api/v1/ai/capabilities"}, "include_boundaries", "data_boundary")
		off := w.get("/api/v1/ai/capabilities?include_boundaries=false", "").data(t)
		wantShape(t, off, shape{"data_boundary": anObject}) // required, empty or not
	},
	"4.1 openapi.json": func(t *testing.T, w witness) {
		r := w.get("/api/v1/ai/openapi.json", "").want(t, 200, "")
		if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") || w.doc["openapi"] == nil || w.doc["paths"] == nil || w.doc["data"] != nil {
			t.Errorf("%v %.200s", r.Header, r.Raw)
		}
	},
	"4.1 access-policy": func(t *testing.T, w witness) {
		w.wantSwitch(t, call{method: "GET", path: "/api/v1/ai/access-policy"}, "include_headers", "headers")
	},
	"4.1 portal config": func(t *testing.T, w witness) {
		for surface, n := range map[string]int{"": 2, "?surface=all": 2, "?surface=customer": 1, "?surface=solution_company": 1} {
			r := w.get("/portal/config"+surface, "").want(t, 200, "")
			if got := r.data(t)["surfaces"].([]any); len(got) != n || n == 1 && got[0].(map[string]any)["surface"] != strings.TrimPrefix(surface, "?surface=") {
				t.Errorf("%s: %v", surface, got)
			}
		}
		w.get("/portal/config?surface=other", "").wantWrong(t, "invalid_request", "/query/surface")
	},
	"4.1 tenant key policy": func(t *testing.T, w witness) {
		w.wantSwitch(t, call{method: "GET", path: "/admin/tenant-keys/policy"}, "include_roles", "roles")
	},
	"4.1 oauth-authorization-server": func(t *testing.T, w witness) {
		o := object(t, string(w.get("/.well-known/oauth-authorization-server", "").want(t, 200, "").Raw))
		wantShape(t, o, shape{"issuer": only(w.url), "token_endpoint": only(w.url + "/oauth/token"), "jwks_uri": anURI, "revocation_endpoint": anURI, "introspection_endpoint": anURI, "scopes_supported": aList})
		if got := o["grant_types_supported"].([]any); !slices.Equal(got, []any{"client_credentials"}) {
			t.Errorf("grants %v", got)
		}
		keys := object(t, string(w.get(strings.TrimPrefix(o["jwks_uri"].(string), w.url), "").want(t, 200, "").Raw))
		for _, k := range keys["keys"].([]any) {
			wantShape(t, k.(map[string]any), shape{"kty": aString, "kid": aString, "alg": aString})
			if k.(map[string]any)["d"] != nil {
				t.Error("a private key is published")
			}
		}
	},
	"4.1 oauth-protected-resource": func(t *testing.T, w witness) {
		o := object(t, string(w.get("/.well-known/oauth-protected-resource", "").want(t, 200, "").Raw))
		wantShape(t, o, shape{"resource": only(w.url), "authorization_servers": aList, "scopes_supported": aList, "bearer_methods_supported": aList})
		if got := o["authorization_servers"].([]any); !slices.Equal(got, []any{w.url}) {
			t.Errorf("authorization servers %v", got)
		}
	},
}

// inSandbox sends body to an operation of the sandbox.
func (w witness) inSandbox(operation, key string, body any) reply {
	w.t.Helper()
	return w.do(call{method: "POST", path: "/api/v1/sandbox/" + operation, token: key, json: body})
}

var sandboxProofs = proofs{
	"4.2 GET sandbox": func(t *testing.T, w witness) {
		w.wantSwitch(t, call{method: "GET", path: "/api/v1/sandbox"}, "include_limits", "limits")
		wantShape(t, w.get("/api/v1/sandbox", "").data(t), sandboxInfoShape)
	},
	"4.2 GET sandbox/keys": func(t *testing.T, w witness) {
		w.wantSwitch(t, call{method: "GET", path: "/api/v1/sandbox/keys"}, "include_limits", "limits")
		r := w.get("/api/v1/sandbox/keys", "")
		wantShape(t, r.data(t), sandboxKeysShape)
		if r.data(t)["token"] != nil || r.data(t)["credential_id"] != nil {
			t.Errorf("it issues: %s", r.Raw)
		}
	},
	"4.2 POST sandbox/keys": func(t *testing.T, w witness) {
		for _, body := range []any{nil, fields{}, fields{"email": "trial@example.com"}} {
			wantShape(t, w.inSandbox("keys", "", body).want(t, 201, "").data(t), sandboxCredentialShape)
		}
		w.inSandbox("keys", "", fields{"email": "nobody"}).wantWrong(t, "invalid_request", "/email")
		w.inSandbox("keys", "", fields{"email": 7}).wantWrong(t, "invalid_request", "/email")
		w.inSandbox("keys", "", fields{"name": "x"}).want(t, 400, "invalid_request")
		w.inSandbox("keys", "", []string{"email"}).want(t, 400, "invalid_request")
		w.wantUntold("trial@example.com")
	},
	"4.2 POST sandbox/echo": func(t *testing.T, w witness) {
		key := w.sandboxKey()
		for _, input := range []string{"", "ahoy", strings.Repeat("ö", 1000)} {
			r := w.inSandbox("echo", key, fields{"input": input}).want(t, 200, "")
			wantShape(t, r.data(t), sandboxEchoShape)
			wantShape(t, r.data(t), shape{"echo": only(input)})
		}
		w.do(call{method: "POST", path: "/api/v1/sandbox/echo", bearer: key, json: fields{"input": "x"}}).want(t, 200, "")
		w.inSandbox("echo", key, fields{}).wantWrong(t, "invalid_request", "/input")
		w.inSandbox("echo", key, fields{"input": 7}).wantWrong(t, "invalid_request", "/input")
		w.inSandbox("echo", key, fields{"input": "x", "more": 1}).want(t, 400, "invalid_request")
		w.strangersIn(t, "echo", fields{"input": "x"})
	},
	"4.2 POST sandbox/batch": func(t *testing.T, w witness) {
		key := w.sandboxKey()
		r := w.inSandbox("batch", key, fields{"operations": []any{fields{"input": "one"}, fields{}, fields{"input": "three"}}}).want(t, 200, "")
		wantShape(t, r.data(t), shape{"status": only("sandbox_ok"), "production_data_access": only(false), "persisted": only(false), "results": aList})
		for i, echo := range []string{"one", "", "three"} {
			wantShape(t, r.data(t)["results"].([]any)[i].(map[string]any), shape{"index": only(float64(i)), "status": only("sandbox_ok"), "echo": only(echo)})
		}
		w.inSandbox("batch", key, fields{}).wantWrong(t, "invalid_request", "/operations")
		w.inSandbox("batch", key, fields{"operations": []any{"one"}}).wantWrong(t, "invalid_request", "/operations")
		w.strangersIn(t, "batch", fields{"operations": []any{fields{}}})
	},
}

// strangersIn are refused: nobody, a tenant, an administrator, and a sandbox credential that was changed.
func (w witness) strangersIn(t *testing.T, operation string, body any) {
	t.Helper()
	w.inSandbox(operation, "", body).want(t, 401, "authentication_required")
	for _, token := range []string{w.p.token, w.reader, adminToken, w.sandboxKey() + "A", "x"} {
		w.inSandbox(operation, token, body).want(t, 401, "credential_invalid")
	}
}

var tokenProofs = proofs{
	"4.3 POST oauth/token": func(t *testing.T, w witness) {
		issued := w.issued(fields{"org_id": "harbour", "role": "ai_reader"}).want(t, 201, "")
		id, secret := issued.field(t, "credential_id"), issued.field(t, "token")
		r := w.granting("grant_type", "client_credentials", "client_id", id, "client_secret", secret).want(t, 200, "")
		o := object(t, string(r.Raw))
		wantOnly(t, o, shape{"access_token": aString, "token_type": only("Bearer"), "expires_in": atLeast(1), "scope": only(issued.field(t, "scope"))})
		if o["expires_in"].(float64) > 600 || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v %s", r.Header, r.Raw)
		}
		narrow := object(t, string(w.granting("grant_type", "client_credentials", "client_id", id, "client_secret", secret, "scope", "metadata_read").want(t, 200, "").Raw))
		wantShape(t, narrow, shape{"scope": only("metadata_read")})
		bearer := narrow["access_token"].(string)
		w.do(call{method: "GET", path: w.p.path("/quota"), bearer: bearer}).want(t, 200, "")
		w.do(call{method: "GET", path: w.p.path("/ai-context/" + w.textID), bearer: bearer}).want(t, 403, "insufficient_scope")
		w.do(call{method: "GET", path: "/api/v1/organizations/island/quota", bearer: bearer}).want(t, 403, "access_denied")
		for says, pairs := range map[string][]string{
			"invalid_request":        {"client_id", id, "client_secret", secret},
			"unsupported_grant_type": {"grant_type", "password", "client_id", id, "client_secret", secret},
			"invalid_scope":          {"grant_type", "client_credentials", "client_id", id, "client_secret", secret, "scope", "customer_upload"},
		} {
			wantShape(t, object(t, string(w.granting(pairs...).want(t, 400, "").Raw)), shape{"error": only(says)})
		}
		for _, pairs := range [][]string{{"client_id", id, "client_secret", secret + "x"}, {"client_id", "nobody", "client_secret", secret}, {"client_id", id}} {
			wantShape(t, object(t, string(w.granting(append(pairs, "grant_type", "client_credentials")...).want(t, 401, "").Raw)), shape{"error": only("invalid_client")})
		}
		asJSON := w.post("/oauth/token", fields{"grant_type": "client_credentials", "client_id": id, "client_secret": secret})
		wantShape(t, object(t, string(asJSON.want(t, 400, "").Raw)), shape{"error": only("invalid_request")})
	},
	"4.3 GET oauth/identity": func(t *testing.T, w witness) {
		issued := w.issued(fields{"org_id": "harbour", "role": "ai_reader"}).want(t, 201, "")
		ask := call{method: "GET", path: "/oauth/identity", bearer: w.access(issued, "")}
		w.wantSwitch(t, ask, "include_scopes", "scopes")
		data := w.do(ask).data(t)
		wantShape(t, data, shape{"org_id": only("harbour"), "role": only("ai_reader"), "credential_id": only(issued.field(t, "credential_id")), "scopes": aList, "expires_at": aTime})
		if got := data["scopes"].([]any); len(got) != len(strings.Fields(issued.field(t, "scope"))) {
			t.Errorf("scopes %v", got)
		}
		for bearer, code := range map[string]string{"": "authentication_required", ask.bearer + "x": "credential_invalid", w.reader: "credential_invalid", adminToken: "credential_invalid"} {
			w.do(call{method: "GET", path: "/oauth/identity", bearer: bearer}).want(t, 401, code)
		}
	},
}

var issueProofs = proofs{
	"4.4 POST issue": func(t *testing.T, w witness) {
		right := fields{"org_id": "pier", "role": "ai_reader"}
		ask := issuing(client.NewIdempotencyKey(), "pier", "ai_reader")
		first := w.do(ask).want(t, 201, "")
		w.get("/api/v1/organizations/pier/quota", first.field(t, "token")).want(t, 200, "")
		wantReplay(t, first, w.do(ask))
		w.issued(altered(right, "admin", true)).want(t, 400, "invalid_request")
		for _, c := range []call{{token: w.p.token}, {bearer: w.p.token}, {token: adminToken}, {}} {
			c.method, c.path, c.json = "POST", "/admin/tenant-keys/issue", right
			if r := w.do(c); r.Status != 401 {
				t.Errorf("%d %s", r.Status, r.Raw)
			}
		}
	},
	"4.4 org_id": issueProof("org_id", []any{absent{}, nil, "", 7}, "quay"),
	"4.4 role": func(t *testing.T, w witness) {
		issueProof("role", []any{absent{}, nil, "", 7, "admin"}, "solution_company_upload", "ai_reader")(t, w)
		p := w.doc.from(t, w.doc.takes(t, "post", "/admin/tenant-keys/issue"), "properties", "role")
		if got := p["enum"].([]any); !slices.Equal(got, []any{"solution_company_upload", "ai_reader"}) {
			t.Errorf("published roles %v", got)
		}
	},
	"4.4 scope": func(t *testing.T, w witness) {
		issueProof("scope", []any{"", 7}, "ai_context", "ai_context metadata_read")(t, w)
		w.issued(fields{"org_id": "quay", "role": "ai_reader", "scope": "customer_upload"}).want(t, 400, "invalid_request")
		w.issued(fields{"org_id": "quay", "role": "ai_reader", "scope": "everything"}).want(t, 400, "invalid_request")
	},
	"4.4 expires_at": func(t *testing.T, w witness) {
		soon := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		issueProof("expires_at", []any{"", 7, "soon", "2020-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-00:01"}, soon.Format(time.RFC3339))(t, w)
		r := w.issued(fields{"org_id": "quay", "role": "ai_reader", "expires_at": soon.Format(time.RFC3339)})
		if got, err := time.Parse(time.RFC3339, r.field(t, "expires_at")); err != nil || !got.Equal(soon) {
			t.Errorf("expires at %v, want %v", got, soon)
		}
		r = w.issued(fields{"org_id": "quay", "role": "ai_reader"})
		got, err := time.Parse(time.RFC3339, r.field(t, "expires_at"))
		if days := time.Until(got).Hours() / 24; err != nil || days < 179 || days > 180 {
			t.Errorf("expires in %v days by default", days)
		}
	},
}

// issueProof has the issue refuse wrong values of a field and take right ones.
func issueProof(name string, wrong []any, right ...string) proof {
	return func(t *testing.T, w witness) {
		body := fields{"org_id": "quay", "role": "ai_reader"}
		for _, value := range wrong {
			w.issued(altered(body, name, value)).wantWrong(t, "invalid_request", "/"+name)
		}
		for _, value := range right {
			wantShape(t, w.issued(altered(body, name, value)).want(t, 201, "").data(t), shape{name: aString})
		}
		_, required := body[name]
		w.doc.wantProperty(t, w.doc.takes(t, "post", "/admin/tenant-keys/issue"), name, required, "string")
	}
}

var readingProofs = proofs{
	"4.7 ai-context": func(t *testing.T, w witness) {
		w.context("harbour", w.reader, w.textID).want(t, 200, "")
		w.context("harbour", w.reader, w.partnerID).want(t, 200, "")
		w.context("harbour", "", w.textID).want(t, 401, "authentication_required")
		w.context("harbour", w.p.token, w.textID).want(t, 403, "access_denied") // no AI reader
		inner := w.p.submit(text("The pump runs.", fields{"visibility": "internal_only"}))
		w.context("harbour", w.reader, inner).want(t, 403, "visibility_denied")
		w.context("harbour", w.reader, missing).want(t, 404, "upload_not_found")
		w.context("island", w.issue("island", "ai_reader"), w.textID).want(t, 404, "upload_not_found")
	},
	"4.7 request-records": func(t *testing.T, w witness) {
		id := w.p.submit(text("The pump runs.", nil))
		one, two := w.context("harbour", w.reader, id).RequestID, w.context("harbour", w.reader, id).RequestID
		at := w.p.path("/request-records")
		of := func(query string) (ids []string, next string) {
			data := w.get(at+query, w.reader).want(t, 200, "").data(t)
			for _, r := range data["records"].([]any) {
				ids = append(ids, r.(map[string]any)["request_id"].(string))
			}
			return ids, data["next_cursor"].(string)
		}
		if got, next := of("?upload_id=" + id); !slices.Equal(got, []string{two, one}) || next != "" {
			t.Errorf("of the upload: %v, %q", got, next)
		}
		if got, _ := of("?request_id=" + one); !slices.Equal(got, []string{one}) {
			t.Errorf("of the request: %v", got)
		}
		got, next := of("?limit=1&upload_id=" + id)
		rest, last := of("?limit=1&upload_id=" + id + "&cursor=" + next)
		if !slices.Equal(got, []string{two}) || next == "" || !slices.Equal(rest, []string{one}) || last != "" {
			t.Errorf("by page: %v %q, %v %q", got, next, rest, last)
		}
		w.get(at, "").want(t, 401, "authentication_required")
		w.get(at, w.p.token).want(t, 403, "access_denied")
	},
}
