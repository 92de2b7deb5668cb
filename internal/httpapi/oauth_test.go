package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/accession/accession/internal/custody"
)

func basic(id, secret string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id)+":"+url.QueryEscape(secret)))
}

func bearer(token string) string { return "Authorization: Bearer " + token }

// wantsOAuth checks an error as RFC 6749 has it.
func (r reply) wantsOAuth(t *testing.T, what string, status int, code string) {
	t.Helper()
	var said map[string]string
	err := json.Unmarshal(r.raw, &said)
	if err != nil || r.StatusCode != status || said["error"] != code || said["error_description"] == "" || len(said) != 2 {
		t.Errorf("%s: answered %d %s, want %d %s", what, r.StatusCode, r.raw, status, code)
	}
	if r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("Pragma") != "no-cache" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: headers %v", what, r.Header)
	}
	for _, c := range said["error_description"] { // RFC 6749, section 5.2
		if c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			t.Errorf("%s: the description holds %q", what, c)
		}
	}
}

// The client that others use, in both of its manners and guessing.
func TestRealClient(t *testing.T) {
	b := newBench(t)
	withOffice(t, b)
	id, secret := b.issued("org_1", "ai_reader")
	for name, style := range map[string]oauth2.AuthStyle{"post": oauth2.AuthStyleInParams, "Basic": oauth2.AuthStyleInHeader, "guessing": oauth2.AuthStyleAutoDetect} {
		c := clientcredentials.Config{ClientID: id, ClientSecret: secret, TokenURL: b.url + "/oauth/token", Scopes: []string{"metadata_read"}, AuthStyle: style}
		token, err := c.Token(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if left := time.Until(token.Expiry); token.TokenType != "Bearer" || token.Extra("scope") != "metadata_read" || left < 9*time.Minute || left > 10*time.Minute {
			t.Errorf("%s: %s, scope %v, %s left", name, token.TokenType, token.Extra("scope"), left)
		}
		res, err := c.Client(t.Context()).Get(b.url + base + "/quota")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(res.Body.Close()); err != nil || res.StatusCode != 200 {
			t.Errorf("%s: the token got %d, %v", name, res.StatusCode, err)
		}
		bad := c
		bad.ClientSecret = secret[:len(secret)-1]
		_, err = bad.Token(t.Context())
		var refused *oauth2.RetrieveError
		if !errors.As(err, &refused) || refused.ErrorCode != "invalid_client" || refused.Response.StatusCode != 401 {
			t.Errorf("%s: a wrong secret: %v", name, err)
		}
		bad = c
		bad.Scopes = []string{"customer_upload"}
		if _, err = bad.Token(t.Context()); !errors.As(err, &refused) || refused.ErrorCode != "invalid_scope" {
			t.Errorf("%s: a scope it does not hold: %v", name, err)
		}
	}
}

func TestAccessTokenIsRFC9068(t *testing.T) {
	b := newBench(t)
	withOffice(t, b)
	id, secret := b.issued("org_1", "ai_reader")
	token := b.accessToken(id, secret)
	var set jose.JSONWebKeySet
	r := b.call("GET", "/oauth/jwks", nil)
	if err := json.Unmarshal(r.raw, &set); err != nil || bytes.Contains(r.raw, []byte(`"d"`)) {
		t.Fatalf("%s, %v", r.raw, err)
	}
	signed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		t.Fatal(err)
	}
	header := signed.Headers[0]
	keys := set.Key(header.KeyID)
	if header.Algorithm != "RS256" || header.ExtraHeaders["typ"] != "at+jwt" || len(keys) != 1 || !keys[0].IsPublic() {
		t.Fatalf("header %+v, keys %v", header, keys)
	}
	claims := map[string]any{}
	if err := signed.Claims(keys[0], &claims); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(claims)); !slices.Equal(got, []string{"aud", "client_id", "exp", "iat", "iss", "jti", "org_id", "scope", "sub"}) {
		t.Errorf("claims %v", got)
	}
	aud, _ := json.Marshal(claims["aud"])
	if claims["iss"] != b.url || claims["sub"] != id || claims["client_id"] != id || claims["org_id"] != "org_1" || string(aud) != `"`+b.url+`"` ||
		claims["scope"] != "ai_context metadata_read ai_readiness mcp" || claims["exp"].(float64)-claims["iat"].(float64) != 600 {
		t.Errorf("claims %v", claims)
	}
	if strings.Contains(token, secret) {
		t.Error("the token holds the secret")
	}
	mcp := b.accessToken(id, secret, "resource", b.url+"/mcp") // what an agent holds is no key to the rest
	b.call("GET", base+"/quota", nil, bearer(mcp)).wants(t, 401, custody.CodeCredentialInvalid)
	b.call("GET", "/oauth/identity", nil, bearer(mcp)).wants(t, 401, custody.CodeCredentialInvalid)
	both := b.accessToken(id, secret, "resource", b.url+"/mcp", "resource", b.url)
	b.call("GET", base+"/quota", nil, bearer(both)).succeeds(t, 200)
}

