package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/accession/accession/client"
)

// grounds is what the fuzzed service holds, so that some requests find something.
type grounds struct {
	*service
	document    servedDocument
	content     []byte                    // of every partner upload, in one part
	credentials map[string]map[string]any // by who holds them: headers
	uploads     map[string][]any          // upload ids, by what they are kept for
	known       map[string][]any
	secrets     []string
	cookie      string // of a session
}

func newGrounds(t *testing.T) *grounds {
	// Webhooks lead to the service itself, which refuses what is posted there.
	s := start(t, options{flags: []string{"--rate-limits", "off", "--webhook-private-addresses", "allow", "--webhook-retry-delays", "1h"}})
	g := &grounds{service: s, document: s.document(), content: note("fuzzed-fog"), credentials: map[string]map[string]any{}, uploads: map[string][]any{}}
	hold := func(name, token string, oauth bool) {
		g.secrets = append(g.secrets, token)
		g.credentials[name+" as Bearer"] = map[string]any{"Authorization": "Bearer " + token}
		if !oauth {
			g.credentials[name] = map[string]any{"X-Api-Key": token}
		}
	}
	var harbour partner
	for _, org := range []string{"harbour", "island"} {
		uploader, reader := s.oauthClient(org, "solution_company_upload"), s.oauthClient(org, "ai_reader")
		hold(org+" uploader", uploader.secret, false)
		hold(org+" reader", reader.secret, false)
		hold(org+" OAuth uploader", s.accessToken(uploader), true)
		hold(org+" OAuth reader", s.accessToken(reader), true)
		p := partner{s, org, uploader.secret}
		if org == "harbour" {
			harbour = p
		}
		for range 3 {
			g.uploads[""] = append(g.uploads[""], p.submit(text("The fog horn was painted in "+org+".", nil)))
			g.uploads["withdraw"] = append(g.uploads["withdraw"], p.submit(text("The fog horn was sold.", nil)))
		}
	}
	for range 8 {
		g.uploads["partner"] = append(g.uploads["partner"], harbour.initiate("fog.txt", "text/plain", len(g.content)))
	}
	for range 4 { // to be completed
		id := harbour.initiate("fog.txt", "text/plain", len(g.content))
		harbour.part(id, 1, g.content).want(t, 200, "")
		g.uploads["received"] = append(g.uploads["received"], id)
	}
	db := s.database(t, "metadata.db")
	for range 6 { // to be resumed; an engine that fails would fail the others too
		id := harbour.submit(text(string(g.content), nil))
		mustExec(t, db, `UPDATE gates SET state = 'failed' WHERE name = 'ai_context' AND upload_id = '`+id+`'`)
		mustExec(t, db, `UPDATE uploads SET status = 'FAILED', failure_gate = 'ai_context', failure_code = 'gate_attempt_timeout', failure_message = 'no answer' WHERE upload_id = '`+id+`'`)
		g.uploads["failed"] = append(g.uploads["failed"], id)
	}
	gone := harbour.submit(text("The fog bell was sold.", nil))
	receipt := harbour.withdraw(gone).want(t, 200, "").field(t, "withdrawal_receipt_id")
	sandbox := s.do(call{method: "POST", path: "/api/v1/sandbox/keys"}).want(t, 201, "").field(t, "token")
	hold("sandbox", sandbox, false)
	hold("admin", adminToken, true)
	holder := s.oauthClient("harbour", "ai_reader")
	served := decode[servedContext](t, s.context("harbour", holder.secret, g.uploads[""][0].(string)).want(t, 200, ""))
	g.credentials["OAuth client"] = map[string]any{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(holder.id+":"+holder.secret))}
	g.known = map[string][]any{
		"org_id": {"harbour", "harbour", "harbour", "harbour", "harbour", "harbour", "island"}, "asserted_subject_org_id": {"harbour"}, "uploader_organization_id": {"harbour"},
		"customer_workspace_access": {"granted", "granted", "not_granted"}, "accepted_at": {"2026-11-01T10:00:00Z"}, "content_type": {"text/plain"},
		"filename": {"fog.txt"}, "payload": {string(g.content), "The fog came early."}, "size_bytes": {int64(len(g.content)), int64(20)}, "part_number": {int64(1)},
		"client_file_sha256": {hexSum(g.content)}, "sha256": {hexSum(g.content)}, "parts": {[]any{jsonObject{{"part_number", int64(1)}}}},
		"scope": {"metadata_read", "ai_context metadata_read", "customer_upload"}, "expires_at": {"2036-01-01T00:00:00Z"},
		"client_id": {holder.id}, "client_secret": {holder.secret}, "resource": {s.url}, "token": {s.accessToken(holder), s.accessToken(holder)},
		"credential_id": {}, "key_id": {missing}, "canary": {served.Context.Canary}, "withdrawal_receipt_id": {receipt},
		"url": {s.url + "/hook"}, "event_id": {"evt_" + missing[4:]}, "overlap_seconds": {int64(60)},
		"allowance_bytes": {int64(1 << 40), jsonRaw("null")}, "action": {"reserved", "credential_issued"}, "since": {"2026-01-01T00:00:00Z"}, "until": {"2036-01-01T00:00:00Z"},
		"credential": {holder.secret}, "cursor": {}, "If-None-Match": {`W/"1.0"`}, "Prefer": {"wait=0"}, "Content-Digest": {"sha-512=:AAAA:"},
	}
	g.secrets = append(g.secrets, holder.secret)
	signedIn := s.do(call{method: "POST", path: "/portal/session", json: map[string]any{"credential": holder.secret}}).want(t, 200, "")
	g.cookie, _, _ = strings.Cut(signedIn.Header.Get("Set-Cookie"), ";")
	g.secrets = append(g.secrets, g.cookie)
	for range 6 { // to be rotated and revoked
		r := s.do(issuing(client.NewIdempotencyKey(), "island", "ai_reader")).want(t, 201, "")
		g.known["credential_id"] = append(g.known["credential_id"], r.field(t, "credential_id"))
	}
	s.do(call{method: "PUT", path: webhookOf("harbour"), bearer: adminToken, key: client.NewIdempotencyKey(), json: map[string]any{"url": s.url + "/hook"}}).want(t, 200, "")
	for range 2 { // to be retired
		r := s.do(call{method: "POST", path: "/admin/tenant-keys/signing-keys/rotate", bearer: adminToken, key: client.NewIdempotencyKey(),
			json: map[string]any{"purpose": "oauth"}}).want(t, 201, "")
		g.known["key_id"] = append(g.known["key_id"], r.field(t, "key_id"))
	}
	return g
}

