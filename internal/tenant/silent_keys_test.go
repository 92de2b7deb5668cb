package tenant_test

import (
	"context"
	"errors"
	"testing"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/tenant"
)

// silentKeys is a key store that answers nothing until it is woken, whatever the context of the question says.
type silentKeys struct {
	*keyring
	asked, awake chan struct{}
}

func (k silentKeys) SigningSecrets(ctx context.Context, purpose string, generate func() ([]byte, error)) ([]custody.SigningKey, error) {
	select {
	case k.asked <- struct{}{}:
	default: // asked more than once
		return nil, errors.New("the key store is asked although it has not answered yet")
	}
	<-k.awake
	<-k.asked
	return k.keyring.SigningSecrets(ctx, purpose, generate)
}

// While the key store is silent it is asked once for all who wait; whoever leaves need not wait for those before him, and
// whoever stays hears that the service cannot do it now, not that it failed. When it answers, all goes on.
func TestASilentKeyStoreHoldsUpNobodyForLong(t *testing.T) {
	o := open(t)
	c := &clock{at: custody.Now()}
	ring := newKeyring(o.keys...)
	o.replica(t, ring, c) // makes the ring's clock the test's
	keys := silentKeys{ring, make(chan struct{}, 1), make(chan struct{}, 8)}
	keys.awake <- struct{}{} // credentials' and
	keys.awake <- struct{}{} // access tokens' keys, at the start
	s, err := tenant.New(t.Context(), o.store, tenant.Config{AdminToken: adminToken, AllowanceBytes: 1000, Keys: keys, Issuer: issuer, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	_, token, err := o.replica(t, ring, c).Issue(t.Context(), admin, custody.CredentialRequest{OrgID: "acme", Role: custody.RoleAIReader}, idempotency("", ""))
	if err != nil {
		t.Fatal(err)
	}
	c.pass(custody.SigningKeyAnnouncement) // what was read is too old now

	answers := make(chan error)
	ask := func(ctx context.Context) {
		_, err := s.Authenticate(ctx, token)
		answers <- err
	}
	const many = 20
	patience, leave := context.WithCancel(t.Context())
	for range many {
		go ask(patience)
	}
	leave()
	for range many {
		if err := <-answers; !errors.Is(err, context.Canceled) {
			t.Errorf("who left: %v", err)
		}
	}
	for range many {
		go ask(t.Context())
	}
	for range many {
		wantCode(t, "who stayed", <-answers, custody.CodeUnavailable)
	}
	close(keys.awake)
	if _, err := s.Authenticate(t.Context(), token); err != nil {
		t.Errorf("awake again: %v", err)
	}
}
