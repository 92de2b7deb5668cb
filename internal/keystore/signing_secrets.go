package keystore

import (
	"context"
	"fmt"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
)

// SigningKeys are the SigningSecrets of a purpose whose keys are KeySize random bytes; a longer secret is an error.
func (s *Store) SigningKeys(ctx context.Context, purpose string) ([]custody.SigningKey, error) {
	keys, err := s.SigningSecrets(ctx, purpose, func() ([]byte, error) { return randomKey(), nil })
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if len(k.Key) != KeySize {
			return nil, errForeignKey
		}
	}
	return keys, nil
}

// Signing secrets are of any length from KeySize on: an HMAC key, or an RSA key as PKCS#8.

// SigningSecrets returns the keys of a purpose that still verify, newest first. Where there is none, what generate makes
// becomes the first; of several replicas that find none, one wins.
func (s *Store) SigningSecrets(ctx context.Context, purpose string, generate func() ([]byte, error)) ([]custody.SigningKey, error) {
	s.using.RLock()
	defer s.using.RUnlock()
	keys, err := s.signingSecrets(ctx, purpose)
	if err != nil || len(keys) > 0 {
		return keys, err
	}
	secret, err := generate()
	if err != nil {
		return nil, fmt.Errorf("make signing key: %w", err)
	}
	id := custody.NewID("key")
	wrapped, err := s.wrap(ctx, id, secret)
	if err != nil {
		return nil, err
	}
	if err := s.db.InTx(ctx, func(q sqldb.Querier) error {
		if lock := s.db.Dialect().Exclusive; lock != "" { // nobody else finds none meanwhile
			if _, err := q.Exec(ctx, fmt.Sprintf(lock, "signing_keys")); err != nil {
				return err
			}
		}
		_, err := q.Exec(ctx, `INSERT INTO signing_keys (key_id, purpose, wrapped, created_at)
			SELECT $1, $2, $3, $4 WHERE NOT EXISTS (SELECT 1 FROM signing_keys WHERE purpose = $5 AND retired_at = 0)`,
			id, purpose, wrapped, custody.Now().UnixMilli(), purpose)
		return err
	}); err != nil {
		return nil, err
	}
	return s.signingSecrets(ctx, purpose)
}

func (s *Store) signingSecrets(ctx context.Context, purpose string) ([]custody.SigningKey, error) {
	keys, err := s.list(ctx, `WHERE purpose = $1 AND retired_at = 0`, purpose)
	for i, k := range keys {
		if err != nil {
			return nil, err
		}
		keys[i].Key, err = s.unwrap(ctx, k.ID, k.Key)
	}
	return keys, err
}

// AddSigningSecret keeps a new key of a purpose under keyID; it is durable on return.
func (s *Store) AddSigningSecret(ctx context.Context, purpose, keyID string, secret []byte) error {
	s.using.RLock()
	defer s.using.RUnlock()
	wrapped, err := s.wrap(ctx, keyID, secret)
	if err != nil {
		return err
	}
	return s.db.InTx(ctx, func(q sqldb.Querier) error {
		_, err := q.Exec(ctx, `INSERT INTO signing_keys (key_id, purpose, wrapped, created_at) VALUES ($1, $2, $3, $4)`,
			keyID, purpose, wrapped, custody.Now().UnixMilli())
		return err
	})
}

// RetireSigningSecret destroys a key; its name remains. custody.ErrNotFound where it is unknown or retired already,
// custody.ErrConflict where it is the newest of its purpose: nothing would be left to sign with.
func (s *Store) RetireSigningSecret(ctx context.Context, keyID string) error {
	if err := s.db.InTx(ctx, func(q sqldb.Querier) error {
		n, err := q.Exec(ctx, `UPDATE signing_keys SET retired_at = $1, wrapped = $2 WHERE key_id = $3 AND retired_at = 0
			AND EXISTS (SELECT 1 FROM signing_keys AS newer WHERE newer.purpose = signing_keys.purpose AND newer.retired_at = 0
				AND (newer.created_at > signing_keys.created_at
					OR (newer.created_at = signing_keys.created_at AND newer.key_id > signing_keys.key_id)))`,
			custody.Now().UnixMilli(), []byte{}, keyID)
		if err != nil || n == 1 {
			return err
		}
		var left int
		if err := q.Row(ctx, `SELECT COUNT(*) FROM signing_keys WHERE key_id = $1 AND retired_at = 0`, []any{keyID}, &left); err != nil {
			return err
		}
		if left == 0 {
			return custody.ErrNotFound
		}
		return custody.ErrConflict
	}); err != nil {
		return err
	}
	if db, ok := s.db.(scrubber); ok {
		if err := db.Scrub(ctx); err != nil {
			return fmt.Errorf("overwrite retired key: %w", err)
		}
	}
	return nil
}

// SigningSecretNames lists the keys of a purpose, retired ones too, newest first, without the secrets.
func (s *Store) SigningSecretNames(ctx context.Context, purpose string) ([]custody.SigningKey, error) {
	keys, err := s.list(ctx, `WHERE purpose = $1`, purpose)
	for i := range keys {
		keys[i].Key = nil
	}
	return keys, err
}

// list reads rows; Key is still wrapped.
func (s *Store) list(ctx context.Context, where, purpose string) (keys []custody.SigningKey, err error) {
	err = s.db.Each(ctx, `SELECT key_id, purpose, wrapped, created_at, retired_at FROM signing_keys `+where+` ORDER BY created_at DESC, key_id DESC`,
		[]any{purpose}, func(scan func(...any) error) error {
			var k custody.SigningKey
			var created, retired int64
			if err := scan(&k.ID, &k.Purpose, &k.Key, &created, &retired); err != nil {
				return err
			}
			k.CreatedAt = time.UnixMilli(created).UTC()
			if retired > 0 {
				k.RetiredAt = time.UnixMilli(retired).UTC()
			}
			keys = append(keys, k)
			return nil
		})
	return keys, err
}
