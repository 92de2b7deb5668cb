// Package vault keeps the bytes of uploads: every object sealed under its upload's own data key from the first byte, in two
// storage roots and in mirrors of the second, and gone from all of them when it is told so. It joins the blob stores and the key
// store; what is stored under which name stands here alone.
//
//	staging     uploads/{upload_id}/parts/{part_number}-{attempt}    the part ledger's objects
//	            uploads/{upload_id}/derived/{name}-{attempt}         extracted text, summary, context
//	quarantine  uploads/{upload_id}/parts/{part_number}-{attempt}    the copy, ciphertext of the same key
//	mirror…     uploads/{upload_id}/parts/{part_number}-{attempt}    further copies
package vault

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/accession/accession/internal/blobstore"
	"github.com/accession/accession/internal/custody"
)

// Keys holds one data key per upload.
type Keys interface {
	CreateDataKey(ctx context.Context, uploadID string) ([]byte, error)
	DataKey(ctx context.Context, uploadID string) ([]byte, error) // custody.ErrDestroyed once it is gone
	DestroyDataKey(ctx context.Context, uploadID string) error
	DataKeysBefore(ctx context.Context, then time.Time) (uploadIDs []string, err error)
}

// Vault is the bytes of one installation.
type Vault struct {
	keys       Keys
	staging    blobstore.Store
	quarantine blobstore.Store
	mirrors    []blobstore.Store
}

// New joins the key store, the two storage roots, and further ones that get the copies too. No two have one name.
func New(keys Keys, staging, quarantine blobstore.Store, mirrors ...blobstore.Store) *Vault {
	return &Vault{keys, staging, quarantine, mirrors}
}

// stores are all that have to confirm a deletion, in the order in which they are asked.
func (v *Vault) stores() []blobstore.Store {
	return append([]blobstore.Store{v.staging, v.quarantine}, v.mirrors...)
}

// copies are the stores of a second copy.
func (v *Vault) copies() []blobstore.Store { return v.stores()[1:] }

// Admit makes the data key of a new upload, durable on return: nothing of the upload is ever stored without it.
func (v *Vault) Admit(ctx context.Context, uploadID string) error {
	_, err := v.keys.CreateDataKey(ctx, uploadID)
	return err
}

// Dismiss destroys the data key of an upload that was never reserved.
func (v *Vault) Dismiss(ctx context.Context, uploadID string) error {
	return v.keys.DestroyDataKey(ctx, uploadID)
}

// SealPart stores exactly length bytes of body as part number, hashing into digests on the way. On return the object is
// durable; the caller's ledger row publishes it. Errors: custody.ErrDestroyed, storage_full, part_length_invalid,
// service_unavailable.
func (v *Vault) SealPart(ctx context.Context, uploadID string, number int, body io.Reader, length int64, digests ...hash.Hash) (objectKey string, err error) {
	dataKey, err := v.keys.DataKey(ctx, uploadID)
	if err != nil {
		return "", err
	}
	objectKey = fmt.Sprintf("%sparts/%06d-%s", prefix(uploadID), number, attempt())
	return objectKey, visible(blobstore.Seal(ctx, v.staging, objectKey, dataKey, partAAD(uploadID, number), body, length, digests...))
}

// visible turns what a client can act on into what a client may see.
func visible(err error) error {
	switch {
	case errors.Is(err, blobstore.ErrNoSpace):
		return custody.StorageFull(err)
	case errors.Is(err, blobstore.ErrShortBody), errors.Is(err, blobstore.ErrLongBody):
		return custody.Errorf(custody.CodePartLengthInvalid, "the body does not have the announced length").Because(err)
	case errors.Is(err, blobstore.ErrUnavailable):
		return custody.Unavailable(err)
	}
	return err
}

// DiscardPart deletes a part that no ledger row will publish.
func (v *Vault) DiscardPart(ctx context.Context, objectKey string) error {
	return v.staging.Delete(ctx, objectKey)
}

