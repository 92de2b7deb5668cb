package e2e

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// Sections 7, 8 and 9: errors, limits, versions.

var statusProofs = proofs{
	"7 400": func(t *testing.T, w witness) {
		key := w.sandboxKey()
		w.inSandbox("keys", "", fields{"name": "x"}).want(t, 400, "invalid_request")
		w.inSandbox("echo", key, fields{"input": 1}).want(t, 400, "invalid_request")
		w.inSandbox("batch", key, fields{"operations": []any{}}).want(t, 400, "invalid_request")
		w.issued(fields{"org_id": "harbour", "role": "king"}).want(t, 400, "invalid_request")
		for _, c := range w.writing(text("x", fields{"filename": 7})) {
			w.do(c).want(t, 400, "invalid_request")
		}
		w.do(w.p.reviewing(w.textID, client.NewIdempotencyKey(), fields{})).want(t, 400, "invalid_request")
		for _, agreed := range []any{nil, absent{}, fields{}, altered(consent(), "accepted", false)} {
			for _, c := range w.consenting(agreed) {
				w.do(c).want(t, 400, "consent_invalid")
			}
		}
		for _, c := range append(w.writing(text(ownClaim, nil)), w.p.reviewing(w.textID, client.NewIdempotencyKey(), fields{"review_id": "r", "certified": true})) {
			w.do(c).want(t, 400, "verification_claim_forbidden")
		}
	},
	"7 401": func(t *testing.T, w witness) {
		for _, r := range []reply{
			w.inSandbox("echo", "", fields{"input": "x"}).want(t, 401, "authentication_required"),
			w.context("harbour", "", w.textID).want(t, 401, "authentication_required"),
			w.get(w.p.path("/request-records"), "").want(t, 401, "authentication_required"),
			w.do(call{method: "GET", path: "/oauth/identity", bearer: "x"}).want(t, 401, "credential_invalid"),
			w.do(w.p.reserving(client.NewIdempotencyKey(), 10).by(w.reader)).want(t, 401, "credential_not_bound"),
		} {
			if !strings.HasPrefix(r.Header.Get("Www-Authenticate"), "Bearer") {
				t.Errorf("no challenge: %v", r.Header)
			}
		}
	},
	"7 403": func(t *testing.T, w witness) {
		w.do(w.p.submitting(client.NewIdempotencyKey(), text("x", fields{"customer_workspace_access": "not_granted"}))).want(t, 403, "workspace_access_required")
		w.context("harbour", w.reader, w.p.submit(text("The pump runs.", fields{"visibility": "internal_only"}))).want(t, 403, "visibility_denied")
		w.do(w.p.withdrawing(w.partnerID, "", "").by(w.reader)).want(t, 403, "access_denied")
		w.do(w.p.withdrawing(w.partnerID, "", "").by(w.issue("island", "solution_company_upload"))).want(t, 403, "access_denied")
	},
	"7 404": func(t *testing.T, w witness) {
		stranger := w.partner("island")
		for _, id := range []string{missing, w.partnerID} { // another organization's looks like none
			for name, c := range routes("island", id) {
				if name != "initiate" && name != "quota" && name != "records" {
					token := stranger.token
					if name == "context" {
						token = w.issue("island", "ai_reader")
					}
					w.do(c.by(token)).want(t, 404, "upload_not_found")
				}
			}
			w.get(w.p.path("/partner-uploads/"+id), stranger.token).want(t, 404, "upload_not_found")
			w.do(stranger.correcting(id, client.NewIdempotencyKey(), text("x", nil))).want(t, 404, "upload_not_found")
			w.do(stranger.reviewing(id, client.NewIdempotencyKey(), fields{"review_id": "r"})).want(t, 404, "upload_not_found")
		}
	},
	"7 409": func(t *testing.T, w witness) {
		key := client.NewIdempotencyKey()
		id := w.do(w.p.reserving(key, 2*partSize)).want(t, 200, "").field(t, "upload_id")
		w.do(w.p.reserving(key, 11)).want(t, 409, "idempotency_conflict")
		w.p.part(id, 2, noise(partSize, 1)).want(t, 409, "part_out_of_order")
		w.p.part(id, 1, noise(partSize, 1)).want(t, 200, "")
		w.p.part(id, 1, noise(partSize, 2)).want(t, 409, "part_conflict")
		both := w.p.put(byPath, id, 2, client.NewIdempotencyKey(), noise(partSize, 2))
		both.path += "?upload_id=" + w.partnerID
		w.do(both).want(t, 409, "upload_identity_conflict")
		w.p.complete(id, cut(noise(2*partSize, 1), partSize)).want(t, 409, "part_ledger_mismatch")
		w.p.part(id, 2, noise(partSize, 2)).want(t, 200, "")
		c := w.p.closing(byQuery, id, client.NewIdempotencyKey(), [][]byte{noise(partSize, 1), noise(partSize, 2)})
		c.json = altered(c.json.(fields), "client_file_sha256", hexSum(nil))
		w.do(c).want(t, 409, "digest_mismatch")
		w.p.wantWithdrawn(id, 2*partSize)
	},
	"7 429": func(t *testing.T, w witness) { limited(t) },
	"7 502": func(t *testing.T, w witness) { w.unconfirmed(t) },
}