// candidates are the credentials that op may accept.
func (g *grounds) candidates(op operation) []string {
	switch {
	case op.tagged("sandbox") && op.takes("apiKey"):
		return []string{"sandbox", "sandbox as Bearer"}
	case op.takes("adminToken") && !op.takes("apiKey"):
		return []string{"admin as Bearer"}
	case op.takes("clientBasic"):
		return []string{"OAuth client"}
	case op.takes("apiKey") && op.Method != "GET":
		return []string{"harbour uploader", "harbour uploader as Bearer", "harbour OAuth uploader as Bearer", "harbour reader"}
	case op.takes("apiKey"):
		return []string{"harbour uploader", "harbour reader", "harbour uploader as Bearer", "harbour reader as Bearer", "harbour OAuth uploader as Bearer", "harbour OAuth reader as Bearer"}
	case op.takes("oauth2"):
		return []string{"harbour OAuth uploader as Bearer", "harbour OAuth reader as Bearer"}
	}
	return nil
}

// fuzzed is one request, and what was done to it.
type fuzzed struct {
	op          operation
	method      string
	parameters  map[string]string // of the path
	path, query string            // escaped
	header      http.Header
	body        []byte
	credential  string // who asks
	strayed     bool   // the address or the method may no longer be the operation's
	mark        string
	alterations []string
}

