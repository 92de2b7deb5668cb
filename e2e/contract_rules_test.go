package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/accession/accession/client"
)

// Sections 5 and 6: authentication, and the event as it is published.

var authenticationProofs = proofs{
	"5 rule 1": func(t *testing.T, w witness) {
		at := w.p.path("/quota")
		w.get(at, w.p.token).want(t, 200, "")
		w.get("/api/v1/organizations/island/quota", w.p.token).want(t, 403, "access_denied")
		for _, name := range []string{"x-api-key", "api_key", "access_token"} { // never in a URL
			w.get(at+"?"+name+"="+w.p.token, "").want(t, 401, "authentication_required")
		}
		w.do(call{method: "GET", path: at, header: map[string]string{"Cookie": "x-api-key=" + w.p.token}}).want(t, 401, "authentication_required")
		w.context("harbour", w.reader, w.textID).want(t, 200, "")
	},
	"5 rule 2": func(t *testing.T, w witness) {
		for _, token := range []string{w.reader, w.issue("island", "solution_company_upload"), w.issue("island", "ai_reader")} {
			for name, c := range routes("harbour", w.partnerID) {
				if name == "initiate" || strings.HasPrefix(name, "part") || strings.HasPrefix(name, "complete") {
					w.do(c.by(token)).want(t, 401, "credential_not_bound")
				}
			}
		}
		w.p.wantWithdrawn(w.p.initiate("note.txt", "text/plain", 10), 10)
	},
	"5 rule 3": func(t *testing.T, w witness) {
		issued := w.issued(fields{"org_id": "harbour", "role": "solution_company_upload"}).want(t, 201, "")
		bearer := w.access(issued, "")
		upload := w.p.reserving(client.NewIdempotencyKey(), 10)
		upload.token, upload.bearer = "", bearer
		w.do(upload).want(t, 200, "")
		upload.path = strings.Replace(upload.path, "harbour", "island", 1)
		w.do(upload).want(t, 401, "credential_not_bound")
		w.do(call{method: "GET", path: w.p.path("/quota"), token: bearer}).want(t, 401, "credential_invalid") // Bearer only
		wantShape(t, object(t, string(w.granting("grant_type", "authorization_code", "code", "x", "client_id", issued.field(t, "credential_id"), "client_secret", issued.field(t, "token")).want(t, 400, "").Raw)),
			shape{"error": only("unsupported_grant_type")})
		wantShape(t, object(t, string(w.get("/oauth/authorize?response_type=code", "").want(t, 400, "").Raw)), shape{"error": only("unsupported_response_type")})
		w.post("/oauth/register", fields{}).want(t, 404, "route_not_found")
		for _, secret := range []string{"acc_unprovisioned", adminToken, bearer, w.sandboxKey()} {
			wantShape(t, object(t, string(w.granting("grant_type", "client_credentials", "client_id", issued.field(t, "credential_id"), "client_secret", secret).want(t, 401, "").Raw)),
				shape{"error": only("invalid_client")})
		}
	},
	"5 rule 4": scopes,
	"5 rule 5": func(t *testing.T, w witness) {
		roles := w.get("/admin/tenant-keys/policy", "").data(t)["roles"].(map[string]any)
		want := map[string][]string{
			"solution_company_upload": {"customer_upload", "metadata_read", "ai_readiness", "correction", "external_reference"},
			"ai_reader":               {"ai_context", "metadata_read", "ai_readiness", "mcp"},
		}
		for role, set := range want {
			issued := w.issued(fields{"org_id": "harbour", "role": role}).want(t, 201, "")
			if granted := strings.Fields(issued.field(t, "scope")); !slices.Equal(granted, set) {
				t.Errorf("%s: %v, want %v", role, granted, set)
			}
		}
		if len(roles) != len(want) {
			t.Errorf("roles %v", roles)
		}
	},
	"5 rule 6": func(t *testing.T, w witness) {
		for method, params := range map[string]fields{
			"initialize":     {"protocolVersion": "2025-11-25", "capabilities": fields{}, "clientInfo": fields{"name": "witness", "version": "1"}},
			"resources/list": {}, "resources/read": {"uri": "accession://docs/quick-start"}, "tools/list": {},
		} {
			if o := object(t, string(w.do(rpc(method, params)).want(t, 200, "").Raw)); o["result"] == nil || o["error"] != nil {
				t.Errorf("%s: %v", method, o)
			}
		}
		for _, path := range []string{"/mcp/server-card", "/.well-known/mcp/server-card.json"} {
			remotes := object(t, string(w.get(path, "").want(t, 200, "").Raw))["remotes"].([]any)
			wantShape(t, remotes[0].(map[string]any), shape{"type": only("streamable-http"), "url": only(w.url + "/mcp")})
		}
		if r := w.do(calling("get_capabilities", fields{})); r.Status != 401 || !strings.Contains(string(r.Raw), "authentication_required") {
			t.Errorf("a call without a credential: %d %s", r.Status, r.Raw)
		}
		if a, r := w.tool(w.narrow("ai_reader", "ai_context"), "get_capabilities", fields{}); r.Status != 403 || a.Error.Data.Code != "insufficient_scope" {
			t.Errorf("a call without the scope mcp: %d %s", r.Status, r.Raw)
		}
		if a, _ := w.tool(w.narrow("ai_reader", "mcp"), "get_capabilities", fields{}); a.Error != nil || a.Result.IsError {
			t.Errorf("a call with the scope mcp: %+v", a)
		}
		o := object(t, string(w.get("/.well-known/oauth-protected-resource/mcp", "").want(t, 200, "").Raw))
		wantShape(t, o, shape{"resource": only(w.url + "/mcp"), "authorization_servers": aList})
	},
	"5 rule 7": func(t *testing.T, w witness) {
		issued := w.issued(fields{"org_id": "harbour", "role": "solution_company_upload"}).want(t, 201, "")
		token, bearer := issued.field(t, "token"), w.access(issued, "")
		own := partner{w.service, "harbour", token}
		id := own.submit(text("The pump runs.", nil))
		at := "/admin/tenant-keys/credentials/" + issued.field(t, "credential_id") + "/revoke"
		w.do(call{method: "POST", path: at, token: token}).want(t, 401, "credential_invalid")
		w.do(call{method: "GET", path: w.p.path("/quota"), bearer: bearer}).want(t, 200, "")
		w.do(call{method: "POST", path: at, bearer: adminToken}).want(t, 200, "")
		w.get(w.p.path("/quota"), token).want(t, 401, "credential_invalid")
		w.do(call{method: "GET", path: w.p.path("/quota"), bearer: bearer}).want(t, 401, "credential_invalid")
		w.context("harbour", w.reader, id).want(t, 200, "") // its uploads stay, until they are withdrawn
		w.p.wantWithdrawn(id, len("The pump runs."))
		w.get(w.p.path("/quota"), w.issue("harbour", "solution_company_upload")).want(t, 200, "")
	},
	"5 rule 8": func(t *testing.T, w witness) {
		at := w.p.path("/partner-uploads/" + w.partnerID)
		w.get(at, "").want(t, 401, "authentication_required")
		w.get(at, "acc_unknown").want(t, 401, "credential_invalid")
		w.context("harbour", w.p.token, w.textID).want(t, 403, "access_denied")
		w.get(w.p.path("/partner-uploads/"+missing), w.p.token).want(t, 404, "upload_not_found")
		w.p.part(w.partnerID, 3, []byte("x")).want(t, 409, "upload_not_receiving")
		limited(t)
	},
	"5 rule 9": func(t *testing.T, w witness) {
		r := w.do(call{method: "POST", path: "/api/v1/sandbox/keys"}).want(t, 201, "")
		wantShape(t, r.data(t), shape{"scope": only("sandbox:echo"), "expires_at": aTime})
		key := r.field(t, "token")
		w.inSandbox("echo", key, fields{"input": "x"}).want(t, 200, "")
		for name, c := range routes("harbour", w.partnerID) { // and nothing else
			if r := w.do(c.by(key)).want(t, 401, "credential_invalid"); strings.Contains(string(r.Raw), key) {
				t.Errorf("%s tells it again: %s", name, r.Raw)
			}
		}
		if again := w.do(call{method: "POST", path: "/api/v1/sandbox/keys"}); again.field(t, "token") == key {
			t.Error("one credential twice")
		}
	},
	"5 rule 10": func(t *testing.T, w witness) {
		for _, path := range []string{"/portal/config", "/admin/tenant-keys/policy", "/api/v1/ai/access-policy", "/api/v1/ai/capabilities", "/api/v1/sandbox"} {
			w.get(path, "").want(t, 200, "")
		}
		for _, c := range append(w.writing(text("The pump runs.", nil)), w.p.reviewing(w.textID, client.NewIdempotencyKey(), fields{"review_id": "r"})) {
			c.token = ""
			w.do(c).want(t, 401, "authentication_required")
			c.token = w.reader
			w.do(c).want(t, 403, "insufficient_scope")
			c.token, c.bearer = "", adminToken
			w.do(c).want(t, 403, "access_denied")
		}
		ask := issuing(client.NewIdempotencyKey(), "harbour", "ai_reader")
		ask.bearer, ask.token = "", w.p.token
		w.do(ask).want(t, 401, "credential_invalid")
	},
}

