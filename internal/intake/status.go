package intake

import (
	"context"

	"github.com/accession/accession/internal/custody"
)

// Status answers where an upload of any kind stands: metadata only. (Section 4.6.)
func (s *Service) Status(ctx context.Context, c custody.Caller, orgID, uploadID string) (custody.UploadState, error) {
	if err := custody.Authorize(custody.OpUploadStatus, c, orgID); err != nil {
		return custody.UploadState{}, err
	}
	u, err := s.upload(ctx, orgID, uploadID)
	if err != nil {
		return custody.UploadState{}, err
	}
	gates, err := s.store.Gates(ctx, u.ID)
	return custody.UploadState{Upload: u, Gates: gates}, err
}

// AwaitChange is Status, held until the upload is past sequence and nextPart, is terminal, or ctx ends; then it answers
// whatever is so. (Contract decisions, "Prefer: wait".)
func (s *Service) AwaitChange(ctx context.Context, c custody.Caller, orgID, uploadID string, sequence int64, nextPart int) (custody.UploadState, error) {
	for {
		changed := s.store.Changed() // taken before reading: a change in between is not missed
		state, err := s.Status(context.WithoutCancel(ctx), c, orgID, uploadID)
		if err != nil || state.Sequence != sequence || state.NextPart != nextPart || state.Status.Terminal() {
			return state, err
		}
		select {
		case <-changed:
		case <-s.cfg.Closing:
			return state, nil
		case <-ctx.Done():
			return state, nil
		}
	}
}
