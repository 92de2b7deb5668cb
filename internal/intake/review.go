package intake

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/accession/accession/internal/custody"
)

// AttachReview attaches a reference to an external review to a READY customer upload or correction: nothing of the
// provenance changes, and nothing is evaluated. Render gets the custody.Review. Errors: verification_claim_forbidden,
// upload_not_found. (Section 4.5.)
func (s *Service) AttachReview(ctx context.Context, c custody.Caller, r custody.Review, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpExternalReview, c, r.OrgID); err != nil {
		return custody.Answer{}, err
	}
	if err := RefuseClaims(r.Body, map[string]string{"/notes": r.Notes, "/review_id": r.ReviewID, "/reviewer": r.Reviewer}); err != nil {
		return custody.Answer{}, err
	}
	if a, found, err := i.Replay(ctx, s.store); found || err != nil { // an answer outlives its upload
		return a, err
	}
	return custody.Once(ctx, s.store, i, func(tx Tx) (any, error) {
		u, err := tx.UploadForChange(ctx, r.OrgID, r.UploadID)
		if err = customersReady(u, err); err != nil {
			return nil, err
		}
		r.AttachedAt = custody.Now()
		if err := tx.AppendReference(ctx, r, c.CredentialID); err != nil {
			return nil, err
		}
		return r, tx.AppendAudit(ctx, custody.AuditLine{
			OrgID: u.OrgID, At: r.AttachedAt, Action: "external_review_attached", CredentialID: c.CredentialID, UploadID: u.ID,
			Status: u.Status, RequestID: c.RequestID, TraceID: c.TraceID,
		})
	})
}

// RefuseClaims answers verification_claim_forbidden for a decoded body, or for texts by their JSON Pointer, that claim what
// this service never says. (Contract decisions, "Verification claims".)
func RefuseClaims(body any, texts map[string]string) error {
	if path, found := FieldClaim(body); found {
		return claimed(path)
	}
	for _, path := range slices.Sorted(maps.Keys(texts)) {
		if TextClaim(texts[path]) {
			return claimed(path)
		}
	}
	return nil
}

func claimed(path string) error {
	return custody.Errorf(custody.CodeVerificationClaim, "the submission claims to be verified, certified, endorsed or ranked; this service evaluates nothing").
		With("fields", []map[string]string{{"path": published(path), "reason": "claims what only an evaluation could say"}})
}

// publishedNames are what a claim's path may show: the contract's own words. Any other name is the client's, and errors echo
// no input.
var publishedNames = strings.Fields(`filename payload visibility consent content_type uploader_organization_type uploader_organization_id
	asserted_subject_org_id customer_workspace_access review_id source_url reviewer notes material_type accepted beta_agreement_version
	ai_readable_use_consent_version text_hash_sha256 consenting_user_id consenting_user_email accepted_at
	verified certified endorsed rank ranking evaluation_status is_verified is_certified is_endorsed`)

// published cuts path before the first name that is not the contract's.
func published(path string) string {
	steps := strings.Split(path, "/")
	for n, step := range steps[1:] {
		if _, err := strconv.Atoi(step); err != nil && !slices.Contains(publishedNames, step) {
			return strings.Join(steps[:n+1], "/")
		}
	}
	return path
}
