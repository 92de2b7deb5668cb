package keystore

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/accession/accession/internal/crashpoint"
	"gocloud.dev/secrets"
	"gocloud.dev/secrets/localsecrets"
)

// OpenKeyFile returns the keeper whose key-encryption key is the base64 text in the file at path. A file that is not there
// is made, mode 0600 and durable, unless forbidden by mustExist: a lost key file must not be replaced silently.
func OpenKeyFile(path string, mustExist bool) (*secrets.Keeper, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !mustExist {
		text, err = createKeyFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(raw) != KeySize {
		return nil, errors.New("key file: must hold 32 bytes as base64")
	}
	if err := RemoveUnnamedSecrets(path); err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	return localsecrets.NewKeeper([KeySize]byte(raw)), nil
}

func createKeyFile(path string) ([]byte, error) {
	text := []byte(base64.StdEncoding.EncodeToString(randomKey()) + "\n")
	return text, WriteSecret(path, text)
}

// WriteSecret makes the file at path, mode 0600, and gives it its name once its text is durable: a crash leaves no half
// secret, which would keep the service from starting, and one that somebody else made meanwhile is not replaced.
func WriteSecret(path string, text []byte) error {
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
		err = os.Link(f.Name(), path) // unlike a rename it fails where path exists
		crashpoint.Hit("keyfile: after link")
	}
	if err = errors.Join(err, os.Remove(f.Name())); err != nil {
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
