package sqlstore

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/accession/accession/internal/custody"
)

const webhookColumns = `org_id, endpoint_id, url, state, secret_id, previous_secret_id, overlap_until, created_at, updated_at, failures, retry_at`

func scanWebhook(scan func(...any) error, w *custody.Webhook, more ...any) error {
	var overlap, created, updated, retry int64
	err := scan(append([]any{&w.OrgID, &w.EndpointID, &w.URL, &w.State, &w.SecretID, &w.PreviousSecretID, &overlap, &created, &updated, &w.Failures, &retry}, more...)...)
	w.OverlapUntil, w.CreatedAt, w.UpdatedAt, w.RetryAt = moment(overlap), moment(created), moment(updated), moment(retry)
	return err
}

// Webhook reads an organization's; ErrNotFound where it has none.
func (s queries) Webhook(ctx context.Context, orgID string) (w custody.Webhook, err error) {
	err = custody.ErrNotFound
	if e := s.q.Each(ctx, `SELECT `+webhookColumns+` FROM webhook_endpoints WHERE org_id = $1`, []any{orgID}, func(scan func(...any) error) error {
		err = nil
		return scanWebhook(scan, &w)
	}); e != nil {
		return w, e
	}
	return w, err
}

// WebhookForChange reads it and keeps others from changing it until this transaction ends; ErrNotFound where there is none.
func (tx *Tx) WebhookForChange(ctx context.Context, orgID string) (custody.Webhook, error) {
	var one int
	if err := tx.q.Row(ctx, `SELECT 1 FROM webhook_endpoints WHERE org_id = $1`+tx.d.ForUpdate, []any{orgID}, &one); err != nil {
		return custody.Webhook{}, err
	}
	return tx.Webhook(ctx, orgID)
}

// Webhooks lists them with what waits and what is dead, by organization, and the one to go on after (empty: no more).
func (s queries) Webhooks(ctx context.Context, q custody.WebhookQuery) (list []custody.Webhook, next string, err error) {
	where, args := `org_id > $1`, []any{q.After}
	if q.OrgID != "" {
		where, args = where+` AND org_id = $2`, append(args, q.OrgID)
	}
	args = append(args, q.Limit+1)
	count := func(state string) string {
		return `(SELECT COUNT(*) FROM webhook_deliveries d WHERE d.org_id = webhook_endpoints.org_id AND d.state = '` + state + `')`
	}
	err = s.q.Each(ctx, `SELECT `+webhookColumns+`, `+count(custody.DeliveryPending)+`, `+count(custody.DeliveryDead)+` FROM webhook_endpoints
		WHERE `+where+` ORDER BY org_id LIMIT $`+strconv.Itoa(len(args)), args, func(scan func(...any) error) error {
		if len(list) == q.Limit {
			next = list[q.Limit-1].OrgID
			return nil
		}
		var w custody.Webhook
		err := scanWebhook(scan, &w, &w.Pending, &w.Dead)
		list = append(list, w)
		return err
	})
	return list, next, err
}