// An access token is a Bearer wherever a credential is, with its own scopes; it is nothing else.
func TestAccessTokenAsBearer(t *testing.T) {
	b := newBench(t)
	withOffice(t, b)
	id, secret := b.issued("org_1", "solution_company_upload")
	all, narrow := b.accessToken(id, secret), b.accessToken(id, secret, "scope", "metadata_read")
	for _, path := range []string{base + "/quota", oneUpload} {
		b.call("GET", path, nil, bearer(all)).succeeds(t, 200)
		b.call("GET", path, nil, bearer(narrow)).succeeds(t, 200)
		b.call("GET", path, nil, "X-Api-Key: "+all).wants(t, 401, custody.CodeCredentialInvalid)
		b.call("GET", path, nil, "X-Api-Key: "+all, bearer(all)).wants(t, 401, custody.CodeCredentialInvalid)
	}
	b.post(partners+"/initiate", initiateJSON, bearer(all)).succeeds(t, 200)
	if b.caller.CredentialID != id || b.caller.TokenID == "" || b.key.CredentialID != id {
		t.Errorf("the room got %+v", b.caller)
	}
	b.post(partners+"/initiate", initiateJSON, bearer(narrow)).wants(t, 403, custody.CodeInsufficientScope)
	b.post("/api/v1/organizations/org_2/partner-uploads/initiate", initiateJSON, bearer(all)).wants(t, 401, custody.CodeCredentialNotBound)
	b.call("GET", "/api/v1/organizations/org_2/quota", nil, bearer(all)).wants(t, 403, custody.CodeAccessDenied)
	b.post("/admin/tenant-keys/issue", `{"org_id":"o","role":"ai_reader"}`, bearer(all)).wants(t, 401, custody.CodeCredentialInvalid)
	b.call("GET", base+"/quota", nil, bearer(all+"x")).wants(t, 401, custody.CodeCredentialInvalid)
	b.form("/oauth/token", []string{"grant_type", "client_credentials", "client_id", id, "client_secret", all}).wantsOAuth(t, "an access token as a secret", 401, "invalid_client")
	b.form("/oauth/token", []string{"grant_type", "client_credentials", "client_id", "admin", "client_secret", adminToken}).wantsOAuth(t, "the admin token as a secret", 401, "invalid_client")
}