// scopes: each opens its operations, as key and as access token, and nothing without it.
func scopes(t *testing.T, w witness) {
	id := w.p.submit(text("The pump runs.", nil))
	opens := map[string][]call{
		"customer_upload":    {w.p.submitting("", text("The pump runs.", nil)), w.p.reserving("", 10)},
		"correction":         {w.p.correcting(id, "", text("The pump runs.", nil))},
		"external_reference": {w.p.reviewing(id, "", fields{"review_id": "r"})},
		"metadata_read":      {{method: "GET", path: w.p.path("/partner-uploads/" + id)}, {method: "GET", path: w.p.path("/quota")}},
		"ai_context":         {{method: "GET", path: w.p.path("/ai-context/" + id)}, {method: "GET", path: w.p.path("/request-records")}},
	}
	all := map[string]string{"customer_upload": "solution_company_upload", "correction": "solution_company_upload", "external_reference": "solution_company_upload",
		"metadata_read": "ai_reader", "ai_context": "ai_reader", "ai_readiness": "ai_reader", "mcp": "ai_reader"}
	published := w.doc.at(t, "components", "securitySchemes", "oauth2", "flows", "clientCredentials", "scopes")
	if len(published) != len(all) {
		t.Errorf("published scopes %v", published)
	}
	for scope, role := range all {
		if published[scope] == nil {
			t.Errorf("%s is not published", scope)
		}
		other := "metadata_read"
		if scope == other {
			other = "ai_readiness"
		}
		with, without := w.issued(fields{"org_id": "harbour", "role": role, "scope": scope}).want(t, 201, ""), w.narrow(role, other)
		bearer := w.access(with, scope)
		for _, c := range opens[scope] {
			refused := w.do(c.by(without)).want(t, 403, "insufficient_scope")
			if refused.Details["required_scope"] != scope {
				t.Errorf("required scope %v, want %s", refused.Details["required_scope"], scope)
			}
			for _, c := range []call{c.by(with.field(t, "token")), c.by("")} {
				if c.token == "" {
					c.bearer = bearer
				}
				if r := w.do(c); r.Status >= 300 {
					t.Errorf("%s does not open %s %s: %s", scope, c.method, c.path, r.Raw)
				}
			}
		}
	}
}

