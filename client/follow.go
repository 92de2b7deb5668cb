package client

import (
	"context"
	"errors"
	"time"
)

// held is how long the service is asked to hold a status; the contract's longest.
const held = 30 * time.Second

// Change is one step of an upload as seen by Follow.
type Change struct {
	Status *UploadStatus
	// Gates whose state differs from the one before, in their order; on the first change, all that are past pending.
	Gates []Gate
}

// Follow reports every change of an upload until its status is terminal, which it returns. It asks the service to hold
// each answer, so changes arrive as they happen; where several came between two answers they are reported together. Passing
// failures are retried, with the attempts counted anew after each success. observe may be nil.
func (c *Client) Follow(ctx context.Context, org, uploadID string, retry Retry, observe func(Change)) (*UploadStatus, error) {
	states := map[string]string{}
	var last *UploadStatus
	for {
		options := StatusOptions{Wait: held}
		if last == nil {
			options.Wait = 0 // the first answer at once
		} else {
			options.ETag = last.ETag
		}
		var status *UploadStatus
		asked := time.Now()
		err := retry.Do(ctx, func(ctx context.Context) error {
			asked = time.Now()
			var err error
			status, err = c.UploadStatus(ctx, org, uploadID, options)
			return err
		})
		unchanged := errors.Is(err, ErrNotModified)
		if err != nil && !unchanged {
			return last, err
		}
		if !unchanged && (last == nil || status.Sequence != last.Sequence || status.Status != last.Status) {
			change := Change{Status: status}
			for _, gate := range status.Gates {
				before := or(states[gate.Name], GatePending)
				if gate.State != before {
					change.Gates = append(change.Gates, gate)
				}
				states[gate.Name] = gate.State
			}
			if observe != nil {
				observe(change)
			}
			last = status
			if Terminal(status.Status) {
				return status, nil
			}
			continue
		}
		// A service or proxy that does not hold the answer must not be asked in a tight loop.
		if rest := time.Second - time.Since(asked); rest > 0 {
			if err := retry.pause(ctx, rest); err != nil {
				return last, err
			}
		}
	}
}
