package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/ratelimit"
)

const sessionPath = "/portal/session"

// signIn exchanges a credential for a cookie, as "Cookie: name=value".
func (b *bench) signIn(credential string, headers ...string) (cookie string, r reply) {
	b.t.Helper()
	r = b.call("POST", sessionPath, strings.NewReader(`{"credential":"`+credential+`"}`), append([]string{asJ}, headers...)...)
	r.succeeds(b.t, 200)
	set := r.Cookies()
	if len(set) != 1 {
		b.t.Fatalf("cookies %v", set)
	}
	return "Cookie: " + set[0].Name + "=" + set[0].Value, r
}

func seat(role custody.Role) string { return "X-Accession-Seat: " + string(role) }

// roles of the seats in a session's answer, in its order.
func (r reply) roles() (roles string) {
	for _, s := range r.body.Data["seats"].([]any) {
		roles += s.(map[string]any)["role"].(string) + " "
	}
	return strings.TrimSpace(roles)
}

func TestSessionCookie(t *testing.T) {
	for base, want := range map[string]http.Cookie{
		"":                        {Name: "accession_session"},
		"https://custody.example": {Name: "__Host-accession_session", Secure: true},
	} {
		b := newBench(t, func(c *Config) {
			if base != "" {
				c.BaseURL = base
			}
		})
		withOffice(t, b)
		id, secret := b.issued("org_1", "solution_company_upload")
		_, r := b.signIn(secret)
		c := r.Cookies()[0]
		if c.Name != want.Name || c.Secure != want.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 0 || len(c.Value) != cookieLength {
			t.Errorf("cookie %q", r.Header.Get("Set-Cookie"))
		}
		given := r.body.Data["seats"].([]any)[0].(map[string]any)
		if r.roles() != "solution_company_upload" || given["org_id"] != "org_1" || given["credential_id"] != id || len(given["scopes"].([]any)) != 5 {
			t.Errorf("session %s", r.raw)
		}
		if r.Header.Get("Cache-Control") != "no-store" || strings.Contains(string(r.raw)+r.Header.Get("Set-Cookie")+b.log.String(), secret) {
			t.Errorf("the answer or the log holds the credential, or may be kept: %v", r.Header)
		}
		if !strings.Contains(b.log.String(), "credential_id="+id) {
			t.Errorf("the log does not say who signed in: %s", b.log)
		}
	}
}

