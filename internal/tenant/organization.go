package tenant

import (
	"context"
	"errors"
	"fmt"

	"github.com/accession/accession/internal/custody"
)

// Organizations lists organizations by ascending id, and the id to go on after (empty: no more). Errors: 401 for all but the
// administrator.
func (s *Service) Organizations(ctx context.Context, c custody.Caller, q custody.OrganizationQuery) ([]custody.OrganizationState, string, error) {
	if err := custody.Authorize(custody.OpOrganizations, c, ""); err != nil {
		return nil, "", err
	}
	q.At = s.now()
	page, more, err := s.store.Organizations(ctx, q)
	if err != nil || !more {
		return page, "", err
	}
	return page, page[len(page)-1].OrgID, nil
}

// Allowance reads what an organization may keep and keeps. Errors: 401 for all but the administrator, organization_not_found.
func (s *Service) Allowance(ctx context.Context, c custody.Caller, orgID string) (custody.Allowance, error) {
	if err := custody.Authorize(custody.OpAllowance, c, ""); err != nil {
		return custody.Allowance{}, err
	}
	q, err := s.store.Quota(ctx, orgID)
	if errors.Is(err, custody.ErrNotFound) {
		return custody.Allowance{}, custody.OrganizationNotFound()
	}
	return custody.Allowance{Quota: q, DefaultBytes: s.cfg.AllowanceBytes}, err
}

// SetAllowance changes what an organization may keep, from its commit on and on every replica. Render gets the custody.Allowance.
// Errors: 401 for all but the administrator, organization_not_found.
func (s *Service) SetAllowance(ctx context.Context, c custody.Caller, change custody.AllowanceChange, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpSetAllowance, c, ""); err != nil {
		return custody.Answer{}, err
	}
	if a, found, err := i.Replay(ctx, s.store); found || err != nil {
		return a, err
	}
	bytes := s.cfg.AllowanceBytes
	if change.Bytes != nil {
		bytes = *change.Bytes
	}
	a, err := custody.Once(ctx, s.store, i, func(tx Tx) (any, error) {
		q, err := tx.SetAllowance(ctx, change.OrgID, bytes)
		if err != nil {
			return nil, err
		}
		return custody.Allowance{Quota: q, DefaultBytes: s.cfg.AllowanceBytes}, tx.AppendAudit(ctx, custody.AuditLine{
			OrgID: change.OrgID, At: s.now(), Action: "quota_set", CredentialID: c.CredentialID,
			Detail: fmt.Sprintf("allowance_bytes=%d", bytes), RequestID: c.RequestID, TraceID: c.TraceID,
		})
	})
	if errors.Is(err, custody.ErrConflict) {
		return custody.Answer{}, custody.OrganizationNotFound()
	}
	return a, err
}