var wholeSeconds = regexp.MustCompile(`^[1-9][0-9]*$`)

// limited runs into a rate limit: one credential at its own, with all the headers; nobody else feels it.
func limited(t *testing.T) {
	t.Helper()
	s := start(t, options{env: []string{"ACCESSION_RATE_LIMITS=read=0.01/3"}})
	reader, other := s.issue("harbour", "ai_reader"), s.issue("harbour", "ai_reader")
	at := "/api/v1/organizations/harbour/quota"
	for left := 2; left >= 0; left-- {
		r := s.get(at, reader).want(t, 200, "")
		if r.Header.Get("RateLimit-Remaining") != strconv.Itoa(left) || r.Header.Get("RateLimit-Limit") != "3" || r.Header.Get("Retry-After") != "" {
			t.Errorf("%d left: %v", left, r.Header)
		}
	}
	for _, path := range []string{at, "/api/v1/organizations/island/quota", "/api/v1/organizations/harbour/partner-uploads/" + missing} {
		r := s.get(path, reader).want(t, 429, "rate_limited") // the same for what is there and what is not
		for _, family := range []string{"RateLimit-", "X-RateLimit-"} {
			if r.Header.Get(family+"Limit") != "3" || r.Header.Get(family+"Remaining") != "0" || !wholeSeconds.MatchString(r.Header.Get(family+"Reset")) {
				t.Errorf("%s: %v", family, r.Header)
			}
		}
		if wait, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || wait < 1 || wait > 100 {
			t.Errorf("Retry-After %q", r.Header.Get("Retry-After"))
		}
		if strings.Contains(string(r.Raw), "island") || strings.Contains(string(r.Raw), "harbour") {
			t.Errorf("it tells of an organization: %s", r.Raw)
		}
	}
	s.get(at, other).want(t, 200, "")
	s.do(issuing(client.NewIdempotencyKey(), "harbour", "ai_reader").asAdmin()).want(t, 201, "") // another class
}

func (c call) asAdmin() call { c.bearer = adminToken; return c }

