package sqlstore

import (
	"context"
	"encoding/json"
	"time"

	"github.com/accession/accession/internal/custody"
)

// queueEvent puts an upload's new status event into the outbox of its organization, and with it a recall where the change takes
// a served context back. Without a webhook nothing is queued.
func (tx *Tx) queueEvent(ctx context.Context, u custody.Upload, eventID string, c custody.Change) error {
	hooked, err := tx.hooked(ctx, u.OrgID)
	if err != nil || !hooked {
		return err
	}
	if err := tx.queueDelivery(ctx, u, eventID, 2*u.Sequence, custody.EventUploadStatusChanged, ""); err != nil {
		return err
	}
	reason := map[custody.Trigger]string{custody.TriggerWithdrawal: custody.RecallWithdrawn, custody.TriggerRescanRefused: custody.RecallRejected}[c.Trigger]
	if reason == "" {
		return nil
	}
	recall := custody.ContextRecall{
		Event: custody.EventContextRecalled, EventID: custody.NewID("evt"), UploadID: u.ID, OrgID: u.OrgID, Reason: reason, RecalledAt: u.UpdatedAt,
		ContextSHA256s: []string{}, CredentialIDs: []string{}, RequestID: c.Cause.RequestID, TraceID: c.Cause.TraceID,
	}
	recalled, err := tx.Recalled(ctx, u.OrgID, u.ID)
	if err != nil || len(recalled) == 0 {
		return err
	}
	for _, r := range recalled {
		recall.Servings += r.Servings
		recall.CredentialIDs = append(recall.CredentialIDs, r.CredentialID)
	}
	if err := tx.q.Each(ctx, `SELECT DISTINCT context_sha256 FROM request_records WHERE org_id = $1 AND upload_id = $2 AND outcome = $3 ORDER BY context_sha256`,
		[]any{u.OrgID, u.ID, custody.OutcomeServed}, func(scan func(...any) error) error {
			var sum string
			err := scan(&sum)
			recall.ContextSHA256s = append(recall.ContextSHA256s, sum)
			return err
		}); err != nil {
		return err
	}
	payload, err := json.Marshal(recall)
	if err != nil {
		return err
	}
	return tx.queueDelivery(ctx, u, recall.EventID, 2*u.Sequence+1, custody.EventContextRecalled, string(payload))
}

func (tx *Tx) queueDelivery(ctx context.Context, u custody.Upload, eventID string, position int64, kind, payload string) error {
	_, err := tx.q.Exec(ctx, `INSERT INTO webhook_deliveries (event_id, org_id, upload_id, position, kind, payload, state, queued_at, due_at)
		VALUES ($1, $2, $3, $4, $5, $6, 'pending', `+tx.d.Now+`, `+tx.d.Now+`)`, eventID, u.OrgID, u.ID, position, kind, payload)
	return err
}

// deliverable is a due delivery d that no earlier one of its upload holds up.
func (s queries) deliverable() string {
	return `d.state = 'pending' AND d.due_at <= ` + s.d.Now + ` AND d.lease_until <= ` + s.d.Now + ` AND NOT EXISTS (SELECT 1 FROM webhook_deliveries b
		WHERE b.org_id = d.org_id AND b.upload_id = d.upload_id AND b.state = 'pending' AND b.position < d.position)`
}

// DueWebhooks lists the organizations with something to deliver now; it only reads.
func (s queries) DueWebhooks(ctx context.Context) (orgs []string, err error) {
	err = s.q.Each(ctx, `SELECT e.org_id FROM webhook_endpoints e WHERE e.state = 'active' AND e.retry_at <= `+s.d.Now+`
		AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.org_id = e.org_id AND `+s.deliverable()+`)`, nil, func(scan func(...any) error) error {
		var org string
		err := scan(&org)
		orgs = append(orgs, org)
		return err
	})
	return orgs, err
}

