package vault_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/accession/accession/internal/blobstore"
	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/vault"
)

// keys holds data keys in memory; fail injects a key store that does not answer.
type keys struct {
	held map[string][]byte
	fail error
}

func (k *keys) CreateDataKey(_ context.Context, uploadID string) ([]byte, error) {
	if k.fail != nil {
		return nil, k.fail
	}
	key := make([]byte, 32)
	rand.Read(key)
	k.held[uploadID] = key
	return key, nil
}

func (k *keys) DataKey(_ context.Context, uploadID string) ([]byte, error) {
	if k.fail != nil {
		return nil, k.fail
	}
	if key, ok := k.held[uploadID]; ok {
		return key, nil
	}
	return nil, custody.ErrDestroyed
}

func (k *keys) DestroyDataKey(_ context.Context, uploadID string) error {
	if k.fail == nil {
		delete(k.held, uploadID)
	}
	return k.fail
}

func (k *keys) DataKeysBefore(context.Context, time.Time) ([]string, error) {
	var ids []string
	for id := range k.held {
		ids = append(ids, id)
	}
	return ids, k.fail
}

// house is a vault over two folders.
type house struct {
	*vault.Vault
	keys                *keys
	staging, quarantine *flaky
	roots               [2]string // staging, quarantine
}

func open(t *testing.T) *house {
	t.Helper()
	h := &house{keys: &keys{held: map[string][]byte{}}}
	for i, name := range []string{"staging", "quarantine"} {
		h.roots[i] = t.TempDir()
		disk, err := blobstore.NewDisk(name, h.roots[i])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := disk.Close(); err != nil {
				t.Error(err)
			}
		})
		if i == 0 {
			h.staging = &flaky{Store: disk}
		} else {
			h.quarantine = &flaky{Store: disk}
		}
	}
	h.Vault = vault.New(h.keys, h.staging, h.quarantine)
	return h
}

// upload seals the parts of a new upload and returns its ledger.
func (h *house) upload(t *testing.T, uploadID string, parts ...[]byte) (ledger []custody.Part) {
	t.Helper()
	if err := h.Admit(t.Context(), uploadID); err != nil {
		t.Fatal(err)
	}
	for i, b := range parts {
		key, err := h.SealPart(t.Context(), uploadID, i+1, bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		ledger = append(ledger, custody.Part{UploadID: uploadID, Number: i + 1, SizeBytes: int64(len(b)), ObjectKey: key})
	}
	return ledger
}

// files are what lies in one storage root, by object key.
func (h *house) files(t *testing.T, root int) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	if err := filepath.WalkDir(h.roots[root], func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		key, err := filepath.Rel(h.roots[root], path)
		if err != nil {
			return err
		}
		files[key], err = os.ReadFile(path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

func (h *house) write(t *testing.T, root int, key string, b []byte) {
	t.Helper()
	path := filepath.Join(h.roots[root], key)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func readAll(content custody.Content, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	b := make([]byte, content.Size())
	_, err = io.ReadFull(io.NewSectionReader(content, 0, content.Size()), b)
	return b, errors.Join(err, content.Close())
}

func text(n int) []byte { return bytes.Repeat([]byte("plain text in custody. "), n/23+1)[:n] }