var limitProofs = proofs{
	"8 Idempotency-Key": func(t *testing.T, w witness) {
		long := strings.Repeat("k", 128)
		w.do(w.p.reserving(long, 10)).want(t, 200, "")
		w.do(w.p.reserving(long[:8], 10)).want(t, 200, "")
		mutations := append(w.writing(text("x", nil)), w.p.reviewing(w.textID, "", fields{"review_id": "r"}))
		for name, c := range routes("harbour", w.partnerID) {
			if c.method != "GET" {
				t.Logf("mutation: %s", name)
				mutations = append(mutations, c)
			}
		}
		for _, c := range mutations {
			c.token = w.p.token
			for _, key := range []string{"", long[:7], long + "k", "key with spaces", "kéy-of-letters"} {
				c.key = key
				w.do(c).wantWrong(t, "idempotency_key_invalid", "/header/Idempotency-Key")
			}
		}
		for _, c := range []call{issuing("", "harbour", "ai_reader").asAdmin(), {method: "POST", path: "/api/v1/sandbox/keys"}} { // optional there, but checked
			w.do(c).want(t, 201, "")
			c.key = "short"
			w.do(c).wantWrong(t, "idempotency_key_invalid", "/header/Idempotency-Key")
		}
	},
	"8 sandbox input": func(t *testing.T, w witness) {
		key := w.sandboxKey()
		for n, status := range map[int]int{1000: 200, 1001: 400} {
			input := strings.Repeat("ö", n)
			if r := w.inSandbox("echo", key, fields{"input": input}); r.Status != status {
				t.Errorf("echo of %d: %s", n, r.Raw)
			}
			if r := w.inSandbox("batch", key, fields{"operations": []any{fields{}, fields{"input": input}}}); r.Status != status {
				t.Errorf("batch of %d: %s", n, r.Raw)
			}
		}
		wantShape(t, w.doc.from(t, w.doc.takes(t, "post", "/api/v1/sandbox/echo"), "properties", "input"), shape{"maxLength": only(1000.0)})
		wantShape(t, w.doc.from(t, w.doc.takes(t, "post", "/api/v1/sandbox/batch"), "properties", "operations", "items", "properties", "input"), shape{"maxLength": only(1000.0)})
	},
	"8 sandbox operations": func(t *testing.T, w witness) {
		key := w.sandboxKey()
		for n, status := range map[int]int{0: 400, 1: 200, 8: 200, 9: 400} {
			operations := []any{}
			for range n {
				operations = append(operations, fields{"input": "x"})
			}
			if r := w.inSandbox("batch", key, fields{"operations": operations}); r.Status != status {
				t.Errorf("%d operations: %s", n, r.Raw)
			}
		}
		wantShape(t, w.doc.from(t, w.doc.takes(t, "post", "/api/v1/sandbox/batch"), "properties", "operations"), shape{"minItems": only(1.0), "maxItems": only(8.0)})
	},
	"8 size_bytes": func(t *testing.T, w witness) {
		for _, size := range []any{json.Number("0"), json.Number("-1"), json.Number("8589934593"), json.Number("1.5"), "10"} {
			w.do(w.p.reserving(client.NewIdempotencyKey(), size)).wantWrong(t, "invalid_request", "/size_bytes")
		}
		for _, size := range []int{1, 8589934592} {
			id := w.do(w.p.reserving(client.NewIdempotencyKey(), size)).want(t, 200, "").field(t, "upload_id")
			w.p.wantWithdrawn(id, size)
		}
		p := w.doc.from(t, w.doc.takes(t, "post", orgPath+"/partner-uploads/initiate"), "properties", "size_bytes")
		wantShape(t, p, shape{"minimum": only(1.0), "maximum": only(8589934592.0)})
	},
	"8 parts": func(t *testing.T, w witness) {
		w.completing(t, "/parts", []any{}, nil, absent{})
	},
	"8 part_number and size_bytes": func(t *testing.T, w witness) {
		for _, wrong := range []any{json.Number("0"), json.Number("-1"), json.Number("1.5"), "1"} {
			w.completing(t, "/parts/0/part_number", []any{fields{"part_number": wrong}})
			w.completing(t, "/parts/0/size_bytes", []any{fields{"part_number": 1, "size_bytes": wrong}})
		}
		w.completing(t, "/parts/0/part_number", []any{fields{}})
		w.completing(t, "/parts/0/sha256", []any{fields{"part_number": 1, "sha256": strings.ToUpper(hexSum(nil))}})
	},
	"8 reason": func(t *testing.T, w witness) {
		id := w.p.initiate("note.txt", "text/plain", 10)
		w.do(w.p.withdrawing(id, client.NewIdempotencyKey(), strings.Repeat("ö", 501))).wantWrong(t, "invalid_request", "/reason")
		w.do(w.p.withdrawing(id, client.NewIdempotencyKey(), strings.Repeat("ö", 500))).want(t, 200, "")
	},
	"8 records limit": func(t *testing.T, w witness) {
		for _, limit := range []string{"0", "101", "-1", "ten", "1.5"} {
			w.get(w.p.path("/request-records?limit="+limit), w.reader).wantWrong(t, "invalid_request", "/query/limit")
		}
		for _, limit := range []string{"1", "100"} {
			w.get(w.p.path("/request-records?limit="+limit), w.reader).want(t, 200, "")
		}
	},
	"8 Retry-After": func(t *testing.T, w witness) {
		if after := w.completed.Header.Get("Retry-After"); !wholeSeconds.MatchString(after) {
			t.Errorf("Retry-After %q", after)
		}
	},
	"8 deprecation notice": func(t *testing.T, w witness) { w.nothingRetires(t) },
	"8 rate limiting":      func(t *testing.T, w witness) { limited(t) },
	"8 pagination": func(t *testing.T, w witness) {
		id := w.p.submit(text("The pump runs.", nil))
		for range 3 {
			w.context("harbour", w.reader, id).want(t, 200, "")
		}
		seen, next := map[string]bool{}, ""
		for _, n := range []int{2, 1} {
			data := w.get(w.p.path("/request-records?limit=2&upload_id="+id+"&cursor="+next), w.reader).want(t, 200, "").data(t)
			next = data["next_cursor"].(string)
			if len(data["records"].([]any)) != n || (next == "") != (n == 1) {
				t.Errorf("a page of %d: %v", n, data)
			}
			for _, r := range data["records"].([]any) {
				seen[r.(map[string]any)["record_id"].(string)] = true
			}
		}
		if len(seen) != 3 {
			t.Errorf("%d records on two pages", len(seen))
		}
	},
	"8 quota": func(t *testing.T, _ witness) {
		s := start(t, options{env: []string{"ACCESSION_QUOTA_BYTES=100", "ACCESSION_RATE_LIMITS=off"}})
		p, other := s.partner("harbour"), s.partner("island")
		id := p.initiate("note.txt", "text/plain", 90)
		for _, c := range []call{p.reserving(client.NewIdempotencyKey(), 11), p.submitting(client.NewIdempotencyKey(), text("eleven long", nil))} {
			r := s.do(c).want(t, 409, "quota_exceeded")
			wantShape(t, r.Details, shape{"allowance_bytes": only(100.0), "reserved_bytes": only(90.0), "available_bytes": only(10.0)})
		}
		other.initiate("note.txt", "text/plain", 100)
		p.wantWithdrawn(id, 90)
		p.initiate("note.txt", "text/plain", 100)
	},
	"8 numbers": func(t *testing.T, _ witness) {
		s := start(t, options{})
		p := s.partner("harbour")
		r := s.do(p.reserving(client.NewIdempotencyKey(), 10)).want(t, 200, "")
		wantShape(t, r.data(t), shape{"part_size_bytes": only(float64(16 << 20))})
		if r.Header.Get("RateLimit-Limit") != "200" {
			t.Errorf("limit of a credential: %v", r.Header)
		}
		if q := s.quota("harbour", p.token); q.AllowanceBytes != 100<<30 {
			t.Errorf("quota %+v", q)
		}
	},
}

