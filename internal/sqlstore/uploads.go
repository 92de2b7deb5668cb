package sqlstore

import (
	"context"
	"encoding/json"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/planted"
)

const uploadColumns = `upload_id, org_id, kind, status, sequence, pipeline_id, credential_id, filename, content_type, size_bytes,
	visibility, uploader_type, consent, notes, material_type, importance, part_size_bytes, received_bytes, next_part,
	digest_state, sha256, original_upload_id, reserved_bytes, used_bytes, created_at, updated_at, expires_at,
	failure_gate, failure_code, failure_message`

// scanUpload reads uploadColumns, then whatever more the query selected.
func scanUpload(scan func(...any) error, u *custody.Upload, more ...any) error {
	var consent, gate, code, message string
	var created, updated, expires int64
	err := scan(append([]any{&u.ID, &u.OrgID, &u.Kind, &u.Status, &u.Sequence, &u.PipelineID, &u.CredentialID, &u.Filename, &u.ContentType, &u.SizeBytes,
		&u.Visibility, &u.UploaderType, &consent, &u.Notes, &u.MaterialType, &u.Importance, &u.PartSizeBytes, &u.ReceivedBytes, &u.NextPart,
		&u.DigestState, &u.SHA256, &u.OriginalUploadID, &u.ReservedBytes, &u.UsedBytes, &created, &updated, &expires,
		&gate, &code, &message}, more...)...)
	if err != nil {
		return err
	}
	u.CreatedAt, u.UpdatedAt, u.ExpiresAt = moment(created), moment(updated), moment(expires)
	if code != "" {
		u.Failure = &custody.Failure{Gate: custody.GateName(gate), Code: code, Message: message}
	}
	return json.Unmarshal([]byte(consent), &u.Consent)
}

// Upload reads one upload of one organization; ErrNotFound where there is none, or it is somebody else's.
func (s queries) Upload(ctx context.Context, orgID, uploadID string) (custody.Upload, error) {
	return s.upload(ctx, orgID, uploadID, "")
}

// UploadForChange is Upload, held against other transactions until this one ends.
func (tx *Tx) UploadForChange(ctx context.Context, orgID, uploadID string) (custody.Upload, error) {
	return tx.upload(ctx, orgID, uploadID, tx.d.ForUpdate)
}

func (s queries) upload(ctx context.Context, orgID, uploadID, lock string) (u custody.Upload, err error) {
	found := false
	err = s.q.Each(ctx, `SELECT `+uploadColumns+` FROM uploads WHERE upload_id = $1`+ofOrganization("org_id")+lock,
		[]any{uploadID, orgID}, func(scan func(...any) error) error {
			found = true
			return scanUpload(scan, &u)
		})
	if err == nil && !found {
		err = custody.ErrNotFound
	}
	return u, err
}

// ofOrganization is the condition that column is the organization of parameter 2.
func ofOrganization(column string) string {
	if planted.Bug("organization-forgotten") {
		return ` AND $2 <> ''`
	}
	return ` AND ` + column + ` = $2`
}

// InsertUpload writes a new upload, its first event and its pending gates. u.Status and u.Sequence are set.
func (tx *Tx) InsertUpload(ctx context.Context, u *custody.Upload, cause custody.Cause) error {
	consent, err := json.Marshal(u.Consent)
	if err != nil {
		return err
	}
	u.Status, u.Sequence = custody.StatusInitiated, 1
	if u.DigestState == nil {
		u.DigestState = []byte{}
	}
	if _, err := tx.q.Exec(ctx, `INSERT INTO uploads (upload_id, org_id, kind, status, sequence, pipeline_id, credential_id, filename, content_type, size_bytes,
		visibility, uploader_type, consent, notes, material_type, importance, part_size_bytes, digest_state, original_upload_id, reserved_bytes,
		created_at, updated_at, expires_at, due_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)`,
		u.ID, u.OrgID, u.Kind, u.Status, u.Sequence, u.PipelineID, u.CredentialID, u.Filename, u.ContentType, u.SizeBytes,
		u.Visibility, u.UploaderType, string(consent), u.Notes, u.MaterialType, u.Importance, u.PartSizeBytes, u.DigestState, u.OriginalUploadID, u.ReservedBytes,
		millis(u.CreatedAt), millis(u.UpdatedAt), millis(u.ExpiresAt), millis(u.ExpiresAt)); err != nil {
		return err
	}
	for i, g := range custody.Gates {
		if _, err := tx.q.Exec(ctx, `INSERT INTO gates (upload_id, position, name, state) VALUES ($1, $2, $3, $4)`,
			u.ID, i+1, g.Name, custody.GatePending); err != nil {
			return err
		}
	}
	return tx.appendEvent(ctx, *u, "", custody.Change{Trigger: custody.TriggerReserved, Cause: cause})
}

// Part reads one row of the part ledger; ErrNotFound where the part was not accepted.
func (s queries) Part(ctx context.Context, uploadID string, number int) (p custody.Part, err error) {
	var accepted int64
	err = s.q.Row(ctx, `SELECT upload_id, part_number, size_bytes, sha256, object_key, accepted_at FROM parts WHERE upload_id = $1 AND part_number = $2`,
		[]any{uploadID, number}, &p.UploadID, &p.Number, &p.SizeBytes, &p.SHA256, &p.ObjectKey, &accepted)
	p.AcceptedAt = moment(accepted)
	return p, err
}