// A seat is its credential: the same right, the same refusals.
func TestSeatsAreTheirCredentials(t *testing.T) {
	b := newBench(t)
	withOffice(t, b)
	_, company := b.issued("org_1", "solution_company_upload")
	_, reader := b.issued("org_1", "ai_reader")
	_, rival := b.issued("org_2", "ai_reader")
	first, _ := b.signIn(company)
	asCompany, asReader, asAdmin := seat(custody.RoleSolutionCompanyUpload), seat(custody.RoleAIReader), seat(custody.AdminSeat)
	b.call("GET", base+"/quota", nil, first, asCompany).succeeds(t, 200)
	b.post(partners+"/initiate", initiateJSON, first, asCompany).succeeds(t, 200)
	b.call("GET", "/api/v1/organizations/org_2/quota", nil, first, asCompany).wants(t, 403, custody.CodeAccessDenied)
	b.call("GET", base+"/ai-context/up_1", nil, first, asCompany).wants(t, 403, custody.CodeAccessDenied)
	b.call("GET", base+"/ai-context/up_1", nil, first, asReader).wants(t, 401, custody.CodeCredentialInvalid) // no such seat
	b.call("GET", "/admin/tenant-keys/credentials", nil, first, asCompany).wants(t, 401, custody.CodeCredentialInvalid)
	b.call("GET", "/oauth/identity", nil, first, asCompany).wants(t, 401, custody.CodeCredentialInvalid)

	second, r := b.signIn(reader, first)
	if r.roles() != "solution_company_upload ai_reader" || second == first {
		t.Errorf("signing in again gave %s", r.raw)
	}
	b.call("GET", base+"/quota", nil, first, asCompany).wants(t, 401, custody.CodeCredentialInvalid) // the old cookie is dead
	b.call("GET", base+"/quota", nil, second, asCompany).succeeds(t, 200)
	b.call("GET", base+"/ai-context/up_1", nil, second, asReader).succeeds(t, 200)

	planted, r := b.signIn(rival, second) // adopts no seat of another organization, and leaves none to it
	if r.roles() != "ai_reader" {
		t.Errorf("another organization's credential gave %s", r.raw)
	}
	b.call("GET", base+"/ai-context/up_1", nil, planted, asReader).wants(t, 403, custody.CodeAccessDenied)
	b.call("GET", base+"/quota", nil, planted, asCompany).wants(t, 401, custody.CodeCredentialInvalid)
	second, r = b.signIn(company, planted)
	if r.roles() != "solution_company_upload" {
		t.Errorf("over another's session: %s", r.raw)
	}
	b.call("GET", base+"/ai-context/up_1", nil, second, asReader).wants(t, 401, custody.CodeCredentialInvalid)

	second, _ = b.signIn(reader, second)
	third, r := b.signIn(reader, second) // replaces the seat of the same role
	if r.roles() != "solution_company_upload ai_reader" {
		t.Errorf("replacing gave %s", r.raw)
	}
	b.call("GET", base+"/ai-context/up_1", nil, third, asReader).succeeds(t, 200)
	b.call("GET", base+"/quota", nil, third, asCompany).succeeds(t, 200)

	fourth, r := b.signIn(adminToken, third)
	if r.roles() != "solution_company_upload ai_reader admin" {
		t.Errorf("with the admin token: %s", r.raw)
	}
	b.call("GET", "/admin/tenant-keys/credentials", nil, fourth, asAdmin).succeeds(t, 200)
	b.call("GET", base+"/quota", nil, fourth, asAdmin).wants(t, 403, custody.CodeAccessDenied)
	if got := b.call("GET", sessionPath, nil, fourth); got.roles() != r.roles() || got.Header.Get("Set-Cookie") != "" {
		t.Errorf("the session is %s", got.raw)
	}
	b.call("GET", sessionPath, nil, third).wants(t, 401, custody.CodeCredentialInvalid)
	if strings.Contains(b.log.String(), company) || strings.Contains(b.log.String(), adminToken) || strings.Contains(b.log.String(), strings.TrimPrefix(fourth, "Cookie: ")) {
		t.Error("the log holds a secret")
	}
}

