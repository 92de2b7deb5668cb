package tenant_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/tenant"
)

var ask = tenant.TokenRequest{GrantType: "client_credentials"}

// grant makes an access token from a credential.
func grant(t testing.TB, s *tenant.Service, id, secret string, r tenant.TokenRequest) tenant.AccessToken {
	t.Helper()
	client, err := s.AuthenticateClient(t.Context(), id, secret)
	if err != nil {
		t.Fatal(err)
	}
	token, err := s.GrantToken(t.Context(), client, r)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func wantOAuth(t *testing.T, what string, err error, code string) {
	t.Helper()
	var e *tenant.OAuthError
	if !errors.As(err, &e) || e.Code != code || e.Description == "" {
		t.Errorf("%s: got %v, want %s", what, err, code)
	}
}

func TestAccessTokensAreTheirCredentials(t *testing.T) {
	o := open(t)
	id, secret := o.issue(t, "acme", custody.RoleAIReader)
	for _, c := range []struct {
		scope string
		want  []custody.Scope
	}{
		{"", custody.RoleScopes[custody.RoleAIReader]},
		{"   ", custody.RoleScopes[custody.RoleAIReader]},
		{"mcp", []custody.Scope{"mcp"}},
		{"mcp  ai_context mcp", []custody.Scope{"ai_context", "mcp"}},
	} {
		r := ask
		r.Scope = c.scope
		token := grant(t, o.Service, id, secret, r)
		if token.Lifetime != 10*time.Minute || !slices.Equal(token.Scopes, c.want) {
			t.Errorf("%q: lives %s, scopes %v", c.scope, token.Lifetime, token.Scopes)
		}
		caller, err := o.Authenticate(t.Context(), token.Token)
		want := custody.Caller{
			CredentialID: id, OrgID: "acme", Role: custody.RoleAIReader, Scopes: c.want, TokenID: caller.TokenID, TokenExpiresAt: token.ExpiresAt,
			Audience: []string{"https://custody.example"},
		}
		if err != nil || !reflect.DeepEqual(caller, want) || len(caller.TokenID) < 20 {
			t.Errorf("%q: %+v, %v; want %+v", c.scope, caller, err, want)
		}
	}
	client, err := o.AuthenticateClient(t.Context(), id, secret)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		r    tenant.TokenRequest
		code string
	}{
		"no grant type":     {tenant.TokenRequest{}, tenant.InvalidRequest},
		"another flow":      {tenant.TokenRequest{GrantType: "authorization_code"}, tenant.UnsupportedGrantType},
		"another's scope":   {tenant.TokenRequest{GrantType: "client_credentials", Scope: "mcp customer_upload"}, tenant.InvalidScope},
		"no scope":          {tenant.TokenRequest{GrantType: "client_credentials", Scope: "*"}, tenant.InvalidScope},
		"another resource":  {tenant.TokenRequest{GrantType: "client_credentials", Resources: []string{"https://elsewhere.example"}}, tenant.InvalidTarget},
		"one of two is not": {tenant.TokenRequest{GrantType: "client_credentials", Resources: []string{issuer, issuer + "/"}}, tenant.InvalidTarget},
	} {
		token, err := o.GrantToken(t.Context(), client, c.r)
		if wantOAuth(t, what, err, c.code); token.Token != "" {
			t.Errorf("%s: refused, with a token", what)
		}
	}
}

func TestClientsAreAuthenticated(t *testing.T) {
	o := open(t)
	id, secret := o.issue(t, "acme", custody.RoleAIReader)
	other, otherSecret := o.issue(t, "acme", custody.RoleAIReader)
	access := grant(t, o.Service, id, secret, ask).Token
	for what, c := range map[string][2]string{
		"another's secret": {id, otherSecret}, "another's name": {other, secret}, "no secret": {id, ""}, "no name": {"", secret},
		"the admin token": {custody.AdminCredentialID, adminToken}, "the admin token under a name": {id, adminToken},
		"an access token": {id, access}, "garbage": {id, "acc_garbage"}, "one more": {id, secret + "A"},
	} {
		_, err := o.AuthenticateClient(t.Context(), c[0], c[1])
		wantOAuth(t, what, err, tenant.InvalidClient)
	}
	o.store.fail = errors.New("database is away")
	if _, err := o.AuthenticateClient(t.Context(), id, secret); !errors.Is(err, o.store.fail) {
		t.Errorf("a silent store: %v", err)
	}
}

