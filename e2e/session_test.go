package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/accession/accession/client"
)

const signingIn = "/portal/session"

// seat is what a page of the portal sends with its requests: the role of a seat, the browser's own headers, and the cookie that is
// in the jar of the client.
type seat struct {
	role string
	next http.RoundTripper
}

func (s seat) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if r.Method != http.MethodGet {
		r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
	}
	if s.role != "" && r.URL.Path != signingIn {
		r.Header.Set("X-Accession-Seat", s.role)
	}
	return s.next.RoundTrip(r)
}

// browser is the service as a browser sees it: with cookies of its own.
func (s *service) browser() *service {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	other := *s
	next := http.RoundTripper(http.DefaultTransport)
	if s.http.Transport != nil {
		next = s.http.Transport
	}
	other.http = &http.Client{Jar: jar, Transport: seat{"", next}}
	return &other
}

// sitting is the same browser, asking from the seat of a role.
func (s *service) sitting(role string) *service {
	other := *s
	other.http = &http.Client{Jar: s.http.Jar, Transport: seat{role, s.http.Transport.(seat).next}}
	return &other
}

func (s *service) signIn(credential string) reply {
	s.t.Helper()
	return s.do(call{method: "POST", path: signingIn, json: map[string]any{"credential": credential}}).want(s.t, 200, "")
}

// seat signs c in and returns what a page sends from its seat.
func (s *service) seat(c oauthClient, role string) map[string]string {
	s.t.Helper()
	cookie := s.signIn(c.secret).cookie(s.t)
	return map[string]string{"Cookie": cookie.Name + "=" + cookie.Value, "X-Accession-Seat": role}
}

func (s *service) signOut() {
	s.t.Helper()
	if r := s.do(call{method: "DELETE", path: signingIn}); r.Status != 204 || len(r.Raw) != 0 {
		s.t.Fatalf("signing out answered %d %s", r.Status, r.Raw)
	}
}

// cookie is what the last answer of a sign-in set.
func (r reply) cookie(t testing.TB) *http.Cookie {
	t.Helper()
	set := (&http.Response{Header: r.Header}).Cookies()
	if len(set) != 1 {
		t.Fatalf("cookies %v", r.Header)
	}
	return set[0]
}

func (r reply) seats(t testing.TB) (roles string) {
	t.Helper()
	for _, s := range decode[struct{ Seats []struct{ Role string } }](t, r).Seats {
		roles += s.Role + " "
	}
	return strings.TrimSpace(roles)
}

