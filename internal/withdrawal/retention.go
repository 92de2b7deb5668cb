package withdrawal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/accession/accession/internal/custody"
)

const (
	lookEvery      = time.Minute // between looks for retentions that have ended
	retentionBatch = 200         // uploads of one look at the rows
)

// Retention reads how long an organization's uploads stay. Errors: 401 for all but the administrator, organization_not_found.
func (s *Service) Retention(ctx context.Context, c custody.Caller, orgID string) (custody.Retention, error) {
	if err := custody.Authorize(custody.OpRetention, c, ""); err != nil {
		return custody.Retention{}, err
	}
	r, err := s.store.Retention(ctx, orgID)
	if errors.Is(err, custody.ErrNotFound) {
		return r, custody.OrganizationNotFound()
	}
	return r, err
}

// SetRetention changes how long an organization's uploads stay, those there already among them; Run looks at once. Render gets
// the custody.Retention. Errors: 401 for all but the administrator, organization_not_found.
func (s *Service) SetRetention(ctx context.Context, c custody.Caller, r custody.Retention, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpSetRetention, c, ""); err != nil {
		return custody.Answer{}, err
	}
	if a, found, err := i.Replay(ctx, s.store); found || err != nil {
		return a, err
	}
	a, err := custody.Once(ctx, s.store, i, func(tx Tx) (any, error) {
		if err := tx.SetRetention(ctx, r); err != nil {
			return nil, err
		}
		return r, tx.AppendAudit(ctx, custody.AuditLine{
			OrgID: r.OrgID, At: custody.Now(), Action: "retention_set", CredentialID: c.CredentialID,
			Detail: fmt.Sprintf("retention_days=%d", r.Days), RequestID: c.RequestID, TraceID: c.TraceID,
		})
	})
	switch {
	case errors.Is(err, custody.ErrConflict):
		return custody.Answer{}, custody.OrganizationNotFound()
	case err == nil:
		select {
		case s.look <- struct{}{}:
		default: // it will look already
		}
	}
	return a, err
}

// Run withdraws uploads whose retention has ended, at once, after every change of a retention, and every minute, until ctx ends.
func (s *Service) Run(ctx context.Context) {
	ctx = custody.AcrossOrganizations(ctx)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := s.EndRetentions(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.ErrorContext(ctx, "uploads past their retention are not withdrawn yet", "error", err)
		}
		select {
		case <-tick.C:
		case <-s.look:
		case <-ctx.Done():
			return
		}
	}
}

// EndRetentions accepts the withdrawal of every upload whose retention has ended, each in a transaction of its own. The rows say
// which they are, so a crash forgets none. Safe beside requests and other replicas.
func (s *Service) EndRetentions(ctx context.Context) error {
	for {
		ended, err := s.store.RetentionEnded(ctx, retentionBatch)
		if err != nil {
			return err
		}
		for _, e := range ended {
			if endErr := s.endRetention(ctx, e); endErr != nil {
				err = errors.Join(err, fmt.Errorf("upload %s: %w", e.UploadID, endErr))
			}
		}
		if err != nil || len(ended) < retentionBatch {
			return err
		}
	}
}

func (s *Service) endRetention(ctx context.Context, e custody.RetentionEnded) error {
	began := false
	err := s.store.InTx(ctx, func(tx Tx) error {
		began = false
		u, err := tx.UploadForChange(ctx, e.OrgID, e.UploadID)
		if err != nil {
			return err
		}
		r, err := tx.EndedRetention(ctx, u.ID)
		if errors.Is(err, custody.ErrNotFound) { // somebody withdrew it or changed the retention meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		began = true
		return begin(ctx, tx, u, custody.Cause{CredentialID: custody.RetentionCredentialID}, custody.Withdrawing{
			Reason: fmt.Sprintf("retention of %d days", r.Days), RetainedUntil: r.Until(u.CreatedAt),
		})
	})
	if err == nil && began {
		s.cfg.Interrupt(e.UploadID)
		s.cfg.Log.InfoContext(ctx, "retention has ended; the upload is withdrawn", "upload_id", e.UploadID)
	}
	return err
}

// begin makes the content unreadable: from its commit on, no reader and no gate gets at it.
func begin(ctx context.Context, tx Tx, u custody.Upload, cause custody.Cause, w custody.Withdrawing) error {
	if err := tx.Transition(ctx, &u, custody.Change{Trigger: custody.TriggerWithdrawal, Cause: cause}); err != nil {
		return err
	}
	w.UploadID, w.OrgID, w.CredentialID, w.RequestedAt = u.ID, u.OrgID, cause.CredentialID, custody.Now()
	return tx.BeginWithdrawal(ctx, w)
}
