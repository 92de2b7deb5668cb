package sqlstore

import (
	"context"

	"github.com/accession/accession/internal/custody"
)

// Organizations reads organizations by ascending id; more tells that the page is not the whole. The installation itself, which has
// an audit log too, is none.
func (s queries) Organizations(ctx context.Context, q custody.OrganizationQuery) (page []custody.OrganizationState, more bool, err error) {
	err = s.q.Each(ctx, `SELECT o.org_id, o.allowance_bytes, o.used_bytes, o.reserved_bytes, o.upload_count, o.created_at, o.retention_days,
		(SELECT COUNT(*) FROM credentials c WHERE c.org_id = o.org_id AND c.revoked_at = 0 AND c.expires_at > $1)
		FROM organizations o WHERE o.org_id > $2 ORDER BY o.org_id LIMIT $3`, []any{millis(q.At), q.After, q.Limit + 1}, func(scan func(...any) error) error {
		var o custody.OrganizationState
		var created int64
		err := scan(&o.OrgID, &o.AllowanceBytes, &o.UsedBytes, &o.ReservedBytes, &o.UploadCount, &created, &o.RetentionDays, &o.ActiveCredentials)
		o.CreatedAt = moment(created)
		page = append(page, o)
		return err
	})
	if len(page) > q.Limit {
		page, more = page[:q.Limit], true
	}
	return page, more, err
}

// SetAllowance changes how many bytes an organization may keep, and returns its figures; ErrConflict where it is unknown. A
// reservation reads the allowance in the statement that reserves, so each sees the one before or the one after.
func (tx *Tx) SetAllowance(ctx context.Context, orgID string, allowance int64) (custody.Quota, error) {
	if err := one(tx.q.Exec(ctx, `UPDATE organizations SET allowance_bytes = $1 WHERE org_id = $2`, allowance, orgID)); err != nil {
		return custody.Quota{}, err
	}
	return tx.Quota(ctx, orgID)
}
