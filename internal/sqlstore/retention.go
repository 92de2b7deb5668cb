package sqlstore

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/accession/accession/internal/custody"
)

// Retention reads how long an organization's uploads stay; ErrNotFound where it is unknown.
func (s queries) Retention(ctx context.Context, orgID string) (custody.Retention, error) {
	r := custody.Retention{OrgID: orgID}
	err := s.q.Row(ctx, `SELECT retention_days FROM organizations WHERE org_id = $1`, []any{orgID}, &r.Days)
	return r, err
}

// SetRetention changes how long an organization's uploads stay, those there already among them. ErrConflict where it is unknown.
func (tx *Tx) SetRetention(ctx context.Context, r custody.Retention) error {
	return one(tx.q.Exec(ctx, `UPDATE organizations SET retention_days = $1 WHERE org_id = $2`, r.Days, r.OrgID))
}

// ended is the condition on uploads u and organizations o for a retention that has ended, by the database's clock.
func (s queries) ended() string {
	return `o.org_id = u.org_id AND o.retention_days > 0 AND u.created_at <= ` + s.d.Now + ` - o.retention_days * 86400000 AND u.status NOT IN ('WITHDRAWING', 'WITHDRAWN')`
}

// RetentionEnded lists up to limit uploads whose retention has ended and whose withdrawal has not begun, oldest first.
func (s queries) RetentionEnded(ctx context.Context, limit int) (ended []custody.RetentionEnded, err error) {
	err = s.q.Each(ctx, `SELECT u.org_id, u.upload_id FROM organizations o JOIN uploads u ON `+s.ended()+` ORDER BY u.created_at, u.upload_id LIMIT $1`,
		[]any{limit}, func(scan func(...any) error) error {
			var e custody.RetentionEnded
			err := scan(&e.OrgID, &e.UploadID)
			ended = append(ended, e)
			return err
		})
	return ended, err
}

// EndedRetention reads the retention that ended for an upload; ErrNotFound where none has, or a withdrawal has begun.
func (s queries) EndedRetention(ctx context.Context, uploadID string) (r custody.Retention, err error) {
	err = s.q.Row(ctx, `SELECT o.org_id, o.retention_days FROM organizations o JOIN uploads u ON `+s.ended()+` WHERE u.upload_id = $1`,
		[]any{uploadID}, &r.OrgID, &r.Days)
	return r, err
}

// BeginWithdrawal notes who asked and why.
func (tx *Tx) BeginWithdrawal(ctx context.Context, w custody.Withdrawing) error {
	_, err := tx.q.Exec(ctx, `INSERT INTO withdrawals (upload_id, org_id, credential_id, reason, requested_at, retained_until) VALUES ($1, $2, $3, $4, $5, $6)`,
		w.UploadID, w.OrgID, w.CredentialID, w.Reason, millis(w.RequestedAt), millis(w.RetainedUntil))
	return err
}

// Withdrawing reads an accepted withdrawal; ErrNotFound where there is none.
func (s queries) Withdrawing(ctx context.Context, uploadID string) (w custody.Withdrawing, err error) {
	var requested, retained, since int64
	var unconfirmed string
	err = s.q.Row(ctx, `SELECT upload_id, org_id, credential_id, reason, requested_at, attempts, retained_until, unconfirmed, unconfirmed_since FROM withdrawals WHERE upload_id = $1`,
		[]any{uploadID}, &w.UploadID, &w.OrgID, &w.CredentialID, &w.Reason, &requested, &w.Attempts, &retained, &unconfirmed, &since)
	w.RequestedAt, w.RetainedUntil, w.UnconfirmedSince = moment(requested), moment(retained), moment(since)
	if unconfirmed != "" {
		w.Unconfirmed = strings.Fields(unconfirmed)
	}
	return w, err
}

// CountWithdrawalAttempt notes an attempt that these backends, at least one, did not confirm.
func (tx *Tx) CountWithdrawalAttempt(ctx context.Context, uploadID string, unconfirmed []string) error {
	return one(tx.q.Exec(ctx, `UPDATE withdrawals SET attempts = attempts + 1, unconfirmed = $1,
		unconfirmed_since = CASE WHEN unconfirmed_since = 0 THEN `+tx.d.Now+` ELSE unconfirmed_since END WHERE upload_id = $2`,
		strings.Join(unconfirmed, " "), uploadID))
}

// ForgetNames forgets what nothing in custody needs any more: the file's name, notes and material type, and who consented; in
// the row and in answers kept to be replayed.
func (tx *Tx) ForgetNames(ctx context.Context, uploadID string, consent custody.Consent) error {
	consent.ConsentingUserID, consent.ConsentingEmail = "", ""
	kept, err := json.Marshal(consent)
	if err != nil {
		return err
	}
	if err := one(tx.q.Exec(ctx, `UPDATE uploads SET consent = $1, filename = '', notes = '', material_type = '', digest_state = $2 WHERE upload_id = $3`,
		string(kept), []byte{}, uploadID)); err != nil {
		return err
	}
	return tx.redactAnswers(ctx, uploadID)
}
