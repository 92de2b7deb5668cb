package tenant_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/tenant"
)

const issuer = "https://custody.example"

// rsaSecret is made once: the keys' size costs, not their number.
var rsaSecret = sync.OnceValue(func() []byte {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return secret
})

// keyring stands in for the key store, shared by the replicas of a test; it counts reads and injects faults.
type keyring struct {
	mu    sync.Mutex
	keys  []custody.SigningKey
	now   func() time.Time
	reads int
	fail  error
}

// newKeyring holds keys, newest first, and one for access tokens.
func newKeyring(keys ...custody.SigningKey) *keyring {
	if len(keys) == 0 {
		keys = []custody.SigningKey{newKey("key_1")}
	}
	return &keyring{now: custody.Now, keys: append(slices.Clone(keys), custody.SigningKey{ID: "key_rsa", Purpose: custody.PurposeOAuth, Key: rsaSecret()},
		custody.SigningKey{ID: "key_receipt", Purpose: custody.PurposeReceipt, Key: make([]byte, 32)})}
}

func (k *keyring) SigningSecrets(_ context.Context, purpose string, _ func() ([]byte, error)) (keys []custody.SigningKey, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reads++
	for _, key := range k.keys {
		if key.Purpose == purpose && key.RetiredAt.IsZero() {
			keys = append(keys, key)
		}
	}
	return keys, k.fail
}

func (k *keyring) AddSigningSecret(_ context.Context, purpose, keyID string, secret []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys = append([]custody.SigningKey{{ID: keyID, Purpose: purpose, Key: secret, CreatedAt: k.now()}}, k.keys...)
	return k.fail
}

func (k *keyring) Rotate(context.Context) (custody.KeyRotation, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return custody.KeyRotation{Rewrapped: len(k.keys), Retired: 1}, k.fail
}

func (k *keyring) RetireSigningSecret(_ context.Context, keyID string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.keys {
		if k.keys[i].ID == keyID {
			for _, newer := range k.keys[:i] {
				if newer.Purpose == k.keys[i].Purpose && newer.RetiredAt.IsZero() {
					k.keys[i].RetiredAt, k.keys[i].Key = k.now(), nil
					return k.fail
				}
			}
			return custody.ErrConflict
		}
	}
	return custody.ErrNotFound
}

func (k *keyring) SigningSecretNames(_ context.Context, purpose string) (keys []custody.SigningKey, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range k.keys {
		if key.Purpose == purpose {
			key.Key = nil
			keys = append(keys, key)
		}
	}
	return keys, k.fail
}

// clock is the time of a test; it moves by hand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	c.at = c.at.Add(d)
	c.mu.Unlock()
}

