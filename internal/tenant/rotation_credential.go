package tenant

import (
	"context"
	"errors"
	"slices"

	"github.com/accession/accession/internal/custody"
)

// Credentials lists what is kept of credentials, newest first, never a token; next is the id to continue before, empty on
// the last page. Errors: 401 for all but the administrator.
func (s *Service) Credentials(ctx context.Context, c custody.Caller, q custody.CredentialQuery) (page []custody.Credential, next string, err error) {
	if err := custody.Authorize(custody.OpListCredentials, c, ""); err != nil {
		return nil, "", err
	}
	q.At = s.now()
	page, more, err := s.store.Credentials(ctx, q)
	if err == nil && more {
		next = page[len(page)-1].ID
	}
	return page, next, err
}

// RevokeCredential ends a credential for good: it and every access token made from it are dead at the next request. Render
// gets the custody.Credential. A revoked one stays as it is, and is no error. Errors: credential_not_found. (Section 5, rule 7.)
func (s *Service) RevokeCredential(ctx context.Context, c custody.Caller, credentialID string, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpRevokeCredential, c, ""); err != nil {
		return custody.Answer{}, err
	}
	return s.once(ctx, i, func(tx Tx) (any, error) {
		cred, err := known(tx.Credential(ctx, credentialID))
		if err != nil || !cred.RevokedAt.IsZero() {
			return cred, err
		}
		cred.RevokedAt = s.now()
		if err := tx.RevokeCredential(ctx, cred.ID, cred.RevokedAt); err != nil {
			return nil, err
		}
		return cred, tx.AppendAudit(ctx, s.auditLine(c, cred.OrgID, "credential_revoked", cred.ID))
	})
}

// RotateCredential issues a successor; the old credential verifies for the overlap more. Render gets the
// custody.RotatedCredential; the successor's token is returned beside the answer and stored nowhere. Errors:
// invalid_request with details.fields, credential_not_found, credential_not_active. (Section 5, rule 7.)
func (s *Service) RotateCredential(ctx context.Context, c custody.Caller, r custody.CredentialRotation, i custody.Idempotency) (custody.Answer, string, error) {
	if err := custody.Authorize(custody.OpRotateCredential, c, ""); err != nil {
		return custody.Answer{}, "", err
	}
	if r.Overlap < 0 || r.Overlap > custody.MaxOverlap {
		return custody.Answer{}, "", field("/overlap_seconds", "must be between 0 and 30 days")
	}
	signer, err := s.credentialKeys.signer(ctx, 0)
	if err != nil {
		return custody.Answer{}, "", err
	}
	a, err := s.once(ctx, i, func(tx Tx) (any, error) {
		now := s.now()
		old, err := known(tx.Credential(ctx, r.CredentialID))
		if err != nil {
			return nil, err
		}
		next := custody.Credential{
			ID: custody.NewID("cred"), OrgID: old.OrgID, Role: old.Role, Scopes: slices.Clone(old.Scopes), KeyID: signer.id, CreatedAt: now, ExpiresAt: r.ExpiresAt,
		}
		if err := complete(&next); err != nil {
			return nil, err
		}
		end := now.Add(r.Overlap)
		if err := tx.EndCredential(ctx, old.ID, end, now); errors.Is(err, custody.ErrConflict) {
			return nil, custody.Errorf(custody.CodeCredentialNotActive, "the credential is revoked or expired; issue a new one instead")
		} else if err != nil {
			return nil, err
		}
		if end.Before(old.ExpiresAt) {
			old.ExpiresAt = end
		}
		if err := tx.InsertCredential(ctx, next); err != nil {
			return nil, err
		}
		return custody.RotatedCredential{Credential: next, Replaces: old},
			tx.AppendAudit(ctx, s.auditLine(c, old.OrgID, "credential_rotated", old.ID+" replaced by "+next.ID))
	})
	if err != nil {
		return custody.Answer{}, "", err
	}
	return s.withToken(ctx, a)
}

func known(c custody.Credential, err error) (custody.Credential, error) {
	if errors.Is(err, custody.ErrNotFound) {
		return c, custody.Errorf(custody.CodeCredentialNotFound, "there is no such credential")
	}
	return c, err
}
