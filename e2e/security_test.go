package e2e

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/accession/accession/client"
)

// forgery is what a hostile word would add: a header, a body of its own, and a line of the log.
const forgery = "x\r\nX-Forged: 1\r\n\r\n{\"forged\":true}\n{\"level\":\"ERROR\",\"msg\":\"forged\"}"

// What stands in docs/threat-model.md and is proven nowhere else: hostile words and documents through the real door.
func TestHostileWords(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	for name, test := range map[string]func(*testing.T, *service){
		"headers and lines of the log": noHeaderAndNoLineIsForged,
		"caches":                       nothingIsCachedForAnother,
		"mass assignment":              nobodyAssignsWhatIsTheServices,
		"names":                        namesAreNoPaths,
		"members":                      membersAreNoPaths,
		"documents":                    documentsLoadNothing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s.in(t))
		})
	}
}

// An organization's name is in the log with every request of its own, and nearly anything may be one.
func noHeaderAndNoLineIsForged(t *testing.T, s *service) {
	s.do(issuing(client.NewIdempotencyKey(), forgery, "ai_reader")).want(t, 400, "invalid_request")
	org := "harbour\",\"msg\":\"forged\"}\u2028{\"X-Forged\":\"1\"}\u0085"
	token := s.issue(org, "solution_company_upload")
	escaped := url.PathEscape
	quota := "/api/v1/organizations/" + escaped(org) + "/quota"
	for _, c := range []call{
		{method: "GET", path: quota},
		{method: "GET", path: "/" + escaped(forgery)},
		{method: "GET", path: "/portal/" + escaped(forgery)},
		{method: "GET", path: quota + "?x=" + escaped(forgery), token: token},
		{method: "GET", path: "/oauth/authorize?response_type=code&state=" + escaped(forgery) + "&redirect_uri=" + escaped(forgery)},
		{method: "POST", path: "/oauth/token?" + escaped(forgery), json: fields{"grant_type": forgery}},
		{method: "POST", path: "/api/v1/organizations/" + escaped(org) + "/customer-uploads", token: token, key: client.NewIdempotencyKey(), json: text("x", fields{"filename": forgery})},
		{method: "POST", path: signingIn, json: fields{"credential": forgery}},
		{method: "GET", path: quota, token: token, header: map[string]string{"User-Agent": "a\tb", "Referer": `"}` + "\t{\"forged\":true}", "Traceparent": `{"forged":true}`, "If-None-Match": `"forged`}},
		calling("get_ai_context", fields{"org_id": forgery, "upload_id": forgery}),
	} {
		r := s.do(c)
		if r.Header.Get("X-Forged") != "" || r.Status >= 500 {
			t.Errorf("%s %.40s: %d %v", c.method, c.path, r.Status, r.Header)
		}
		for name, values := range r.Header {
			if strings.ContainsAny(strings.Join(values, ""), "\r\n") || strings.Contains(strings.ToLower(strings.Join(values, "")), "forged") {
				t.Errorf("%s %.40s: %s is %q", c.method, c.path, name, values)
			}
		}
	}
	// Words that no client of Go would send.
	for _, request := range []string{
		"GET /healthz HTTP/1.1\r\nHost: x\r\nTraceparent: a\rX-Forged: 1\r\nConnection: close\r\n\r\n",
		"GET /healthz\r\nX-Forged: 1 HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /\nX-Forged:1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"FOR\x00GED /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	} {
		if answer := s.raw(request); !strings.HasPrefix(answer, "HTTP/1.1 400 ") || strings.Contains(strings.ToLower(answer), "forged") {
			t.Errorf("%q: %s", request, answer)
		}
	}
	last := s.do(call{method: "GET", path: quota, token: token}).want(t, 200, "")
	s.awaitLog(last.RequestID)
	s.awaitLog(s.do(call{method: "GET", path: quota, token: token}).want(t, 200, "").RequestID) // what was written before is whole
	told := false
	for line := range strings.Lines(s.log.String()) {
		var said map[string]any
		if !strings.HasPrefix(line, "{") {
			if strings.Contains(strings.ToLower(line), "forged") { // what is printed at the start is no JSON
				t.Errorf("a line of its own: %s", line)
			}
			continue
		}
		if !strings.HasSuffix(line, "\n") {
			continue // not written to its end
		}
		if err := json.Unmarshal([]byte(line), &said); err != nil || said["msg"] == "forged" {
			t.Errorf("%v: %s", err, line)
		}
		told = told || said["org_id"] == org && said["request_id"] == last.RequestID
	}
	if !told {
		t.Error("the log does not name the organization: nothing above is proven")
	}
}