// completing has both path forms refuse a ledger, and name the place.
func (w witness) completing(t *testing.T, place string, ledgers ...any) {
	t.Helper()
	for _, ledger := range ledgers {
		for _, f := range []form{byQuery, byPath} {
			c := w.p.closing(f, w.partnerID, client.NewIdempotencyKey(), nil)
			c.json = altered(c.json.(fields), "parts", ledger)
			w.do(c).wantWrong(t, "invalid_request", place)
		}
	}
}

// contractOperations are those of the specification, by path.
var contractOperations = map[string][]string{
	"/api/v1/ai/capabilities": {"get"}, "/api/v1/ai/openapi.json": {"get"}, "/api/v1/ai/access-policy": {"get"}, "/portal/config": {"get"},
	"/admin/tenant-keys/policy": {"get"}, "/.well-known/oauth-authorization-server": {"get"}, "/.well-known/oauth-protected-resource": {"get"},
	"/api/v1/sandbox": {"get"}, "/api/v1/sandbox/keys": {"get", "post"}, "/api/v1/sandbox/echo": {"post"}, "/api/v1/sandbox/batch": {"post"},
	"/oauth/token": {"post"}, "/oauth/identity": {"get"}, "/admin/tenant-keys/issue": {"post"},
	orgPath + "/customer-uploads": {"post"}, orgPath + "/customer-uploads/{upload_id}/corrections": {"post"}, orgPath + "/customer-uploads/{upload_id}/external-review": {"post"},
	orgPath + "/partner-uploads/initiate": {"post"}, orgPath + "/partner-uploads/part": {"put"}, orgPath + "/partner-uploads/{upload_id}/parts/{part_number}": {"put"},
	orgPath + "/partner-uploads/complete": {"post"}, orgPath + "/partner-uploads/{upload_id}/complete": {"post"}, orgPath + "/partner-uploads/{upload_id}": {"get"},
	orgPath + "/partner-uploads/{upload_id}/withdraw": {"post"}, orgPath + "/quota": {"get"}, orgPath + "/ai-context/{upload_id}": {"get"}, orgPath + "/request-records": {"get"},
}

