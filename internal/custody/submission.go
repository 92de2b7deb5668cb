package custody

import "time"

// Uploader organization types. (Section 2.4.)
const (
	UploaderCustomer        = "customer"
	UploaderSolutionCompany = "solution_company"
	UploaderThirdParty      = "third_party"
)

// Values of customer_workspace_access. (Section 2.4.)
const (
	WorkspaceGranted    = "granted"
	WorkspaceNotGranted = "not_granted"
)

// Submission is a small text on its way in: a customer upload or, with an original, a correction. (Section 2.4.)
type Submission struct {
	OrgID            string
	OriginalUploadID string // of a correction
	Filename         string
	ContentType      string // empty: text/plain
	Payload          string // MaxPayloadBytes at most
	Visibility       Visibility
	Consent          Consent

	UploaderType         string // empty: customer
	UploaderOrgID        string // optional
	AssertedSubjectOrgID string // optional
	WorkspaceAccess      string // optional

	Body any // as it was decoded, with whatever fields the contract does not know: claims hide there
}

// Kind of the upload that comes of it.
func (s Submission) Kind() Kind {
	if s.OriginalUploadID != "" {
		return KindCorrection
	}
	return KindCustomer
}

// Review is a reference to an external review of an upload; it evaluates nothing. (Section 4.5.)
type Review struct {
	OrgID      string
	UploadID   string
	ReviewID   string
	SourceURL  string // optional
	Reviewer   string // optional
	Notes      string // optional
	AttachedAt time.Time
	Body       any // as it was decoded
}

// Reference is what a context says of an attached review: submitted by the organization, unverified.
type Reference struct {
	ReviewID   string    `json:"review_id"`
	SourceURL  string    `json:"source_url,omitempty"`
	Reviewer   string    `json:"reviewer,omitempty"`
	AttachedAt time.Time `json:"attached_at"`
}
