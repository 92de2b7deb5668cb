package sqlstore

import (
	"context"
	"strings"

	"github.com/accession/accession/internal/custody"
)

// EnsureOrganization adds the organization with this allowance in bytes where it is new.
func (tx *Tx) EnsureOrganization(ctx context.Context, orgID string, allowance int64) error {
	_, err := tx.q.Exec(ctx, `INSERT INTO organizations (org_id, allowance_bytes, record_hash, audit_hash, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (org_id) DO NOTHING`, orgID, allowance, custody.FirstHash, custody.FirstHash, millis(custody.Now()))
	return err
}

// InsertCredential keeps what is known of an issued token.
func (tx *Tx) InsertCredential(ctx context.Context, c custody.Credential) error {
	scopes := make([]string, len(c.Scopes))
	for i, s := range c.Scopes {
		scopes[i] = string(s)
	}
	_, err := tx.q.Exec(ctx, `INSERT INTO credentials (credential_id, org_id, role, scope, key_id, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		c.ID, c.OrgID, c.Role, strings.Join(scopes, " "), c.KeyID, millis(c.CreatedAt), millis(c.ExpiresAt))
	return err
}

// Credential reads one credential; ErrNotFound where there is none.
func (s queries) Credential(ctx context.Context, credentialID string) (custody.Credential, error) {
	return s.credential(ctx, credentialID, "")
}

// Credential is the Store's, held against other transactions until this one ends.
func (tx *Tx) Credential(ctx context.Context, credentialID string) (custody.Credential, error) {
	return tx.credential(ctx, credentialID, tx.d.ForUpdate)
}

func (s queries) credential(ctx context.Context, credentialID, lock string) (c custody.Credential, err error) {
	var scope string
	var created, expires, revoked int64
	err = s.q.Row(ctx, `SELECT credential_id, org_id, role, scope, key_id, created_at, expires_at, revoked_at FROM credentials WHERE credential_id = $1`+lock,
		[]any{credentialID}, &c.ID, &c.OrgID, &c.Role, &scope, &c.KeyID, &created, &expires, &revoked)
	for _, f := range strings.Fields(scope) {
		c.Scopes = append(c.Scopes, custody.Scope(f))
	}
	c.CreatedAt, c.ExpiresAt, c.RevokedAt = moment(created), moment(expires), moment(revoked)
	return c, err
}

// Quota reads an organization's figures; ErrNotFound where it is unknown.
func (s queries) Quota(ctx context.Context, orgID string) (q custody.Quota, err error) {
	err = s.q.Row(ctx, `SELECT org_id, allowance_bytes, used_bytes, reserved_bytes, upload_count FROM organizations WHERE org_id = $1`,
		[]any{orgID}, &q.OrgID, &q.AllowanceBytes, &q.UsedBytes, &q.ReservedBytes, &q.UploadCount)
	return q, err
}

// ReserveQuota sets size bytes aside for a new upload, or fails with ErrQuota and changes nothing.
func (tx *Tx) ReserveQuota(ctx context.Context, orgID string, size int64) error {
	n, err := tx.q.Exec(ctx, `UPDATE organizations SET reserved_bytes = reserved_bytes + $1, upload_count = upload_count + 1
		WHERE org_id = $2 AND used_bytes + reserved_bytes + $3 <= allowance_bytes`, size, orgID, size)
	if err == nil && n == 0 {
		return custody.ErrQuota
	}
	return err
}

// UseQuota turns an upload's reservation into use.
func (tx *Tx) UseQuota(ctx context.Context, u *custody.Upload) error {
	if err := one(tx.q.Exec(ctx, `UPDATE organizations SET reserved_bytes = reserved_bytes - $1, used_bytes = used_bytes + $2 WHERE org_id = $3`,
		u.ReservedBytes, u.ReservedBytes, u.OrgID)); err != nil {
		return err
	}
	u.ReservedBytes, u.UsedBytes = 0, u.ReservedBytes
	return one(tx.q.Exec(ctx, `UPDATE uploads SET reserved_bytes = 0, used_bytes = $1 WHERE upload_id = $2`, u.UsedBytes, u.ID))
}

// FreeQuota gives back whatever an upload holds, and returns how many bytes that was.
func (tx *Tx) FreeQuota(ctx context.Context, u *custody.Upload) (int64, error) {
	freed := u.ReservedBytes + u.UsedBytes
	gone := 0
	if freed > 0 {
		gone = 1 // an upload counts as long as it holds bytes
	}
	if err := one(tx.q.Exec(ctx, `UPDATE organizations SET reserved_bytes = reserved_bytes - $1, used_bytes = used_bytes - $2, upload_count = upload_count - $3 WHERE org_id = $4`,
		u.ReservedBytes, u.UsedBytes, gone, u.OrgID)); err != nil {
		return 0, err
	}
	u.ReservedBytes, u.UsedBytes = 0, 0
	return freed, one(tx.q.Exec(ctx, `UPDATE uploads SET reserved_bytes = 0, used_bytes = 0 WHERE upload_id = $1`, u.ID))
}