// forge signs claims with any key under any header.
func forge(t *testing.T, alg jose.SignatureAlgorithm, key any, kid, typ string, claims any) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithHeader("kid", kid)
	if typ != "" {
		options = options.WithType(jose.ContentType(typ))
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestForgedAccessTokensAreRefusedAlike(t *testing.T) {
	o := open(t)
	id, secret := o.issue(t, "acme", custody.RoleAIReader)
	parsed, err := x509.ParsePKCS8PrivateKey(rsaSecret())
	if err != nil {
		t.Fatal(err)
	}
	ours := parsed.(*rsa.PrivateKey)
	theirs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(ours.Public())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	claims := func(change map[string]any) map[string]any {
		c := map[string]any{
			"iss": issuer, "aud": issuer, "sub": id, "client_id": id, "org_id": "acme", "jti": "token-1",
			"iat": now, "exp": now + 600, "scope": "ai_context",
		}
		for name, value := range change {
			if c[name] = value; value == nil {
				delete(c, name)
			}
		}
		return c
	}
	// What we forge passes but for the one thing that is wrong with it.
	for what, token := range map[string]string{
		"ours":              forge(t, jose.RS256, ours, "key_rsa", "at+jwt", claims(nil)),
		"with the full typ": forge(t, jose.RS256, ours, "key_rsa", "application/at+jwt", claims(nil)),
		"two audiences":     forge(t, jose.RS256, ours, "key_rsa", "at+jwt", claims(map[string]any{"aud": []string{"https://x.example", issuer + "/mcp"}})),
		"of a fast clock":   forge(t, jose.RS256, ours, "key_rsa", "at+jwt", claims(map[string]any{"iat": now + 30})),
	} {
		if _, err := o.Authenticate(t.Context(), token); err != nil {
			t.Errorf("%s: %v; what follows proves nothing", what, err)
		}
	}
	segment := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	real := grant(t, o.Service, id, secret, ask).Token
	parts := strings.Split(real, ".")
	bad := map[string]string{
		"alg none":                    segment(map[string]string{"alg": "none", "typ": "at+jwt", "kid": "key_rsa"}) + "." + segment(claims(nil)) + ".",
		"HS256 with the public key":   forge(t, jose.HS256, public, "key_rsa", "at+jwt", claims(nil)),
		"HS256 with the modulus":      forge(t, jose.HS256, ours.N.Bytes(), "key_rsa", "at+jwt", claims(nil)),
		"HS256 with a credential key": forge(t, jose.HS256, o.keys[0].Key, "key_1", "at+jwt", claims(nil)),
		"PS256":                       forge(t, jose.PS256, ours, "key_rsa", "at+jwt", claims(nil)),
		"RS512":                       forge(t, jose.RS512, ours, "key_rsa", "at+jwt", claims(nil)),
		"another key":                 forge(t, jose.RS256, theirs, "key_rsa", "at+jwt", claims(nil)),
		"an unknown kid":              forge(t, jose.RS256, ours, "key_2", "at+jwt", claims(nil)),
		"a credential key's kid":      forge(t, jose.RS256, ours, "key_1", "at+jwt", claims(nil)),
		"no kid":                      forge(t, jose.RS256, ours, "", "at+jwt", claims(nil)),
		"typ JWT":                     forge(t, jose.RS256, ours, "key_rsa", "JWT", claims(nil)),
		"no typ":                      forge(t, jose.RS256, ours, "key_rsa", "", claims(nil)),
		"typ of an ID token":          forge(t, jose.RS256, ours, "key_rsa", "id+jwt", claims(nil)),
		"another issuer":              forge(t, jose.RS256, ours, "key_rsa", "at+jwt", claims(map[string]any{"iss": issuer + "/"})),
		"another audience":            forge(t, jose.RS256, ours, "key_rsa", "at+jwt", claims(map[string]any{"aud": "https://x.example"})),
		"no audience":                 forge(t, jose.RS256, ours, "key_rsa", "at+jwt", claims(map[string]any{"aud": nil})),
		"expired":                     forge(t, jose.RS256, ours, "key_rsa", "at+jwt", claims(map[string]any{"exp": now - 1})),
		"no end":                      forge(t, jose.RS256, ours, "key_rsa", "at+jwt", claims(map[string]any{"exp": nil})),
		"from the future":             forge(t, jose.RS256, ours, "key_rsa", "at+jwt", claims(map[string]any{"iat": now + 120})),
		"not yet":                     forge(t, jose.RS256, ours, "key_rsa", "at+jwt", claims(map[string]any{"nbf": now + 120})),
		"no iat":                      forge(t, jose.RS256, ours, "key_rsa", "at+jwt", claims(map[string]any{"iat": nil})),
		"no jti":                      forge(t, jose.RS256, ours, "key_rsa", "at+jwt", claims(map[string]any{"jti": nil})),
		"another subject":             forge(t, jose.RS256, ours, "key_rsa", "at+jwt", claims(map[string]any{"sub": "cred_x"})),
		"an unknown credential":       forge(t, jose.RS256, ours, "key_rsa", "at+jwt", claims(map[string]any{"sub": "cred_x", "client_id": "cred_x"})),
		"another organization":        forge(t, jose.RS256, ours, "key_rsa", "at+jwt", claims(map[string]any{"org_id": "rival"})),
		"claims swapped":              parts[0] + "." + segment(claims(nil)) + "." + parts[2],
		"no signature":                parts[0] + "." + parts[1] + ".",
		"two parts":                   parts[0] + "." + parts[1],
		"a space after":               real + " ",
	}
	embedded, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: theirs}, (&jose.SignerOptions{EmbedJWK: true}).WithType("at+jwt"))
	if err != nil {
		t.Fatal(err)
	}
	if bad["a key of its own"], err = jwt.Signed(embedded).Claims(claims(nil)).Serialize(); err != nil {
		t.Fatal(err)
	}
	for what, token := range bad {
		caller, err := o.Authenticate(t.Context(), token)
		if e := wantCode(t, what, err, custody.CodeCredentialInvalid); e == nil || len(e.Details) > 0 || !reflect.DeepEqual(caller, custody.Caller{}) {
			t.Errorf("%s: %+v, %v", what, caller, err)
		}
	}
	// Scopes that the credential does not hold are worth nothing.
	caller, err := o.Authenticate(t.Context(), forge(t, jose.RS256, ours, "key_rsa", "at+jwt", claims(map[string]any{"scope": "customer_upload ai_context correction"})))
	if err != nil || !slices.Equal(caller.Scopes, []custody.Scope{"ai_context"}) {
		t.Errorf("a token with more than its credential: %v, %v", caller.Scopes, err)
	}
}

