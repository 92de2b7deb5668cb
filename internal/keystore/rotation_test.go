package keystore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/keystore"
)

func (s *safe) lines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(s.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// wantKeys fails the test unless every key comes back, as another process reads it.
func (s *safe) wantKeys(t *testing.T, keys map[string][]byte) {
	t.Helper()
	again := openAt(t, s.keyFile, s.dbFile)
	for id, want := range keys {
		if got, err := again.DataKey(t.Context(), id); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, the same: %v", id, err, bytes.Equal(got, want))
		}
	}
}

func TestRotationWrapsEverythingAnewAndRetiresTheOldKey(t *testing.T) {
	s := open(t)
	keys := map[string][]byte{}
	for i := range 450 { // more than two pages
		id := fmt.Sprintf("upl_%04d", i)
		keys[id] = s.create(t, id)
	}
	signing, err := s.SigningKeys(t.Context(), "credential")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddSigningSecret(t.Context(), "credential", "key_zz", secret(100)); err != nil {
		t.Fatal(err)
	}
	if err := s.RetireSigningSecret(t.Context(), signing[0].ID); err != nil { // has no wrapping any more
		t.Fatal(err)
	}
	old, wrapped := s.lines(t), s.wrapped(t, "upl_0001")
	r, err := s.Rotate(t.Context())
	if want := (custody.KeyRotation{Rewrapped: 451, Retired: 1}); err != nil || r != want {
		t.Fatalf("%+v, %v", r, err)
	}
	if now := s.lines(t); len(now) != 1 || now[0] == old[0] {
		t.Errorf("%d lines, changed: %v", len(now), now[0] != old[0])
	}
	if info, err := os.Stat(s.keyFile); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if bytes.Contains(s.files(t), wrapped) {
		t.Error("an old wrapping lies in the file or its log")
	}
	s.wantKeys(t, keys)
	late := s.create(t, "upl_late")
	s.wantKeys(t, map[string][]byte{"upl_late": late})
	if both, err := s.SigningKeys(t.Context(), "webhook"); err != nil || len(both) != 1 {
		t.Error(err)
	}
}

