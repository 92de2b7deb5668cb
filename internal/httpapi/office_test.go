package httpapi

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/storetest"
	"github.com/accession/accession/internal/tenant"
)

// The bench's token server and credential administration are the real ones, over a real database.

func (r *rooms) AuthenticateClient(ctx context.Context, id, secret string) (custody.Credential, error) {
	return r.office.AuthenticateClient(ctx, id, secret)
}

func (r *rooms) GrantToken(ctx context.Context, c custody.Credential, q tenant.TokenRequest) (tenant.AccessToken, error) {
	return r.office.GrantToken(ctx, c, q)
}

func (r *rooms) RevokeToken(ctx context.Context, c custody.Caller, token string) error {
	return r.office.RevokeToken(ctx, c, token)
}

func (r *rooms) Introspect(ctx context.Context, c custody.Credential, token string) (tenant.Introspection, error) {
	return r.office.Introspect(ctx, c, token)
}

func (r *rooms) KeySet(ctx context.Context) (json.RawMessage, error) { return r.office.KeySet(ctx) }

func (r *rooms) Credentials(ctx context.Context, c custody.Caller, q custody.CredentialQuery) ([]custody.Credential, string, error) {
	return r.office.Credentials(ctx, c, q)
}

func (r *rooms) RevokeCredential(ctx context.Context, c custody.Caller, id string, i custody.Idempotency) (custody.Answer, error) {
	return r.office.RevokeCredential(ctx, c, id, i)
}

func (r *rooms) RotateCredential(ctx context.Context, c custody.Caller, q custody.CredentialRotation, i custody.Idempotency) (custody.Answer, string, error) {
	return r.office.RotateCredential(ctx, c, q, i)
}

func (r *rooms) SigningKeys(ctx context.Context, c custody.Caller) ([]custody.KeyState, error) {
	return r.office.SigningKeys(ctx, c)
}

func (r *rooms) RotateSigningKey(ctx context.Context, c custody.Caller, purpose string, i custody.Idempotency) (custody.Answer, error) {
	return r.office.RotateSigningKey(ctx, c, purpose, i)
}

func (r *rooms) RotateKeys(ctx context.Context, c custody.Caller, i custody.Idempotency) (custody.Answer, error) {
	return r.office.RotateKeys(ctx, c, i)
}

func (r *rooms) RetireSigningKey(ctx context.Context, c custody.Caller, id string, force bool, i custody.Idempotency) (custody.Answer, error) {
	return r.office.RetireSigningKey(ctx, c, id, force, i)
}

func (r *rooms) SignIn(ctx context.Context, token, before string) (string, custody.Session, error) {
	return r.office.SignIn(ctx, token, before)
}

func (r *rooms) Session(ctx context.Context, cookie string) (custody.Session, error) {
	return r.office.Session(ctx, cookie)
}

func (r *rooms) Seated(ctx context.Context, cookie string, role custody.Role) (custody.Caller, error) {
	return r.office.Seated(ctx, cookie, role)
}

func (r *rooms) SignOut(ctx context.Context, cookie string) error {
	return r.office.SignOut(ctx, cookie)
}

// officeStore is the real one; its transactions are of a type that the door does not know.
type officeStore struct {
	officeReads
	inTx func(context.Context, func(tenant.Tx) error) error
}

type officeReads interface {
	Credential(context.Context, string) (custody.Credential, error)
	Credentials(context.Context, custody.CredentialQuery) ([]custody.Credential, bool, error)
	CountSigned(context.Context, string, time.Time) (int, error)
	Organizations(context.Context, custody.OrganizationQuery) ([]custody.OrganizationState, bool, error)
	Quota(context.Context, string) (custody.Quota, error)
	TokenRevoked(context.Context, string) (bool, error)
	Seats(context.Context, string, time.Time) ([]custody.Seat, error)
	Answered(context.Context, custody.Idempotency) (string, custody.Answer, error)
}

func (s officeStore) InTx(ctx context.Context, fn func(tenant.Tx) error) error {
	return s.inTx(ctx, fn)
}

