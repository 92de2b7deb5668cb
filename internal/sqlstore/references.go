package sqlstore

import (
	"context"

	"github.com/accession/accession/internal/custody"
)

// AppendReference attaches a reference to an external review; it changes nothing of the upload.
func (tx *Tx) AppendReference(ctx context.Context, r custody.Review, credentialID string) error {
	_, err := tx.q.Exec(ctx, `INSERT INTO external_references (upload_id, position, review_id, source_url, reviewer, notes, credential_id, attached_at)
		SELECT $1, COALESCE(MAX(position), 0) + 1, $2, $3, $4, $5, $6, $7 FROM external_references WHERE upload_id = $8`,
		r.UploadID, r.ReviewID, r.SourceURL, r.Reviewer, r.Notes, credentialID, millis(r.AttachedAt), r.UploadID)
	return err
}

// References reads the references of an upload, newest last, at most limit of the newest.
func (s queries) References(ctx context.Context, uploadID string, limit int) ([]custody.Reference, error) {
	references := []custody.Reference{}
	err := s.q.Each(ctx, `SELECT review_id, source_url, reviewer, attached_at FROM (
		SELECT position, review_id, source_url, reviewer, attached_at FROM external_references WHERE upload_id = $1 ORDER BY position DESC LIMIT $2 + 0) AS newest
		ORDER BY position`,
		[]any{uploadID, limit}, func(scan func(...any) error) error {
			var r custody.Reference
			var attached int64
			err := scan(&r.ReviewID, &r.SourceURL, &r.Reviewer, &attached)
			r.AttachedAt = moment(attached)
			references = append(references, r)
			return err
		})
	return references, err
}

// Corrections reads the ids of the READY corrections of an upload, and of their corrections, newest last, at most limit of the
// newest. A withdrawn correction is not named, but what corrects it is: it is still the later word on the original.
func (s queries) Corrections(ctx context.Context, orgID, uploadID string, limit int) ([]string, error) {
	ids := []string{}
	// CROSS JOIN: SQLite takes the order as it stands, or else reads all uploads.
	err := s.q.Each(ctx, `WITH RECURSIVE later (upload_id) AS (
			SELECT upload_id FROM uploads WHERE original_upload_id = $1 AND original_upload_id <> '' AND org_id = $2
			UNION
			SELECT u.upload_id FROM uploads u JOIN later l ON u.original_upload_id = l.upload_id WHERE u.original_upload_id <> '' AND u.org_id = $3)
		SELECT upload_id FROM (
			SELECT u.upload_id, u.created_at FROM later l CROSS JOIN uploads u WHERE u.upload_id = l.upload_id AND u.status = 'READY'
			ORDER BY u.created_at DESC, u.upload_id DESC LIMIT $4 + 0) AS newest
		ORDER BY created_at, upload_id`,
		[]any{uploadID, orgID, orgID, limit}, func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			ids = append(ids, id)
			return err
		})
	return ids, err
}