func TestSessionsEnd(t *testing.T) {
	b := newBench(t)
	in := withOffice(t, b)
	asCompany, asReader, asAdmin := seat(custody.RoleSolutionCompanyUpload), seat(custody.RoleAIReader), seat(custody.AdminSeat)
	quota := base + "/quota"
	id, company := b.issued("org_1", "solution_company_upload")
	_, reader := b.issued("org_1", "ai_reader")
	cookie, _ := b.signIn(company)
	cookie, _ = b.signIn(reader, cookie)
	other, _ := b.signIn(company)

	b.post("/admin/tenant-keys/credentials/"+id+"/revoke", `{}`, admin).succeeds(t, 200)
	b.call("GET", quota, nil, cookie, asCompany).wants(t, 401, custody.CodeCredentialInvalid)
	b.call("GET", base+"/ai-context/up_1", nil, cookie, asReader).succeeds(t, 200)
	if r := b.call("GET", sessionPath, nil, cookie); r.roles() != "ai_reader" {
		t.Errorf("after the revocation: %s", r.raw)
	}
	b.call("GET", sessionPath, nil, other).wants(t, 401, custody.CodeCredentialInvalid) // it had no other seat
	b.call("POST", sessionPath, strings.NewReader(`{"credential":"`+company+`"}`), asJ).wants(t, 401, custody.CodeCredentialInvalid)

	r := b.call("DELETE", sessionPath, nil, cookie)
	if c := r.Cookies(); r.StatusCode != 204 || len(r.raw) != 0 || len(c) != 1 || c[0].MaxAge != -1 || c[0].Value != "" {
		t.Errorf("signing out answered %d %v %q", r.StatusCode, r.Header, r.raw)
	}
	b.call("GET", base+"/ai-context/up_1", nil, cookie, asReader).wants(t, 401, custody.CodeCredentialInvalid)
	for _, headers := range [][]string{{cookie}, nil} {
		if r := b.call("DELETE", sessionPath, nil, headers...); r.StatusCode != 204 {
			t.Errorf("signing out again answered %d", r.StatusCode)
		}
	}

	cookie, _ = b.signIn(adminToken)
	cookie, _ = b.signIn(reader, cookie)
	b.call("GET", "/admin/tenant-keys/credentials", nil, cookie, asAdmin).succeeds(t, 200)
	if err := in.Exec(t.Context(), `UPDATE portal_sessions SET admin_proof = 'of another token'`); err != nil {
		t.Fatal(err)
	}
	b.call("GET", "/admin/tenant-keys/credentials", nil, cookie, asAdmin).wants(t, 401, custody.CodeCredentialInvalid)
	if cookie, r = b.signIn(reader, cookie); r.roles() != "ai_reader" { // a dead seat is not given a new life
		t.Errorf("after the admin token changed: %s", r.raw)
	}
	if err := in.Exec(t.Context(), `UPDATE portal_sessions SET expires_at = 1`); err != nil {
		t.Fatal(err)
	}
	b.call("GET", base+"/ai-context/up_1", nil, cookie, asReader).wants(t, 401, custody.CodeCredentialInvalid)
	b.call("GET", sessionPath, nil, cookie).wants(t, 401, custody.CodeCredentialInvalid)
}

// What another site makes a browser send is refused; what a browser of ours sends is not.
func TestOtherSitesCannotUseASession(t *testing.T) {
	b := newBench(t)
	withOffice(t, b)
	_, company := b.issued("org_1", "solution_company_upload")
	cookie, _ := b.signIn(company)
	asCompany := seat(custody.RoleSolutionCompanyUpload)
	own := strings.TrimPrefix(b.url, "http://")
	b.call("GET", base+"/quota", nil, cookie).wants(t, 401, custody.CodeAuthenticationRequired) // the cookie alone is nobody
	b.post(partners+"/initiate", initiateJSON, cookie).wants(t, 401, custody.CodeAuthenticationRequired)
	for _, from := range []string{
		"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: none", "Sec-Fetch-Site: ", "Origin: https://" + own, "Origin: http://evil.example",
		"Origin: http://" + own + ".evil.example", "Origin: null", "Origin: http://", "Origin: " + own,
	} {
		b.got = nil
		b.call("GET", base+"/quota", nil, cookie, asCompany, from).wants(t, 403, custody.CodeAccessDenied)
		b.post(partners+"/initiate", initiateJSON, cookie, asCompany, from).wants(t, 403, custody.CodeAccessDenied)
		b.call("GET", sessionPath, nil, cookie, from).wants(t, 403, custody.CodeAccessDenied)
		b.call("DELETE", sessionPath, nil, cookie, from).wants(t, 403, custody.CodeAccessDenied)
		r := b.call("POST", sessionPath, strings.NewReader(`{"credential":"`+company+`"}`), asJ, from)
		if r.wants(t, 403, custody.CodeAccessDenied); r.Header.Get("Set-Cookie") != "" || b.got != nil {
			t.Errorf("%s: signed in, or reached a room", from)
		}
	}
	for _, from := range [][]string{{"Sec-Fetch-Site: same-origin"}, {"Origin: " + b.url}, {"Sec-Fetch-Site: same-origin", "Origin: " + b.url}} {
		b.call("GET", base+"/quota", nil, append(from, cookie, asCompany)...).succeeds(t, 200)
		b.signIn(company, from...)
	}
	b.call("GET", base+"/quota", nil, "Authorization: Bearer "+company, "Origin: http://evil.example", "Sec-Fetch-Site: cross-site").succeeds(t, 200) // an API client is untouched
	form := b.call("POST", sessionPath, strings.NewReader(`{"credential":"`+company+`"}`), "Content-Type: text/plain")
	form.wants(t, 415, custody.CodeMediaTypeUnsupported)
}