func joined[T tenant.Tx](inTx func(context.Context, func(T) error) error) func(context.Context, func(tenant.Tx) error) error {
	return func(ctx context.Context, fn func(tenant.Tx) error) error {
		return inTx(ctx, func(tx T) error { return fn(tx) })
	}
}

// withOffice gives the bench a real tenant room; its credentials come from the door itself.
func withOffice(t *testing.T, b *bench) *storetest.Installation {
	t.Helper()
	in := storetest.OpenSQLite(t)
	office, err := tenant.New(t.Context(), officeStore{in.Store, joined(in.Store.InTx)}, tenant.Config{
		AdminToken: adminToken, AllowanceBytes: 1000, Keys: &keyFolder{}, Issuer: b.url, Resources: []string{b.url, b.url + "/mcp"},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.office = office
	return in
}

// issued asks the door for a credential.
func (b *bench) issued(org, role string) (id, secret string) {
	b.t.Helper()
	data := b.call("POST", "/admin/tenant-keys/issue", strings.NewReader(`{"org_id":"`+org+`","role":"`+role+`"}`), asJ, admin).succeeds(b.t, 201)
	return data["credential_id"].(string), data["token"].(string)
}

// form posts name, value, name, value, …
func (b *bench) form(path string, values []string, headers ...string) reply {
	b.t.Helper()
	var body []string
	for i := 0; i < len(values); i += 2 {
		body = append(body, url.QueryEscape(values[i])+"="+url.QueryEscape(values[i+1]))
	}
	return b.call("POST", path, strings.NewReader(strings.Join(body, "&")), append([]string{"Content-Type: application/x-www-form-urlencoded"}, headers...)...)
}

// accessToken is granted by post.
func (b *bench) accessToken(id, secret string, more ...string) string {
	b.t.Helper()
	r := b.form("/oauth/token", append([]string{"grant_type", "client_credentials", "client_id", id, "client_secret", secret}, more...))
	var said tokenAnswer
	if err := json.Unmarshal(r.raw, &said); err != nil || r.StatusCode != 200 || said.AccessToken == "" {
		b.t.Fatalf("answered %d %s", r.StatusCode, r.raw)
	}
	return said.AccessToken
}

// keyFolder stands in for the key store, which is another room's.
type keyFolder struct {
	mu   sync.Mutex
	keys []custody.SigningKey // newest first
}

var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func (k *keyFolder) SigningSecrets(_ context.Context, purpose string, generate func() ([]byte, error)) (keys []custody.SigningKey, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range k.keys {
		if key.Purpose == purpose && key.RetiredAt.IsZero() {
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 {
		return keys, nil
	}
	key := custody.SigningKey{ID: "key_" + purpose, Purpose: purpose}
	if purpose == custody.PurposeOAuth {
		key.Key, err = x509.MarshalPKCS8PrivateKey(rsaKey())
	} else {
		key.Key, err = generate()
	}
	k.keys = append(k.keys, key)
	return []custody.SigningKey{key}, err
}

func (k *keyFolder) AddSigningSecret(_ context.Context, purpose, keyID string, secret []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys = append([]custody.SigningKey{{ID: keyID, Purpose: purpose, Key: secret, CreatedAt: custody.Now()}}, k.keys...)
	return nil
}

func (k *keyFolder) Rotate(context.Context) (custody.KeyRotation, error) {
	return custody.KeyRotation{Rewrapped: 7, Retired: 1}, nil
}

func (k *keyFolder) RetireSigningSecret(_ context.Context, keyID string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.keys {
		if k.keys[i].ID == keyID && i > 0 {
			k.keys[i].RetiredAt, k.keys[i].Key = time.Now(), nil
			return nil
		}
	}
	return custody.ErrNotFound
}

func (k *keyFolder) SigningSecretNames(_ context.Context, purpose string) (keys []custody.SigningKey, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range k.keys {
		if key.Purpose == purpose {
			key.Key = nil
			keys = append(keys, key)
		}
	}
	return keys, nil
}