// request makes one for op: valid as far as the document says, unless chance has it otherwise.
func (g *grounds) request(f *fuzzer, op operation, key string) fuzzed {
	r := fuzzed{op: op, method: op.Method, parameters: map[string]string{}, path: op.Path, header: http.Header{}, mark: f.mark}
	altered := func(what string) { r.alterations = append(r.alterations, what) }
	f.known = g.knownTo(op)

	var query []string
	for _, p := range op.Operation.Parameters {
		name, schema := p.Value.Name, p.Value.Schema.Value
		if !p.Value.Required && f.chance(50) {
			continue
		}
		value := fmt.Sprint(f.value(name, schema))
		switch p.Value.In {
		case "path":
			if f.chance(5) {
				value, r.strayed = f.segment(), true
				altered("path")
			}
			r.parameters[name] = value
			r.path = strings.Replace(r.path, "{"+name+"}", url.PathEscape(value), 1)
		case "query":
			query = append(query, name+"="+url.QueryEscape(value))
		case "header":
			if name == "Idempotency-Key" {
				value = key
			}
			r.header.Set(name, value)
		}
	}
	r.query = strings.Join(query, "&")
	if f.chance(6) || len(query) > 0 && f.chance(20) {
		r.query = f.query(r.query)
		altered("query")
	}

	g.authenticate(f, &r)
	g.fill(f, &r, altered)
	if f.chance(15) {
		name, value := f.heading()
		altered("header " + name)
		if r.header.Set(name, value); f.chance(10) {
			r.header.Add(name, value)
		}
	}
	if f.chance(3) {
		r.header.Del("Idempotency-Key")
		altered("no key")
	}
	if f.chance(2) {
		r.method, r.strayed = pick(f, []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY", "get"}), true
		altered("method")
		if other := op.PathItem.Operations()[r.method]; other != nil {
			r.op.Route.Operation, r.op.Method, r.op.id = other, r.method, other.OperationID
		}
	}
	return r
}

func (g *grounds) knownTo(op operation) map[string][]any {
	uploads := append([]any{missing}, g.uploads[""]...)
	switch {
	case strings.HasSuffix(op.Path, "/withdraw"):
		uploads = append([]any{missing}, g.uploads["withdraw"]...)
	case strings.HasSuffix(op.Path, "/resume"):
		uploads = append([]any{missing}, g.uploads["failed"]...)
	case strings.HasSuffix(op.Path, "/complete"):
		uploads = append([]any{missing}, g.uploads["received"]...)
	case strings.Contains(op.Path, "/partner-uploads/"):
		uploads = append(append(uploads, g.uploads["partner"]...), g.uploads["partner"]...)
	}
	known := map[string][]any{"upload_id": uploads}
	for name, values := range g.known {
		known[name] = values
	}
	if op.id == "setQuota" { // without room the others would find nothing to do
		known["org_id"] = []any{"island"}
	}
	return known
}

// authenticate gives r a credential: one that may be right more often than not, else anybody's, a wrong one, or two.
func (g *grounds) authenticate(f *fuzzer, r *fuzzed) {
	names := g.candidates(r.op)
	switch n := f.IntN(100); {
	case n < 65:
		if r.op.id == "getPortalSession" {
			r.header.Set("Cookie", g.cookie)
			r.credential = "a session"
		}
		if len(names) == 0 {
			return
		}
	case n < 80:
		names = sorted(g.credentials)
	case n < 85:
		r.credential = "nobody"
		return
	case n < 95:
		r.credential = "a wrong one"
		name, value := "X-Api-Key", pick(f, []string{f.mark, "", "acc_" + f.mark, strings.Repeat("a", 10_000), "\xff" + f.mark, "a b", g.secrets[0][:len(g.secrets[0])-2] + "AA"})
		if f.chance(50) {
			name, value = "Authorization", pick(f, []string{f.mark, "Bearer", "Bearer  ", "Bearer " + value, "Basic " + f.mark, "Basic " + base64.StdEncoding.EncodeToString([]byte(f.mark+":"+f.mark)), "Digest " + f.mark, "Bearer a.b.c", "Bearer " + g.secrets[2] + "x"})
		}
		r.header.Set(name, value)
		return
	default: // two
		r.header.Set("Authorization", pick(f, []string{"Bearer " + f.mark, "Bearer " + g.secrets[0]}))
		r.credential, names = "two, one of them ", sorted(g.credentials)
	}
	name := pick(f, names)
	r.credential += name
	for header, value := range g.credentials[name] {
		r.header.Add(header, value.(string))
	}
}

// fill gives r its body.
func (g *grounds) fill(f *fuzzer, r *fuzzed, altered func(string)) {
	mediaType, schema := r.op.body()
	if mediaType == "" {
		if f.chance(3) { // a body that nobody asked for
			altered("body")
			r.body = []byte(`{"` + f.mark + `":1}`)
			r.header.Set("Content-Type", "application/json")
		}
		return
	}
	r.header.Set("Content-Type", mediaType)
	switch mediaType {
	case "application/octet-stream":
		if r.body = g.content; f.chance(40) {
			altered("body")
			r.body = f.damaged([]byte(f.mark + string(g.content)))
		}
		return
	case "application/x-www-form-urlencoded":
		o := f.value("", schema).(jsonObject)
		for i := range o {
			if f.chance(8) {
				altered("body")
				o[i].value = pick(f, []string{"", f.mark, strings.Repeat("f", 20_000), "\xff", "\x00", "client_credentials", "password", "authorization_code"})
			}
		}
		var pairs []string
		for _, m := range o {
			pairs = append(pairs, url.QueryEscape(m.name)+"="+url.QueryEscape(fmt.Sprint(m.value)))
		}
		r.body = []byte(strings.Join(pairs, "&"))
		if f.chance(8) {
			altered("body")
			r.body = []byte(pick(f, []string{string(r.body) + "&" + string(r.body), "%zz=1", "a;b", f.mark, "grant_type=" + f.mark, string(r.body) + "&%ff=%fe", ""}))
		}
		return
	}
	if !r.op.Operation.RequestBody.Value.Required && f.chance(20) {
		r.header.Del("Content-Type")
		return
	}
	tree := f.value("", schema)
	if f.chance(45) {
		altered("body")
		for range 1 + f.IntN(2) {
			tree = f.mutated(tree)
		}
	}
	r.body = encode(tree)
	if f.chance(8) {
		altered("bytes")
		r.body = f.damaged(r.body)
	}
}

// http is r as a request to base; a nil error is promised for all but what HTTP itself has no room for.
func (r fuzzed) http(ctx context.Context, base string) (*http.Request, error) {
	target := r.path
	if r.query != "" {
		target += "?" + r.query
	}
	req, err := http.NewRequestWithContext(ctx, r.method, base, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.URL.Opaque = "//" + req.Host + target
	req.Header = r.header.Clone()
	if len(r.body) > 200_000 { // what is refused unread is not sent
		req.Header.Set("Expect", "100-continue")
	}
	return req, nil
}

// input is r as the document's validator takes it.
func (r fuzzed) input(ctx context.Context) (*openapi3filter.RequestValidationInput, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, "http://service.example/?"+r.query, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	req.Header = r.header.Clone()
	return &openapi3filter.RequestValidationInput{
		Request: req, PathParams: r.parameters, Route: &r.op.Route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, SkipSettingDefaults: true},
	}, nil
}

func (r fuzzed) String() string {
	short := func(b []byte) string {
		if len(b) > 600 {
			return fmt.Sprintf("%q… (%d bytes)", b[:600], len(b))
		}
		return fmt.Sprintf("%q", b)
	}
	text := fmt.Sprintf("%s %s as %q, altered: %v\n  %s?%s", r.method, r.op.id, r.credential, r.alterations, short([]byte(r.path)), short([]byte(r.query)))
	for _, name := range sorted(r.header) {
		if name != "Authorization" && name != "X-Api-Key" {
			text += fmt.Sprintf("\n  %s: %s", name, short([]byte(strings.Join(r.header[name], " | "))))
		}
	}
	return text + "\n  " + short(r.body)
}
