package webhook

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

// releasing is a store that hears when a delivery is due again that was given back.
type releasing struct {
	Store
	Tx
	delays []time.Duration
}

func (s *releasing) InTx(_ context.Context, fn func(Tx) error) error { return fn(s) }

func (s *releasing) ReleaseDelivery(_ context.Context, _ custody.Delivery, delay time.Duration) error {
	s.delays = append(s.delays, delay)
	return nil
}

// empty is a key store without the secrets that somebody asks for.
type empty struct{ Keys }

func (empty) ReadSigningSecrets(context.Context, string) ([]custody.SigningKey, error) {
	return nil, nil
}

// A delivery that cannot be made is not due again at once: it would be claimed, fail and be logged hundreds of times a second.
func TestDeliveryWithoutASecretWaits(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, c := range map[string]struct {
		ctx  context.Context
		want time.Duration
	}{"while the service runs": {t.Context(), time.Minute}, "as it stops": {stopped, 0}} {
		store := &releasing{}
		s := New(store, Config{Keys: empty{}, Delays: []time.Duration{time.Minute}, Log: slog.New(slog.DiscardHandler)})
		(&courier{Service: s}).deliver(c.ctx, custody.Webhook{OrgID: "acme", SecretID: "key_1"}, custody.Delivery{OrgID: "acme", EventID: "evt_1"})
		if len(store.delays) != 1 || store.delays[0] != c.want {
			t.Errorf("%s: due again after %v, want %s", name, store.delays, c.want)
		}
	}
}