// Open gives the whole file from its part ledger.
func (v *Vault) Open(ctx context.Context, uploadID string, parts []custody.Part) (custody.Content, error) {
	return v.open(ctx, v.staging, uploadID, parts)
}

func (v *Vault) open(ctx context.Context, store blobstore.Store, uploadID string, parts []custody.Part) (custody.Content, error) {
	dataKey, err := v.keys.DataKey(ctx, uploadID)
	if err != nil {
		return nil, err
	}
	sealed := make([]blobstore.Part, len(parts))
	for i, p := range parts {
		sealed[i] = blobstore.Part{Key: p.ObjectKey, AAD: partAAD(uploadID, p.Number), Size: p.SizeBytes}
	}
	file, err := blobstore.Concat(ctx, store, dataKey, sealed...)
	if err != nil {
		return nil, err
	}
	return content{file}, nil
}

// content says in the words of custody that stored bytes are not what was sealed.
type content struct{ *blobstore.SealedFile }

func (c content) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.SealedFile.ReadAt(p, off)
	if errors.Is(err, blobstore.ErrCorrupt) {
		err = errors.Join(custody.ErrCorrupt, err)
	}
	if err == nil || err == io.EOF {
		return n, err // io.ReaderAt wants it bare
	}
	return n, visible(err)
}

// Quarantine copies the ciphertext of every part into quarantine storage and the mirrors, durable on return, and opens the copy
// in quarantine: only what reads back from it is confirmed. Mirrors have been read back already. Parts that an interrupted try
// already copied are kept if they are whole.
func (v *Vault) Quarantine(ctx context.Context, uploadID string, parts []custody.Part) (custody.Content, error) {
	if err := v.copyTo(ctx, v.quarantine, uploadID, parts); err != nil {
		return nil, visible(err)
	}
	for _, mirror := range v.mirrors {
		if err := v.copyTo(ctx, mirror, uploadID, parts); err != nil {
			return nil, visible(err)
		}
		for _, p := range parts {
			if err := v.readable(ctx, mirror, uploadID, p); err != nil {
				return nil, visible(fmt.Errorf("read part %d back: %w", p.Number, err))
			}
		}
	}
	return v.open(ctx, v.quarantine, uploadID, parts)
}

func (v *Vault) copyTo(ctx context.Context, store blobstore.Store, uploadID string, parts []custody.Part) error {
	there := map[string]int64{}
	for info, err := range store.List(ctx, prefix(uploadID)) {
		if err != nil {
			return err
		}
		there[info.Key] = info.Size
	}
	for _, p := range parts {
		if size, ok := there[p.ObjectKey]; ok {
			err := fmt.Errorf("cut short: %w", custody.ErrCorrupt)
			if size == blobstore.SealedSize(p.SizeBytes) {
				err = v.readable(ctx, store, uploadID, p)
			}
			if err == nil {
				continue
			}
			if errors.Is(err, blobstore.ErrUnavailable) {
				return err
			}
			if err := store.Delete(ctx, p.ObjectKey); err != nil {
				return err
			}
		}
		if err := v.copy(ctx, store, p.ObjectKey); err != nil {
			return fmt.Errorf("copy part %d: %w", p.Number, err)
		}
	}
	return nil
}

// readable tells whether a copied part authenticates from end to end; one that a crash cut short does not.
func (v *Vault) readable(ctx context.Context, store blobstore.Store, uploadID string, p custody.Part) error {
	content, err := v.open(ctx, store, uploadID, []custody.Part{p})
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(io.Discard, onlyReader{io.NewSectionReader(content, 0, content.Size())}, make([]byte, max(1, min(blobstore.BlockSize, content.Size()))))
	return errors.Join(err, content.Close())
}

// copier is a store that may be able to copy an object of another store by itself.
type copier interface {
	CopyFrom(ctx context.Context, from blobstore.Store, key string) (done bool, err error)
}