// replica is one more service over the same store, keys and clock.
func (o *office) replica(t *testing.T, keys *keyring, c *clock) *tenant.Service {
	t.Helper()
	keys.now = c.now
	s, err := tenant.New(t.Context(), o.store, tenant.Config{
		AdminToken: adminToken, AllowanceBytes: 1000, Keys: keys, Issuer: issuer, Resources: []string{issuer, issuer + "/mcp"}, Now: c.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// change is an administrator's change under a key; its answer shows the id under name.
func change(key, name string) custody.Idempotency {
	return custody.Idempotency{
		CredentialID: custody.AdminCredentialID, Operation: "test", Key: key, RequestHash: key,
		Render: func(result any) (custody.Answer, error) {
			said := map[string]string{}
			switch r := result.(type) {
			case custody.Credential:
				said[name], said["state"] = r.ID, r.State(custody.Now())
			case custody.RotatedCredential:
				said[name], said["replaces"], said["ends"] = r.ID, r.Replaces.ID, r.Replaces.ExpiresAt.Format(time.RFC3339Nano)
			case custody.KeyState:
				said[name], said["state"] = r.ID, r.State
			}
			b, err := json.Marshal(said)
			return custody.Answer{Status: 200, Data: b}, err
		},
	}
}

func said(t *testing.T, a custody.Answer, name string) string {
	t.Helper()
	var data map[string]string
	if err := json.Unmarshal(a.Data, &data); err != nil {
		t.Fatal(err)
	}
	return data[name]
}

func TestRotationOverlaps(t *testing.T) {
	o := open(t)
	c := &clock{at: custody.Now()}
	s := o.replica(t, newKeyring(o.keys...), c)
	a, old, err := s.Issue(t.Context(), admin, custody.CredentialRequest{OrgID: "acme", Role: custody.RoleAIReader, Scopes: []custody.Scope{"mcp"}}, idempotency("", ""))
	if err != nil {
		t.Fatal(err)
	}
	id := issuedID(t, a)
	r := custody.CredentialRotation{CredentialID: id, Overlap: time.Hour}
	a, fresh, err := s.RotateCredential(t.Context(), admin, r, change("k-12345678", "credential_id"))
	if err != nil {
		t.Fatal(err)
	}
	if said(t, a, "replaces") != id || said(t, a, "credential_id") == id || said(t, a, "ends") != c.now().Add(time.Hour).Format(time.RFC3339Nano) {
		t.Errorf("the answer is %s", a.Data)
	}
	again, token, err := s.RotateCredential(t.Context(), admin, r, change("k-12345678", "credential_id"))
	if err != nil || token != fresh || !again.Replayed || string(again.Data) != string(a.Data) {
		t.Errorf("repeated: %s, %v, the same token: %v", again.Data, err, token == fresh)
	}
	for what, presented := range map[string]string{"the old one": old, "the successor": fresh} {
		caller, err := s.Authenticate(t.Context(), presented)
		if err != nil || caller.OrgID != "acme" || !slices.Equal(caller.Scopes, []custody.Scope{"mcp"}) {
			t.Errorf("%s during the overlap: %+v, %v", what, caller, err)
		}
	}
	c.pass(time.Hour)
	_, err = s.Authenticate(t.Context(), old)
	wantCode(t, "the old one after the overlap", err, custody.CodeCredentialInvalid)
	if _, err := s.Authenticate(t.Context(), fresh); err != nil {
		t.Errorf("the successor after the overlap: %v", err)
	}
	_, token, err = s.RotateCredential(t.Context(), admin, r, change("k-another1", "credential_id"))
	if wantCode(t, "rotating what has ended", err, custody.CodeCredentialNotActive); token != "" {
		t.Error("refused, with a token")
	}
	// An overlap ends what is there; it never prolongs it.
	a, short, err := s.Issue(t.Context(), admin, custody.CredentialRequest{OrgID: "acme", Role: custody.RoleAIReader, ExpiresAt: c.now().Add(time.Minute)}, idempotency("", ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err = s.RotateCredential(t.Context(), admin, custody.CredentialRotation{CredentialID: issuedID(t, a), Overlap: custody.MaxOverlap}, change("", "credential_id")); err != nil {
		t.Fatal(err)
	}
	c.pass(time.Minute)
	_, err = s.Authenticate(t.Context(), short)
	wantCode(t, "after its own end, within the overlap", err, custody.CodeCredentialInvalid)
	for what, r := range map[string]custody.CredentialRotation{"too long": {CredentialID: id, Overlap: custody.MaxOverlap + 1}, "negative": {CredentialID: id, Overlap: -1}} {
		_, _, err := s.RotateCredential(t.Context(), admin, r, change("", "credential_id"))
		if err == nil {
			t.Errorf("an overlap that is %s", what)
			continue
		}
		wantField(t, err, "/overlap_seconds")
	}
	_, _, err = s.RotateCredential(t.Context(), admin, custody.CredentialRotation{CredentialID: "cred_none"}, change("", "credential_id"))
	wantCode(t, "an unknown one", err, custody.CodeCredentialNotFound)
}

func TestRevocation(t *testing.T) {
	o := open(t)
	id, token := o.issue(t, "acme", custody.RoleAIReader)
	_, other := o.issue(t, "acme", custody.RoleAIReader)
	for _, key := range []string{"k-1", "k-1", "k-2", ""} {
		a, err := o.RevokeCredential(t.Context(), admin, id, change(key, "credential_id"))
		if err != nil || said(t, a, "state") != custody.CredentialRevoked {
			t.Errorf("%s: %s, %v", key, a.Data, err)
		}
	}
	_, err := o.Authenticate(t.Context(), token)
	wantCode(t, "revoked", err, custody.CodeCredentialInvalid)
	if _, err := o.Authenticate(t.Context(), other); err != nil {
		t.Errorf("another credential of the organization: %v", err)
	}
	_, err = o.RevokeCredential(t.Context(), admin, "cred_none", change("", "credential_id"))
	wantCode(t, "an unknown one", err, custody.CodeCredentialNotFound)
	_, _, err = o.RotateCredential(t.Context(), admin, custody.CredentialRotation{CredentialID: id}, change("", "credential_id"))
	wantCode(t, "rotating a revoked one", err, custody.CodeCredentialNotActive)
	var actions []string
	for _, l := range o.in.AuditLines(t, "acme") {
		actions = append(actions, l.Action)
	}
	if want := []string{"credential_issued", "credential_issued", "credential_revoked"}; !slices.Equal(actions, want) {
		t.Errorf("the audit log has %v, want %v", actions, want)
	}
}

func TestCredentialsAreListed(t *testing.T) {
	o := open(t)
	var ids []string
	for range 5 {
		id, _ := o.issue(t, "acme", custody.RoleAIReader)
		ids = append([]string{id}, ids...)
	}
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(b, a) })
	stranger, _ := o.issue(t, "rival", custody.RoleSolutionCompanyUpload)
	if _, err := o.RevokeCredential(t.Context(), admin, ids[1], change("", "credential_id")); err != nil {
		t.Fatal(err)
	}
	if err := o.in.Exec(t.Context(), `UPDATE credentials SET expires_at = 1 WHERE credential_id = $1`, ids[2]); err != nil {
		t.Fatal(err)
	}
	list := func(q custody.CredentialQuery) (got []string, next string) {
		t.Helper()
		page, next, err := o.Credentials(t.Context(), admin, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page {
			got = append(got, c.ID)
		}
		return got, next
	}
	if got, next := list(custody.CredentialQuery{OrgID: "acme", Limit: 100}); !slices.Equal(got, []string{ids[0], ids[3], ids[4]}) || next != "" {
		t.Errorf("active ones: %v, %q", got, next)
	}
	if got, _ := list(custody.CredentialQuery{Limit: 100}); len(got) != 4 || !slices.Contains(got, stranger) {
		t.Errorf("of every organization: %v", got)
	}
	var all []string
	before := ""
	for range 3 {
		got, next := list(custody.CredentialQuery{OrgID: "acme", Ended: true, Limit: 2, Before: before})
		all, before = append(all, got...), next
		if (next == "") != (len(all) == 5) {
			t.Errorf("after %d: next is %q", len(all), next)
		}
	}
	if !slices.Equal(all, ids) {
		t.Errorf("page by page: %v, want %v", all, ids)
	}
}

func TestOnlyTheAdminAdministers(t *testing.T) {
	o := open(t)
	id, secret := o.issue(t, "acme", custody.RoleSolutionCompanyUpload)
	own, err := o.Authenticate(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	for who, c := range map[string]custody.Caller{"a tenant": own, "nobody": {}} {
		code := custody.CodeCredentialInvalid
		if who == "nobody" {
			code = custody.CodeAuthenticationRequired
		}
		_, _, err := o.Credentials(t.Context(), c, custody.CredentialQuery{Limit: 1})
		wantCode(t, who+" lists", err, code)
		_, err = o.RevokeCredential(t.Context(), c, id, change("", "credential_id"))
		wantCode(t, who+" revokes", err, code)
		_, token, err := o.RotateCredential(t.Context(), c, custody.CredentialRotation{CredentialID: id}, change("", "credential_id"))
		if wantCode(t, who+" rotates", err, code); token != "" {
			t.Errorf("%s got a token", who)
		}
		_, err = o.SigningKeys(t.Context(), c)
		wantCode(t, who+" lists keys", err, code)
		_, err = o.RotateSigningKey(t.Context(), c, custody.PurposeOAuth, change("", "key_id"))
		wantCode(t, who+" rotates a key", err, code)
		_, err = o.RetireSigningKey(t.Context(), c, "key_1", true, change("", "key_id"))
		wantCode(t, who+" retires a key", err, code)
	}
	if lines := o.in.AuditLines(t, "acme"); len(lines) != 1 {
		t.Errorf("the audit log has %+v", lines)
	}
}