// ClaimDeliveries takes up to limit due deliveries of an organization under lease, at most one of each upload, and returns the
// webhook they go to. Over all replicas no more than concurrency are under way; a single probe once there were trips failures in
// a row.
func (tx *Tx) ClaimDeliveries(ctx context.Context, orgID, lease string, limit, concurrency, trips int) (w custody.Webhook, claims []custody.Delivery, err error) {
	w, err = tx.WebhookForChange(ctx, orgID)
	if err != nil || w.State != custody.WebhookActive {
		return w, nil, err
	}
	var under, open int
	if err := tx.q.Row(ctx, `SELECT COUNT(*) FROM webhook_deliveries WHERE org_id = $1 AND state = 'pending' AND lease_until > `+tx.d.Now, []any{orgID}, &under); err != nil {
		return w, nil, err
	}
	if err := tx.q.Row(ctx, `SELECT COUNT(*) FROM webhook_endpoints WHERE org_id = $1 AND retry_at > `+tx.d.Now, []any{orgID}, &open); err != nil {
		return w, nil, err
	}
	if w.Failures >= trips {
		concurrency = 1
	}
	limit = min(limit, concurrency-under)
	if limit <= 0 || open > 0 {
		return w, nil, nil
	}
	// Materialized: chosen once, however the engine joins.
	err = tx.q.Each(ctx, `WITH due AS MATERIALIZED (SELECT d.event_id FROM webhook_deliveries d WHERE d.org_id = $1 AND `+tx.deliverable()+`
			ORDER BY d.due_at, d.event_id LIMIT $2 + 0`+tx.d.SkipLocked+`)
		UPDATE webhook_deliveries SET lease = $3, lease_until = `+tx.d.Now+` + $4, attempt = attempt + 1, attempts = attempts + 1
		WHERE event_id IN (SELECT event_id FROM due)
		RETURNING `+deliveryColumns, []any{orgID, limit, lease, custody.LeaseLifetime.Milliseconds()}, func(scan func(...any) error) error {
		var d custody.Delivery
		err := scanDelivery(scan, &d)
		claims = append(claims, d)
		return err
	})
	for i := range claims {
		if err == nil {
			err = tx.describe(ctx, &claims[i])
		}
	}
	return w, claims, err
}

// KeepDeliveries keeps everything alive that is held under lease.
func (tx *Tx) KeepDeliveries(ctx context.Context, lease string) error {
	_, err := tx.q.Exec(ctx, `UPDATE webhook_deliveries SET lease_until = `+tx.d.Now+` + $1 WHERE lease = $2 AND state = 'pending'`, custody.LeaseLifetime.Milliseconds(), lease)
	return err
}

// ReleaseDelivery gives d back untried, due again after delay; attempt does not count.
func (tx *Tx) ReleaseDelivery(ctx context.Context, d custody.Delivery, delay time.Duration) error {
	return tx.held(tx.q.Exec(ctx, `UPDATE webhook_deliveries SET due_at = `+tx.d.Now+` + $1, lease = '', lease_until = 0, attempt = attempt - 1, attempts = attempts - 1
		WHERE event_id = $2 AND lease = $3 AND attempt = $4 AND state = 'pending'`, delay.Milliseconds(), d.EventID, d.Lease, d.Attempt))
}

// ReleaseDeliveries gives all back. Only for a start that is known to be alone: whoever held them is dead.
func (tx *Tx) ReleaseDeliveries(ctx context.Context) error {
	_, err := tx.q.Exec(ctx, `UPDATE webhook_deliveries SET lease = '', lease_until = 0 WHERE lease <> '' AND state = 'pending'`)
	return err
}

// FinishDelivery writes what an attempt came to: the delivery, its log, and the endpoint's circuit. ErrLeaseLost where somebody
// else holds the delivery now, or nobody: the webhook was deleted.
func (tx *Tx) FinishDelivery(ctx context.Context, d custody.Delivery, r custody.DeliveryResult) error {
	var ended int64
	if r.State != custody.DeliveryPending {
		ended = millis(r.At)
	}
	if err := tx.held(tx.q.Exec(ctx, `UPDATE webhook_deliveries SET state = $1, due_at = `+tx.d.Now+` + $2, ended_at = $3, lease = '', lease_until = 0
		WHERE event_id = $4 AND lease = $5 AND attempt = $6 AND state = 'pending'`,
		r.State, r.Delay.Milliseconds(), ended, d.EventID, d.Lease, d.Attempt)); err != nil {
		return err
	}
	if _, err := tx.q.Exec(ctx, `INSERT INTO webhook_attempts (event_id, attempt, org_id, at, outcome, status, latency_ms)
		SELECT event_id, attempts, org_id, CAST($1 AS BIGINT), CAST($2 AS TEXT), CAST($3 AS BIGINT), CAST($4 AS BIGINT) FROM webhook_deliveries WHERE event_id = $5`,
		millis(r.At), r.Outcome, r.Status, r.Latency.Milliseconds(), d.EventID); err != nil {
		return err
	}
	w, err := tx.WebhookForChange(ctx, d.OrgID)
	if err != nil {
		return err
	}
	switch {
	case r.Disable:
		_, err = tx.q.Exec(ctx, `UPDATE webhook_endpoints SET state = 'disabled', updated_at = $1 WHERE org_id = $2`, millis(r.At), d.OrgID)
	case r.Failed:
		_, err = tx.q.Exec(ctx, `UPDATE webhook_endpoints SET failures = failures + 1, retry_at = `+tx.d.Now+` + $1 WHERE org_id = $2`,
			r.Pause(w.Failures+1).Milliseconds(), d.OrgID)
	case w.Failures > 0:
		if _, err = tx.q.Exec(ctx, `UPDATE webhook_endpoints SET failures = 0, retry_at = 0 WHERE org_id = $1`, d.OrgID); err == nil && r.Pause(w.Failures) > 0 {
			// The circuit was open: what waits out its own delay need not any more.
			_, err = tx.q.Exec(ctx, `UPDATE webhook_deliveries SET due_at = `+tx.d.Now+` WHERE org_id = $1 AND state = 'pending' AND due_at > `+tx.d.Now, d.OrgID)
		}
	}
	return err
}

