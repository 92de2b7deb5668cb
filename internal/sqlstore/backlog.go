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