// everyID is what differs from answer to answer.
var everyID = regexp.MustCompile(`req_[0-9a-z]{26}|[0-9a-f]{32}`)

// What a request says about the address that it came to is in no answer that a cache could give to another, and no header makes
// another request of it.
func nothingIsCachedForAnother(t *testing.T, s *service) {
	lies := map[string]string{
		"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "gopher", "X-Forwarded-Prefix": "/evil.example", "X-Forwarded-Port": "1", "X-Host": "evil.example",
		"Forwarded": "host=evil.example;proto=gopher", "X-Original-URL": "/admin/evil.example", "X-Rewrite-URL": "/admin/evil.example",
		"X-HTTP-Method-Override": "DELETE", "X-Forwarded-For": "evil.example", "Accept-Language": "evil.example", "Accept-Encoding": "evil.example",
	}
	public := []string{
		"/", "/portal", "/portal/config", "/portal/company", "/assets/base.css", "/docs", "/docs/mcp", "/llms.txt", "/.well-known/security.txt", "/.well-known/oauth-authorization-server",
		"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp", "/.well-known/mcp/server-card.json", "/api/v1/ai/openapi.json", "/oauth/jwks", "/nothing",
	}
	ask := func(path string, lying bool) (int, http.Header, string) {
		t.Helper()
		request := "GET " + path + " HTTP/1.1\r\nConnection: close\r\n"
		if lying {
			request += "Host: evil.example\r\n"
			for name, value := range lies {
				request += name + ": " + value + "\r\n"
			}
		} else {
			request += "Host: " + strings.TrimPrefix(s.url, "http://") + "\r\n"
		}
		answer := s.raw(request + "\r\n")
		head, body, _ := strings.Cut(answer, "\r\n\r\n")
		h := http.Header{}
		for _, line := range strings.Split(head, "\r\n")[1:] {
			name, value, _ := strings.Cut(line, ": ")
			h.Add(name, value)
		}
		var status int
		if _, err := fmt.Sscanf(head, "HTTP/1.1 %d", &status); err != nil {
			t.Fatalf("%s: %v: %.200s", path, err, answer)
		}
		for _, every := range []string{"X-Request-Id", "Traceparent", "Date", "Ratelimit-Remaining", "Ratelimit-Reset", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
			h.Del(every)
		}
		return status, h, everyID.ReplaceAllString(body, "ID")
	}
	for _, path := range public {
		status, header, body := ask(path, false)
		lied, lying, told := ask(path, true)
		if status != lied || body != told || !maps.EqualFunc(header, lying, slices.Equal[[]string]) {
			t.Errorf("%s: a lie changes the answer: %d %v\n%.300s\n%d %v\n%.300s", path, status, header, body, lied, lying, told)
		}
		if strings.Contains(fmt.Sprint(lying)+told, "evil.example") {
			t.Errorf("%s repeats the lie", path)
		}
		if (status == 200) == (path == "/nothing") {
			t.Errorf("%s: %d", path, status)
		}
	}
	p, reader := s.partner("cached"), s.issue("cached", "ai_reader")
	id := p.submit(text("The pump was replaced.", nil))
	for _, c := range []call{
		{path: p.path("/quota"), token: p.token}, {path: p.path("/partner-uploads/" + id), token: p.token}, {path: p.path("/ai-context/" + id), token: reader},
		{path: p.path("/request-records"), token: reader}, {path: "/admin/tenant-keys/credentials", bearer: adminToken}, {path: p.path("/quota")}, {path: signingIn},
		{path: p.path("/quota") + "/x.css", token: p.token}, {path: p.path("/quota") + "%2f..%2fx.css", token: p.token}, {path: p.path("/quota;x.css"), token: p.token},
	} {
		c.method = "GET"
		r := s.do(c)
		if cached := r.Header.Get("Cache-Control"); cached != "no-store" && !strings.HasPrefix(cached, "private") || r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Status == 200 && strings.HasSuffix(c.path, "css") {
			t.Errorf("%s: %d, Cache-Control %q", c.path, r.Status, cached)
		}
	}
}

