package sqlstore

import (
	"context"

	"github.com/accession/accession/internal/custody"
)

// NoteWithdrawalObjects keeps what a withdrawal is about to delete; what is noted already counts once.
func (tx *Tx) NoteWithdrawalObjects(ctx context.Context, uploadID string, objects []custody.StoredObject) error {
	for _, o := range objects {
		if _, err := tx.q.Exec(ctx, `INSERT INTO withdrawal_objects (upload_id, backend, object_key, size_bytes) VALUES ($1, $2, $3, $4)
			ON CONFLICT (upload_id, backend, object_key) DO NOTHING`, uploadID, o.Backend, o.Key, o.SizeBytes); err != nil {
			return err
		}
	}
	return nil
}

// WithdrawalObjects counts what was noted, by backend.
func (s queries) WithdrawalObjects(ctx context.Context, uploadID string) (noted []custody.DeletedObjects, err error) {
	err = s.q.Each(ctx, `SELECT backend, COUNT(*), CAST(SUM(size_bytes) AS BIGINT) FROM withdrawal_objects WHERE upload_id = $1 GROUP BY backend ORDER BY backend`,
		[]any{uploadID}, func(scan func(...any) error) error {
			var d custody.DeletedObjects
			err := scan(&d.Backend, &d.Objects, &d.Bytes)
			noted = append(noted, d)
			return err
		})
	return noted, err
}

// Recalled lists the credentials that were served an upload's context, from its request records, by id.
func (s queries) Recalled(ctx context.Context, orgID, uploadID string) (recalled []custody.Recall, err error) {
	err = s.q.Each(ctx, `SELECT credential_id, COUNT(*), MAX(served_at) FROM request_records
		WHERE org_id = $1 AND upload_id = $2 AND outcome = $3 GROUP BY credential_id ORDER BY credential_id`,
		[]any{orgID, uploadID, custody.OutcomeServed}, func(scan func(...any) error) error {
			var r custody.Recall
			var last int64
			err := scan(&r.CredentialID, &r.Servings, &last)
			r.LastServedAt = moment(last)
			recalled = append(recalled, r)
			return err
		})
	return recalled, err
}

// SignedReceipt reads the signed document of a receipt; ErrNotFound where the organization has no such receipt.
func (s queries) SignedReceipt(ctx context.Context, orgID, receiptID string) (signed string, err error) {
	err = s.q.Row(ctx, `SELECT signed FROM receipts WHERE withdrawal_receipt_id = $1 AND org_id = $2`, []any{receiptID, orgID}, &signed)
	return signed, err
}
