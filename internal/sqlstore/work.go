package sqlstore

import (
	"context"
	"strings"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
)

// The uploads themselves are the queue: due_at says from when on something is to be done, the lease who does it.

const claimColumns = uploadColumns + `, attempt`

// Due tells whether any upload of the lane waits for a worker; it only reads, so that an idle poll writes nothing.
func (s queries) Due(ctx context.Context, lane custody.Lane) (bool, error) {
	var n int
	err := s.q.Row(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM uploads WHERE `+waiting(s.d, lane)+` LIMIT 1) AS due`, nil, &n)
	return n > 0, err
}

func waiting(d sqldb.Dialect, lane custody.Lane) string {
	return due(d, lane) + ` AND lease_until <= ` + d.Now
}

// due is the condition for what is to be done now, whether or not a worker has it.
func due(d sqldb.Dialect, lane custody.Lane) string {
	statuses := make([]string, len(lane))
	for i, s := range lane {
		statuses[i] = "'" + string(s) + "'" // constants of the lifecycle
	}
	return `due_at > 0 AND due_at <= ` + d.Now + ` AND status IN (` + strings.Join(statuses, ", ") + `)`
}

// ClaimDue takes up to limit due uploads of a lane under fresh leases, longest due first.
func (tx *Tx) ClaimDue(ctx context.Context, lane custody.Lane, limit int) (claims []custody.Claim, err error) {
	lease := custody.NewID("lease")
	// Materialized: chosen once, however the engine joins.
	err = tx.q.Each(ctx, `WITH due AS MATERIALIZED (SELECT upload_id FROM uploads WHERE `+waiting(tx.d, lane)+` ORDER BY due_at LIMIT $1 + 0`+tx.d.SkipLocked+`)
		UPDATE uploads SET lease = $2, lease_until = `+tx.d.Now+` + $3, attempt = attempt + 1
		WHERE upload_id IN (SELECT upload_id FROM due)
		RETURNING `+claimColumns, []any{limit, lease, custody.LeaseLifetime.Milliseconds()}, func(scan func(...any) error) error {
		c := custody.Claim{Lease: lease}
		if err := scanUpload(scan, &c.Upload, &c.Attempt); err != nil {
			return err
		}
		claims = append(claims, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, c := range claims { // the ids of the request that made the work go on into it
		if err := tx.q.Row(ctx, `SELECT credential_id, request_id, trace_id FROM status_events WHERE upload_id = $1 ORDER BY sequence DESC LIMIT 1`,
			[]any{c.Upload.ID}, &claims[i].Cause.CredentialID, &claims[i].Cause.RequestID, &claims[i].Cause.TraceID); err != nil {
			return nil, err
		}
	}
	return claims, nil
}

// Heartbeat keeps c alive. ErrLeaseLost where the upload moved on (withdrawn, taken over): stop at once.
func (tx *Tx) Heartbeat(ctx context.Context, c custody.Claim) error {
	return tx.held(tx.q.Exec(ctx, `UPDATE uploads SET lease_until = `+tx.d.Now+` + $1 WHERE upload_id = $2 AND lease = $3 AND status = $4`,
		custody.LeaseLifetime.Milliseconds(), c.Upload.ID, c.Lease, c.Upload.Status))
}

// Hold fails with ErrLeaseLost unless c still holds its upload; call it first in every transaction that finishes work.
func (tx *Tx) Hold(ctx context.Context, c custody.Claim) error { return tx.Heartbeat(ctx, c) }

// Postpone gives the upload back, due again after delay.
func (tx *Tx) Postpone(ctx context.Context, c custody.Claim, delay time.Duration) error {
	return tx.held(tx.q.Exec(ctx, `UPDATE uploads SET due_at = `+tx.d.Now+` + $1, lease = '', lease_until = 0 WHERE upload_id = $2 AND lease = $3 AND status = $4`,
		delay.Milliseconds(), c.Upload.ID, c.Lease, c.Upload.Status))
}

// Release gives the upload back as it is, whatever became of it meanwhile. attempt does not count.
func (tx *Tx) Release(ctx context.Context, c custody.Claim) error {
	_, err := tx.q.Exec(ctx, `UPDATE uploads SET lease = '', lease_until = 0, attempt = CASE WHEN attempt > 0 THEN attempt - 1 ELSE 0 END WHERE upload_id = $1 AND lease = $2`,
		c.Upload.ID, c.Lease)
	return err
}

// ReleaseAll gives every upload back at once. Only for a start that is known to be alone: whoever held them is dead.
func (tx *Tx) ReleaseAll(ctx context.Context) error {
	if err := tx.ReleaseDeliveries(ctx); err != nil {
		return err
	}
	_, err := tx.q.Exec(ctx, `UPDATE uploads SET lease = '', lease_until = 0 WHERE lease <> ''`)
	return err
}

// RestartAttempts counts the attempts of the next gate from 1.
func (tx *Tx) RestartAttempts(ctx context.Context, c custody.Claim) error {
	return tx.held(tx.q.Exec(ctx, `UPDATE uploads SET attempt = 1 WHERE upload_id = $1 AND lease = $2`, c.Upload.ID, c.Lease))
}

func (tx *Tx) held(n int64, err error) error {
	if err == nil && n != 1 {
		return custody.ErrLeaseLost
	}
	return err
}