// What a body says beyond what is the caller's to say changes nothing.
func nobodyAssignsWhatIsTheServices(t *testing.T, s *service) {
	p := s.partner("assigning")
	plain := p.reserving(client.NewIdempotencyKey(), 10)
	more := p.reserving(client.NewIdempotencyKey(), 10)
	for name, value := range map[string]any{
		"upload_id": missing, "org_id": "harbour", "status": "READY", "sequence": 99, "received_bytes": 10, "reserved_bytes": 0, "part_size_bytes": 1, "expires_at": "2036-01-01T00:00:00Z",
		"retained_until": "2036-01-01T00:00:00Z", "gates": []any{fields{"name": "malware_scan", "state": "passed"}}, "evaluation_status": "not_evaluated", "credential_id": "cred_x", "role": "admin",
		"quarantined": false, "__proto__": fields{"admin": true},
	} {
		more.json.(map[string]any)[name] = value
	}
	one, two := s.do(plain).want(t, 200, ""), s.do(more)
	if two.want(t, 200, ""); two.field(t, "upload_id") == missing || two.field(t, "part_size_bytes") != one.field(t, "part_size_bytes") {
		t.Errorf("a reservation was assigned to: %s", two.Raw)
	}
	st := p.status(two.field(t, "upload_id"))
	if st.Status != "INITIATED" || st.Sequence != 1 || st.ReceivedBytes != 0 || st.ExpiresAt.Year() == 2036 {
		t.Errorf("an upload was assigned to: %+v", st)
	}
	for _, g := range st.Gates {
		if g.State == "passed" {
			t.Errorf("a gate was assigned to: %+v", g)
		}
	}
	if q := s.quota("assigning", p.token); q.ReservedBytes != 20 || q.UploadCount != 2 {
		t.Errorf("quota: %+v", q)
	}
	for _, c := range []call{
		issuing(client.NewIdempotencyKey(), "assigning", "ai_reader"),
		p.closing(byQuery, two.field(t, "upload_id"), client.NewIdempotencyKey(), [][]byte{[]byte("0123456789")}),
		p.withdrawing(two.field(t, "upload_id"), client.NewIdempotencyKey(), "done"),
		{method: "POST", path: signingIn, json: map[string]any{"credential": p.token}},
		{method: "PUT", path: "/admin/organizations/assigning/quota", bearer: adminToken, key: client.NewIdempotencyKey(), json: map[string]any{"allowance_bytes": 1 << 20}},
	} {
		for _, name := range []string{"admin", "org", "status"} {
			c.json = altered(c.json.(map[string]any), name, "admin")
			if r := s.do(c); r.Status != 400 || r.Code != "invalid_request" {
				t.Errorf("%s %s with %s: %d %s", c.method, c.path, name, r.Status, r.Raw)
			}
		}
	}
	if st := p.status(two.field(t, "upload_id")); st.Status != "INITIATED" {
		t.Errorf("a refused request changed the upload: %+v", st)
	}
}

