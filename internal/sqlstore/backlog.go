package sqlstore

import (
	"context"
	"time"

	"github.com/accession/accession/internal/custody"
)

// Backlog is how many uploads of the lane are due without a worker, and how long the longest of them has been.
func (s queries) Backlog(ctx context.Context, lane custody.Lane) (waits int, oldest time.Duration, err error) {
	var ms int64
	err = s.q.Row(ctx, `SELECT COUNT(*), COALESCE(MAX(`+s.d.Now+` - due_at), 0) FROM uploads WHERE `+waiting(s.d, lane), nil, &waits, &ms)
	return waits, time.Duration(ms) * time.Millisecond, err
}

// WebhookBacklog is how many deliveries wait, how many are given up, and since when the oldest of those that wait was queued.
func (s queries) WebhookBacklog(ctx context.Context) (waiting, dead int, oldest time.Duration, err error) {
	var ms int64
	if err = s.q.Row(ctx, `SELECT COUNT(*), COALESCE(MAX(`+s.d.Now+` - queued_at), 0) FROM webhook_deliveries WHERE state = 'pending'`, nil, &waiting, &ms); err != nil {
		return 0, 0, 0, err
	}
	err = s.q.Row(ctx, `SELECT COUNT(*) FROM webhook_deliveries WHERE state = 'dead'`, nil, &dead)
	return waiting, dead, time.Duration(ms) * time.Millisecond, err
}
