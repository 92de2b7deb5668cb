package tenant_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/storetest"
	"github.com/accession/accession/internal/tenant"
)

const adminToken = "correct-horse-battery-staple-and-more"

// office is the service over a real store.
type office struct {
	*tenant.Service
	store *store
	in    *storetest.Installation
	keys  []custody.SigningKey
}

func open(t testing.TB) *office {
	t.Helper()
	in := storetest.OpenSQLite(t)
	o := &office{in: in, store: &store{reads: in.Store, inTx: joined(in.Store.InTx)}, keys: []custody.SigningKey{newKey("key_1")}}
	o.Service = o.with(t, o.keys...)
	return o
}

// with is the same office with other signing keys, as after a restart.
func (o *office) with(t testing.TB, keys ...custody.SigningKey) *tenant.Service {
	t.Helper()
	s, err := tenant.New(t.Context(), o.store, tenant.Config{
		AdminToken: adminToken, AllowanceBytes: 1000, Keys: newKeyring(keys...), Issuer: issuer, Resources: []string{issuer, issuer + "/mcp"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newKey(id string) custody.SigningKey {
	key := make([]byte, 32)
	rand.Read(key)
	return custody.SigningKey{ID: id, Purpose: custody.PurposeCredential, Key: key}
}

type reads interface {
	Credential(context.Context, string) (custody.Credential, error)
	Credentials(context.Context, custody.CredentialQuery) ([]custody.Credential, bool, error)
	CountSigned(context.Context, string, time.Time) (int, error)
	Organizations(context.Context, custody.OrganizationQuery) ([]custody.OrganizationState, bool, error)
	Quota(context.Context, string) (custody.Quota, error)
	TokenRevoked(context.Context, string) (bool, error)
	Seats(context.Context, string, time.Time) ([]custody.Seat, error)
	Answered(context.Context, custody.Idempotency) (string, custody.Answer, error)
}

// store is the real one; fail injects a database that does not answer.
type store struct {
	reads
	inTx func(context.Context, func(tenant.Tx) error) error
	fail error
}

func (s *store) InTx(ctx context.Context, fn func(tenant.Tx) error) error {
	if s.fail != nil {
		return s.fail
	}
	return s.inTx(ctx, fn)
}

func (s *store) Credential(ctx context.Context, id string) (custody.Credential, error) {
	if s.fail != nil {
		return custody.Credential{}, s.fail
	}
	return s.reads.Credential(ctx, id)
}

// joined lets the transactions of a store that tenant does not know be tenant's.
func joined[T tenant.Tx](inTx func(context.Context, func(T) error) error) func(context.Context, func(tenant.Tx) error) error {
	return func(ctx context.Context, fn func(tenant.Tx) error) error {
		return inTx(ctx, func(tx T) error { return fn(tx) })
	}
}

var admin = custody.Caller{CredentialID: custody.AdminCredentialID, Admin: true, RequestID: "req_1", TraceID: "trc_1"}

func idempotency(key, requestHash string) custody.Idempotency {
	return custody.Idempotency{
		CredentialID: custody.AdminCredentialID, Operation: custody.OpIssueCredential, Key: key, RequestHash: requestHash,
		Render: func(result any) (custody.Answer, error) {
			b, err := json.Marshal(map[string]string{"credential_id": result.(custody.Credential).ID})
			return custody.Answer{Status: 201, Data: b}, err
		},
	}
}

func (o *office) issue(t testing.TB, orgID string, role custody.Role, scopes ...custody.Scope) (credentialID, token string) {
	t.Helper()
	a, token, err := o.Issue(t.Context(), admin, custody.CredentialRequest{OrgID: orgID, Role: role, Scopes: scopes}, idempotency("", ""))
	if err != nil {
		t.Fatal(err)
	}
	return issuedID(t, a), token
}

func issuedID(t testing.TB, a custody.Answer) string {
	t.Helper()
	var issued map[string]string
	if err := json.Unmarshal(a.Data, &issued); err != nil {
		t.Fatal(err)
	}
	return issued["credential_id"]
}

func wantCode(t *testing.T, what string, err error, want custody.Code) *custody.Error {
	t.Helper()
	var e *custody.Error
	if !errors.As(err, &e) || e.Code != want {
		t.Errorf("%s: got %v, want %s", what, err, want)
		return nil
	}
	return e
}