func TestIdentity(t *testing.T) {
	b := newBench(t)
	withOffice(t, b)
	id, secret := b.issued("org_1", "ai_reader")
	token := b.accessToken(id, secret, "scope", "mcp ai_context")
	data := b.call("GET", "/oauth/identity", nil, bearer(token)).succeeds(t, 200)
	expires, err := time.Parse(time.RFC3339, data["expires_at"].(string))
	if left := time.Until(expires); err != nil || left < 9*time.Minute || left > 10*time.Minute {
		t.Errorf("expires_at %v", data["expires_at"])
	}
	delete(data, "expires_at")
	if got, _ := json.Marshal(data); string(got) != `{"credential_id":"`+id+`","org_id":"org_1","role":"ai_reader","scopes":["ai_context","mcp"]}` {
		t.Errorf("data %s", got)
	}
	data = b.call("GET", "/oauth/identity?include_scopes=false", nil, bearer(token)).succeeds(t, 200)
	if data["scopes"] != nil || data["org_id"] != "org_1" {
		t.Errorf("without scopes: %v", data)
	}
	b.call("GET", "/oauth/identity?include_scopes=maybe", nil, bearer(token)).wants(t, 400, custody.CodeInvalidRequest, "/query/include_scopes")
	b.call("GET", "/oauth/identity", nil).wants(t, 401, custody.CodeAuthenticationRequired)
	for what, header := range map[string]string{"a credential": bearer(secret), "a credential as key": "X-Api-Key: " + secret, "the admin": admin, "a token as key": "X-Api-Key: " + token, "garbage": bearer("eyJ.a.b")} {
		if r := b.call("GET", "/oauth/identity", nil, header); r.StatusCode != 401 || r.body.Code != string(custody.CodeCredentialInvalid) {
			t.Errorf("%s: %d %s", what, r.StatusCode, r.raw)
		}
	}
}

