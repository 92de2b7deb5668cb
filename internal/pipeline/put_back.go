package pipeline

import (
	"context"
	"time"

	"github.com/accession/accession/internal/custody"
)

const (
	// putBackEvery is how often work is looked for that waits for a time which a clock that was put back has moved away.
	putBackEvery = 10 * time.Second
	// manyPutBack is how many rows one transaction brings back: a database ends one that takes long.
	manyPutBack = 1000
)

// longestWaits leave room for clocks that differ.
var longestWaits = custody.LongestWaits{Gate: 2 * lastDelay, Rescan: 2 * lastRescanDelay, Webhook: 2 * custody.LongestPause}

// mindClock brings such work back, until ctx ends: without it an upload, or a delivery to a webhook, would wait for as long as the clock was put back.
func (r *Runner) mindClock(ctx context.Context) {
	tick := time.NewTicker(putBackEvery)
	defer tick.Stop()
	for {
		if err := r.bringBack(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Log.ErrorContext(ctx, "cannot look for work that waits too long", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *Runner) bringBack(ctx context.Context) error {
	waits, err := r.store.WaitsTooLong(ctx, longestWaits)
	if err != nil || !waits {
		return err
	}
	for brought := int64(manyPutBack); brought == manyPutBack; {
		if err := r.store.InTx(ctx, func(tx Tx) (err error) {
			brought, err = tx.BringBack(ctx, longestWaits, manyPutBack)
			return err
		}); err != nil {
			return err
		}
		if brought > 0 {
			r.cfg.Log.WarnContext(ctx, "the clock was put back: what waited for a later time is tried now", "rows", brought)
		}
	}
	return nil
}