func (v *Vault) copy(ctx context.Context, store blobstore.Store, objectKey string) (err error) {
	if c, ok := store.(copier); ok {
		if done, err := c.CopyFrom(ctx, v.staging, objectKey); done || err != nil {
			return err
		}
	}
	from, err := v.staging.Open(ctx, objectKey)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := store.Create(ctx, objectKey, from.Size())
	if err != nil {
		return err
	}
	block := make([]byte, min(blobstore.BlockSize, from.Size()))
	for at := int64(0); at < from.Size(); {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, to.Abort())
		}
		n, err := from.ReadAt(block[:min(int64(len(block)), from.Size()-at)], at)
		if err != nil && !(errors.Is(err, io.EOF) && at+int64(n) == from.Size()) {
			return errors.Join(err, to.Abort())
		}
		if err := to.WriteBlock(block[:n]); err != nil {
			return errors.Join(err, to.Abort())
		}
		at += int64(n)
	}
	if err := to.Commit(); err != nil {
		return errors.Join(err, to.Abort())
	}
	return nil
}

// SealArtifact stores derived text, durable on return; the caller's row publishes it.
func (v *Vault) SealArtifact(ctx context.Context, uploadID, name string, text []byte) (custody.Artifact, error) {
	dataKey, err := v.keys.DataKey(ctx, uploadID)
	if err != nil {
		return custody.Artifact{}, err
	}
	sum := sha256.Sum256(text)
	a := custody.Artifact{
		UploadID: uploadID, Name: name, SizeBytes: int64(len(text)), SHA256: hex.EncodeToString(sum[:]),
		ObjectKey: prefix(uploadID) + "derived/" + name + "-" + attempt(),
	}
	if err := visible(blobstore.Seal(ctx, v.staging, a.ObjectKey, dataKey, artifactAAD(uploadID, name), bytes.NewReader(text), a.SizeBytes)); err != nil {
		return a, err
	}
	// A store that says so and kept nothing must not make an upload READY that nobody can read. Parts are read by the gates.
	kept, err := v.OpenArtifact(ctx, a)
	if err == nil && !bytes.Equal(kept, text) {
		err = errors.New("it is not what was written")
	}
	if err != nil {
		return a, fmt.Errorf("read back %s: %w", name, err)
	}
	return a, nil
}

// OpenArtifact reads derived text back.
func (v *Vault) OpenArtifact(ctx context.Context, a custody.Artifact) ([]byte, error) {
	dataKey, err := v.keys.DataKey(ctx, a.UploadID)
	if err != nil {
		return nil, err
	}
	r, err := blobstore.OpenSealed(ctx, v.staging, a.ObjectKey, dataKey, artifactAAD(a.UploadID, a.Name))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text := make([]byte, r.Size())
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, r.Size()), text); err != nil {
		return nil, err
	}
	return text, nil
}

// DropDerived deletes every derived object of an upload and reads back that none is left; its parts stay. It returns how many
// there were.
func (v *Vault) DropDerived(ctx context.Context, uploadID string) (objects int, err error) {
	return blobstore.Purge(ctx, v.staging, prefix(uploadID)+"derived/")
}

// Destroy deletes everything of an upload from every storage backend, reads each back, and destroys the data key. It goes on
// past a backend that does not confirm and returns what was confirmed with the joined errors.
func (v *Vault) Destroy(ctx context.Context, uploadID string) (deletions []custody.Deletion, err error) {
	return v.DestroyNoting(ctx, uploadID, func([]custody.StoredObject) error { return nil })
}

