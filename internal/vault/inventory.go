package vault

import (
	"context"
	"fmt"

	"github.com/accession/accession/internal/blobstore"
	"github.com/accession/accession/internal/custody"
)

// Held lists every object of an upload in every backend, those that no row names too.
func (v *Vault) Held(ctx context.Context, uploadID string) (held []custody.HeldObject, err error) {
	for _, store := range v.stores() {
		for info, err := range store.List(ctx, prefix(uploadID)) {
			if err != nil {
				return nil, err
			}
			held = append(held, custody.HeldObject{
				StoredObject: custody.StoredObject{Backend: store.Name(), Key: info.Key, SizeBytes: info.Size}, ModTime: info.ModTime,
			})
		}
	}
	return held, nil
}

// Expected lists what the backends must hold for rows of the ledger: parts and derived objects in staging, and the copies of the
// parts in quarantine and the mirrors.
func (v *Vault) Expected(parts []custody.Part, artifacts []custody.Artifact) (staging, copies []custody.StoredObject) {
	for _, p := range parts {
		size := blobstore.SealedSize(p.SizeBytes)
		staging = append(staging, custody.StoredObject{Backend: v.staging.Name(), Key: p.ObjectKey, SizeBytes: size})
		for _, store := range v.copies() {
			copies = append(copies, custody.StoredObject{Backend: store.Name(), Key: p.ObjectKey, SizeBytes: size})
		}
	}
	for _, a := range artifacts {
		staging = append(staging, custody.StoredObject{Backend: v.staging.Name(), Key: a.ObjectKey, SizeBytes: blobstore.SealedSize(a.SizeBytes)})
	}
	return staging, copies
}

// KeyOpens answers whether the data key of an upload is there and opens: nil, custody.ErrDestroyed, or why not.
func (v *Vault) KeyOpens(ctx context.Context, uploadID string) error {
	_, err := v.keys.DataKey(ctx, uploadID)
	return err
}

// Discard deletes an object that no row names.
func (v *Vault) Discard(ctx context.Context, o custody.StoredObject) error {
	for _, store := range v.stores() {
		if store.Name() == o.Backend {
			return store.Delete(ctx, o.Key)
		}
	}
	return fmt.Errorf("there is no backend %s", o.Backend)
}
