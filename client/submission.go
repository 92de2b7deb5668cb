package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// MaxPayloadBytes is the longest text of a customer upload, 1 MiB of UTF-8.
const MaxPayloadBytes = 1 << 20

// The visibilities of a text (contract 2.4).
const (
	VisibilityAIReadable     = "ai_readable_controlled"
	VisibilityPrivateSummary = "private_summary_public" // the summary alone
	VisibilityInternal       = "internal_only"          // no reader
	VisibilityPublicProfile  = "public_profile"
)

// TextSubmission is a small text for SubmitText or Correct (contract 2.4). Nothing in it may claim to be verified, certified,
// endorsed or ranked by the service.
type TextSubmission struct {
	Filename   string  `json:"filename"` // at most 255 bytes, no path
	Payload    string  `json:"payload"`  // 1 to MaxPayloadBytes
	Visibility string  `json:"visibility"`
	Consent    Consent `json:"consent"`
	// ContentType is a text media type; empty means text/plain.
	ContentType string `json:"content_type,omitempty"`
	// UploaderOrganizationType is "customer" (default), "solution_company" or "third_party"; the last two need
	// CustomerWorkspaceAccess "granted".
	UploaderOrganizationType string `json:"uploader_organization_type,omitempty"`
	UploaderOrganizationID   string `json:"uploader_organization_id,omitempty"`
	AssertedSubjectOrgID     string `json:"asserted_subject_org_id,omitempty"`
	CustomerWorkspaceAccess  string `json:"customer_workspace_access,omitempty"`
	// IdempotencyKey; empty means a random one.
	IdempotencyKey string `json:"-"`
}

// Submission is the answer to SubmitText and Correct: the text is through its gates (contract 2.5).
type Submission struct {
	UploadID         string          `json:"upload_id"`
	OrgID            string          `json:"org_id"`
	OriginalUploadID string          `json:"original_upload_id,omitempty"` // of a correction
	Status           string          `json:"status"`
	EvaluationStatus string          `json:"evaluation_status"`
	Filename         string          `json:"filename"`
	ConsentCapture   json.RawMessage `json:"consent_capture"` // redacted
	Sequence         int64           `json:"sequence"`
	PipelineID       string          `json:"pipeline_id"`
	Response         Response        `json:"-"`
}

// SubmitText hands in a small text; its context can be read at once. 400 verification_claim_forbidden, consent_invalid or
// content_refused; 403 workspace_access_required; 409 quota_exceeded; 503: a gate has no answer now.
func (c *Client) SubmitText(ctx context.Context, org string, text TextSubmission) (*Submission, error) {
	path, err := organizationPath(org, "customer-uploads")
	if err != nil {
		return nil, err
	}
	return c.submit(ctx, path, text)
}

// Correct hands in a correction of an earlier text or correction: a new upload. The original is never overwritten; its context
// names the correction. Errors as of SubmitText; 404: no such original.
func (c *Client) Correct(ctx context.Context, org, originalUploadID string, text TextSubmission) (*Submission, error) {
	path, err := organizationPath(org, "customer-uploads", originalUploadID, "corrections")
	if err != nil {
		return nil, err
	}
	return c.submit(ctx, path, text)
}

func (c *Client) submit(ctx context.Context, path string, text TextSubmission) (*Submission, error) {
	var submission Submission
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: path, body: text,
		idempotencyKey: keyOr(text.IdempotencyKey), into: &submission, response: &submission.Response,
	})
	if err != nil {
		return nil, err
	}
	return &submission, nil
}

// ReviewReference points to an external review of a text (contract 4.5).
type ReviewReference struct {
	ReviewID  string `json:"review_id"`            // 1 to 255 characters
	SourceURL string `json:"source_url,omitempty"` // http or https, at most 2,048 characters
	Reviewer  string `json:"reviewer,omitempty"`   // at most 255 characters
	Notes     string `json:"notes,omitempty"`      // at most 2,000 characters; not shown to readers
	// IdempotencyKey; empty means a random one.
	IdempotencyKey string `json:"-"`
}

// ReviewAttached is the answer to AttachReview (contract 2.7).
type ReviewAttached struct {
	UploadID         string   `json:"upload_id"`
	ReviewID         string   `json:"review_id"`
	EvaluationStatus string   `json:"evaluation_status"` // always not_evaluated
	Response         Response `json:"-"`
}

// AttachReview attaches a reference; nothing of the upload's provenance changes. 400 verification_claim_forbidden: the
// reference claims a verdict; 404: no such text.
func (c *Client) AttachReview(ctx context.Context, org, uploadID string, review ReviewReference) (*ReviewAttached, error) {
	path, err := organizationPath(org, "customer-uploads", uploadID, "external-review")
	if err != nil {
		return nil, err
	}
	var attached ReviewAttached
	_, err = c.do(ctx, call{
		method: http.MethodPost, path: path, body: review,
		idempotencyKey: keyOr(review.IdempotencyKey), into: &attached, response: &attached.Response,
	})
	if err != nil {
		return nil, err
	}
	return &attached, nil
}