// PutWebhook writes w whole.
func (tx *Tx) PutWebhook(ctx context.Context, w custody.Webhook) error {
	_, err := tx.q.Exec(ctx, `INSERT INTO webhook_endpoints (`+webhookColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (org_id) DO UPDATE SET url = excluded.url, state = excluded.state, secret_id = excluded.secret_id,
			previous_secret_id = excluded.previous_secret_id, overlap_until = excluded.overlap_until, updated_at = excluded.updated_at,
			failures = excluded.failures, retry_at = excluded.retry_at`,
		w.OrgID, w.EndpointID, w.URL, w.State, w.SecretID, w.PreviousSecretID, millis(w.OverlapUntil), millis(w.CreatedAt), millis(w.UpdatedAt), w.Failures, millis(w.RetryAt))
	return err
}

// DeleteWebhook forgets it, its deliveries and their log, and returns how many of them were pending.
func (tx *Tx) DeleteWebhook(ctx context.Context, orgID string) (discarded int64, err error) {
	if err := tx.q.Row(ctx, `SELECT COUNT(*) FROM webhook_deliveries WHERE org_id = $1 AND state = 'pending'`, []any{orgID}, &discarded); err != nil {
		return 0, err
	}
	for _, table := range []string{"webhook_attempts", "webhook_deliveries"} {
		if _, err := tx.q.Exec(ctx, `DELETE FROM `+table+` WHERE org_id = $1`, orgID); err != nil {
			return 0, err
		}
	}
	n, err := tx.q.Exec(ctx, `DELETE FROM webhook_endpoints WHERE org_id = $1`, orgID)
	if err == nil && n == 0 {
		err = custody.ErrNotFound
	}
	return discarded, err
}

// EndedOverlaps lists webhooks whose previous secret no longer signs.
func (s queries) EndedOverlaps(ctx context.Context) (list []custody.Webhook, err error) {
	err = s.q.Each(ctx, `SELECT `+webhookColumns+` FROM webhook_endpoints WHERE previous_secret_id <> '' AND overlap_until <= `+s.d.Now, nil,
		func(scan func(...any) error) error {
			var w custody.Webhook
			err := scanWebhook(scan, &w)
			list = append(list, w)
			return err
		})
	return list, err
}

// ForgetPreviousSecret drops the name of a secret that was destroyed.
func (tx *Tx) ForgetPreviousSecret(ctx context.Context, orgID, secretID string) error {
	_, err := tx.q.Exec(ctx, `UPDATE webhook_endpoints SET previous_secret_id = '', overlap_until = 0 WHERE org_id = $1 AND previous_secret_id = $2`, orgID, secretID)
	return err
}

const deliveryColumns = `event_id, org_id, upload_id, kind, payload, state, queued_at, due_at, ended_at, lease, attempt`

func scanDelivery(scan func(...any) error, d *custody.Delivery) error {
	var queued, due, ended int64
	var payload string
	err := scan(&d.EventID, &d.OrgID, &d.UploadID, &d.Kind, &payload, &d.State, &queued, &due, &ended, &d.Lease, &d.Attempt)
	d.Payload, d.QueuedAt, d.DueAt, d.EndedAt = []byte(payload), moment(queued), moment(due), moment(ended)
	return err
}

// Deliveries reads the delivery log, newest event first, and the event to continue before (empty: no more).
func (s queries) Deliveries(ctx context.Context, q custody.DeliveryQuery) (list []custody.Delivery, next string, err error) {
	where, args := []string{"org_id = $1"}, []any{q.OrgID}
	for _, filter := range [][2]string{{"state =", q.State}, {"upload_id =", q.UploadID}, {"event_id <", q.Before}} {
		if filter[1] != "" {
			args = append(args, filter[1])
			where = append(where, filter[0]+" $"+strconv.Itoa(len(args)))
		}
	}
	args = append(args, q.Limit+1)
	if err := s.q.Each(ctx, `SELECT `+deliveryColumns+` FROM webhook_deliveries WHERE `+strings.Join(where, " AND ")+`
		ORDER BY event_id DESC LIMIT $`+strconv.Itoa(len(args)), args, func(scan func(...any) error) error {
		if len(list) == q.Limit {
			next = list[q.Limit-1].EventID
			return nil
		}
		var d custody.Delivery
		err := scanDelivery(scan, &d)
		list = append(list, d)
		return err
	}); err != nil {
		return nil, "", err
	}
	for i := range list {
		if err := s.describe(ctx, &list[i]); err != nil {
			return nil, "", err
		}
		if err := s.q.Each(ctx, `SELECT at, outcome, status, latency_ms FROM webhook_attempts WHERE event_id = $1 ORDER BY attempt`, []any{list[i].EventID},
			func(scan func(...any) error) error {
				var a custody.DeliveryAttempt
				var at, latency int64
				err := scan(&at, &a.Outcome, &a.Status, &latency)
				a.At, a.Latency = moment(at), time.Duration(latency)*time.Millisecond
				list[i].Attempts = append(list[i].Attempts, a)
				return err
			}); err != nil {
			return nil, "", err
		}
	}
	return list, next, nil
}

// describe adds the status event that d tells of.
func (s queries) describe(ctx context.Context, d *custody.Delivery) error {
	if d.Kind != custody.EventUploadStatusChanged {
		return nil
	}
	e, at := &d.Event, int64(0)
	err := s.q.Row(ctx, `SELECT e.event_id, e.upload_id, e.org_id, u.pipeline_id, e.sequence, e.status, e.stage, e.occurred_at, e.request_id, e.trace_id
		FROM status_events e JOIN uploads u ON u.upload_id = e.upload_id WHERE e.event_id = $1`, []any{d.EventID},
		&e.ID, &e.UploadID, &e.OrgID, &e.PipelineID, &e.Sequence, &e.Status, &e.Stage, &at, &e.Cause.RequestID, &e.Cause.TraceID)
	e.OccurredAt = moment(at)
	return err
}

// hooked tells whether the organization has a webhook.
func (s queries) hooked(ctx context.Context, orgID string) (bool, error) {
	_, err := s.Webhook(ctx, orgID)
	if errors.Is(err, custody.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