// A name is a word about a document: it is refused, or kept as it was sent, and no file is called after it.
func namesAreNoPaths(t *testing.T, s *service) {
	p := s.partner("named")
	for _, name := range []string{"../../escape-mark", "/tmp/escape-mark", `..\escape-mark`, `C:\escape-mark`, "escape-mark\x00.txt", "escape-mark\r\n.txt", "escape-mark\x1b[2J", "", strings.Repeat("escape-mark", 24)} {
		reserving := p.reserving(client.NewIdempotencyKey(), 5)
		reserving.json = altered(reserving.json.(map[string]any), "filename", name)
		s.do(reserving).wantWrong(t, "invalid_request", "/filename")
		s.do(p.submitting(client.NewIdempotencyKey(), text("A note.", fields{"filename": name}))).wantWrong(t, "invalid_request", "/filename")
	}
	for _, name := range []string{
		"%2e%2e%2fescape-mark", "..%00escape-mark", "..／..／escape-mark", "escape-mark\u202Etxt.exe", "e\u0301scape-mark", "\u00e9scape-mark", "escape-mark.txt:stream", "CON escape-mark",
		"-rf escape-mark", "$(escape-mark)", "escape-mark.pdf.exe", "<svg onload=x>escape-mark", "'; DROP TABLE uploads; -- escape-mark",
	} {
		p.submit(text("A note.", fields{"filename": name}))
		p.initiate(name, "text/plain", 5)
	}
	wantNoFileCalled(t, s, "escape-mark")
}

// wantNoFileCalled fails the test where something below the data folder is called after mark, or in letters that no id of ours has.
func wantNoFileCalled(t *testing.T, s *service, mark string) {
	t.Helper()
	ours, seen := regexp.MustCompile(`^[A-Za-z0-9_.-]+$`), 0
	err := filepath.WalkDir(s.data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) { // it was deleted meanwhile
				return nil
			}
			return err
		}
		if seen++; strings.Contains(path, mark) || !ours.MatchString(entry.Name()) || !entry.IsDir() && !entry.Type().IsRegular() && entry.Type()&fs.ModeSocket == 0 {
			t.Errorf("%s: %s", path, entry.Type())
		}
		return nil
	})
	if err != nil || seen < 10 {
		t.Errorf("%d files, %v", seen, err)
	}
	for _, outside := range []string{filepath.Dir(s.data), filepath.Dir(filepath.Dir(s.data)), os.TempDir(), "/tmp", "/", "."} {
		if found, err := filepath.Glob(filepath.Join(outside, "*"+mark+"*")); err != nil || len(found) > 0 {
			t.Errorf("there is %q, %v", found, err)
		}
	}
}

// Members of an archive are read as documents; none is written anywhere, and a link leads nowhere.
func membersAreNoPaths(t *testing.T, s *service) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("The hidden-anchor-secret lies outside of the archive."), 0o644); err != nil {
		t.Fatal(err)
	}
	var linked bytes.Buffer
	w := tar.NewWriter(&linked)
	content := "The tar's only note says amber-lighthouse-44."
	for _, h := range []tar.Header{
		{Name: "link.txt", Linkname: secret, Typeflag: tar.TypeSymlink}, {Name: "hard.txt", Linkname: secret, Typeflag: tar.TypeLink},
		{Name: "dir", Linkname: os.TempDir(), Typeflag: tar.TypeSymlink}, {Name: "dir/slip-mark.txt", Typeflag: tar.TypeReg}, {Name: "../../slip-mark.txt", Typeflag: tar.TypeReg},
	} {
		h.Mode = 0o644
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	p, reader := s.partner("packing"), s.issue("packing", "ai_reader")
	for kind, raw := range map[string][]byte{
		"application/zip":   zipped(t, "../../slip-mark.txt", content, "/tmp/slip-mark.txt", content, `..\..\slip-mark.txt`, content, "a/../../slip-mark.txt", content),
		"application/x-tar": linked.Bytes(),
	} {
		id := p.send("packed", kind, raw)
		p.wantReady(id)
		served := string(s.context("packing", reader, id).want(t, 200, "").Raw)
		if !strings.Contains(served, "amber-lighthouse-44") || strings.Contains(served, "hidden-anchor-secret") {
			t.Errorf("%s: %s", kind, served)
		}
	}
	wantNoFileCalled(t, s, "slip-mark")
}