func TestTokenRequestsThatAreWrong(t *testing.T) {
	b := newBench(t, func(c *Config) { c.BodyTimeout = time.Minute })
	withOffice(t, b)
	id, secret := b.issued("org_1", "ai_reader")
	good := []string{"grant_type", "client_credentials", "client_id", id, "client_secret", secret}
	form := "Content-Type: application/x-www-form-urlencoded"
	encoded := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}.Encode()
	for what, c := range map[string]struct {
		body    string
		headers []string
		status  int
		code    string
	}{
		"no body":              {"", []string{form}, 401, "invalid_client"},
		"JSON":                 {`{"grant_type":"client_credentials"}`, []string{asJ}, 400, "invalid_request"},
		"no type":              {encoded, nil, 400, "invalid_request"},
		"another charset":      {encoded, []string{form + "; charset=latin1"}, 400, "invalid_request"},
		"compressed":           {encoded, []string{form, "Content-Encoding: gzip"}, 400, "invalid_request"},
		"broken escape":        {encoded + "&scope=%zz", []string{form}, 400, "invalid_request"},
		"invalid UTF-8":        {encoded + "&scope=%ff", []string{form}, 400, "invalid_request"},
		"twice":                {encoded + "&grant_type=client_credentials", []string{form}, 400, "invalid_request"},
		"twice, once empty":    {encoded + "&scope=&scope=mcp", []string{form}, 400, "invalid_request"},
		"by post and Basic":    {encoded, []string{form, basic(id, secret)}, 400, "invalid_request"},
		"two names":            {"grant_type=client_credentials&client_id=cred_x", []string{form, basic(id, secret)}, 400, "invalid_request"},
		"two Basics":           {"grant_type=client_credentials", []string{form, basic(id, secret), basic(id, secret)}, 400, "invalid_request"},
		"Basic, wrong":         {"grant_type=client_credentials", []string{form, basic(id, "acc_wrong")}, 401, "invalid_client"},
		"Basic, no secret":     {"grant_type=client_credentials", []string{form, basic(id, "")}, 401, "invalid_client"},
		"Basic, broken":        {"grant_type=client_credentials", []string{form, "Authorization: Basic !!!"}, 401, "invalid_client"},
		"Basic, broken escape": {"grant_type=client_credentials", []string{form, "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("%zz:x"))}, 401, "invalid_client"},
		"Bearer":               {encoded, []string{form, bearer(secret)}, 401, "invalid_client"},
		"no grant type":        {"client_id=" + id + "&client_secret=" + secret, []string{form}, 400, "invalid_request"},
		"a password":           {strings.Replace(encoded, "client_credentials", "password", 1), []string{form}, 400, "unsupported_grant_type"},
		"unknown scope":        {encoded + "&scope=everything", []string{form}, 400, "invalid_scope"},
		"unknown resource":     {encoded + "&resource=https%3A%2F%2Fx.example", []string{form}, 400, "invalid_target"},
	} {
		r := b.call("POST", "/oauth/token", strings.NewReader(c.body), c.headers...)
		r.wantsOAuth(t, what, c.status, c.code)
		sentHeader := slices.ContainsFunc(c.headers, func(h string) bool { return strings.HasPrefix(h, "Authorization") })
		if challenged := strings.HasPrefix(r.Header.Get("WWW-Authenticate"), "Basic "); challenged != (sentHeader && c.status == 401) {
			t.Errorf("%s: WWW-Authenticate %q", what, r.Header.Get("WWW-Authenticate"))
		}
	}
	b.form("/oauth/token?grant_type=client_credentials", good).wantsOAuth(t, "parameters in the address", 400, "invalid_request")
	// Two resources may be named; an empty parameter is none; unknown ones are ignored. (RFC 6749, section 3.2.)
	r := b.form("/oauth/token", append(slices.Clone(good), "resource", b.url, "resource", b.url+"/mcp", "scope", "", "unknown", "x"))
	if r.StatusCode != 200 {
		t.Errorf("answered %d %s", r.StatusCode, r.raw)
	}
	// What is not the flow's own is answered by the door.
	b.form("/oauth/token", append(slices.Clone(good), "x", strings.Repeat("x", 16<<10))).wants(t, 413, custody.CodeBodyTooLarge)
	b.call("POST", "/oauth/token", struct{ io.Reader }{strings.NewReader(encoded + "&x=" + strings.Repeat("x", 16<<10))}, form, chunked).wants(t, 413, custody.CodeBodyTooLarge)
	r = b.call("GET", "/oauth/token", nil)
	if r.wants(t, 405, custody.CodeMethodNotAllowed); r.Header.Get("Allow") != "POST" {
		t.Errorf("Allow %q", r.Header.Get("Allow"))
	}
	b.call("GET", "/oauth/authorize?response_type=code&client_id="+id+"&redirect_uri=https://x.example", nil).
		wantsOAuth(t, "the authorization endpoint", 400, "unsupported_response_type")
}

func TestRevocationAndIntrospection(t *testing.T) {
	b := newBench(t)
	withOffice(t, b)
	id, secret := b.issued("org_1", "ai_reader")
	stranger, strangerSecret := b.issued("org_2", "ai_reader")
	token := b.accessToken(id, secret)
	for _, path := range []string{"/oauth/revoke", "/oauth/introspect"} {
		b.form(path, []string{"token", token}).wantsOAuth(t, path+" by nobody", 401, "invalid_client")
		b.form(path, []string{"token", token}, bearer(token)).wantsOAuth(t, path+" by the token itself", 401, "invalid_client")
		b.form(path, nil, basic(id, secret)).wantsOAuth(t, path+" without a token", 400, "invalid_request")
	}
	tell := func(as, secret, token string) string {
		t.Helper()
		r := b.form("/oauth/introspect", []string{"token", token, "token_type_hint", "access_token"}, basic(as, secret))
		if r.StatusCode != 200 || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("answered %d %v", r.StatusCode, r.Header)
		}
		return string(r.raw)
	}
	told := tell(id, secret, token)
	for _, want := range []string{`"active":true`, `"client_id":"` + id + `"`, `"token_type":"Bearer"`, `"org_id":"org_1"`, `"scope":"ai_context metadata_read ai_readiness mcp"`, `"iss":"` + b.url + `"`} {
		if !strings.Contains(told, want) {
			t.Errorf("it says %s, without %s", told, want)
		}
	}
	const inactive = `{"active":false}`
	for what, got := range map[string]string{"a stranger": tell(stranger, strangerSecret, token), "garbage": tell(id, secret, "garbage"), "a credential": tell(id, secret, secret)} {
		if got != inactive {
			t.Errorf("%s: %s", what, got)
		}
	}
	revoke := func(as, secret, token string) {
		t.Helper()
		if r := b.form("/oauth/revoke", []string{"token", token}, basic(as, secret)); r.StatusCode != 200 || len(r.raw) != 0 {
			t.Errorf("answered %d %s", r.StatusCode, r.raw)
		}
	}
	revoke(stranger, strangerSecret, token)
	revoke(id, secret, "garbage")
	b.call("GET", base+"/quota", nil, bearer(token)).succeeds(t, 200)
	revoke(id, secret, token)
	revoke(id, secret, token)
	b.call("GET", base+"/quota", nil, bearer(token)).wants(t, 401, custody.CodeCredentialInvalid)
	if got := tell(id, secret, token); got != inactive {
		t.Errorf("once revoked: %s", got)
	}
	b.call("GET", base+"/quota", nil, bearer(b.accessToken(id, secret))).succeeds(t, 200)
}

