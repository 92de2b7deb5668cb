package intake

import (
	"context"
	"errors"

	"github.com/accession/accession/internal/custody"
)

// Initiate reserves room for one document. Render gets the custody.Upload. Errors: quota_exceeded with the figures,
// idempotency_conflict. (Section 4.6.)
func (s *Service) Initiate(ctx context.Context, c custody.Caller, r custody.Reservation, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpInitiateUpload, c, r.OrgID); err != nil {
		return custody.Answer{}, err
	}
	if err := RefuseClaims(r.Body, map[string]string{"/filename": r.Filename, "/notes": r.Notes, "/material_type": r.MaterialType}); err != nil {
		return custody.Answer{}, err
	}
	if a, found, err := i.Replay(ctx, s.store); found || err != nil {
		return a, err
	}
	now := custody.Now()
	u := custody.Upload{
		ID: custody.NewID("upl"), OrgID: r.OrgID, Kind: custody.KindPartner, PipelineID: custody.NewID("pip"), CredentialID: c.CredentialID,
		Filename: r.Filename, ContentType: r.ContentType, SizeBytes: r.SizeBytes,
		Visibility: custody.VisibilityAIReadable, UploaderType: custody.UploaderSolutionCompany,
		Consent: r.Consent, Notes: r.Notes, MaterialType: r.MaterialType, Importance: r.Importance,
		PartSizeBytes: s.cfg.PartSizeBytes, NextPart: 1, ReservedBytes: r.SizeBytes,
		CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(s.cfg.ReservationLifetime),
	}
	if u.Importance == "" {
		u.Importance = custody.ImportanceNormal
	}
	if err := s.vault.Admit(ctx, u.ID); err != nil {
		return custody.Answer{}, err
	}
	var a custody.Answer
	err := s.store.InTx(ctx, func(tx Tx) (err error) {
		u := u // the transaction may run again
		if err := tx.ReserveQuota(ctx, u.OrgID, u.SizeBytes); err != nil {
			return err
		}
		if err := tx.InsertUpload(ctx, &u, c.Cause()); err != nil {
			return err
		}
		if a, err = i.Render(u); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, i, a)
	})
	if err == nil {
		return a, nil
	}
	if errors.Is(err, custody.ErrInDoubt) { // the upload may be there and need its key; the sweep finds out
		return custody.Answer{}, err
	}
	// Nothing was reserved: the data key has no upload. One that cannot be removed now belongs to nothing and seals nothing.
	if dismissErr := s.vault.Dismiss(context.WithoutCancel(ctx), u.ID); dismissErr != nil {
		s.cfg.Log.WarnContext(ctx, "data key of a refused reservation stays", "upload_id", u.ID, "error", dismissErr)
	}
	switch {
	case errors.Is(err, custody.ErrTaken):
		a, _, err := i.Replay(ctx, s.store)
		return a, err
	case errors.Is(err, custody.ErrQuota):
		return s.noRoom(ctx, r.OrgID, r.SizeBytes, i)
	}
	return custody.Answer{}, err
}

// noRoom refuses with quota_exceeded, unless what takes the room is this same request, answered meanwhile.
func (s *Service) noRoom(ctx context.Context, orgID string, size int64, i custody.Idempotency) (custody.Answer, error) {
	if a, found, err := i.Replay(ctx, s.store); found || err != nil {
		return a, err
	}
	return custody.Answer{}, s.quotaExceeded(ctx, orgID, size)
}

func (s *Service) quotaExceeded(ctx context.Context, orgID string, size int64) error {
	q, err := s.store.Quota(ctx, orgID)
	if err != nil {
		return err
	}
	return custody.Errorf(custody.CodeQuotaExceeded, "the organization has %d bytes available, the upload needs %d", q.AvailableBytes(), size).
		With("requested_bytes", size).With("allowance_bytes", q.AllowanceBytes).With("used_bytes", q.UsedBytes).
		With("reserved_bytes", q.ReservedBytes).With("available_bytes", q.AvailableBytes())
}
