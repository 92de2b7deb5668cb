package keystore_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/accession/accession/internal/keystore"
)

func TestKeyFileIsMadeOnceAndPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kek")
	first, err := keystore.OpenKeyFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(text))); err != nil || len(raw) != keystore.KeySize {
		t.Errorf("the file holds %d bytes, %v", len(raw), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	second, err := keystore.OpenKeyFile(path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	sealed, err := first.Encrypt(t.Context(), []byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := second.Decrypt(t.Context(), sealed); err != nil || string(plain) != "key" {
		t.Errorf("opened again it decrypts to %q, %v", plain, err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, text) {
		t.Errorf("opening changed the file: %v", err)
	}
	if others, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(others) != 1 {
		t.Errorf("the folder holds %v, %v; want the key file alone", others, err)
	}
}

// Wrapped keys without their key file are lost; a new file would hide that.
func TestLostKeyFileIsNotReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kek")
	if _, err := keystore.OpenKeyFile(path, true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that there is no such file", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key file was made: %v", err)
	}
	if _, err := keystore.OpenKeyFile(filepath.Join(path, "folder", "kek"), false); err == nil {
		t.Error("a key file was made in a folder that does not exist")
	}
}

func TestMalformedKeyFileIsRefusedAndKept(t *testing.T) {
	for what, text := range map[string]string{
		"empty":           "",
		"31 bytes":        base64.StdEncoding.EncodeToString(make([]byte, 31)),
		"33 bytes":        base64.StdEncoding.EncodeToString(make([]byte, 33)),
		"cut short":       base64.StdEncoding.EncodeToString(make([]byte, 32))[:40],
		"raw bytes":       string(make([]byte, 32)),
		"an empty line":   base64.StdEncoding.EncodeToString(make([]byte, 32)) + "\n\n",
		"half a second":   base64.StdEncoding.EncodeToString(make([]byte, 32)) + "\nAAAA\n",
		"not base64 text": "correct horse battery staple correct horse!!",
	} {
		path := filepath.Join(t.TempDir(), "kek")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := keystore.OpenKeyFile(path, false); err == nil {
			t.Errorf("%s: accepted", what)
		}
		if kept, err := os.ReadFile(path); err != nil || string(kept) != text {
			t.Errorf("%s: the file was changed: %v", what, err)
		}
	}
}