// Whatever ends a credential ends its tokens at the next request, on a replica that has just used them too.
func TestTokensDieWithTheirCredential(t *testing.T) {
	for what, end := range map[string]func(t *testing.T, o *office, id string){
		"revoked": func(t *testing.T, o *office, id string) {
			if _, err := o.RevokeCredential(t.Context(), admin, id, change("k", "credential_id")); err != nil {
				t.Fatal(err)
			}
		},
		"expired": func(t *testing.T, o *office, id string) {
			if err := o.in.Exec(t.Context(), `UPDATE credentials SET expires_at = 1 WHERE credential_id = $1`, id); err != nil {
				t.Fatal(err)
			}
		},
		"signed with a key that is gone": func(t *testing.T, o *office, id string) {
			if err := o.in.Exec(t.Context(), `UPDATE credentials SET key_id = 'key_0' WHERE credential_id = $1`, id); err != nil {
				t.Fatal(err)
			}
		},
	} {
		o := open(t)
		id, secret := o.issue(t, "acme", custody.RoleAIReader)
		other := o.with(t, o.keys...)
		token := grant(t, o.Service, id, secret, ask).Token
		for _, presented := range []string{secret, token} {
			if _, err := other.Authenticate(t.Context(), presented); err != nil {
				t.Fatal(err)
			}
		}
		end(t, o, id)
		for _, presented := range []string{secret, token} {
			_, err := other.Authenticate(t.Context(), presented)
			wantCode(t, what, err, custody.CodeCredentialInvalid)
		}
		_, err := other.AuthenticateClient(t.Context(), id, secret)
		wantOAuth(t, what, err, tenant.InvalidClient)
	}
}

