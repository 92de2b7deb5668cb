package sqlstore

import (
	"context"
	"strconv"
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

// tooFar is the condition for work that waits for, or is held until, a time that nobody gives it: the clock was put back since. A
// reservation waits for a time of its own, and a re-scan holds nobody up.
func tooFar(d sqldb.Dialect, longest time.Duration) string {
	end := d.Now + ` + ` + strconv.FormatInt(longest.Milliseconds(), 10)
	return `due_at > 0 AND status IN ('INITIATED', 'RECEIVING', 'PROCESSING', 'WITHDRAWING')
		AND (status IN ('PROCESSING', 'WITHDRAWING') AND due_at > ` + end + ` OR lease_until > ` + end + `)`
}

// WaitsTooLong tells whether any upload waits, or is held, for longer than longest from now.
func (s queries) WaitsTooLong(ctx context.Context, longest time.Duration) (bool, error) {
	var n int
	err := s.q.Row(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM uploads WHERE `+tooFar(s.d, longest)+` LIMIT 1) AS far`, nil, &n)
	return n > 0, err
}

// BringBack makes due what WaitsTooLong finds, up to limit uploads. A lease is cut to what it lasts, so that who lives renews it and
// nobody waits for the dead.
func (tx *Tx) BringBack(ctx context.Context, longest time.Duration, limit int) (int64, error) {
	fresh := tx.d.Now + ` + ` + strconv.FormatInt(custody.LeaseLifetime.Milliseconds(), 10)
	return tx.q.Exec(ctx, `UPDATE uploads SET due_at = CASE WHEN status IN ('PROCESSING', 'WITHDRAWING') AND due_at > `+tx.d.Now+` THEN `+tx.d.Now+` ELSE due_at END,
		lease_until = CASE WHEN lease_until > `+fresh+` THEN `+fresh+` ELSE lease_until END
		WHERE upload_id IN (SELECT upload_id FROM uploads WHERE `+tooFar(tx.d, longest)+` LIMIT $1`+tx.d.SkipLocked+`)`, limit)
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