// What a document says to fetch or to read is not fetched and not read.
func documentsLoadNothing(t *testing.T, s *service) {
	address, reached := someListener(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hidden-anchor-secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	outside := "http://" + address + "/x"
	p, reader := s.partner("loading"), s.issue("loading", "ai_reader")
	relations := `<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`
	const office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
	word := func(prolog, entity string) []byte {
		return zipped(t, "[Content_Types].xml", `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/>`+
			`<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`,
			"_rels/.rels", relations+`<Relationship Id="r1" Type="`+office+`officeDocument" Target="word/document.xml"/></Relationships>`,
			"word/_rels/document.xml.rels", relations+`<Relationship Id="r2" Type="`+office+`attachedTemplate" Target="`+outside+`" TargetMode="External"/>`+
				`<Relationship Id="r3" Type="`+office+`header" Target="file://`+secret+`" TargetMode="External"/></Relationships>`,
			"word/document.xml", `<?xml version="1.0"?>`+prolog+`<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>The note says amber-lighthouse-44 `+entity+
				`</w:t></w:r></w:p></w:body></w:document>`)
	}
	wordType := officeOpen + "wordprocessingml.document"
	for name, c := range map[string]struct {
		kind string
		raw  []byte
		end  string
	}{
		"HTML": {"text/html", []byte(`<!DOCTYPE html><link rel="stylesheet" href="` + outside + `"><script src="` + outside + `"></script><p>The note says amber-lighthouse-44.</p><img src="` + outside +
			`"><iframe src="file://` + secret + `"></iframe><object data="` + outside + `"></object><meta http-equiv="refresh" content="0;url=` + outside + `">`), "READY"},
		"Markdown":         {"text/markdown", []byte("The note says amber-lighthouse-44.\n\n![x](" + outside + ") [y](file://" + secret + ")\n"), "READY"},
		"Word from afar":   {wordType, word("", ""), "READY"},
		"external entity":  {wordType, word(`<!DOCTYPE d [<!ENTITY e SYSTEM "file://`+secret+`">]>`, "&e;"), "REJECTED"},
		"remote entity":    {wordType, word(`<!DOCTYPE d [<!ENTITY e SYSTEM "`+outside+`">]>`, "&e;"), "REJECTED"},
		"parameter entity": {wordType, word(`<!DOCTYPE d [<!ENTITY % e SYSTEM "`+outside+`"> %e;]>`, ""), "REJECTED"},
		"external subset":  {wordType, word(`<!DOCTYPE d SYSTEM "`+outside+`">`, ""), "REJECTED"},
		"a billion laughs": {wordType, word(`<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>`, "&c;"), "REJECTED"},
	} {
		id := p.send("note", c.kind, c.raw)
		if st := p.follow(id); st.Status != c.end {
			t.Errorf("%s: %+v, want %s", name, st, c.end)
			continue
		}
		r := s.context("loading", reader, id)
		if served := string(r.Raw); (r.Status == 200) != (c.end == "READY") || strings.Contains(served, "hidden-anchor-secret") || c.end == "READY" && !strings.Contains(served, "amber-lighthouse-44") {
			t.Errorf("%s: %d %s", name, r.Status, served)
		}
	}
	if n := reached(); n > 0 {
		t.Errorf("%d connections were made", n)
	}
}

// How long a comparison took says nothing about a secret where it is made by one of these functions; no test can measure that on a
// busy machine. So the places that compare secrets are named, and hold such a call.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	for place, want := range map[string]string{
		"../internal/tenant/tenant.go isAdmin":           "subtle.ConstantTimeCompare",
		"../internal/tenant/token.go verify":             "hmac.Equal",
		"../internal/tenant/oauth.go AuthenticateClient": "subtle.ConstantTimeCompare",
		"../internal/tenant/session.go provesAdmin":      "hmac.Equal",
		"../internal/sandbox/credential.go Authenticate": "hmac.Equal",
		"../client/receiver.go VerifyWebhook":            "hmac.Equal",
	} {
		file, function, _ := strings.Cut(place, " ")
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == function {
				ast.Inspect(f, func(n ast.Node) bool {
					if c, ok := n.(*ast.CallExpr); ok {
						if s, ok := c.Fun.(*ast.SelectorExpr); ok {
							if x, ok := s.X.(*ast.Ident); ok && x.Name+"."+s.Sel.Name == want {
								found = true
							}
						}
					}
					return true
				})
			}
		}
		if !found {
			t.Errorf("%s does not call %s", place, want)
		}
	}
}
