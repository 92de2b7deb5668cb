package keystore_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/accession/accession/internal/keystore"
	"github.com/accession/accession/internal/sqldb"
)

// A key file is read whole or refused without a word of it; it is never written anew for being odd.
func FuzzKeyFile(f *testing.F) {
	one, two := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32)), base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{2}, 32))
	for _, text := range []string{one + "\n", one, one + "\n" + two + "\n", "", "\n", one + "\n\n", one[:40], "\xef\xbb\xbf" + one, one + "=", " " + one + "\r\n", strings.Repeat("A", 44)} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "kek")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := keystore.OpenKeyFile(path, true)
		after, readErr := os.ReadFile(path)
		if readErr != nil || !bytes.Equal(after, text) {
			t.Fatalf("the file was changed: %v", readErr)
		}
		if err != nil {
			if trimmed := strings.TrimSpace(string(text)); len(trimmed) > 20 && strings.Contains(err.Error(), trimmed) {
				t.Errorf("%v repeats the key", err)
			}
			return
		}
		defer k.Close()
		sealed, err := k.Encrypt(t.Context(), []byte("secret"))
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := k.Decrypt(t.Context(), sealed); err != nil || string(plain) != "secret" || !k.Newest(t.Context(), sealed) {
			t.Errorf("%q, %v", plain, err)
		}
		if plain, err := k.Decrypt(t.Context(), text); err == nil {
			t.Errorf("%q is a secret: %q", text, plain)
		}
	})
}

// answering is a key service that answers what it likes.
type answering struct{ wraps, unwraps []byte }

func (a *answering) Encrypt(context.Context, []byte) ([]byte, error) { return a.wraps, nil }
func (a *answering) Decrypt(context.Context, []byte) ([]byte, error) { return a.unwraps, nil }

// Whatever a key service answers, a key that comes of it is 32 bytes, and was wrapped for that upload.
func FuzzKeyServicesAnswer(f *testing.F) {
	key := bytes.Repeat([]byte{7}, keystore.KeySize)
	for _, unwrapped := range [][]byte{append([]byte("up_1\x00"), key...), append([]byte("up_2\x00"), key...), append([]byte("up_1"), key...), key, nil, []byte("up_1\x00"), append([]byte("up_1\x00\x00"), key...), append([]byte("up_1\x00"), key[1:]...)} {
		f.Add([]byte("wrapped"), unwrapped)
	}
	db, err := sqldb.OpenSQLite(filepath.Join(f.TempDir(), "keys.db"), sqldb.SQLiteOptions{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { db.Close() })
	service := &answering{wraps: []byte("wrapped")}
	store, err := keystore.Open(f.Context(), db, service)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := store.CreateDataKey(f.Context(), "up_1"); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, wraps, unwraps []byte) {
		service.wraps, service.unwraps = wraps, unwraps
		got, err := store.DataKey(t.Context(), "up_1")
		want, ours := bytes.CutPrefix(unwraps, []byte("up_1\x00"))
		good := ours && len(want) == keystore.KeySize
		if (err == nil) != good || good && !bytes.Equal(got, want) || !good && got != nil {
			t.Errorf("%q becomes %q, %v", unwraps, got, err)
		}
		if err != nil && errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
}