var callbackProofs = proofs{
	"6 event_id":    eventProof("event_id", "string", true),
	"6 upload_id":   eventProof("upload_id", "string", true),
	"6 sequence":    eventProof("sequence", "integer", true),
	"6 status":      eventProof("status", "string", true),
	"6 occurred_at": eventProof("occurred_at", "string", true),
	"6 pipeline_id": eventProof("pipeline_id", "string", false),
	"6 stage":       eventProof("stage", "string", false),
	"6 request_id":  eventProof("request_id", "string", false),
	"6 trace_id":    eventProof("trace_id", "string", false),
	"6 receiver responses": func(t *testing.T, w witness) {
		for _, status := range []string{"202", "400", "409"} {
			w.doc.at(t, "webhooks", "uploadStatusChanged", "post", "responses", status)
		}
	},
	"6 signature": func(t *testing.T, w witness) {
		var names []string
		for _, p := range w.doc.at(t, "webhooks", "uploadStatusChanged", "post")["parameters"].([]any) {
			wantShape(t, p.(map[string]any), shape{"in": only("header"), "required": only(true)})
			names = append(names, p.(map[string]any)["name"].(string))
		}
		if !slices.Equal(names, []string{"webhook-id", "webhook-timestamp", "webhook-signature"}) {
			t.Errorf("headers %v", names)
		}
	},
	"6 consumer rules": func(t *testing.T, w witness) {
		status := w.doc.gives(t, "get", orgPath+"/partner-uploads/{upload_id}", "200")
		for _, name := range []string{"status", "sequence"} {
			w.doc.wantProperty(t, status, name, true, eventSchema(t, w)["properties"].(map[string]any)[name].(map[string]any)["type"].(string))
		}
		statuses := w.doc.from(t, eventSchema(t, w), "properties", "status")["enum"].([]any)
		if !slices.Equal(statuses, w.doc.from(t, status, "properties", "status")["enum"].([]any)) {
			t.Errorf("an event's statuses are not those of the status operation: %v", statuses)
		}
		var stages []string
		for _, stage := range w.doc.from(t, eventSchema(t, w), "properties", "stage")["enum"].([]any) {
			stages = append(stages, stage.(string))
		}
		if !slices.Equal(stages, gateNames) {
			t.Errorf("stages %v", stages)
		}
	},
	"6 delivery": func(t *testing.T, w witness) {
		tenant := receive(t, nil)
		p := w.partner("lighthouse")
		secret := w.setWebhook("lighthouse", tenant.URL)
		id := p.submit(text(string(note("contract-yew")), nil))
		for _, event := range tenant.until(t, "READY", arrivedAs(id, "READY")) {
			wantSigned(t, secret, event)
			body := object(t, string(event.Body))
			wantShape(t, body, shape{"event_id": only(event.ID), "upload_id": only(id), "sequence": atLeast(1), "status": aString, "occurred_at": aTime,
				"pipeline_id": aString, "request_id": aString, "trace_id": aString})
			for name := range body {
				w.doc.from(t, eventSchema(t, w), "properties", name)
			}
		}
	},
}

func eventSchema(t *testing.T, w witness) map[string]any {
	t.Helper()
	return w.doc.at(t, "webhooks", "uploadStatusChanged", "post", "requestBody", "content", "application/json", "schema")
}

func eventProof(name, typ string, required bool) proof {
	return func(t *testing.T, w witness) {
		p := w.doc.wantProperty(t, eventSchema(t, w), name, required, typ)
		if name == "sequence" && p["minimum"] != 1.0 || name == "occurred_at" && p["format"] != "date-time" {
			t.Errorf("%s: %v", name, p)
		}
	}
}