// A person does in the browser what a program does with the credential, and the credential is nowhere but in its request.
func TestPortalSession(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	company, reader := s.oauthClient("harbour", "solution_company_upload"), s.oauthClient("harbour", "ai_reader")
	island := s.oauthClient("island", "ai_reader")
	s.said = &tail{} // from here on
	b := s.browser()
	quota := call{method: "GET", path: "/api/v1/organizations/harbour/quota"}
	b.sitting("ai_reader").do(quota).want(t, 401, "authentication_required")
	b.do(call{method: "GET", path: signingIn}).want(t, 401, "authentication_required")

	r := b.signIn(company.secret)
	first := r.cookie(t)
	if first.Name != "accession_session" || first.Secure || !first.HttpOnly || first.SameSite != http.SameSiteStrictMode || first.Path != "/" || first.Domain != "" || r.seats(t) != "solution_company_upload" {
		t.Errorf("signed in with %q: %s", r.Header.Get("Set-Cookie"), r.Raw)
	}
	r = b.signIn(reader.secret)
	second := r.cookie(t)
	if second.Value == first.Value || r.seats(t) != "solution_company_upload ai_reader" {
		t.Errorf("signed in again with %q: %s", r.Header.Get("Set-Cookie"), r.Raw)
	}
	b.do(quota).want(t, 401, "authentication_required") // the cookie without the header is nobody
	s.do(call{method: "GET", path: quota.path, header: map[string]string{"Cookie": first.Name + "=" + first.Value, "X-Accession-Seat": "solution_company_upload"}}).want(t, 401, "credential_invalid")
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		cookie := map[string]string{"Cookie": second.Name + "=" + second.Value, "X-Accession-Seat": "solution_company_upload", name: value}
		s.do(call{method: "GET", path: quota.path, header: cookie}).want(t, 403, "access_denied")
		s.do(call{method: "POST", path: signingIn, header: map[string]string{name: value}, json: map[string]any{"credential": company.secret}}).want(t, 403, "access_denied")
		s.do(call{method: "DELETE", path: signingIn, header: cookie}).want(t, 403, "access_denied")
	}

	p := partner{b.sitting("solution_company_upload"), "harbour", ""}
	id := p.send("note.txt", "text/plain", note("sandbank"))
	p.wantReady(id)
	b.sitting("ai_reader").context("harbour", "", id).want(t, 200, "")
	records := b.sitting("ai_reader").records("harbour", "", "")
	if len(records) != 1 || records[0].CredentialID != reader.id {
		t.Errorf("the record does not name the credential: %+v", records)
	}
	b.sitting("solution_company_upload").context("harbour", "", id).want(t, 403, "access_denied")
	b.sitting("admin").do(call{method: "GET", path: "/admin/tenant-keys/credentials"}).want(t, 401, "credential_invalid")

	if r = b.signIn(island.secret); r.seats(t) != "ai_reader" { // another organization's credential keeps none of the seats
		t.Errorf("with another organization's credential: %s", r.Raw)
	}
	b.sitting("solution_company_upload").do(quota).want(t, 401, "credential_invalid")
	wantSameAnswer(t, b.sitting("ai_reader"), call{method: "GET", path: "/api/v1/organizations/harbour/ai-context/" + id}, call{method: "GET", path: "/api/v1/organizations/harbour/ai-context/" + missing})
	b.sitting("ai_reader").context("harbour", "", id).want(t, 403, "access_denied")
	b.signIn(company.secret)
	b.signIn(reader.secret)
	p.withdraw(id).want(t, 200, "")

	if r = b.signIn(adminToken); r.seats(t) != "solution_company_upload ai_reader admin" {
		t.Errorf("with the admin token: %s", r.Raw)
	}
	revoke := call{method: "POST", path: "/admin/tenant-keys/credentials/" + company.id + "/revoke", key: client.NewIdempotencyKey()}
	b.sitting("admin").do(revoke).want(t, 200, "")
	b.sitting("solution_company_upload").do(quota).want(t, 401, "credential_invalid")
	if r := b.do(call{method: "GET", path: signingIn}).want(t, 200, ""); r.seats(t) != "ai_reader admin" {
		t.Errorf("after the revocation: %s", r.Raw)
	}
	if r = b.signIn(island.secret); r.seats(t) != "admin ai_reader" { // the administrator's stays
		t.Errorf("beside the administrator's: %s", r.Raw)
	}
	last := b.signIn(island.secret).cookie(t)
	b.signOut()
	b.do(call{method: "GET", path: signingIn}).want(t, 401, "authentication_required")
	s.do(call{method: "GET", path: signingIn, header: map[string]string{"Cookie": last.Name + "=" + last.Value}}).want(t, 401, "credential_invalid")

	for what, secret := range map[string]string{"company": company.secret, "reader": reader.secret, "another's": island.secret, "admin": adminToken, "cookie": last.Value} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log holds the secret of %s", what)
		}
		if what != "cookie" && (strings.Contains(s.said.String(), secret) || strings.Contains(b.said.String(), secret)) {
			t.Errorf("an answer holds the secret of %s", what)
		}
		wantNotBelow(t, s.data, what, []byte(secret))
	}
}

// wantNotBelow fails the test where a file below dir holds secret.
func wantNotBelow(t *testing.T, dir, what string, secret []byte) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		var file *os.File
		if err == nil && entry.Type().IsRegular() {
			file, err = os.Open(path)
		}
		if os.IsNotExist(err) { // the service works in there
			return nil
		}
		if err != nil || file == nil {
			return err
		}
		defer file.Close()
		content, err := io.ReadAll(file)
		files++
		if bytes.Contains(content, secret) {
			t.Errorf("%s holds the secret of %s", path, what)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files read: %v", files, err)
	}
}

// Over TLS the cookie is bound to this host and to TLS.
func TestPortalSessionOverTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	certFile, keyFile := a.issue("portal")
	s := launch(t, options{flags: []string{"--tls-cert", certFile, "--tls-key", keyFile}})
	s.url, s.http = strings.Replace(s.url, "http://", "https://", 1), a.client(true)
	s.awaitReady()
	b := s.browser()
	c := b.signIn(s.issue("harbour", "solution_company_upload")).cookie(t)
	if c.Name != "__Host-accession_session" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("cookie %v", c)
	}
	quota := call{method: "GET", path: "/api/v1/organizations/harbour/quota"}
	b.sitting("solution_company_upload").do(quota).want(t, 200, "")
	quota.header = map[string]string{"Cookie": "accession_session=" + c.Value, "X-Accession-Seat": "solution_company_upload"}
	s.do(quota).want(t, 401, "authentication_required")
	b.signOut()
	b.sitting("solution_company_upload").do(call{method: "GET", path: quota.path}).want(t, 401, "authentication_required")
}