// The same wrapping as before would make the rotation a lie.
func TestOldKeyFileOpensNothingAfterRotation(t *testing.T) {
	s := open(t)
	s.create(t, "upl_a")
	text, err := os.ReadFile(s.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.keyFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openAt(t, s.keyFile, s.dbFile).DataKey(t.Context(), "upl_a"); err == nil || errors.Is(err, custody.ErrDestroyed) {
		t.Errorf("the old key file: %v", err)
	}
	// But beside the new one it opens an older copy of the key store.
	if err := os.WriteFile(s.keyFile, append([]byte(strings.Join(slices.Concat(s.lines(t), s.lines(t)), "\n")), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := keystore.OpenKeyFile(s.keyFile, true); err != nil {
		t.Error(err)
	}
}

func TestDestroyedKeyDoesNotComeBackByRotation(t *testing.T) {
	s := open(t)
	s.create(t, "upl_a")
	gone := s.wrapped(t, "upl_a")
	keeper, err := keystore.OpenKeyFile(s.keyFile, true)
	if err != nil {
		t.Fatal(err)
	}
	defer keeper.Close()
	slow := &between{Keeper: keeper}
	store, err := keystore.Open(t.Context(), s.db, slow)
	if err != nil {
		t.Fatal(err)
	}
	slow.do = func() error { return s.DestroyDataKey(t.Context(), "upl_a") } // after its wrapping was read
	if r, err := store.Rotate(t.Context()); err != nil || r.Rewrapped != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := s.DataKey(t.Context(), "upl_a"); !errors.Is(err, custody.ErrDestroyed) {
		t.Errorf("the destroyed key: %v", err)
	}
	if bytes.Contains(s.files(t), gone) {
		t.Error("its wrapping is in the file")
	}
}

// between does something before each encryption.
type between struct {
	keystore.Keeper
	do func() error
}

func (b *between) Encrypt(ctx context.Context, plaintext []byte) ([]byte, error) {
	if b.do != nil {
		if err := b.do(); err != nil {
			return nil, err
		}
	}
	return b.Keeper.Encrypt(ctx, plaintext)
}

// A key that nothing opens may belong to a key-encryption key that somebody still has: the old ones stay.
func TestRotationKeepsOldKeysWhileSomethingDoesNotOpen(t *testing.T) {
	s := open(t)
	keys := map[string][]byte{"upl_a": s.create(t, "upl_a"), "upl_c": s.create(t, "upl_c")}
	s.create(t, "upl_b")
	s.exec(t, `UPDATE data_keys SET wrapped = zeroblob(90) WHERE upload_id = 'upl_b'`)
	for range 2 {
		if _, err := s.Rotate(t.Context()); err == nil || !strings.Contains(err.Error(), "1 keys unwrap under no") {
			t.Errorf("rotation: %v", err)
		}
		if n := len(s.lines(t)); n != 2 {
			t.Errorf("%d lines in the key file", n)
		}
	}
	s.wantKeys(t, keys)
	s.exec(t, `DELETE FROM data_keys WHERE upload_id = 'upl_b'`)
	if r, err := s.Rotate(t.Context()); err != nil || r != (custody.KeyRotation{Retired: 1}) {
		t.Errorf("%+v, %v", r, err)
	}
	s.wantKeys(t, keys)
}

// Uploads come, are read and go while the keys are rotated again and again.
func TestRotationBesideEverythingElse(t *testing.T) {
	s := open(t)
	stays := s.create(t, "upl_stays")
	var all sync.WaitGroup
	stop := make(chan struct{})
	for n := range 4 {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("upl_%d_%d", n, i)
				made, err := s.CreateDataKey(t.Context(), id)
				if err != nil {
					t.Error(err)
					return
				}
				for want, id := range map[string]string{string(made): id, string(stays): "upl_stays"} {
					if got, err := s.DataKey(t.Context(), id); err != nil || string(got) != want {
						t.Errorf("%s: %v", id, err)
						return
					}
				}
			}
		})
	}
	for range 10 {
		if _, err := s.Rotate(t.Context()); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	all.Wait()
	if n := len(s.lines(t)); n != 1 {
		t.Errorf("%d lines in the key file", n)
	}
}

// What was read before a rotation is unwrapped before the old key goes.
func TestRotationWaitsForWhoIsAboutToUnwrap(t *testing.T) {
	s := open(t)
	want := s.create(t, "upl_a")
	file, err := keystore.OpenKeyFile(s.keyFile, true)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	slow := &aboutToUnwrap{KeyFile: file, rotated: make(chan error, 1)}
	if slow.store, err = keystore.Open(t.Context(), s.db, slow); err != nil {
		t.Fatal(err)
	}
	if got, err := slow.store.DataKey(t.Context(), "upl_a"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("read beside a rotation: %v", err)
	}
	if slow.early {
		t.Error("the rotation was through before the key was unwrapped")
	}
	if err := <-slow.rotated; err != nil {
		t.Error(err)
	}
}

// aboutToUnwrap begins a rotation once a wrapping was read, and gives it time to go wrong.
type aboutToUnwrap struct {
	*keystore.KeyFile
	store   *keystore.Store
	begun   atomic.Bool // not a sync.Once, on which the rotation's own unwrapping would wait
	rotated chan error
	early   bool
}

func (a *aboutToUnwrap) Decrypt(ctx context.Context, wrapped []byte) ([]byte, error) {
	if !a.begun.Swap(true) {
		go func() {
			_, err := a.store.Rotate(context.WithoutCancel(ctx))
			a.rotated <- err
		}()
		select {
		case err := <-a.rotated:
			a.early = true
			a.rotated <- err
		case <-time.After(300 * time.Millisecond): // it waits, as it must
		}
	}
	return a.KeyFile.Decrypt(ctx, wrapped)
}