func TestDiscoveryDocuments(t *testing.T) {
	b := newBench(t)
	withOffice(t, b)
	get := func(path string) map[string]any {
		t.Helper()
		r := b.call("GET", path, nil)
		if r.StatusCode != 200 || r.Header.Get("Access-Control-Allow-Origin") != "*" || r.Header.Get("Cache-Control") != "public, max-age=60" {
			t.Fatalf("%s answered %d %v", path, r.StatusCode, r.Header)
		}
		var said map[string]any
		if err := json.Unmarshal(r.raw, &said); err != nil {
			t.Fatal(err)
		}
		return said
	}
	server := get("/.well-known/oauth-authorization-server")
	if server["issuer"] != b.url {
		t.Errorf("issuer %v", server["issuer"])
	}
	for field, path := range map[string]string{"token_endpoint": "/oauth/token", "jwks_uri": "/oauth/jwks", "revocation_endpoint": "/oauth/revoke",
		"introspection_endpoint": "/oauth/introspect", "authorization_endpoint": "/oauth/authorize"} {
		if server[field] != b.url+path {
			t.Errorf("%s is %v", field, server[field])
		}
		if res, err := http.Get(b.url + path); err != nil || res.StatusCode == 404 || res.Body.Close() != nil {
			t.Errorf("%s leads nowhere: %v, %v", field, res, err)
		}
	}
	lists, _ := json.Marshal([]any{server["grant_types_supported"], server["response_types_supported"], server["code_challenge_methods_supported"], server["token_endpoint_auth_methods_supported"]})
	if string(lists) != `[["client_credentials"],[],["S256"],["client_secret_basic","client_secret_post"]]` {
		t.Errorf("the server supports %s", lists)
	}
	for path, resource := range map[string]string{"/.well-known/oauth-protected-resource": b.url, "/.well-known/oauth-protected-resource/mcp": b.url + "/mcp"} {
		said := get(path)
		if servers, _ := json.Marshal(said["authorization_servers"]); said["resource"] != resource || string(servers) != `["`+b.url+`"]` || len(said["scopes_supported"].([]any)) != map[bool]int{true: 3, false: 7}[strings.HasSuffix(path, "/mcp")] {
			t.Errorf("%s: %v", path, said)
		}
	}
}

func TestSecretsStayOutOfTheLog(t *testing.T) {
	b := newBench(t)
	withOffice(t, b)
	id, secret := b.issued("org_1", "ai_reader")
	token := b.accessToken(id, secret)
	b.form("/oauth/token", []string{"grant_type", "x"}, basic(id, secret))
	b.form("/oauth/revoke", []string{"token", token}, basic(id, secret))
	rotated := b.post(credentialsPath+"/"+id+"/rotate", `{}`, admin).succeeds(t, 201)
	b.stop()
	log := b.log.String()
	if !strings.Contains(log, "route=\"POST /oauth/token\"") || !strings.Contains(log, "credential_id="+id) {
		t.Fatalf("the requests are not logged:\n%s", log)
	}
	for what, s := range map[string]string{"the secret": secret, "the access token": token, "its signature": token[strings.LastIndex(token, ".")+1:], "the successor": rotated["token"].(string), "the admin token": adminToken, "Basic": basic(id, secret)} {
		if strings.Contains(log, s) {
			t.Errorf("the log holds %s", what)
		}
	}
}
