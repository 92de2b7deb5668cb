package tenant

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accession/accession/internal/custody"
)

// lateKeys answers once its delay is over, or the asker's patience.
type lateKeys struct {
	Keys
	delay time.Duration
}

func (k *lateKeys) SigningSecrets(ctx context.Context, _ string, generate func() ([]byte, error)) ([]custody.SigningKey, error) {
	select {
	case <-time.After(k.delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	key, err := generate()
	return []custody.SigningKey{{ID: "key_1", Key: key}}, err
}

// The first reading may take its time, since a service without keys can do nothing; a later one holds up requests.
func TestFirstReadingOfKeysIsPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &lateKeys{delay: startTimeout - time.Second}
		r := &ring[[]byte]{source: source, purpose: custody.PurposeCredential, generate: newHMACKey, parse: parseHMACKey, now: time.Now}
		if _, err := r.read(t.Context(), reloadEvery); err != nil {
			t.Fatalf("first: %v", err)
		}
		time.Sleep(reloadEvery)
		begun := time.Now()
		if _, err := r.read(t.Context(), reloadEvery); err == nil || time.Since(begun) != reloadTimeout {
			t.Errorf("later: %v after %s", err, time.Since(begun))
		}
	})
}
