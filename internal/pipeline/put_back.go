package pipeline

import (
	"context"
	"time"
)

const (
	// putBackEvery is how often work is looked for that waits for a time which a clock that was put back has moved away.
	putBackEvery = 10 * time.Second
	// longestWait is more than any work waits until it is tried again.
	longestWait = 2 * lastDelay
	// manyPutBack is how many uploads one transaction brings back: a database ends one that takes long.
	manyPutBack = 1000
)

// mindClock brings such work back, until ctx ends: without it an upload would wait for as long as the clock was put back.
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
	waits, err := r.store.WaitsTooLong(ctx, longestWait)
	if err != nil || !waits {
		return err
	}
	for brought := int64(manyPutBack); brought == manyPutBack; {
		if err := r.store.InTx(ctx, func(tx Tx) (err error) {
			brought, err = tx.BringBack(ctx, longestWait, manyPutBack)
			return err
		}); err != nil {
			return err
		}
		if brought > 0 {
			r.cfg.Log.WarnContext(ctx, "the clock was put back: what waited for a later time is tried now", "uploads", brought)
		}
	}
	return nil
}
