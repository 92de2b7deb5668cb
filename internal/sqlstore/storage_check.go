package sqlstore

import (
	"context"

	"github.com/accession/accession/internal/custody"
)

// UploadsAfter reads up to limit uploads of all organizations in the order of their ids, those after the given one.
func (s queries) UploadsAfter(ctx context.Context, after string, limit int) (uploads []custody.Upload, err error) {
	err = s.q.Each(ctx, `SELECT `+uploadColumns+` FROM uploads WHERE upload_id > $1 ORDER BY upload_id LIMIT $2`, []any{after, limit},
		func(scan func(...any) error) error {
			var u custody.Upload
			err := scanUpload(scan, &u)
			uploads = append(uploads, u)
			return err
		})
	return uploads, err
}

// Artifacts reads the derived objects of an upload.
func (s queries) Artifacts(ctx context.Context, uploadID string) (artifacts []custody.Artifact, err error) {
	err = s.q.Each(ctx, `SELECT upload_id, name, object_key, size_bytes, sha256 FROM artifacts WHERE upload_id = $1 ORDER BY name`, []any{uploadID},
		func(scan func(...any) error) error {
			var a custody.Artifact
			err := scan(&a.UploadID, &a.Name, &a.ObjectKey, &a.SizeBytes, &a.SHA256)
			artifacts = append(artifacts, a)
			return err
		})
	return artifacts, err
}