func TestSeatRefusals(t *testing.T) {
	said := &messages{}
	b := newBench(t, func(c *Config) { c.MCP = said })
	withOffice(t, b)
	_, company := b.issued("org_1", "solution_company_upload")
	cookie, _ := b.signIn(company)
	asCompany := seat(custody.RoleSolutionCompanyUpload)
	name, value, _ := strings.Cut(strings.TrimPrefix(cookie, "Cookie: "), "=")
	for what, c := range map[string]struct {
		headers []string
		status  int
		code    custody.Code
	}{
		"no cookie":             {[]string{asCompany}, 401, custody.CodeAuthenticationRequired},
		"no such role":          {[]string{cookie, "X-Accession-Seat: root"}, 400, custody.CodeInvalidRequest},
		"no role":               {[]string{cookie, "X-Accession-Seat: "}, 400, custody.CodeInvalidRequest},
		"two roles":             {[]string{cookie, asCompany, asCompany}, 400, custody.CodeInvalidRequest},
		"a credential too":      {[]string{cookie, asCompany, "X-Api-Key: " + company}, 400, custody.CodeInvalidRequest},
		"a bearer too":          {[]string{cookie, asCompany, "Authorization: Bearer " + company}, 400, custody.CodeInvalidRequest},
		"two cookies":           {[]string{cookie + "; " + name + "=" + value, asCompany}, 401, custody.CodeAuthenticationRequired},
		"an empty cookie":       {[]string{"Cookie: " + name + "=", asCompany}, 401, custody.CodeAuthenticationRequired},
		"an unknown cookie":     {[]string{"Cookie: " + name + "=" + strings.Repeat("A", cookieLength), asCompany}, 401, custody.CodeCredentialInvalid},
		"under another name":    {[]string{"Cookie: __Host-" + name + "=" + value, asCompany}, 401, custody.CodeAuthenticationRequired},
		"the cookie in lower c": {[]string{"Cookie: " + name + "=" + strings.ToLower(value), asCompany}, 401, custody.CodeCredentialInvalid},
	} {
		t.Run(what, func(t *testing.T) {
			b.t = t
			b.call("GET", base+"/quota", nil, c.headers...).wants(t, c.status, c.code)
		})
	}
	b.t = t
	b.call("GET", sessionPath, nil).wants(t, 401, custody.CodeAuthenticationRequired)
	b.call("PUT", sessionPath, nil).wants(t, 405, custody.CodeMethodNotAllowed)
	// No other door takes it.
	req, err := http.NewRequest("POST", b.url+"/mcp", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Cookie": {name + "=" + value}, "X-Accession-Seat": {string(custody.RoleSolutionCompanyUpload)}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if said.mu.Lock(); said.body != "{}" || said.caller.CredentialID != "" {
		t.Errorf("MCP got %q from %+v", said.body, said.caller)
	}
	said.mu.Unlock()
	if r := b.call("POST", sandboxPath+"/echo", strings.NewReader(`{"input":"x"}`), asJ, cookie, asCompany); r.StatusCode != 401 {
		t.Errorf("the sandbox answered %d", r.StatusCode)
	}
}

