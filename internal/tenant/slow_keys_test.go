package tenant_test

import (
	"context"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/tenant"
)

// slowKeys is a key store whose answer, once, is under way for as long as the test wants.
type slowKeys struct {
	*keyring
	hold, answered, let chan struct{}
}

func (k slowKeys) SigningSecrets(ctx context.Context, purpose string, generate func() ([]byte, error)) ([]custody.SigningKey, error) {
	keys, err := k.keyring.SigningSecrets(ctx, purpose, generate)
	select {
	case <-k.hold:
		k.answered <- struct{}{}
		<-k.let
	default:
	}
	return keys, err
}

// An answer to a question asked before a rotation is no answer to who asks after it.
func TestAnAnswerFromBeforeARotation(t *testing.T) {
	for name, last := range map[string]time.Duration{"nothing is known": custody.SigningKeyAnnouncement, "something is known": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			o := open(t)
			c := &clock{at: custody.Now()}
			ring := newKeyring(o.keys...)
			issuer := o.replica(t, ring, c)
			_, token, err := issuer.Issue(t.Context(), admin, custody.CredentialRequest{OrgID: "acme", Role: custody.RoleAIReader}, idempotency("", ""))
			if err != nil {
				t.Fatal(err)
			}
			keys := slowKeys{ring, make(chan struct{}, 1), make(chan struct{}), make(chan struct{})}
			s, err := tenant.New(t.Context(), o.store, tenant.Config{AdminToken: adminToken, AllowanceBytes: 1000, Keys: keys, Issuer: "https://custody.example", Now: c.now})
			if err != nil {
				t.Fatal(err)
			}
			c.pass(last) // what was read may be read again, or has to be
			keys.hold <- struct{}{}
			answers := make(chan error, 2)
			go func() {
				_, err := s.Authenticate(t.Context(), forged(token)) // has the keys read, and waits
				answers <- err
			}()
			<-keys.answered
			fresh := newKey("key_new")
			ring.mu.Lock()
			ring.keys = append([]custody.SigningKey{fresh}, ring.keys...)
			ring.mu.Unlock()
			c.pass(2 * time.Second)
			_, late, err := o.replica(t, ring, c).Issue(t.Context(), admin, custody.CredentialRequest{OrgID: "acme", Role: custody.RoleAIReader}, idempotency("", ""))
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, err := s.Authenticate(t.Context(), late)
				answers <- err
			}()
			close(keys.let)
			if _, err := s.Authenticate(t.Context(), late); err != nil {
				t.Errorf("signed with the new key: %v", err)
			}
			refused := 0
			for range 2 {
				if <-answers != nil {
					refused++
				}
			}
			if refused != 1 {
				t.Errorf("%d refused, want the forged one alone", refused)
			}
		})
	}
}

// forged is a token signed with a key that nobody has.
func forged(token string) string {
	at := len(token) - 43
	other := "A"
	if token[at:at+1] == other {
		other = "B"
	}
	return token[:at] + other + token[at+1:]
}
