package intake

import (
	"context"
	"time"

	"github.com/accession/accession/internal/custody"
)

// Status answers where an upload of any kind stands: metadata only. (Section 4.6.)
func (s *Service) Status(ctx context.Context, c custody.Caller, orgID, uploadID string) (custody.UploadState, error) {
	if err := custody.Authorize(custody.OpUploadStatus, c, orgID); err != nil {
		return custody.UploadState{}, err
	}
	state, err := s.store.UploadState(ctx, orgID, uploadID)
	if err != nil {
		return custody.UploadState{}, unknown(err)
	}
	if state.Gates, err = s.store.GatesShown(ctx, uploadID); err != nil {
		return state, err
	}
	if state.Status == custody.StatusWithdrawing {
		w, err := s.store.Withdrawing(ctx, uploadID)
		state.Withdrawal = &w
		return state, err
	}
	return state, nil
}

// recheck is how often a waiting request looks although nobody told it to: the change may be another process's, and the word of it
// may be lost.
const recheck = 5 * time.Second

// longestPause is how long a waiting request that was told in vain rests before it looks again. It is told of every commit, of whatever
// upload: hundreds of them would do nothing but look, at the cost of whoever reads once.
const longestPause = 250 * time.Millisecond

// AwaitChange is Status, held until the upload is past sequence and nextPart, is terminal, or ctx ends; then it answers
// whatever is so. (Contract decisions, "Prefer: wait".)
func (s *Service) AwaitChange(ctx context.Context, c custody.Caller, orgID, uploadID string, sequence int64, nextPart int) (custody.UploadState, error) {
	tick := time.NewTicker(recheck)
	defer tick.Stop()
	for pause := time.Duration(0); ; pause = min(max(2*pause, 10*time.Millisecond), longestPause) {
		changed := s.store.Changed() // taken before reading: a change in between is not missed
		state, err := s.Status(context.WithoutCancel(ctx), c, orgID, uploadID)
		if err != nil || state.Sequence != sequence || state.NextPart != nextPart || state.Status.Terminal() || ctx.Err() != nil {
			return state, err
		}
		select {
		case <-changed:
			select {
			case <-time.After(pause):
			case <-s.cfg.Closing:
				return state, nil
			case <-ctx.Done(): // it looks once more
			}
		case <-tick.C:
		case <-s.cfg.Closing:
			return state, nil
		case <-ctx.Done():
			return state, nil
		}
	}
}
