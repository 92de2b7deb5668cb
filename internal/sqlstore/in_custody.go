package sqlstore

import "context"

// InCustody lists up to limit uploads after the id `after` that have bytes to be read: accepted, and neither withdrawn nor lapsed. A
// text that a request is taking, or has refused, is not: nobody was told of it.
func (s queries) InCustody(ctx context.Context, after string, limit int) (uploadIDs []string, err error) {
	err = s.q.Each(ctx, `SELECT upload_id FROM uploads WHERE upload_id > $1 AND status IN ('INITIATED', 'RECEIVING', 'PROCESSING', 'READY', 'REJECTED', 'FAILED')
		AND NOT (status = 'INITIATED' AND kind <> 'partner')
		ORDER BY upload_id LIMIT $2`, []any{after, limit}, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		uploadIDs = append(uploadIDs, id)
		return err
	})
	return uploadIDs, err
}
