package sqlstore

import (
	"context"

	"github.com/accession/accession/internal/custody"
)

// Published reads what the serving of an upload's context goes by; ErrNotFound where there is no such upload, or it is somebody
// else's.
func (s queries) Published(ctx context.Context, orgID, uploadID string) (p custody.Published, err error) {
	var key, sum string
	var size int64
	if err := s.q.Row(ctx, `SELECT u.status, u.visibility, COALESCE(a.object_key, ''), COALESCE(a.size_bytes, 0), COALESCE(a.sha256, '')
		FROM uploads u LEFT JOIN artifacts a ON a.upload_id = u.upload_id AND a.name = 'context' WHERE u.upload_id = $1`+ofOrganization("u.org_id"),
		[]any{uploadID, orgID}, &p.Status, &p.Visibility, &key, &size, &sum); err != nil {
		return custody.Published{}, err
	}
	if key != "" {
		p.Context = custody.Artifact{UploadID: uploadID, Name: "context", ObjectKey: key, SizeBytes: size, SHA256: sum}
	}
	return p, nil
}

// StatusForChange reads the status of an upload of one organization, held against other transactions until this one ends.
func (tx *Tx) StatusForChange(ctx context.Context, orgID, uploadID string) (status custody.Status, err error) {
	err = tx.q.Row(ctx, `SELECT status FROM uploads WHERE upload_id = $1`+ofOrganization("org_id")+tx.d.ForUpdate, []any{uploadID, orgID}, &status)
	return status, err
}
