package tenant_test

import (
	"testing"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/tenant"
)

// A signature that was found good once says nothing of what became of its key and of the token since.
func TestVerifiedTokensAreLookedUpAnew(t *testing.T) {
	for what, end := range map[string]func(o *office, s *tenant.Service, id, token string) (presented string, err error){
		"its key was retired": func(_ *office, s *tenant.Service, _, token string) (string, error) {
			if _, err := s.RotateSigningKey(t.Context(), admin, custody.PurposeOAuth, change("", "key_id")); err != nil {
				return "", err
			}
			_, err := s.RetireSigningKey(t.Context(), admin, "key_rsa", true, change("", "key_id"))
			return token, err
		},
		"it was revoked": func(_ *office, s *tenant.Service, id, token string) (string, error) {
			return token, s.RevokeToken(t.Context(), custody.Caller{CredentialID: id, OrgID: "acme"}, token)
		},
		"its credential was revoked": func(_ *office, s *tenant.Service, id, token string) (string, error) {
			_, err := s.RevokeCredential(t.Context(), admin, id, change("k", "credential_id"))
			return token, err
		},
		"a letter of its signature is another": func(_ *office, _ *tenant.Service, _, token string) (string, error) {
			at := len(token) - 20
			other := byte('A')
			if token[at] == other {
				other = 'B'
			}
			return token[:at] + string(other) + token[at+1:], nil
		},
		"it is spelled in another way": func(_ *office, _ *tenant.Service, _, token string) (string, error) {
			return token[:20] + "\n" + token[20:], nil
		},
	} {
		o := open(t)
		s := o.replica(t, newKeyring(o.keys...), &clock{at: custody.Now()})
		id, secret := o.issue(t, "acme", custody.RoleAIReader)
		token := grant(t, s, id, secret, ask).Token
		for range 2 {
			if _, err := s.Authenticate(t.Context(), token); err != nil {
				t.Fatalf("%s, before that: %v", what, err)
			}
		}
		presented, err := end(o, s, id, token)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		_, err = s.Authenticate(t.Context(), presented)
		wantCode(t, what, err, custody.CodeCredentialInvalid)
	}
}

func TestVerifiedTokensKeepTheirScopes(t *testing.T) {
	o := open(t)
	id, secret := o.issue(t, "acme", custody.RoleAIReader)
	narrow := ask
	narrow.Scope = "mcp"
	wide, less := grant(t, o.Service, id, secret, ask).Token, grant(t, o.Service, id, secret, narrow).Token
	for range 2 { // the second time from memory
		for token, scopes := range map[string]int{wide: 4, less: 1} {
			if c, err := o.Authenticate(t.Context(), token); err != nil || len(c.Scopes) != scopes || c.CredentialID != id || c.OrgID != "acme" || c.TokenID == "" {
				t.Errorf("%+v, %v; want %d scopes", c, err, scopes)
			}
		}
	}
}

func BenchmarkAccessToken(b *testing.B) {
	o := open(b)
	id, secret := o.issue(b, "acme", custody.RoleAIReader)
	token := grant(b, o.Service, id, secret, ask).Token
	b.ReportAllocs()
	for b.Loop() {
		if _, err := o.Authenticate(b.Context(), token); err != nil {
			b.Fatal(err)
		}
	}
}