// DestroyNoting is Destroy that has note keep what a backend holds before it is deleted there, so that a count survives
// whatever interrupts it. What note does not keep is not deleted, but for the data key: that is destroyed in any case.
func (v *Vault) DestroyNoting(ctx context.Context, uploadID string, note func([]custody.StoredObject) error) (deletions []custody.Deletion, err error) {
	for _, store := range v.stores() {
		held, listErr := objects(ctx, store, uploadID)
		if listErr == nil && len(held) > 0 {
			listErr = note(held)
		}
		if listErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: note what is there: %w", store.Name(), listErr))
			continue
		}
		n, purgeErr := blobstore.Purge(ctx, store, prefix(uploadID))
		if purgeErr != nil {
			err = errors.Join(err, purgeErr)
			continue
		}
		deletions = append(deletions, custody.Deletion{
			Backend: store.Name(), Objects: n, Confirmation: "listing read back empty", ConfirmedAt: custody.Now(),
		})
	}
	destroyed := 0
	if _, keyErr := v.keys.DataKey(ctx, uploadID); !errors.Is(keyErr, custody.ErrDestroyed) { // one that cannot be opened is one too
		destroyed = 1
		if noteErr := note([]custody.StoredObject{{Backend: custody.BackendKeys, Key: "data_key"}}); noteErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: note what is there: %w", custody.BackendKeys, noteErr))
		}
	}
	if keyErr := v.keys.DestroyDataKey(ctx, uploadID); keyErr != nil {
		return deletions, errors.Join(err, fmt.Errorf("%s: %w", custody.BackendKeys, keyErr))
	}
	return append(deletions, custody.Deletion{
		Backend: custody.BackendKeys, Objects: destroyed, Confirmation: "data key destroyed and read back absent", ConfirmedAt: custody.Now(),
	}), err
}

// objects lists what a backend holds of an upload.
func objects(ctx context.Context, store blobstore.Store, uploadID string) (held []custody.StoredObject, err error) {
	for info, err := range store.List(ctx, prefix(uploadID)) {
		if err != nil {
			return nil, err
		}
		held = append(held, custody.StoredObject{Backend: store.Name(), Key: info.Key, SizeBytes: info.Size})
	}
	return held, nil
}

// Uploads lists the ids of the uploads that have objects in any backend.
func (v *Vault) Uploads(ctx context.Context) (map[string]bool, error) {
	ids := map[string]bool{}
	for _, store := range v.stores() {
		for info, err := range store.List(ctx, "uploads/") {
			if err != nil {
				return nil, err
			}
			if segments := strings.SplitN(info.Key, "/", 3); len(segments) == 3 {
				ids[segments[1]] = true
			}
		}
	}
	return ids, nil
}

// KeysBefore lists the uploads whose data keys were made before then.
func (v *Vault) KeysBefore(ctx context.Context, then time.Time) ([]string, error) {
	return v.keys.DataKeysBefore(ctx, then)
}

// Strays lists the staging objects of an upload that named does not hold and that are older than before.
func (v *Vault) Strays(ctx context.Context, uploadID string, named map[string]bool, before time.Time) (keys []string, err error) {
	for info, err := range v.staging.List(ctx, prefix(uploadID)) {
		if err != nil {
			return keys, err
		}
		if !named[info.Key] && info.ModTime.Before(before) {
			keys = append(keys, info.Key)
		}
	}
	return keys, nil
}

// Ready answers whether every storage root does.
func (v *Vault) Ready(ctx context.Context) error {
	for _, store := range v.stores() {
		for _, err := range store.List(ctx, "ready/") { // nothing is ever there: the listing itself is the answer
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// onlyReader hides WriteTo, so that a copy honours its buffer.
type onlyReader struct{ io.Reader }

func prefix(uploadID string) string { return "uploads/" + uploadID + "/" }

// attempt makes every write a name of its own: objects are immutable, a repeated write is another object.
func attempt() string { return strings.ToLower(rand.Text()[:16]) }

func partAAD(uploadID string, number int) []byte {
	return []byte("accession part\x00" + uploadID + "\x00" + strconv.Itoa(number))
}

func artifactAAD(uploadID, name string) []byte {
	return []byte("accession derived\x00" + uploadID + "\x00" + name)
}
