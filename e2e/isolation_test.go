package e2e

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/accession/accession/client"
)

const missing = "upl_00000000000000000000000000"

// routes are the operations of the main job that name an organization, with the upload they are asked about.
func routes(org, uploadID string) map[string]call {
	base := "/api/v1/organizations/" + org
	body := note("salt-marsh")
	return map[string]call{
		"initiate": {method: "POST", path: base + "/partner-uploads/initiate",
			json: map[string]any{"filename": "n", "content_type": "text/plain", "size_bytes": 10, "consent": consent()}},
		"part":         {method: "PUT", path: base + "/partner-uploads/part?part_number=1&upload_id=" + uploadID, body: body},
		"part by path": {method: "PUT", path: base + "/partner-uploads/" + uploadID + "/parts/1", body: body},
		"complete": {method: "POST", path: base + "/partner-uploads/complete", json: map[string]any{
			"upload_id": uploadID, "parts": []map[string]any{{"part_number": 1}}, "client_file_sha256": hexSum(body)}},
		"complete by path": {method: "POST", path: base + "/partner-uploads/" + uploadID + "/complete", json: map[string]any{
			"parts": []map[string]any{{"part_number": 1}}, "client_file_sha256": hexSum(body)}},
		"status":   {method: "GET", path: base + "/partner-uploads/" + uploadID},
		"withdraw": {method: "POST", path: base + "/partner-uploads/" + uploadID + "/withdraw", json: map[string]any{}},
		"quota":    {method: "GET", path: base + "/quota"},
		"context":  {method: "GET", path: base + "/ai-context/" + uploadID},
		"records":  {method: "GET", path: base + "/request-records?upload_id=" + uploadID},
	}
}

// by makes c a request of token's owner.
func (c call) by(token string) call {
	c.token = token
	if c.method != "GET" {
		c.key = client.NewIdempotencyKey()
	}
	return c
}

// wantSameAnswer fails the test unless both requests are answered alike in everything but their ids and the time.
func wantSameAnswer(t *testing.T, s *service, one, other call) reply {
	t.Helper()
	a, b := s.do(one), s.do(other)
	sameBut(t, a, b)
	strip := func(h http.Header) http.Header {
		h = maps.Clone(h)
		for _, every := range []string{"X-Request-Id", "Traceparent", "Date", "Ratelimit-Remaining", "Ratelimit-Reset", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
			delete(h, every) // differs from request to request
		}
		return h
	}
	if !maps.EqualFunc(strip(a.Header), strip(b.Header), slices.Equal[[]string]) {
		t.Errorf("headers differ: %v and %v", a.Header, b.Header)
	}
	return a
}

// What belongs to another organization cannot be told from what is not there: whoever asks, whatever the operation.
func TestAnotherOrganizationsUploadDoesNotExist(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	victim, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	content := note("salt-marsh")
	ready := victim.send("note.txt", "text/plain", content)
	victim.wantReady(ready)
	s.context("harbour", reader, ready).want(t, 200, "") // there is a record too
	open := victim.initiate("note.txt", "text/plain", len(content))
	before := victim.status(ready)

	for role, token := range map[string]string{
		"solution_company_upload": s.issue("island", "solution_company_upload"), "ai_reader": s.issue("island", "ai_reader"),
	} {
		for _, target := range []string{ready, open} {
			for _, org := range []string{"island", "harbour"} { // the path of one's own organization, and of the other
				there, absent := routes(org, target), routes(org, missing)
				for name := range there {
					t.Run(role+" "+name+" of "+org, func(t *testing.T) {
						if name == "initiate" && role == "solution_company_upload" && org == "island" {
							t.Log("its own right, and about no upload")
							return
						}
						r := wantSameAnswer(t, s.in(t), there[name].by(token), absent[name].by(token))
						if r.Status == 200 && name != "quota" && name != "records" || org == "harbour" && r.Status < 400 {
							t.Errorf("%d: %s", r.Status, r.Raw)
						}
					})
				}
			}
		}
		if role == "ai_reader" {
			if found := s.records("island", token, "?upload_id="+ready); len(found) != 0 {
				t.Errorf("records of another organization: %+v", found)
			}
		}
	}
	if st := victim.status(ready); st.Sequence != before.Sequence || st.Status != "READY" {
		t.Errorf("the attempts changed the upload: %+v", st)
	}
	if st := victim.status(open); st.Sequence != 1 || st.ReceivedBytes != 0 {
		t.Errorf("the attempts changed the upload: %+v", st)
	}
	if found := s.records("harbour", reader, "?upload_id="+ready); len(found) != 1 {
		t.Errorf("records: %+v", found)
	}
}

