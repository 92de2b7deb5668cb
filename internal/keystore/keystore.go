// Package keystore keeps the keys of an installation, each wrapped by the key-encryption key: one data key per upload, and
// the signing keys. It lives apart from the metadata and its backups, so that destroying a data key destroys the content
// wherever its ciphertext still lies. (Architecture, "Bytes".)
package keystore

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
)

//go:embed migrations
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
	shared bool // by several processes

	rotating sync.Mutex
	using    sync.RWMutex // held for reading from wrapping to row, or from row to unwrapping, so that no rotation comes between
}

// Open brings the schema up to date. Close db and keeper yourself.
func Open(ctx context.Context, db sqldb.DB, keeper Keeper) (*Store, error) {
	if err := db.Migrate(ctx, migrations, "migrations/"+db.Dialect().Name); err != nil {
		return nil, err
	}
	return &Store{db: db, keeper: keeper}, nil
}

// Migrate brings the schema up to date without the keys of any keeper, and tells whether wrapped keys lie in it: then their keeper
// must not be made anew.
func Migrate(ctx context.Context, db sqldb.DB) (hasKeys bool, err error) {
	if err := db.Migrate(ctx, migrations, "migrations/"+db.Dialect().Name); err != nil {
		return false, err
	}
	var n int
	err = db.Row(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM signing_keys LIMIT 1) AS one`, nil, &n)
	return n > 0, err
}

// Agree makes sure that this process wraps with the same key-encryption key as all others that use the key store: the first
// leaves a proof there, which every other must unwrap. Error: ErrOtherKeeper.
func (s *Store) Agree(ctx context.Context) error {
	s.shared = true
	_, err := s.SigningKeys(ctx, "agreement")
	var down *custody.Error
	if errors.As(err, &down) && s.db.Row(ctx, `SELECT 1`, nil, new(int)) == nil { // the key store answers, so it is the keeper
		err = fmt.Errorf("%w: %w", ErrOtherKeeper, err)
	}
	return err
}

// ErrOtherKeeper: the key-encryption key is not the one that the keys of the key store are wrapped with.
var ErrOtherKeeper = errors.New("the key-encryption key is another than that of the key store; bring the key file that belongs to it")

// CreateDataKey makes and keeps the data key of a new upload; it is durable on return.
func (s *Store) CreateDataKey(ctx context.Context, uploadID string) ([]byte, error) {
	s.using.RLock()
	defer s.using.RUnlock()
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
	s.using.RLock()
	defer s.using.RUnlock()
	var wrapped []byte
	err := s.db.Row(ctx, `SELECT wrapped FROM data_keys WHERE upload_id = $1`, []any{uploadID}, &wrapped)
	if errors.Is(err, custody.ErrNotFound) {
		return nil, custody.ErrDestroyed
	}
	if err != nil {
		return nil, err
	}
	return s.unwrapKey(ctx, uploadID, wrapped)
}

// HasDataKey tells whether the data key of an upload is there, without unwrapping it.
func (s *Store) HasDataKey(ctx context.Context, uploadID string) (bool, error) {
	var n int
	err := s.db.Row(ctx, `SELECT COUNT(*) FROM data_keys WHERE upload_id = $1`, []any{uploadID}, &n)
	return n > 0, err
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

// newKey makes a key of KeySize and wraps it.
func (s *Store) newKey(ctx context.Context, name string) (key, wrapped []byte, err error) {
	key = randomKey()
	wrapped, err = s.wrap(ctx, name, key)
	return key, wrapped, err
}

func randomKey() []byte {
	key := make([]byte, KeySize)
	rand.Read(key)
	return key
}

// wrap wraps a secret together with the name it belongs to: the keeper takes no associated data, and a wrapped secret must
// not pass for another's.
func (s *Store) wrap(ctx context.Context, name string, secret []byte) ([]byte, error) {
	if name == "" || strings.Contains(name, "\x00") || len(secret) < KeySize {
		return nil, fmt.Errorf("wrap key: it needs a name and at least %d bytes", KeySize)
	}
	wrapped, err := s.ask(ctx, s.keeper.Encrypt, append([]byte(name+"\x00"), secret...))
	if err != nil {
		return nil, custody.Unavailable(fmt.Errorf("wrap key: %w", err))
	}
	return wrapped, nil
}

func (s *Store) unwrap(ctx context.Context, name string, wrapped []byte) ([]byte, error) {
	plain, err := s.ask(ctx, s.keeper.Decrypt, wrapped)
	if err != nil {
		return nil, custody.Unavailable(fmt.Errorf("unwrap key: %w", err))
	}
	secret, ok := bytes.CutPrefix(plain, []byte(name+"\x00"))
	if !ok || len(secret) < KeySize {
		return nil, errForeignKey
	}
	return secret, nil
}

// unwrapKey is unwrap for a key of exactly KeySize.
func (s *Store) unwrapKey(ctx context.Context, name string, wrapped []byte) ([]byte, error) {
	key, err := s.unwrap(ctx, name, wrapped)
	if err == nil && len(key) != KeySize {
		return nil, errForeignKey
	}
	return key, err
}

var errForeignKey = errors.New("unwrap key: it belongs to something else")

// Ready answers whether the key store does, and the key service where the key-encryption key lies in one.
func (s *Store) Ready(ctx context.Context) error {
	answers := func() error { return s.db.Row(ctx, `SELECT 1`, nil, new(int)) }
	if db, ok := s.db.(interface{ Sound(context.Context) error }); ok {
		answers = func() error { return db.Sound(ctx) }
	}
	if err := answers(); err != nil {
		return err
	}
	if _, isFile := s.keeper.(*KeyFile); isFile {
		return nil
	}
	_, err := s.ask(ctx, s.keeper.Encrypt, make([]byte, KeySize))
	return err
}
