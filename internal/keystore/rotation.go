package keystore

import (
	"context"
	"errors"
	"fmt"

	"github.com/accession/accession/internal/crashpoint"
	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
)

// rewrapped is how many keys one transaction re-wraps.
const rewrapped = 200

// ring is a Keeper that makes its own key-encryption keys, as KeyFile does. A key service makes them by itself: there a rotation
// re-wraps under whatever its key's current version is.
type ring interface {
	Prepared() bool
	Advance() error
	Newest(ctx context.Context, wrapped []byte) bool
	Retire() (int, error)
}

// Rotate makes a new key-encryption key and wraps every data key and signing secret anew; the keys themselves, and what they
// seal, stay. The old key-encryption key is retired once nothing is wrapped by it any more. Interrupted at any point every key
// still unwraps, and the next Rotate finishes. It runs beside everything else, and after another Rotate.
func (s *Store) Rotate(ctx context.Context) (r custody.KeyRotation, err error) {
	s.rotating.Lock()
	defer s.rotating.Unlock()
	keys, isRing := s.keeper.(ring)
	if isRing && s.shared && !keys.Prepared() {
		return r, errors.New("rotate: replicas share the key store, and a new key-encryption key would be in one key file alone; put it into all of them first")
	}
	if isRing {
		s.using.Lock() // what was wrapped by the old key is in its row on return
		err := keys.Advance()
		s.using.Unlock()
		if err != nil {
			return r, err
		}
		crashpoint.Hit("keystore: after new key")
	}
	foreign := 0
	for _, t := range []struct{ table, name string }{{"data_keys", "upload_id"}, {"signing_keys", "key_id"}} {
		if err := s.eachWrapped(ctx, t.table, t.name, func(page []wrappedKey) error {
			var anew []wrappedKey
			for _, k := range page {
				if isRing && keys.Newest(ctx, k.wrapped) {
					continue
				}
				secret, err := s.unwrap(ctx, k.name, k.wrapped)
				if err != nil && isRing {
					foreign++ // no key of the file opens it; it must not keep the others from being wrapped anew
					continue
				}
				if err != nil {
					return err
				}
				wrapped, err := s.wrap(ctx, k.name, secret)
				if err != nil {
					return err
				}
				anew = append(anew, wrappedKey{k.name, k.wrapped, wrapped})
			}
			n, err := s.replace(ctx, t.table, t.name, anew)
			r.Rewrapped += n
			return err
		}); err != nil {
			return r, err
		}
	}
	if foreign > 0 {
		return r, fmt.Errorf("rotate: %d keys unwrap under no key-encryption key; the old ones are kept", foreign)
	}
	if db, ok := s.db.(scrubber); ok {
		if err := db.Scrub(ctx); err != nil {
			return r, fmt.Errorf("overwrite wrapped keys: %w", err)
		}
	}
	if isRing {
		r.Retired, err = s.retire(ctx, keys)
	}
	return r, err
}

// retire removes the old key-encryption keys after a last look at every key.
func (s *Store) retire(ctx context.Context, keys ring) (retired int, err error) {
	for _, t := range []struct{ table, name string }{{"data_keys", "upload_id"}, {"signing_keys", "key_id"}} {
		if err := s.eachWrapped(ctx, t.table, t.name, func(page []wrappedKey) error {
			for _, k := range page {
				if !keys.Newest(ctx, k.wrapped) {
					return errors.New("rotate: a key is still wrapped by an old key-encryption key; repeat the rotation")
				}
			}
			return nil
		}); err != nil {
			return 0, err
		}
	}
	crashpoint.Hit("keystore: before retire")
	s.using.Lock() // nobody is about to unwrap what was read before it was wrapped anew
	defer s.using.Unlock()
	return keys.Retire()
}

type wrappedKey struct {
	name          string
	wrapped, anew []byte
}

// eachWrapped hands out every wrapped key of a table page by page; retired signing keys have none.
func (s *Store) eachWrapped(ctx context.Context, table, name string, fn func([]wrappedKey) error) error {
	for after := ""; ; {
		var page []wrappedKey
		if err := s.db.Each(ctx, `SELECT `+name+`, wrapped FROM `+table+` WHERE `+name+` > $1 AND LENGTH(wrapped) > 0 ORDER BY `+name+` LIMIT $2`,
			[]any{after, rewrapped}, func(scan func(...any) error) error {
				var k wrappedKey
				err := scan(&k.name, &k.wrapped)
				page = append(page, k)
				return err
			}); err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		if err := errors.Join(ctx.Err(), fn(page)); err != nil {
			return err
		}
		after = page[len(page)-1].name
	}
}

// replace changes wrappings that are still as they were read: one that was destroyed meanwhile does not come back.
func (s *Store) replace(ctx context.Context, table, name string, keys []wrappedKey) (n int, err error) {
	if len(keys) == 0 {
		return 0, nil
	}
	err = s.db.InTx(ctx, func(q sqldb.Querier) error {
		n = 0
		for _, k := range keys {
			changed, err := q.Exec(ctx, `UPDATE `+table+` SET wrapped = $1 WHERE `+name+` = $2 AND wrapped = $3`, k.anew, k.name, k.wrapped)
			if err != nil {
				return err
			}
			n += int(changed)
		}
		return nil
	})
	crashpoint.Hit("keystore: after rewrap")
	return n, err
}