// Parts reads the part ledger in order.
func (s queries) Parts(ctx context.Context, uploadID string) (parts []custody.Part, err error) {
	err = s.q.Each(ctx, `SELECT part_number, size_bytes, sha256, object_key, accepted_at FROM parts WHERE upload_id = $1 ORDER BY part_number`,
		[]any{uploadID}, func(scan func(...any) error) error {
			p := custody.Part{UploadID: uploadID}
			var accepted int64
			err := scan(&p.Number, &p.SizeBytes, &p.SHA256, &p.ObjectKey, &accepted)
			p.AcceptedAt = moment(accepted)
			parts = append(parts, p)
			return err
		})
	return parts, err
}

// PartDigests reads number, size and digest of each part of the ledger, in order.
func (s queries) PartDigests(ctx context.Context, uploadID string) (parts []custody.Part, err error) {
	err = s.q.Each(ctx, `SELECT part_number, size_bytes, sha256 FROM parts WHERE upload_id = $1 ORDER BY part_number`,
		[]any{uploadID}, func(scan func(...any) error) error {
			p := custody.Part{UploadID: uploadID}
			err := scan(&p.Number, &p.SizeBytes, &p.SHA256)
			parts = append(parts, p)
			return err
		})
	return parts, err
}

// AppendPart adds p to the ledger and moves the upload on: received bytes, next part, digest state, and the digest itself
// once the last part is in. ErrConflict where another part p.Number won.
func (tx *Tx) AppendPart(ctx context.Context, u *custody.Upload, p custody.Part, digestState []byte, sha256 string) error {
	if digestState == nil {
		digestState = []byte{}
	}
	if err := one(tx.q.Exec(ctx, `UPDATE uploads SET received_bytes = received_bytes + $1, next_part = next_part + 1, digest_state = $2, sha256 = $3, updated_at = $4
		WHERE upload_id = $5 AND next_part = $6 AND status IN ('INITIATED', 'RECEIVING')`,
		p.SizeBytes, digestState, sha256, millis(p.AcceptedAt), u.ID, p.Number)); err != nil {
		return err
	}
	_, err := tx.q.Exec(ctx, `INSERT INTO parts (upload_id, part_number, size_bytes, sha256, object_key, accepted_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		p.UploadID, p.Number, p.SizeBytes, p.SHA256, p.ObjectKey, millis(p.AcceptedAt))
	u.ReceivedBytes += p.SizeBytes
	u.NextPart++
	u.DigestState, u.SHA256, u.UpdatedAt = digestState, sha256, p.AcceptedAt
	return err
}

// Artifact reads one derived object; ErrNotFound where it was not made.
func (s queries) Artifact(ctx context.Context, uploadID, name string) (a custody.Artifact, err error) {
	err = s.q.Row(ctx, `SELECT upload_id, name, object_key, size_bytes, sha256 FROM artifacts WHERE upload_id = $1 AND name = $2`,
		[]any{uploadID, name}, &a.UploadID, &a.Name, &a.ObjectKey, &a.SizeBytes, &a.SHA256)
	return a, err
}

// PutArtifact publishes a derived object; a later one of the same name replaces it.
func (tx *Tx) PutArtifact(ctx context.Context, a custody.Artifact) error {
	_, err := tx.q.Exec(ctx, `INSERT INTO artifacts (upload_id, name, object_key, size_bytes, sha256) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (upload_id, name) DO UPDATE SET object_key = excluded.object_key, size_bytes = excluded.size_bytes, sha256 = excluded.sha256`,
		a.UploadID, a.Name, a.ObjectKey, a.SizeBytes, a.SHA256)
	return err
}

// DropLedger forgets the parts and derived objects of an upload whose bytes are gone.
func (tx *Tx) DropLedger(ctx context.Context, uploadID string) error {
	for _, forget := range []string{`DELETE FROM parts WHERE upload_id = $1`, `DELETE FROM artifacts WHERE upload_id = $1`, `DELETE FROM external_references WHERE upload_id = $1`} {
		if _, err := tx.q.Exec(ctx, forget, uploadID); err != nil {
			return err
		}
	}
	return nil
}

// StatusOf reads the status of an upload of any organization; ErrNotFound where there is none.
func (s queries) StatusOf(ctx context.Context, uploadID string) (status custody.Status, err error) {
	err = s.q.Row(ctx, `SELECT status FROM uploads WHERE upload_id = $1`, []any{uploadID}, &status)
	return status, err
}

// ObjectKeys reads the keys of every published object of an upload.
func (s queries) ObjectKeys(ctx context.Context, uploadID string) (map[string]bool, error) {
	keys := map[string]bool{}
	err := s.q.Each(ctx, `SELECT object_key FROM parts WHERE upload_id = $1 UNION ALL SELECT object_key FROM artifacts WHERE upload_id = $2`,
		[]any{uploadID, uploadID}, func(scan func(...any) error) error {
			var key string
			err := scan(&key)
			keys[key] = true
			return err
		})
	return keys, err
}
