package sqlstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/accession/accession/internal/custody"
)

// Credentials reads credentials by q, newest first; more tells that the page is not the whole.
func (s queries) Credentials(ctx context.Context, q custody.CredentialQuery) (page []custody.Credential, more bool, err error) {
	sql, args := `SELECT credential_id, org_id, role, scope, key_id, created_at, expires_at, revoked_at FROM credentials WHERE 1 = 1`, []any{}
	and := func(condition string, arg any) {
		args = append(args, arg)
		sql += fmt.Sprintf(condition, len(args))
	}
	if q.OrgID != "" {
		and(` AND org_id = $%d`, q.OrgID)
	}
	if !q.Ended {
		and(` AND revoked_at = 0 AND expires_at > $%d`, millis(q.At))
	}
	if q.Before != "" {
		and(` AND credential_id < $%d`, q.Before)
	}
	and(` ORDER BY credential_id DESC LIMIT $%d`, q.Limit+1)
	err = s.q.Each(ctx, sql, args, func(scan func(...any) error) error {
		var c custody.Credential
		var scope string
		var created, expires, revoked int64
		if err := scan(&c.ID, &c.OrgID, &c.Role, &scope, &c.KeyID, &created, &expires, &revoked); err != nil {
			return err
		}
		for _, f := range strings.Fields(scope) {
			c.Scopes = append(c.Scopes, custody.Scope(f))
		}
		c.CreatedAt, c.ExpiresAt, c.RevokedAt = moment(created), moment(expires), moment(revoked)
		page = append(page, c)
		return nil
	})
	if len(page) > q.Limit {
		page, more = page[:q.Limit], true
	}
	return page, more, err
}

// CountSigned counts the credentials that are active at that time and carry the signature of a key.
func (s queries) CountSigned(ctx context.Context, keyID string, at time.Time) (n int, err error) {
	err = s.q.Row(ctx, `SELECT COUNT(*) FROM credentials WHERE key_id = $1 AND revoked_at = 0 AND expires_at > $2`, []any{keyID, millis(at)}, &n)
	return n, err
}

// RevokeCredential ends a credential for good; ErrConflict where it is revoked already or unknown.
func (tx *Tx) RevokeCredential(ctx context.Context, credentialID string, at time.Time) error {
	return one(tx.q.Exec(ctx, `UPDATE credentials SET revoked_at = $1 WHERE credential_id = $2 AND revoked_at = 0`, millis(at), credentialID))
}

// EndCredential brings a credential's expiry forward to end; ErrConflict where it is not active at that time.
func (tx *Tx) EndCredential(ctx context.Context, credentialID string, end, at time.Time) error {
	return one(tx.q.Exec(ctx, `UPDATE credentials SET expires_at = CASE WHEN expires_at < $1 THEN expires_at ELSE $2 END
		WHERE credential_id = $3 AND revoked_at = 0 AND expires_at > $4`, millis(end), millis(end), credentialID, millis(at)))
}

// RevokeToken remembers a revoked access token until expires, and forgets those that have expired by at.
func (tx *Tx) RevokeToken(ctx context.Context, tokenID, credentialID string, expires, at time.Time) (fresh bool, err error) {
	if _, err := tx.q.Exec(ctx, `DELETE FROM revoked_tokens WHERE expires_at <= $1`, millis(at)); err != nil {
		return false, err
	}
	n, err := tx.q.Exec(ctx, `INSERT INTO revoked_tokens (token_id, credential_id, expires_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		tokenID, credentialID, millis(expires))
	return n == 1, err
}

// TokenRevoked tells whether an access token was revoked before its end.
func (s queries) TokenRevoked(ctx context.Context, tokenID string) (bool, error) {
	var n int
	err := s.q.Row(ctx, `SELECT COUNT(*) FROM revoked_tokens WHERE token_id = $1`, []any{tokenID}, &n)
	return n > 0, err
}