// Sessions outlast a restart, but for the administrator's under another admin token.
func TestSessionsOutlastARestart(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	credential := s.issue("harbour", "solution_company_upload")
	b := s.browser()
	b.signIn(credential)
	c := b.signIn(adminToken).cookie(t)
	check := func(s *service, role, path string, status int, code string) {
		t.Helper()
		s.do(call{method: "GET", path: path, header: map[string]string{"Cookie": c.Name + "=" + c.Value, "X-Accession-Seat": role}}).want(t, status, code)
	}
	const quota, credentials = "/api/v1/organizations/harbour/quota", "/admin/tenant-keys/credentials"
	s.stop()
	s = start(t, options{data: s.data})
	check(s, "solution_company_upload", quota, 200, "")
	check(s, "admin", credentials, 200, "")
	s.stop()
	s = start(t, options{data: s.data, env: []string{"ACCESSION_ADMIN_TOKEN=another-" + adminToken}})
	check(s, "solution_company_upload", quota, 200, "")
	check(s, "admin", credentials, 401, "credential_invalid")
}

// A session is one session, whichever replica answers.
func TestReplicasShareSessions(t *testing.T) {
	t.Parallel()
	r := replicas(t, 2, options{})
	company, reader := r[0].oauthClient("harbour", "solution_company_upload"), r[0].issue("harbour", "ai_reader")
	cookie := r[0].signIn(company.secret).cookie(t)
	from := func(role string) map[string]string {
		return map[string]string{"Cookie": cookie.Name + "=" + cookie.Value, "X-Accession-Seat": role}
	}
	quota := call{method: "GET", path: "/api/v1/organizations/harbour/quota", header: from("solution_company_upload")}
	again := r[1].do(call{method: "POST", path: signingIn, header: map[string]string{"Cookie": quota.header["Cookie"]}, json: map[string]any{"credential": reader}}).want(t, 200, "")
	if again.seats(t) != "solution_company_upload ai_reader" {
		t.Errorf("the other replica does not know the session: %s", again.Raw)
	}
	for _, s := range r {
		s.do(quota).want(t, 401, "credential_invalid") // the cookie has changed
	}
	cookie = again.cookie(t)
	quota.header = from("solution_company_upload")
	for _, s := range r {
		s.do(quota).want(t, 200, "")
		s.do(call{method: "GET", path: "/api/v1/organizations/harbour/request-records", header: from("ai_reader")}).want(t, 200, "")
		s.do(call{method: "GET", path: "/api/v1/organizations/island/request-records", header: from("ai_reader")}).want(t, 403, "access_denied")
	}
	r[0].do(call{method: "POST", path: "/admin/tenant-keys/credentials/" + company.id + "/revoke", bearer: adminToken, key: client.NewIdempotencyKey()}).want(t, 200, "")
	for _, s := range r {
		s.do(quota).want(t, 401, "credential_invalid")
	}
	r[1].do(call{method: "DELETE", path: signingIn, header: map[string]string{"Cookie": quota.header["Cookie"]}})
	for _, s := range r {
		s.do(call{method: "GET", path: signingIn, header: map[string]string{"Cookie": quota.header["Cookie"]}}).want(t, 401, "credential_invalid")
	}
}

// The served document describes the session.
func TestSessionIsDocumented(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	d := s.document()
	scheme := d.Components.SecuritySchemes["portalSession"].Value
	if scheme.Type != "apiKey" || scheme.In != "cookie" || scheme.Name != "accession_session" {
		b, _ := json.Marshal(scheme)
		t.Errorf("scheme %s", b)
	}
	found := 0
	for _, op := range d.operations {
		if op.Path == signingIn {
			found++
			if op.takes("portalSession") != (op.Method != "POST") || !op.tagged("portal") {
				t.Errorf("%s takes %v", op.id, op.Operation.Security)
			}
		}
	}
	if found != 3 {
		t.Errorf("%d operations", found)
	}
}
