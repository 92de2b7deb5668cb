package move

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/accession/accession/internal/custody"
)

// statuses in which the objects of an upload are in custody; all others have none, or are about to have none.
const (
	partsKept   = `('INITIATED', 'RECEIVING', 'PROCESSING', 'READY', 'REJECTED', 'FAILED')`
	derivedKept = `('PROCESSING', 'READY', 'FAILED')`
)

// mostDamages is how much is named before the examination ends.
const mostDamages = 100

// Vault opens what was sealed; what is not authentic it refuses.
type Vault interface {
	Open(ctx context.Context, uploadID string, parts []custody.Part) (custody.Content, error)
	OpenArtifact(ctx context.Context, a custody.Artifact) ([]byte, error)
}

// Keys unwraps keys.
type Keys interface {
	DataKey(ctx context.Context, uploadID string) ([]byte, error)
	ReadSigningSecrets(ctx context.Context, purpose string) ([]custody.SigningKey, error)
}

// Examined is what an examination read.
type Examined struct {
	Keys    int64    `json:"keys"`
	Objects int64    `json:"objects"`
	Bytes   int64    `json:"bytes"`   // of plaintext
	Damages []string `json:"damages"` // each names what it is about
}

// Examine reads everything that is in custody, before anything is moved: every key unwraps, every object of the ledger, its copy in
// quarantine and all derived text authenticates and has the digest that the metadata names. What is not so is a damage; nothing of
// it would be found by comparing a copy with its source.
func Examine(ctx context.Context, metadata, wrapped *sql.DB, keys Keys, staging, quarantine Vault) (e Examined, err error) {
	damaged := func(format string, args ...any) error {
		e.Damages = append(e.Damages, fmt.Sprintf(format, args...))
		if len(e.Damages) >= mostDamages {
			return errTooMany
		}
		return ctx.Err()
	}
	for _, db := range []struct {
		name string
		*sql.DB
	}{{"metadata.db", metadata}, {"keys.db", wrapped}} {
		var verdict string
		if err := db.QueryRowContext(ctx, `PRAGMA integrity_check`).Scan(&verdict); err != nil || verdict != "ok" {
			e.Damages = append(e.Damages, fmt.Sprintf("%s: %s %v", db.name, verdict, err))
		}
	}
	err = errors.Join(
		rows(ctx, wrapped, `SELECT upload_id FROM data_keys ORDER BY upload_id`, nil, func(scan func(...any) error) error {
			var id string
			if err := scan(&id); err != nil {
				return err
			}
			e.Keys++
			if _, err := keys.DataKey(ctx, id); err != nil {
				return damaged("data key of %s: %v", id, err)
			}
			return nil
		}),
		rows(ctx, wrapped, `SELECT DISTINCT purpose FROM signing_keys WHERE retired_at = 0 ORDER BY purpose`, nil, func(scan func(...any) error) error {
			var purpose string
			if err := scan(&purpose); err != nil {
				return err
			}
			found, err := keys.ReadSigningSecrets(ctx, purpose)
			if e.Keys += int64(len(found)); err != nil {
				return damaged("signing keys for %s: %v", purpose, err)
			}
			return nil
		}),
		rows(ctx, metadata, `SELECT p.upload_id, p.part_number, p.size_bytes, p.sha256, p.object_key,
				EXISTS (SELECT 1 FROM gates g WHERE g.upload_id = p.upload_id AND g.name = 'quarantine' AND g.state = 'passed')
			FROM parts p JOIN uploads u USING (upload_id) WHERE u.status IN `+partsKept+` ORDER BY p.upload_id, p.part_number`, nil, func(scan func(...any) error) error {
			var p custody.Part
			var twice bool
			if err := scan(&p.UploadID, &p.Number, &p.SizeBytes, &p.SHA256, &p.ObjectKey, &twice); err != nil {
				return err
			}
			look := func(root string, v Vault) error {
				e.Objects++
				e.Bytes += p.SizeBytes
				if err := partIsWhole(ctx, v, p); err != nil {
					return damaged("%s object %s, part %d of %s: %v", root, p.ObjectKey, p.Number, p.UploadID, err)
				}
				return nil
			}
			if err := look("staging", staging); err != nil || !twice {
				return err
			}
			return look("quarantine", quarantine)
		}),
		rows(ctx, metadata, `SELECT a.upload_id, a.name, a.size_bytes, a.sha256, a.object_key
			FROM artifacts a JOIN uploads u USING (upload_id) WHERE u.status IN `+derivedKept+` ORDER BY a.upload_id, a.name`, nil, func(scan func(...any) error) error {
			var a custody.Artifact
			if err := scan(&a.UploadID, &a.Name, &a.SizeBytes, &a.SHA256, &a.ObjectKey); err != nil {
				return err
			}
			e.Objects++
			e.Bytes += a.SizeBytes
			text, err := staging.OpenArtifact(ctx, a)
			if sum := sha256.Sum256(text); err == nil && hex.EncodeToString(sum[:]) != a.SHA256 {
				err = errOtherContent
			}
			if err != nil {
				return damaged("staging object %s, %s of %s: %v", a.ObjectKey, a.Name, a.UploadID, err)
			}
			return nil
		}))
	if errors.Is(err, errTooMany) {
		err = nil
	}
	return e, err
}

var (
	errTooMany      = errors.New("too many damages")
	errOtherContent = errors.New("it is not the content that the metadata names")
)

func partIsWhole(ctx context.Context, v Vault, p custody.Part) error {
	content, err := v.Open(ctx, p.UploadID, []custody.Part{p})
	if err != nil {
		return err
	}
	defer content.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(content, 0, content.Size())); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != p.SHA256 {
		return errOtherContent
	}
	return nil
}