// Whatever is wrong with a credential, the answer is the same, and nothing of it comes back.
func TestSignInRefusals(t *testing.T) {
	b := newBench(t)
	withOffice(t, b)
	id, company := b.issued("org_1", "solution_company_upload")
	_, dead := b.issued("org_1", "solution_company_upload")
	post := func(body string) reply {
		t.Helper()
		r := b.call("POST", sessionPath, strings.NewReader(body), asJ)
		if r.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s signed in", body)
		}
		return r
	}
	messages := map[string]bool{}
	for _, credential := range []string{"acc_x", dead[:len(dead)-1] + "_", strings.Replace(company, "acc_", "acc_A", 1), "guess", adminToken[1:]} {
		r := post(`{"credential":"` + credential + `"}`)
		r.wants(t, 401, custody.CodeCredentialInvalid)
		messages[r.body.Message] = true
		if strings.Contains(string(r.raw), credential) || strings.Contains(b.log.String(), credential) {
			t.Errorf("%s comes back", credential)
		}
	}
	if len(messages) != 1 {
		t.Errorf("different answers: %v", messages)
	}
	access := b.accessToken(id, company)
	if r := post(`{"credential":"` + access + `"}`); !strings.Contains(r.body.Message, "access token") {
		t.Errorf("an access token: %s", r.raw)
	} else {
		r.wants(t, 401, custody.CodeCredentialInvalid)
	}
	post(`{"credential":"`+company+` "}`).wants(t, 401, custody.CodeCredentialInvalid)
	for body, path := range map[string]string{
		`{}`: "/credential", `{"credential":""}`: "/credential", `{"credential":7}`: "/credential", `{"credential":"` + strings.Repeat("a", 4097) + `"}`: "/credential",
		`{"credential":"a","org_id":"b"}`: "", `[]`: "", `{"Credential":"a"}`: "", ``: "",
	} {
		r := post(body)
		r.wants(t, 400, custody.CodeInvalidRequest)
		if path != "" && (len(r.body.Details.Fields) != 1 || r.body.Details.Fields[0].Path != path) {
			t.Errorf("%s: fields %v", body, r.body.Details.Fields)
		}
	}
	post(`{"credential":"`+strings.Repeat("a", maxJSONBytes)+`"}`).wants(t, 413, custody.CodeBodyTooLarge)
}

func TestSignInIsRateLimited(t *testing.T) {
	b, _ := limited(t, ratelimit.Rates{ratelimit.Token: {PerSecond: 1, Burst: 2}})
	withOffice(t, b)
	for range 2 {
		b.call("POST", sessionPath, strings.NewReader(`{"credential":"acc_x"}`), asJ).wants(t, 401, custody.CodeCredentialInvalid)
	}
	b.call("POST", sessionPath, strings.NewReader(`{"credential":"`+adminToken+`"}`), asJ).wants(t, 429, custody.CodeRateLimited)
	b.call("GET", sessionPath, nil).wants(t, 401, custody.CodeAuthenticationRequired)
}

// The service's own origin is that of its base URL, as browsers write it, and that of the name it was reached by.
func TestOwnOrigin(t *testing.T) {
	for base, origins := range map[string]map[string]bool{
		"https://custody.example:443": {"https://custody.example": true, "https://Custody.example": true, "https://proxied.example": true, "http://custody.example": false,
			"http://proxied.example": false, "https://custody.example:8443": false, "https://custody.example.": false},
		"https://custody.example/at": {"https://custody.example": true, "https://other.example": false},
		"http://127.0.0.1:8080":      {"http://127.0.0.1:8080": true, "http://127.0.0.1": false, "http://127.0.0.1:80": false, "https://127.0.0.1:8080": false},
	} {
		d := &door{cfg: Config{BaseURL: base}}
		for origin, want := range origins {
			if d.isOwnOrigin(origin, "proxied.example") != want {
				t.Errorf("%s from %s: %v", base, origin, !want)
			}
		}
	}
}