// The table "Authentication per operation" of the contract, row by row.
func TestEveryOperationRefusesTheWrongCredential(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	upload, reader := s.issue("harbour", "solution_company_upload"), s.issue("harbour", "ai_reader")
	narrow := func(role, scope string) string {
		return s.do(call{method: "POST", path: "/admin/tenant-keys/issue", bearer: adminToken, key: client.NewIdempotencyKey(),
			json: map[string]any{"org_id": "harbour", "role": role, "scope": scope}}).want(t, 201, "").field(t, "token")
	}
	type refusal struct {
		status int
		code   string
	}
	unbound, denied, absent := refusal{401, "credential_not_bound"}, refusal{403, "access_denied"}, refusal{404, "upload_not_found"}
	unscoped, invalid, nobody := refusal{403, "insufficient_scope"}, refusal{401, "credential_invalid"}, refusal{401, "authentication_required"}
	passes := refusal{}
	all := func(r refusal) map[string]refusal {
		m := map[string]refusal{}
		for name := range routes("", "") {
			m[name] = r
		}
		return m
	}
	row := func(partner, status, withdraw, quota, context refusal) map[string]refusal {
		return map[string]refusal{
			"initiate": partner, "part": partner, "part by path": partner, "complete": partner, "complete by path": partner,
			"status": status, "withdraw": withdraw, "quota": quota, "context": context, "records": context,
		}
	}
	for _, c := range []struct {
		name          string
		token, bearer string
		want          map[string]refusal
	}{
		{"nobody", "", "", all(nobody)},
		{"a forged credential", upload[:len(upload)-4] + "AAAA", "", all(invalid)},
		{"no credential at all", "acc_nonsense", "", all(invalid)},
		{"the admin token as a key", adminToken, "", all(invalid)},
		{"the admin token", "", adminToken, row(unbound, absent, passes, denied, denied)},
		{"two credentials", upload, reader, all(refusal{400, "invalid_request"})},
		{"an uploader", upload, "", row(passes, passes, passes, passes, denied)},
		{"an uploader as Bearer", "", upload, row(passes, passes, passes, passes, denied)},
		{"a reader", reader, "", row(unbound, passes, denied, passes, passes)},
		{"an uploader elsewhere", s.issue("island", "solution_company_upload"), "", row(unbound, absent, denied, denied, denied)},
		{"a reader elsewhere", s.issue("island", "ai_reader"), "", row(unbound, absent, denied, denied, denied)},
		{"an uploader for metadata", narrow("solution_company_upload", "metadata_read"), "", row(unscoped, passes, unscoped, passes, denied)},
		{"an uploader without metadata", narrow("solution_company_upload", "customer_upload correction"), "", row(passes, unscoped, passes, unscoped, denied)},
		{"a reader for metadata", narrow("ai_reader", "metadata_read"), "", row(unbound, passes, denied, passes, unscoped)},
	} {
		for name, request := range routes("harbour", missing) {
			t.Run(c.name+" "+name, func(t *testing.T) {
				request := request.by(c.token)
				request.bearer = c.bearer
				r := s.in(t).do(request)
				if want := c.want[name]; want != passes {
					r.want(t, want.status, want.code)
					if (r.Status == 401) != (r.Header.Get("WWW-Authenticate") != "") {
						t.Errorf("WWW-Authenticate: %q", r.Header.Get("WWW-Authenticate"))
					}
				} else if r.Status == 401 || r.Status == 403 {
					t.Errorf("refused: %d %s", r.Status, r.Raw)
				}
			})
		}
	}
}

func TestOnlyTheAdministratorIssues(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	upload := s.issue("harbour", "solution_company_upload")
	with := func(change func(*call)) call {
		c := issuing(client.NewIdempotencyKey(), "harbour", "ai_reader")
		change(&c)
		return c
	}
	s.do(with(func(c *call) { c.bearer = "" })).want(t, 401, "authentication_required")
	s.do(with(func(c *call) { c.bearer = upload })).want(t, 401, "credential_invalid")
	s.do(with(func(c *call) { c.bearer, c.token = "", upload })).want(t, 401, "credential_invalid")
	s.do(with(func(c *call) { c.bearer, c.token = "", adminToken })).want(t, 401, "credential_invalid")
	s.do(with(func(c *call) { c.bearer = adminToken + "x" })).want(t, 401, "credential_invalid")
	s.do(with(func(c *call) { c.key = "short" })).want(t, 400, "idempotency_key_invalid")
	keyless := with(func(c *call) { c.key = "" }) // its row of the contract asks for none: each is a new credential
	if first, second := s.do(keyless).want(t, 201, ""), s.do(keyless).want(t, 201, ""); first.field(t, "credential_id") == second.field(t, "credential_id") {
		t.Error("two issues without a key gave one credential")
	}
	for name, body := range map[string]map[string]any{
		"role":       {"org_id": "harbour", "role": "admin"},
		"scope":      {"org_id": "harbour", "role": "ai_reader", "scope": "customer_upload"},
		"expires_at": {"org_id": "harbour", "role": "ai_reader", "expires_at": "2020-01-01T00:00:00Z"},
		"org_id":     {"org_id": "", "role": "ai_reader"},
		"":           {"org_id": "harbour", "role": "ai_reader", "super": true},
	} {
		r := s.do(with(func(c *call) { c.json = body })).want(t, 400, "invalid_request")
		fields, _ := r.Details["fields"].([]any)
		if len(fields) != 1 || name != "" && fields[0].(map[string]any)["path"] != "/"+name {
			t.Errorf("%s: %s", name, r.Raw)
		}
	}
	r := s.do(with(func(c *call) {
		c.json = map[string]any{"org_id": "harbour", "role": "ai_reader", "scope": "ai_context", "expires_at": "2036-01-01T00:00:00Z"}
	})).want(t, 201, "")
	if r.field(t, "scope") != "ai_context" || r.field(t, "expires_at") != "2036-01-01T00:00:00.000Z" || r.field(t, "role") != "ai_reader" || r.field(t, "org_id") != "harbour" {
		t.Errorf("issue: %s", r.Raw)
	}
}
