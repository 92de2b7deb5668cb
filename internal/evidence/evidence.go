// Package evidence shows an operator the chains of every organization, so that somebody else can prove them: audit lines and
// request records in order, and the heads they end in. It only reads.
package evidence

import (
	"context"

	"github.com/accession/accession/internal/custody"
)

// Store is the metadata that holds the chains.
type Store interface {
	Evidence(ctx context.Context, q custody.EvidenceQuery) (custody.EvidencePage, error)
	Heads(ctx context.Context, q custody.HeadsQuery) (heads []custody.OrganizationHeads, next string, err error)
	AuditLines(ctx context.Context, q custody.AuditQuery) (lines []custody.EvidenceLine, next custody.AuditPosition, err error)
}

// Service answers the administrator.
type Service struct{ store Store }

// New makes the service.
func New(store Store) *Service { return &Service{store} }

// Evidence answers a part of one chain; empty for an organization that is not known. Errors: 401 for all but the administrator,
// service_unavailable.
func (s *Service) Evidence(ctx context.Context, c custody.Caller, q custody.EvidenceQuery) (custody.EvidencePage, error) {
	if err := custody.Authorize(custody.OpEvidence, c, ""); err != nil {
		return custody.EvidencePage{}, err
	}
	page, err := s.store.Evidence(ctx, q)
	if err != nil {
		return custody.EvidencePage{}, custody.Unavailable(err)
	}
	return page, nil
}

// Heads answers where the chains end, and the organization to go on from (empty: no more). Errors: as Evidence.
func (s *Service) Heads(ctx context.Context, c custody.Caller, q custody.HeadsQuery) ([]custody.OrganizationHeads, string, error) {
	if err := custody.Authorize(custody.OpHeads, c, ""); err != nil {
		return nil, "", err
	}
	heads, next, err := s.store.Heads(ctx, q)
	if err != nil {
		return nil, "", custody.Unavailable(err)
	}
	return heads, next, nil
}

// Search answers audit lines of every organization and of the installation itself, newest first, and the position to go on before
// (zero: no more). Errors: as Evidence.
func (s *Service) Search(ctx context.Context, c custody.Caller, q custody.AuditQuery) ([]custody.EvidenceLine, custody.AuditPosition, error) {
	if err := custody.Authorize(custody.OpSearchAudit, c, ""); err != nil {
		return nil, custody.AuditPosition{}, err
	}
	lines, next, err := s.store.AuditLines(ctx, q)
	if err != nil {
		return nil, custody.AuditPosition{}, custody.Unavailable(err)
	}
	return lines, next, nil
}
