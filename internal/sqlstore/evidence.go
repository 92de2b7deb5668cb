package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/accession/accession/internal/custody"
)

// AppendRecord links r to its organization's chain and writes it; r gets its hashes. Its position is the count so far.
func (tx *Tx) AppendRecord(ctx context.Context, r *custody.Record) error {
	position, previous, err := tx.head(ctx, r.OrgID, "record")
	if err != nil {
		return err
	}
	r.ServedAt = moment(millis(r.ServedAt)) // the hash is over what is kept
	r.Link(previous)
	if _, err := tx.q.Exec(ctx, `INSERT INTO request_records (org_id, position, record_id, request_id, trace_id, upload_id, credential_id, surface, outcome, context_sha256, bytes, served_at, previous_hash, record_hash)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		r.OrgID, position, r.ID, r.RequestID, r.TraceID, r.UploadID, r.CredentialID, r.Surface, r.Outcome, r.ContextSHA256, r.Bytes, millis(r.ServedAt), r.PreviousHash, r.Hash); err != nil {
		return err
	}
	return tx.setHead(ctx, r.OrgID, "record", position, r.Hash)
}

// AppendAudit links l to its organization's chain and writes it. No line, no change: where it cannot be written the caller gets
// service_unavailable, and the transaction must end.
func (tx *Tx) AppendAudit(ctx context.Context, l custody.AuditLine) error {
	position, previous, err := tx.head(ctx, l.OrgID, "audit")
	if err != nil {
		return err
	}
	l.ID, l.At = custody.NewID("aud"), moment(millis(l.At)) // the hash is over what is kept
	l.Link(previous)
	if _, err := tx.q.Exec(ctx, `INSERT INTO audit_lines (org_id, position, audit_id, at, action, credential_id, upload_id, status, detail, request_id, trace_id, previous_hash, line_hash)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
		l.OrgID, position, l.ID, millis(l.At), l.Action, l.CredentialID, l.UploadID, l.Status, l.Detail, l.RequestID, l.TraceID, l.PreviousHash, l.Hash); err != nil {
		return custody.Unavailable(fmt.Errorf("audit line: %w", err))
	}
	return tx.setHead(ctx, l.OrgID, "audit", position, l.Hash)
}

// head gives the next position of a chain ("record" or "audit") and the hash to link to.
func (tx *Tx) head(ctx context.Context, orgID, chain string) (position int64, hash string, err error) {
	err = tx.q.Row(ctx, `SELECT `+chain+`_position, `+chain+`_hash FROM organizations WHERE org_id = $1`+tx.d.ForUpdate, []any{orgID}, &position, &hash)
	return position + 1, hash, err
}

func (tx *Tx) setHead(ctx context.Context, orgID, chain string, position int64, hash string) error {
	return one(tx.q.Exec(ctx, `UPDATE organizations SET `+chain+`_position = $1, `+chain+`_hash = $2 WHERE org_id = $3`, position, hash, orgID))
}

// Records reads request records, newest first, and the position to continue before (0: no more).
func (s queries) Records(ctx context.Context, q custody.RecordQuery) (records []custody.Record, next int64, err error) {
	where, args := []string{"org_id = $1"}, []any{q.OrgID}
	and := func(condition string, arg any) {
		args = append(args, arg)
		where = append(where, condition+" $"+strconv.Itoa(len(args)))
	}
	if q.UploadID != "" {
		and("upload_id =", q.UploadID)
	}
	if q.RequestID != "" {
		and("request_id =", q.RequestID)
	}
	if q.Before > 0 {
		and("position <", q.Before)
	}
	args = append(args, q.Limit+1) // one more tells whether there are more
	var last int64
	err = s.q.Each(ctx, `SELECT position, `+recordColumns+`, `+recalledAt+`
		FROM request_records WHERE `+strings.Join(where, " AND ")+` ORDER BY position DESC LIMIT $`+strconv.Itoa(len(args))+` + 0`, args,
		func(scan func(...any) error) error {
			if len(records) == q.Limit {
				next = last
				return nil
			}
			var r custody.Record
			var served, recalled int64
			err := scan(append(append([]any{&last}, recordFields(&r, &served)...), &recalled)...)
			r.ServedAt, r.RecalledAt = moment(served), moment(recalled)
			records = append(records, r)
			return err
		})
	return records, next, err
}

// Record reads the one record of that id, whatever its organization; ErrNotFound where there is none.
func (s queries) Record(ctx context.Context, recordID string) (r custody.Record, err error) {
	var served, recalled int64
	err = s.q.Row(ctx, `SELECT `+recordColumns+`, `+recalledAt+` FROM request_records WHERE record_id = $1`, []any{recordID}, append(recordFields(&r, &served), &recalled)...)
	r.ServedAt, r.RecalledAt = moment(served), moment(recalled)
	return r, err
}

// recalledAt is when the withdrawal of a record's upload was accepted, 0 while there is none: what is hashed never changes.
const recalledAt = `COALESCE((SELECT requested_at FROM withdrawals WHERE withdrawals.upload_id = request_records.upload_id), 0)`

const recordColumns = `record_id, request_id, trace_id, org_id, upload_id, credential_id, surface, outcome, context_sha256, bytes, served_at, previous_hash, record_hash`

func recordFields(r *custody.Record, served *int64) []any {
	return []any{&r.ID, &r.RequestID, &r.TraceID, &r.OrgID, &r.UploadID, &r.CredentialID, &r.Surface, &r.Outcome, &r.ContextSHA256, &r.Bytes, served, &r.PreviousHash, &r.Hash}
}

// InsertReceipt writes the proof of deletion and forgets what is no longer needed to audit it: the ledger, derived objects,
// names, notes, and who consented.
func (tx *Tx) InsertReceipt(ctx context.Context, r custody.Receipt, consent custody.Consent) error {
	deletions, err := json.Marshal(r.Deletions)
	if err != nil {
		return err
	}
	if _, err := tx.q.Exec(ctx, `INSERT INTO receipts (withdrawal_receipt_id, upload_id, org_id, credential_id, reason, requested_at, withdrawn_at, quota_bytes, sha256, deletions, signed)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		r.ID, r.UploadID, r.OrgID, r.CredentialID, r.Reason, millis(r.RequestedAt), millis(r.WithdrawnAt), r.QuotaBytes, r.SHA256, string(deletions), r.Signed); err != nil {
		return err
	}
	if err := tx.DropLedger(ctx, r.UploadID); err != nil {
		return err
	}
	if _, err := tx.q.Exec(ctx, `DELETE FROM withdrawal_objects WHERE upload_id = $1`, r.UploadID); err != nil {
		return err
	}
	return tx.ForgetNames(ctx, r.UploadID, consent)
}

// Receipt reads what is kept of an upload's receipt beside its signed document; ErrNotFound before deletion was confirmed everywhere.
func (s queries) Receipt(ctx context.Context, uploadID string) (r custody.Receipt, err error) {
	var requested, withdrawn int64
	var deletions string
	if err := s.q.Row(ctx, `SELECT withdrawal_receipt_id, upload_id, org_id, credential_id, reason, requested_at, withdrawn_at, quota_bytes, sha256, deletions FROM receipts WHERE upload_id = $1`,
		[]any{uploadID}, &r.ID, &r.UploadID, &r.OrgID, &r.CredentialID, &r.Reason, &requested, &withdrawn, &r.QuotaBytes, &r.SHA256, &deletions); err != nil {
		return r, err
	}
	r.RequestedAt, r.WithdrawnAt = moment(requested), moment(withdrawn)
	return r, json.Unmarshal([]byte(deletions), &r.Deletions)
}