var versionProofs = proofs{
	"9 rule 1": func(t *testing.T, w witness) {
		for path := range w.doc.at(t, "paths") {
			versioned := strings.HasPrefix(path, "/api/")
			if versioned && !strings.HasPrefix(path, "/api/v1/") || strings.Contains(path, "{org_id}") && !versioned && !strings.HasPrefix(path, "/admin/") { // what the administrator does is no part of section 4
				t.Errorf("%s is not versioned", path)
			}
		}
	},
	"9 rule 2": func(t *testing.T, w witness) {
		for path, methods := range contractOperations {
			for _, method := range methods {
				w.doc.at(t, "paths", path, method, "responses")
			}
		}
	},
	"9 rule 3": func(t *testing.T, w witness) { w.nothingRetires(t) },
	"9 rule 4": func(t *testing.T, w witness) {
		w.get("/api/v2/ai/capabilities", "").want(t, 404, "route_not_found")
		w.nothingRetires(t)
	},
	"9 rule 5": func(t *testing.T, w witness) {
		for path := range w.doc.at(t, "paths") {
			if (strings.Contains(path, "batch") || strings.Contains(path, "bulk")) && path != "/api/v1/sandbox/batch" {
				t.Errorf("%s is a bulk operation", path)
			}
		}
		many := w.p.submitting(client.NewIdempotencyKey(), nil)
		many.json = []any{text("one", nil), text("two", nil)}
		if r := w.do(many); r.Status != 400 {
			t.Errorf("%d %s", r.Status, r.Raw)
		}
	},
	"9 rule 6": func(t *testing.T, w witness) {
		if w.doc["openapi"] != "3.1.0" || w.doc.at(t, "info")["version"] != "v1-phase28" {
			t.Errorf("%v %v", w.doc["openapi"], w.doc["info"])
		}
		// What is said of no operation in particular is in the document, too, as the served one has it.
		conventions, _ := w.doc.at(t, "info")["description"].(string)
		quota := decode[client.Quota](t, w.get(w.p.path("/quota"), w.p.token))
		if quota.AllowanceBytes != 100<<30 {
			t.Errorf("the default allowance is %d", quota.AllowanceBytes)
		}
		for _, said := range append(append([]string{
			"JSON body has at most 2 MiB", "headers 32 KiB", "may keep 100 GiB", "16 MiB by default", "8 to 128 visible ASCII", "24 hours", "no engine answer is never a pass",
			"`corrections` (newest last)", "loopback, private or link-local", "`verification_claim_forbidden`", "at most 4,096 tokens", "180 days", "10 minutes",
		}, gateNames...), "`READY REJECTED FAILED EXPIRED WITHDRAWN` are terminal") {
			if !strings.Contains(conventions, said) {
				t.Errorf("the document does not say %q", said)
			}
		}
	},
}

// nothingRetires: whatever the document calls deprecated must say since when and until when on its answers, 90 days apart.
// Nothing is deprecated today, so nothing may say so; that a start refuses shorter notice is shown where it can be defined.
func (w witness) nothingRetires(t *testing.T) {
	t.Helper()
	var marked int
	var look func(any)
	look = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if v["deprecated"] == true {
				marked++
			}
			for _, inner := range v {
				look(inner)
			}
		case []any:
			for _, inner := range v {
				look(inner)
			}
		}
	}
	look(map[string]any(w.doc))
	announced := 0
	for _, r := range w.successes() {
		since, sunset := r.Header.Get("Deprecation"), r.Header.Get("Sunset")
		if since == "" && sunset == "" {
			continue
		}
		announced++
		from, err := strconv.ParseInt(strings.TrimPrefix(since, "@"), 10, 64)
		until, untilErr := time.Parse(time.RFC1123, sunset)
		if err != nil || untilErr != nil || until.Sub(time.Unix(from, 0)) < 90*24*time.Hour {
			t.Errorf("Deprecation %q, Sunset %q", since, sunset)
		}
	}
	if marked != 0 || announced != 0 {
		t.Errorf("%d are deprecated in the document and %d answers say so: give this row a proof of its own", marked, announced)
	}
}
