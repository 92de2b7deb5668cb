package webhook

import (
	"context"
	"errors"
	"testing"

	"github.com/accession/accession/internal/custody"
)

// unsure is a store without a webhook, whose commits end in an error.
type unsure struct {
	Store
	commit error
}

func (unsure) Webhook(context.Context, string) (custody.Webhook, error) {
	return custody.Webhook{}, custody.ErrNotFound
}

func (unsure) Answered(context.Context, custody.Idempotency) (string, custody.Answer, error) {
	return "", custody.Answer{}, custody.ErrNotFound
}

func (s unsure) InTx(context.Context, func(Tx) error) error { return s.commit }

// safe counts the secrets that it keeps.
type safe struct {
	Keys
	secrets int
}

func (k *safe) AddSigningSecret(context.Context, string, string, []byte) error {
	k.secrets++
	return nil
}

func (k *safe) RetireSigningPurpose(context.Context, string) error {
	k.secrets = 0
	return nil
}

// A commit without an answer may have set the webhook: without its secret nothing could ever be delivered to it.
func TestSecretStaysInDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		commit error
		left   int
	}{
		"refused":  {custody.Unavailable(errors.New("refused")), 0},
		"in doubt": {custody.Unavailable(errors.Join(custody.ErrInDoubt, errors.New("cut off"))), 1},
	} {
		keys := &safe{}
		_, _, err := New(unsure{commit: c.commit}, Config{Keys: keys}).SetWebhook(t.Context(), custody.Caller{CredentialID: custody.AdminCredentialID, Admin: true}, "acme", "https://hooks.example/in", custody.Idempotency{Key: "key-0001"})
		if !errors.Is(err, c.commit) || keys.secrets != c.left {
			t.Errorf("%s: %v, %d secrets are left, want %d", name, err, keys.secrets, c.left)
		}
	}
}
