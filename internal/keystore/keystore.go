// Package keystore keeps the keys of an installation, each wrapped by the key-encryption key: one data key per upload, and
// the signing keys. It lives apart from the metadata and its backups, so that destroying a data key destroys the content
// wherever its ciphertext still lies. (Architecture, "Bytes".)
package keystore

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// KeySize is the length of every key in bytes.
const KeySize = 32

// Keeper wraps and unwraps keys; gocloud.dev/secrets.Keeper is one, for a local file and for the clouds' key services.
type Keeper interface {
	Encrypt(ctx context.Context, plaintext []byte) ([]byte, error)
	Decrypt(ctx context.Context, ciphertext []byte) ([]byte, error)
}

// scrubber is what a database offers that can leave no deleted page behind.
type scrubber interface {
	Scrub(ctx context.Context) error
}

// Store holds wrapped keys; unwrapped ones are handed out and never kept.
type Store struct {
	db     sqldb.DB
	keeper Keeper
}

// Open brings the schema up to date. Close db and keeper yourself.
func Open(ctx context.Context, db sqldb.DB, keeper Keeper) (*Store, error) {
	if err := db.Migrate(ctx, migrations, "migrations"); err != nil {
		return nil, err
	}
	return &Store{db, keeper}, nil
}

// CreateDataKey makes and keeps the data key of a new upload; it is durable on return.
func (s *Store) CreateDataKey(ctx context.Context, uploadID string) ([]byte, error) {
	key, wrapped, err := s.newKey(ctx, uploadID)
	if err != nil {
		return nil, err
	}
	return key, s.db.InTx(ctx, func(q sqldb.Querier) error {
		_, err := q.Exec(ctx, `INSERT INTO data_keys (upload_id, wrapped, created_at) VALUES ($1, $2, $3)`,
			uploadID, wrapped, custody.Now().UnixMilli())
		return err
	})
}

// DataKey returns the data key of an upload; custody.ErrDestroyed once it is destroyed.
func (s *Store) DataKey(ctx context.Context, uploadID string) ([]byte, error) {
	var wrapped []byte
	err := s.db.Row(ctx, `SELECT wrapped FROM data_keys WHERE upload_id = $1`, []any{uploadID}, &wrapped)
	if errors.Is(err, custody.ErrNotFound) {
		return nil, custody.ErrDestroyed
	}
	if err != nil {
		return nil, err
	}
	return s.unwrap(ctx, uploadID, wrapped)
}

// DestroyDataKey destroys the data key of an upload and confirms that it is gone. An absent key counts as destroyed.
func (s *Store) DestroyDataKey(ctx context.Context, uploadID string) error {
	if err := s.db.InTx(ctx, func(q sqldb.Querier) error {
		_, err := q.Exec(ctx, `DELETE FROM data_keys WHERE upload_id = $1`, uploadID)
		return err
	}); err != nil {
		return err
	}
	if db, ok := s.db.(scrubber); ok {
		if err := db.Scrub(ctx); err != nil {
			return fmt.Errorf("overwrite destroyed key: %w", err)
		}
	}
	var left int
	if err := s.db.Row(ctx, `SELECT COUNT(*) FROM data_keys WHERE upload_id = $1`, []any{uploadID}, &left); err != nil {
		return err
	}
	if left != 0 {
		return errors.New("data key is still there after its deletion")
	}
	return nil
}

// DataKeysBefore lists the uploads whose data keys were made before then.
func (s *Store) DataKeysBefore(ctx context.Context, then time.Time) (uploadIDs []string, err error) {
	err = s.db.Each(ctx, `SELECT upload_id FROM data_keys WHERE created_at < $1`, []any{then.UnixMilli()}, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		uploadIDs = append(uploadIDs, id)
		return err
	})
	return uploadIDs, err
}

// SigningKey is one key of a purpose, for example "credential".
type SigningKey struct {
	ID  string
	Key []byte
}

// SigningKeys returns the keys of a purpose that still verify, newest first; the first one signs. Where there is none yet
// it makes one.
func (s *Store) SigningKeys(ctx context.Context, purpose string) ([]SigningKey, error) {
	keys, err := s.signingKeys(ctx, purpose)
	if err != nil || len(keys) > 0 {
		return keys, err
	}
	id := custody.NewID("key")
	_, wrapped, err := s.newKey(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := s.db.InTx(ctx, func(q sqldb.Querier) error { // another replica may have been first
		_, err := q.Exec(ctx, `INSERT INTO signing_keys (key_id, purpose, wrapped, created_at)
			SELECT $1, $2, $3, $4 WHERE NOT EXISTS (SELECT 1 FROM signing_keys WHERE purpose = $5 AND retired_at = 0)`,
			id, purpose, wrapped, custody.Now().UnixMilli(), purpose)
		return err
	}); err != nil {
		return nil, err
	}
	return s.signingKeys(ctx, purpose)
}

func (s *Store) signingKeys(ctx context.Context, purpose string) ([]SigningKey, error) {
	var keys []SigningKey
	err := s.db.Each(ctx, `SELECT key_id, wrapped FROM signing_keys WHERE purpose = $1 AND retired_at = 0 ORDER BY created_at DESC, key_id DESC`,
		[]any{purpose}, func(scan func(...any) error) error {
			var k SigningKey
			err := scan(&k.ID, &k.Key)
			keys = append(keys, k)
			return err
		})
	for i, k := range keys {
		if err == nil {
			keys[i].Key, err = s.unwrap(ctx, k.ID, k.Key)
		}
	}
	return keys, err
}

// newKey makes a key and wraps it together with the name it belongs to: the keeper takes no associated data, and a wrapped
// key must not pass for another's.
func (s *Store) newKey(ctx context.Context, name string) (key, wrapped []byte, err error) {
	key = make([]byte, KeySize)
	rand.Read(key)
	wrapped, err = s.keeper.Encrypt(ctx, append([]byte(name+"\x00"), key...))
	if err != nil {
		return nil, nil, fmt.Errorf("wrap key: %w", err)
	}
	return key, wrapped, nil
}

func (s *Store) unwrap(ctx context.Context, name string, wrapped []byte) ([]byte, error) {
	plain, err := s.keeper.Decrypt(ctx, wrapped)
	if err != nil {
		return nil, fmt.Errorf("unwrap key: %w", err)
	}
	prefix := name + "\x00"
	if len(plain) != len(prefix)+KeySize || string(plain[:len(prefix)]) != prefix {
		return nil, errors.New("unwrap key: it belongs to something else")
	}
	return plain[len(prefix):], nil
}

// Ready answers whether the key store does.
func (s *Store) Ready(ctx context.Context) error {
	var one int
	return s.db.Row(ctx, `SELECT 1`, nil, &one)
}