// ReplayDeliveries queues again what q asks for, and returns how many that are. What is pending stays as it is, but does not wait.
// An upload's events are all queued, also those from before the webhook was set.
func (tx *Tx) ReplayDeliveries(ctx context.Context, q custody.WebhookReplay) (int64, error) {
	const again = `state = 'pending', lease = '', lease_until = 0, attempt = 0, ended_at = 0, queued_at = `
	reset := again + tx.d.Now + `, due_at = ` + tx.d.Now
	switch {
	case q.EventID != "":
		return tx.q.Exec(ctx, `UPDATE webhook_deliveries SET `+reset+` WHERE org_id = $1 AND event_id = $2 AND state <> 'pending'`, q.OrgID, q.EventID)
	case q.UploadID == "":
		return tx.q.Exec(ctx, `UPDATE webhook_deliveries SET `+reset+` WHERE org_id = $1 AND state = 'dead'`, q.OrgID)
	}
	n, err := tx.q.Exec(ctx, `UPDATE webhook_deliveries SET `+reset+` WHERE org_id = $1 AND upload_id = $2 AND state <> 'pending'`, q.OrgID, q.UploadID)
	if err != nil {
		return 0, err
	}
	added, err := tx.q.Exec(ctx, `INSERT INTO webhook_deliveries (event_id, org_id, upload_id, position, kind, state, queued_at, due_at)
		SELECT event_id, org_id, upload_id, 2 * sequence, 'uploadStatusChanged', 'pending', `+tx.d.Now+`, `+tx.d.Now+` FROM status_events e
		WHERE e.org_id = $1 AND e.upload_id = $2 AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.event_id = e.event_id)`, q.OrgID, q.UploadID)
	return n + added, err
}

// ExpireDeliveries gives up what was queued before, and could not be delivered since: it was tried, or its webhook is disabled or
// fails.
func (tx *Tx) ExpireDeliveries(ctx context.Context, before time.Time) (int64, error) {
	return tx.q.Exec(ctx, `UPDATE webhook_deliveries SET state = 'dead', ended_at = `+tx.d.Now+`, lease = '', lease_until = 0
		WHERE state = 'pending' AND queued_at <= $1 AND lease_until <= `+tx.d.Now+` AND (attempt > 0 OR EXISTS (SELECT 1 FROM webhook_endpoints e
			WHERE e.org_id = webhook_deliveries.org_id AND (e.state <> 'active' OR e.failures > 0)))`, millis(before))
}

// PruneDeliveries forgets what was delivered or died before, all but the newest keep of what was delivered, and its log.
func (tx *Tx) PruneDeliveries(ctx context.Context, deliveredBefore, deadBefore time.Time, keep int) error {
	const ended = `(state = 'delivered' AND ended_at < $1) OR (state = 'dead' AND ended_at < $2)
		OR (state = 'delivered' AND event_id < COALESCE((SELECT o.event_id FROM webhook_deliveries o
			WHERE o.org_id = webhook_deliveries.org_id AND o.state = 'delivered' ORDER BY o.event_id DESC LIMIT 1 OFFSET $3), ''))`
	args := []any{millis(deliveredBefore), millis(deadBefore), keep}
	if _, err := tx.q.Exec(ctx, `DELETE FROM webhook_attempts WHERE event_id IN (SELECT event_id FROM webhook_deliveries WHERE `+ended+`)`, args...); err != nil {
		return err
	}
	_, err := tx.q.Exec(ctx, `DELETE FROM webhook_deliveries WHERE `+ended, args...)
	return err
}
