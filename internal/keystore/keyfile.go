package keystore

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/accession/accession/internal/crashpoint"
	"gocloud.dev/secrets"
	"gocloud.dev/secrets/localsecrets"
)

// KeyFile is the keeper whose key-encryption keys are the lines of a file, 32 bytes as base64 each, newest first: the first wraps,
// all unwrap. There is more than one line only while a rotation is unfinished, or where an operator put back an older key for
// an older copy of the key store.
type KeyFile struct {
	path string

	mu   sync.RWMutex
	keys []keyEncryptionKey
}

type keyEncryptionKey struct {
	text   string
	keeper *secrets.Keeper
}

// OpenKeyFile reads the key file at path. A file that is not there is made, mode 0600 and durable, unless forbidden by mustExist:
// a lost key file must not be replaced silently.
func OpenKeyFile(path string, mustExist bool) (*KeyFile, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && mustExist {
		return nil, fmt.Errorf("key file: %w; put back the one that belongs to the key store, for a new one opens none of its keys", err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(newKeyLine() + "\n")
		err = WriteSecret(path, text)
	}
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	f := &KeyFile{path: path}
	for line := range strings.Lines(string(text)) {
		key, err := readKeyLine(strings.TrimSpace(line))
		if err != nil {
			return nil, err
		}
		f.keys = append(f.keys, key)
	}
	if len(f.keys) == 0 {
		return nil, errKeyLine
	}
	if err := RemoveUnnamedSecrets(path); err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	return f, nil
}

var errKeyLine = errors.New("key file: must hold 32 bytes as base64 in each line")

func newKeyLine() string { return base64.StdEncoding.EncodeToString(randomKey()) }

func readKeyLine(text string) (keyEncryptionKey, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != KeySize {
		return keyEncryptionKey{}, errKeyLine
	}
	return keyEncryptionKey{text, localsecrets.NewKeeper([KeySize]byte(raw))}, nil
}

// Close releases the keys.
func (f *KeyFile) Close() (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.keys {
		err = errors.Join(err, k.keeper.Close())
	}
	f.keys = nil
	return err
}

// Encrypt implements Keeper, with the newest key.
func (f *KeyFile) Encrypt(ctx context.Context, plaintext []byte) ([]byte, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if len(f.keys) == 0 {
		return nil, fs.ErrClosed
	}
	return f.keys[0].keeper.Encrypt(ctx, plaintext)
}

// Decrypt implements Keeper, with whichever key it is.
func (f *KeyFile) Decrypt(ctx context.Context, ciphertext []byte) (plaintext []byte, err error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	err = fs.ErrClosed
	for _, k := range f.keys {
		if plaintext, err = k.keeper.Decrypt(ctx, ciphertext); err == nil {
			return plaintext, nil
		}
	}
	return nil, err
}

// Newest tells whether a secret is wrapped by the newest key.
func (f *KeyFile) Newest(ctx context.Context, wrapped []byte) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if len(f.keys) == 0 {
		return false
	}
	_, err := f.keys[0].keeper.Decrypt(ctx, wrapped)
	return err == nil
}

// Prepared tells that the file has a newer key beside an old one already: Advance will make none.
func (f *KeyFile) Prepared() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return len(f.keys) > 1
}

// Advance makes a new key the newest, durable in the file on return. Where the file has several keys already a rotation was
// interrupted: its new key stays the newest.
func (f *KeyFile) Advance() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.keys) != 1 {
		return nil
	}
	key, err := readKeyLine(newKeyLine())
	if err != nil {
		return err
	}
	keys := append([]keyEncryptionKey{key}, f.keys...)
	if err := f.write(keys); err != nil {
		return err
	}
	f.keys = keys
	return nil
}

// Retire removes every key but the newest from the file and returns how many those were. What they wrap can never be unwrapped
// again, except with another copy of the file.
func (f *KeyFile) Retire() (retired int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.keys) < 2 {
		return 0, nil
	}
	if err := f.write(f.keys[:1]); err != nil {
		return 0, err
	}
	for _, k := range f.keys[1:] {
		err = errors.Join(err, k.keeper.Close())
	}
	retired = len(f.keys) - 1
	f.keys = f.keys[:1]
	return retired, err
}

func (f *KeyFile) write(keys []keyEncryptionKey) error {
	var text strings.Builder
	for _, k := range keys {
		text.WriteString(k.text + "\n")
	}
	if err := writeSecret(f.path, []byte(text.String()), os.Rename); err != nil {
		return fmt.Errorf("key file: %w", err)
	}
	return nil
}

// WriteSecret makes the file at path, mode 0600, and gives it its name once its text is durable: a crash leaves no half
// secret, which would keep the service from starting, and one that somebody else made meanwhile is not replaced.
func WriteSecret(path string, text []byte) error {
	return writeSecret(path, text, os.Link) // unlike a rename it fails where path exists
}

func writeSecret(path string, text []byte, name func(old, new string) error) error {
	crashpoint.Hit("keyfile: before create")
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+unnamed) // mode 0600
	if err != nil {
		return err
	}
	crashpoint.Hit("keyfile: after create")
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	crashpoint.Hit("keyfile: after sync")
	if err == nil {
		err = name(f.Name(), path)
		crashpoint.Hit("keyfile: after link")
	}
	if gone := os.Remove(f.Name()); !errors.Is(gone, fs.ErrNotExist) { // renamed
		err = errors.Join(err, gone)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	err = errors.Join(dir.Sync(), dir.Close())
	crashpoint.Hit("keyfile: after folder sync")
	return err
}

const unnamed = ".new-*" // ends the name of a secret that has not got its own yet

// RemoveUnnamedSecrets removes what a death inside WriteSecret(path) left: copies of a secret.
func RemoveUnnamedSecrets(path string) error {
	leftovers, err := filepath.Glob(path + unnamed)
	for _, leftover := range leftovers {
		err = errors.Join(err, os.Remove(leftover))
	}
	return err
}
