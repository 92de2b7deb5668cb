package tenant_test

import (
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/tenant"
)

func newInt(b []byte) *big.Int { return new(big.Int).SetBytes(b) }

func kid(t *testing.T, token string) string {
	t.Helper()
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Headers[0].KeyID
}

// Two replicas; one rotates. Nobody restarts, and nobody meets a signature that it does not know.
func TestSigningKeysRotateWhileReplicasRun(t *testing.T) {
	o := open(t)
	c := &clock{at: custody.Now().Truncate(time.Second)}
	keys := newKeyring(o.keys...)
	here, there := o.replica(t, keys, c), o.replica(t, keys, c)
	issue := func() (id, secret string) {
		t.Helper()
		a, secret, err := here.Issue(t.Context(), admin, custody.CredentialRequest{OrgID: "acme", Role: custody.RoleAIReader}, idempotency("", ""))
		if err != nil {
			t.Fatal(err)
		}
		return issuedID(t, a), secret
	}
	keyOf := func(id string) string {
		t.Helper()
		cred, err := o.in.Store.Credential(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return cred.KeyID
	}
	oldID, oldSecret := issue()
	oldToken := grant(t, here, oldID, oldSecret, ask).Token

	a, err := here.RotateSigningKey(t.Context(), admin, custody.PurposeCredential, change("k-cred", "key_id"))
	if err != nil || said(t, a, "state") != custody.KeyAnnounced {
		t.Fatalf("%s, %v", a.Data, err)
	}
	credentialKey := said(t, a, "key_id")
	if again, err := here.RotateSigningKey(t.Context(), admin, custody.PurposeCredential, change("k-cred", "key_id")); err != nil || said(t, again, "key_id") != credentialKey {
		t.Errorf("repeated: %s, %v", again.Data, err)
	}
	if a, err = here.RotateSigningKey(t.Context(), admin, custody.PurposeOAuth, change("k-oauth", "key_id")); err != nil {
		t.Fatal(err)
	}
	tokenKey := said(t, a, "key_id")

	// Announced: published, not used.
	published, err := here.KeySet(t.Context())
	if err != nil || !strings.Contains(string(published), tokenKey) || !strings.Contains(string(published), "key_rsa") {
		t.Errorf("the key set is %s, %v", published, err)
	}
	if id, secret := issue(); keyOf(id) != "key_1" || kid(t, grant(t, here, id, secret, ask).Token) != "key_rsa" {
		t.Error("a key signs before it was announced")
	}
	c.pass(2 * time.Minute)
	newID, newSecret := issue()
	newToken := grant(t, here, newID, newSecret, ask).Token
	if keyOf(newID) != credentialKey || kid(t, newToken) != tokenKey {
		t.Errorf("signed with %s and %s, want the new keys", keyOf(newID), kid(t, newToken))
	}
	for replica, s := range map[string]*tenant.Service{"here": here, "there": there} {
		for what, presented := range map[string]string{"old credential": oldSecret, "old token": oldToken, "new credential": newSecret, "new token": newToken} {
			if _, err := s.Authenticate(t.Context(), presented); err != nil {
				t.Errorf("%s: %s: %v", replica, what, err)
			}
		}
	}

	// Retired: what it signed dies here at once, elsewhere within 15 seconds. Nothing dies by mistake.
	_, err = here.RetireSigningKey(t.Context(), admin, "key_1", false, change("", "key_id"))
	if e := wantCode(t, "a key with active credentials", err, custody.CodeSigningKeyInUse); e == nil || e.Details["active_credentials"] != 2 {
		t.Errorf("%+v", e)
	}
	_, err = here.RetireSigningKey(t.Context(), admin, "key_rsa", false, change("", "key_id"))
	wantCode(t, "a key whose tokens may be alive", err, custody.CodeSigningKeyInUse)
	for _, newest := range []string{credentialKey, tokenKey} {
		_, err = here.RetireSigningKey(t.Context(), admin, newest, true, change("", "key_id"))
		wantCode(t, "the newest key, by force", err, custody.CodeSigningKeyInUse)
	}
	_, err = here.RetireSigningKey(t.Context(), admin, "key_none", true, change("", "key_id"))
	wantCode(t, "an unknown key", err, custody.CodeSigningKeyNotFound)
	if a, err = here.RetireSigningKey(t.Context(), admin, "key_1", true, change("k-retire", "key_id")); err != nil || said(t, a, "state") != custody.KeyRetired {
		t.Fatalf("%s, %v", a.Data, err)
	}
	if _, err = here.RetireSigningKey(t.Context(), admin, "key_1", true, change("k-retire", "key_id")); err != nil {
		t.Errorf("repeated: %v", err)
	}
	_, err = here.RetireSigningKey(t.Context(), admin, "key_1", true, change("", "key_id"))
	wantCode(t, "a retired key", err, custody.CodeSigningKeyNotFound)
	for _, presented := range []string{oldSecret, oldToken} {
		_, err = here.Authenticate(t.Context(), presented)
		wantCode(t, "of a retired key, here", err, custody.CodeCredentialInvalid)
	}
	c.pass(15 * time.Second)
	for _, presented := range []string{oldSecret, oldToken} {
		_, err = there.Authenticate(t.Context(), presented)
		wantCode(t, "of a retired key, there", err, custody.CodeCredentialInvalid)
	}
	if _, err := there.Authenticate(t.Context(), newSecret); err != nil {
		t.Errorf("of the new key: %v", err)
	}
	c.pass(10 * time.Minute)
	if _, err = here.RetireSigningKey(t.Context(), admin, "key_rsa", false, change("", "key_id")); err != nil {
		t.Errorf("a key whose tokens have all expired: %v", err)
	}
	var actions []string
	for _, l := range o.in.AuditLines(t, "") {
		if l.CredentialID != custody.AdminCredentialID || l.RequestID != "req_1" {
			t.Errorf("the line %+v", l)
		}
		actions = append(actions, l.Action)
	}
	want := []string{"signing_key_added_begun", "signing_key_added", "signing_key_added_begun", "signing_key_added"}
	if len(actions) < 8 || !slices.Equal(actions[:4], want) || actions[len(actions)-1] != "signing_key_retired" {
		t.Errorf("the audit log of the house is %v", actions)
	}
}

// Emergency: the only key is replaced and retired in one go; the new one signs though it was never announced.
func TestKeyThatLeaks(t *testing.T) {
	o := open(t)
	c := &clock{at: custody.Now()}
	s := o.replica(t, newKeyring(o.keys...), c)
	a, err := s.RotateSigningKey(t.Context(), admin, custody.PurposeCredential, change("", "key_id"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.RetireSigningKey(t.Context(), admin, "key_1", true, change("", "key_id")); err != nil {
		t.Fatal(err)
	}
	_, secret, err := s.Issue(t.Context(), admin, custody.CredentialRequest{OrgID: "acme", Role: custody.RoleAIReader}, idempotency("", ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authenticate(t.Context(), secret); err != nil {
		t.Error(err)
	}
	keys, err := s.SigningKeys(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, k := range keys {
		if shown = append(shown, k.ID+" "+k.State); k.Key != nil {
			t.Errorf("%s is listed with its secret", k.ID)
		}
	}
	if want := []string{said(t, a, "key_id") + " signing", "key_1 retired", "key_rsa signing", "key_receipt signing"}; !slices.Equal(shown, want) {
		t.Errorf("the keys are %v, want %v", shown, want)
	}
	if _, err := s.RotateSigningKey(t.Context(), admin, "sandbox", change("", "key_id")); err == nil {
		t.Error("a key of another purpose was added")
	}
}

// A flood of forged signatures reads the keys once a second, not once a request; a key that is new is found within it.
func TestUnknownKeysAreLookedForWithinBounds(t *testing.T) {
	o := open(t)
	_, secret := o.issue(t, "acme", custody.RoleAIReader)
	c := &clock{at: custody.Now()}
	keys := newKeyring(newKey("key_other"))
	s := o.replica(t, keys, c)
	c.pass(5 * time.Second)
	before := keys.reads
	for range 100 {
		_, err := s.Authenticate(t.Context(), secret)
		wantCode(t, "signed with an unknown key", err, custody.CodeCredentialInvalid)
	}
	if keys.reads-before != 1 {
		t.Errorf("100 forged tokens read the keys %d times, want 1", keys.reads-before)
	}
	keys.mu.Lock()
	keys.keys = append([]custody.SigningKey{o.keys[0]}, keys.keys...)
	keys.mu.Unlock()
	c.pass(time.Second)
	if _, err := s.Authenticate(t.Context(), secret); err != nil {
		t.Errorf("a key that is new: %v", err)
	}
}

// A key store that does not answer is neither a pass nor a refusal.
func TestSilentKeyStoreIsNoVerdict(t *testing.T) {
	o := open(t)
	id, secret := o.issue(t, "acme", custody.RoleAIReader)
	c := &clock{at: custody.Now()}
	keys := newKeyring(o.keys...)
	s := o.replica(t, keys, c)
	token := grant(t, s, id, secret, ask).Token
	keys.mu.Lock()
	keys.fail = errors.New("key store is away")
	keys.mu.Unlock()
	c.pass(14 * time.Second)
	if _, err := s.Authenticate(t.Context(), token); err != nil {
		t.Errorf("with keys of 14 seconds: %v", err)
	}
	c.pass(2 * time.Second)
	for _, presented := range []string{secret, token} {
		caller, err := s.Authenticate(t.Context(), presented)
		var e *custody.Error
		if !errors.Is(err, keys.fail) || errors.As(err, &e) || caller.CredentialID != "" {
			t.Errorf("with keys of 16 seconds: %+v, %v", caller, err)
		}
	}
	if _, err := s.RotateSigningKey(t.Context(), admin, custody.PurposeOAuth, change("k-12345678", "key_id")); !errors.Is(err, keys.fail) {
		t.Errorf("a rotation that was not kept: %v", err)
	}
}

// A key that verifies is not enough: a credential belongs to the one it was issued under.
func TestCredentialsBelongToTheirKey(t *testing.T) {
	o := open(t)
	id, secret := o.issue(t, "acme", custody.RoleAIReader)
	s := o.with(t, newKey("key_2"), o.keys[0])
	if _, err := s.Authenticate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := o.in.Exec(t.Context(), `UPDATE credentials SET key_id = 'key_2' WHERE credential_id = $1`, id); err != nil {
		t.Fatal(err)
	}
	_, err := s.Authenticate(t.Context(), secret)
	wantCode(t, "signed with another key of ours", err, custody.CodeCredentialInvalid)
}