func TestTokensEndWithTheirTime(t *testing.T) {
	o := open(t)
	c := &clock{at: custody.Now().Truncate(time.Second)}
	s := o.replica(t, newKeyring(o.keys...), c)
	short := custody.CredentialRequest{OrgID: "acme", Role: custody.RoleAIReader, ExpiresAt: c.now().Add(3 * time.Minute)}
	a, secret, err := s.Issue(t.Context(), admin, short, idempotency("", ""))
	if err != nil {
		t.Fatal(err)
	}
	token := grant(t, s, issuedID(t, a), secret, ask)
	if token.Lifetime != 3*time.Minute {
		t.Errorf("a token outlives its credential: %s", token.Lifetime)
	}
	id, secret := o.issue(t, "acme", custody.RoleAIReader)
	token = grant(t, s, id, secret, ask)
	c.pass(10*time.Minute - time.Millisecond)
	if _, err := s.Authenticate(t.Context(), token.Token); err != nil {
		t.Errorf("a millisecond before its end: %v", err)
	}
	c.pass(time.Millisecond)
	_, err = s.Authenticate(t.Context(), token.Token)
	wantCode(t, "at its end", err, custody.CodeCredentialInvalid)
}

func TestRevokedTokens(t *testing.T) {
	o := open(t)
	id, secret := o.issue(t, "acme", custody.RoleAIReader)
	colleague, colleagueSecret := o.issue(t, "acme", custody.RoleAIReader)
	stranger, strangerSecret := o.issue(t, "rival", custody.RoleAIReader)
	first, second := grant(t, o.Service, id, secret, ask).Token, grant(t, o.Service, id, secret, ask).Token
	for what, who := range map[string][2]string{"a colleague": {colleague, "acme"}, "a stranger": {stranger, "rival"}} {
		if err := o.RevokeToken(t.Context(), custody.Caller{CredentialID: who[0], OrgID: who[1]}, first); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, garbage := range []string{"", "garbage", secret, adminToken} {
		if err := o.RevokeToken(t.Context(), custody.Caller{CredentialID: id}, garbage); err != nil {
			t.Errorf("%q: %v", garbage, err)
		}
	}
	if _, err := o.Authenticate(t.Context(), first); err != nil {
		t.Fatalf("somebody else's revocation counts: %v", err)
	}
	for range 2 {
		if err := o.RevokeToken(t.Context(), custody.Caller{CredentialID: id, OrgID: "acme"}, first); err != nil {
			t.Fatal(err)
		}
	}
	_, err := o.with(t, o.keys...).Authenticate(t.Context(), first)
	wantCode(t, "revoked, after a restart", err, custody.CodeCredentialInvalid)
	if _, err := o.Authenticate(t.Context(), second); err != nil {
		t.Errorf("the other token of the credential: %v", err)
	}
	told, err := o.Introspect(t.Context(), client(t, o, id, secret), first)
	if err != nil || !reflect.DeepEqual(told, tenant.Introspection{}) {
		t.Errorf("a revoked token: %+v, %v", told, err)
	}
	for what, who := range map[string][2]string{"its own": {id, secret}, "a colleague": {colleague, colleagueSecret}} {
		told, err := o.Introspect(t.Context(), client(t, o, who[0], who[1]), second)
		if err != nil || !told.Active || told.ClientID != id || told.OrgID != "acme" || told.Issuer != issuer || len(told.Scopes) != 4 {
			t.Errorf("%s: %+v, %v", what, told, err)
		}
	}
	told, err = o.Introspect(t.Context(), client(t, o, stranger, strangerSecret), second)
	if err != nil || !reflect.DeepEqual(told, tenant.Introspection{}) {
		t.Errorf("a stranger learns %+v, %v", told, err)
	}
	lines := o.in.AuditLines(t, "acme")
	if n := len(lines); n != 3 || lines[2].Action != "access_token_revoked" || strings.Contains(lines[2].Detail, ".") {
		t.Errorf("the audit log is %+v", lines)
	}
	// What is remembered ends with the token.
	c := &clock{at: custody.Now().Add(11 * time.Minute)}
	later := o.replica(t, newKeyring(o.keys...), c)
	if err := later.RevokeToken(t.Context(), custody.Caller{CredentialID: id, OrgID: "acme"}, grant(t, later, id, secret, ask).Token); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := o.in.DB.Row(t.Context(), `SELECT COUNT(*) FROM revoked_tokens`, nil, &n); err != nil || n != 1 {
		t.Errorf("%d revoked tokens are remembered, %v; want 1", n, err)
	}
}

func client(t *testing.T, o *office, id, secret string) custody.Credential {
	t.Helper()
	c, err := o.AuthenticateClient(t.Context(), id, secret)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestKeySetIsPublic(t *testing.T) {
	o := open(t)
	raw, err := o.KeySet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(raw, &set); err != nil || len(set.Keys) != 2 {
		t.Fatalf("%s, %v", raw, err)
	}
	admin := custody.Caller{CredentialID: "admin", Admin: true}
	_, err = o.RetireSigningKey(t.Context(), admin, "key_receipt", true, custody.Idempotency{Key: "retire-it"})
	wantCode(t, "retiring the key of receipts", err, custody.CodeSigningKeyInUse)
	for name, value := range set.Keys[1] { // of receipts
		if want, ok := map[string]string{"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": value, "x": value}[name]; !ok || value != want {
			t.Errorf("the key set publishes %q as %q", name, value)
		}
	}
	for name := range set.Keys[0] {
		if !slices.Contains([]string{"kty", "use", "alg", "kid", "n", "e"}, name) {
			t.Errorf("the key set publishes %q", name)
		}
	}
	// An independent reader verifies a token with it alone.
	id, secret := o.issue(t, "acme", custody.RoleAIReader)
	parts := strings.Split(grant(t, o.Service, id, secret, ask).Token, ".")
	n, _ := base64.RawURLEncoding.DecodeString(set.Keys[0]["n"])
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	hash := crypto.SHA256.New()
	hash.Write([]byte(parts[0] + "." + parts[1]))
	public := rsa.PublicKey{E: 65537}
	public.N = newInt(n)
	if err := rsa.VerifyPKCS1v15(&public, crypto.SHA256, hash.Sum(nil), signature); err != nil || set.Keys[0]["e"] != "AQAB" {
		t.Error(err)
	}
}

func TestAccessTokensAreNeverStored(t *testing.T) {
	o := open(t)
	id, secret := o.issue(t, "acme", custody.RoleAIReader)
	token := grant(t, o.Service, id, secret, ask).Token
	if err := o.RevokeToken(t.Context(), custody.Caller{CredentialID: id, OrgID: "acme"}, token); err != nil {
		t.Fatal(err)
	}
	a, successor, err := o.RotateCredential(t.Context(), admin, custody.CredentialRotation{CredentialID: id}, change("k-12345678", "credential_id"))
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(o.in.Path + "*")
	if err != nil || len(paths) < 2 {
		t.Fatalf("%v, %v: want the database and its log", paths, err)
	}
	var files []byte
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, b...)
	}
	if !bytes.Contains(files, []byte(issuedID(t, a))) {
		t.Fatal("the credential's id cannot be found: the search proves nothing")
	}
	parts := strings.Split(token, ".")
	for what, s := range map[string]string{"the access token": token, "its claims": parts[1], "its signature": parts[2], "the secret": secret, "the successor's": successor, "its MAC": successor[len(successor)-43:]} {
		if bytes.Contains(files, []byte(s)) {
			t.Errorf("%s lies in the database", what)
		}
	}
}
