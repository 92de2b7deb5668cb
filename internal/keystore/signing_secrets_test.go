package keystore_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/accession/accession/internal/custody"
)

// secret is a random one of that many bytes.
func secret(size int) []byte {
	b := make([]byte, size)
	rand.Read(b)
	return b
}

func generates(b []byte) func() ([]byte, error) { return func() ([]byte, error) { return b, nil } }

func never(t *testing.T) func() ([]byte, error) {
	return func() ([]byte, error) {
		t.Error("a key was made where there is one")
		return secret(32), nil
	}
}

func TestSigningSecretsOfAnyLength(t *testing.T) {
	s := open(t)
	for purpose, size := range map[string]int{"hmac": 32, "rsa": 1218, "long": 20_000} {
		want := secret(size)
		made, err := s.SigningSecrets(t.Context(), purpose, generates(want))
		if err != nil || len(made) != 1 || !bytes.Equal(made[0].Key, want) || made[0].Purpose != purpose || made[0].CreatedAt.IsZero() {
			t.Errorf("%s: made %d keys, %v", purpose, len(made), err)
		}
		kept, err := openAt(t, s.keyFile, s.dbFile).SigningSecrets(t.Context(), purpose, never(t))
		if err != nil || len(kept) != 1 || kept[0].ID != made[0].ID || !bytes.Equal(kept[0].Key, want) {
			t.Errorf("%s: after a restart %d keys, %v", purpose, len(kept), err)
		}
	}
	for _, size := range []int{0, 31} {
		if _, err := s.SigningSecrets(t.Context(), "weak", generates(secret(size))); err == nil {
			t.Errorf("a key of %d bytes was kept", size)
		}
	}
	failure := errors.New("no randomness")
	if _, err := s.SigningSecrets(t.Context(), "none", func() ([]byte, error) { return nil, failure }); !errors.Is(err, failure) {
		t.Errorf("a key that could not be made: %v", err)
	}
}

func TestOneOfEightFirstSecretsWins(t *testing.T) {
	s := open(t)
	got := make([][]custody.SigningKey, 8)
	var group sync.WaitGroup
	for i := range got {
		group.Go(func() {
			var err error
			if got[i], err = s.SigningSecrets(t.Context(), "oauth", generates(secret(64))); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, keys := range got {
		if len(keys) != 1 || keys[0].ID != got[0][0].ID || !bytes.Equal(keys[0].Key, got[0][0].Key) {
			t.Errorf("%d keys, want the same one everywhere", len(keys))
		}
	}
}

func TestSecretsRotateAndRetire(t *testing.T) {
	s := open(t)
	first, second, third := secret(40), secret(50), secret(60)
	made, err := s.SigningSecrets(t.Context(), "oauth", generates(first))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RetireSigningSecret(t.Context(), made[0].ID); !errors.Is(err, custody.ErrConflict) {
		t.Errorf("retiring the only key: %v", err)
	}
	for id, b := range map[string][]byte{"key_zz2": second, "key_zz3": third} {
		if err := s.AddSigningSecret(t.Context(), "oauth", id, b); err != nil {
			t.Fatal(err)
		}
	}
	s.exec(t, `UPDATE signing_keys SET created_at = created_at + 1 WHERE key_id IN ('key_zz2', 'key_zz3')`)
	s.exec(t, `UPDATE signing_keys SET created_at = (SELECT MAX(created_at) FROM signing_keys) WHERE key_id IN ('key_zz2', 'key_zz3')`) // of one millisecond
	if err := s.AddSigningSecret(t.Context(), "credential", "key_other", secret(32)); err != nil {
		t.Fatal(err)
	}
	want := []string{"key_zz3", "key_zz2", made[0].ID}
	if got := ids(t, s); !slices.Equal(got, want) {
		t.Errorf("the keys are %v, want %v", got, want)
	}
	for id, want := range map[string]error{"key_zz3": custody.ErrConflict, "key_other": custody.ErrConflict, "key_none": custody.ErrNotFound, "": custody.ErrNotFound} {
		if err := s.RetireSigningSecret(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("retiring %q: %v, want %v", id, err, want)
		}
	}
	var before []byte
	if err := s.db.Row(t.Context(), `SELECT wrapped FROM signing_keys WHERE key_id = $1`, []any{made[0].ID}, &before); err != nil {
		t.Fatal(err)
	}
	if err := s.RetireSigningSecret(t.Context(), made[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := s.RetireSigningSecret(t.Context(), made[0].ID); !errors.Is(err, custody.ErrNotFound) {
		t.Errorf("retiring it again: %v", err)
	}
	if got := ids(t, s); !slices.Equal(got, want[:2]) {
		t.Errorf("the keys are %v, want %v", got, want[:2])
	}
	names, err := s.SigningSecretNames(t.Context(), "oauth")
	if err != nil || len(names) != 3 || names[2].RetiredAt.IsZero() || !names[0].RetiredAt.IsZero() {
		t.Errorf("%+v, %v", names, err)
	}
	for _, n := range names {
		if n.Key != nil {
			t.Errorf("%s is listed with its secret", n.ID)
		}
	}
	for _, path := range []string{s.dbFile, s.dbFile + "-wal"} {
		b, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if bytes.Contains(b, before) {
			t.Errorf("the retired key still lies in %s", path)
		}
	}
}

func ids(t *testing.T, s *safe) (ids []string) {
	t.Helper()
	keys, err := s.SigningSecrets(t.Context(), "oauth", never(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		ids = append(ids, k.ID)
	}
	return ids
}

// A wrapped key under another's name, of another kind, or changed is no key.
func TestSwappedSecretsAreRefused(t *testing.T) {
	for what, statement := range map[string]string{
		"another's":        `UPDATE signing_keys SET wrapped = (SELECT wrapped FROM signing_keys WHERE key_id = 'key_b') WHERE key_id = 'key_a'`,
		"a data key":       `UPDATE signing_keys SET wrapped = (SELECT wrapped FROM data_keys) WHERE key_id = 'key_a'`,
		"cut":              `UPDATE signing_keys SET wrapped = substr(wrapped, 1, 50) WHERE key_id = 'key_a'`,
		"emptied":          `UPDATE signing_keys SET wrapped = x'' WHERE key_id = 'key_a'`,
		"of another store": `UPDATE signing_keys SET wrapped = x'000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132' WHERE key_id = 'key_a'`,
	} {
		s := open(t)
		s.create(t, "upl_1")
		for _, id := range []string{"key_a", "key_b"} {
			if err := s.AddSigningSecret(t.Context(), "oauth", id, secret(100)); err != nil {
				t.Fatal(err)
			}
		}
		s.exec(t, statement)
		if keys, err := s.SigningSecrets(t.Context(), "oauth", never(t)); err == nil {
			t.Errorf("%s: accepted, %d keys", what, len(keys))
		}
	}
}
