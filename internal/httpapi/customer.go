package httpapi

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	jsonv2 "github.com/go-json-experiment/json"

	"github.com/accession/accession/internal/custody"
)

// Submissions takes small texts and references to reviews of them. (Section 4.5.)
type Submissions interface {
	// Submit renders a custody.Upload.
	Submit(context.Context, custody.Caller, custody.Submission, custody.Idempotency) (custody.Answer, error)
	// Correct renders a custody.Upload.
	Correct(context.Context, custody.Caller, custody.Submission, custody.Idempotency) (custody.Answer, error)
	// AttachReview renders a custody.Review.
	AttachReview(context.Context, custody.Caller, custody.Review, custody.Idempotency) (custody.Answer, error)
}

// submissions are customer uploads and their corrections. (Section 4.5.)
type submissions struct{ room Submissions }

const submissionsPath = "/api/v1/organizations/{org_id}/customer-uploads"

type submitInput struct {
	OrgID orgID          `path:"org_id"`
	Key   idempotencyKey `header:"Idempotency-Key" required:"true"`
	Body  submission
}

type correctInput struct {
	OrgID    orgID          `path:"org_id"`
	UploadID uploadID       `path:"upload_id"`
	Key      idempotencyKey `header:"Idempotency-Key" required:"true"`
	Body     submission
}

// submission is section 2.4. It may hold more properties; one that claims a verdict is refused, at any depth.
type submission struct {
	Filename        filename   `json:"filename"`
	Payload         payload    `json:"payload"`
	Visibility      visibility `json:"visibility"`
	Consent         consent    `json:"consent"`
	ContentType     textType   `json:"content_type,omitempty"`
	UploaderType    string     `json:"uploader_organization_type,omitempty" enum:"customer,solution_company,third_party" doc:"Default: customer."`
	UploaderOrgID   orgID      `json:"uploader_organization_id,omitempty"`
	SubjectOrgID    orgID      `json:"asserted_subject_org_id,omitempty" doc:"If sent, the organization of the path."`
	WorkspaceAccess string     `json:"customer_workspace_access,omitempty" enum:"granted,not_granted" doc:"A solution_company or third_party needs granted."`

	raw any // the whole body: claims may stand where the contract knows no property
}

// UnmarshalJSON keeps the body whole beside what the contract knows of it.
func (s *submission) UnmarshalJSON(b []byte) error {
	type known submission
	return unmarshalWhole(b, &s.raw, (*known)(s))
}

// unmarshalWhole decodes b twice: whole, and as what the contract knows of it.
func unmarshalWhole(b []byte, whole *any, known any) error {
	if err := jsonv2.Unmarshal(b, whole); err != nil {
		return err
	}
	return jsonv2.Unmarshal(b, known)
}

type submitted struct {
	UploadID         string                 `json:"upload_id"`
	OrgID            string                 `json:"org_id"`
	OriginalUploadID string                 `json:"original_upload_id,omitempty" doc:"Of a correction: the upload that it corrects, which stays as it is."`
	Status           string                 `json:"status" enum:"READY"`
	EvaluationStatus string                 `json:"evaluation_status" enum:"not_evaluated"`
	Filename         string                 `json:"filename"`
	ConsentCapture   custody.ConsentCapture `json:"consent_capture" doc:"Redacted: never who consented."`
	Sequence         int64                  `json:"sequence" minimum:"1"`
	PipelineID       string                 `json:"pipeline_id"`
}

func (s submissions) mount(d *door) {
	mount(d, operation{
		id: custody.OpCustomerUpload, method: http.MethodPost, path: submissionsPath, tag: "customer uploads", body: bodyJSON,
		summary:  "Submit a small text",
		doc:      "Kept as it is, unverified. The six gates run inside the request: 201 means READY. Properties beyond those listed are ignored, unless one claims a verdict.",
		failures: []int{403, 409, 507}, answers: map[int]reflect.Type{201: says[submitted]()},
	}, s.submit)
	mount(d, operation{
		id: custody.OpCorrection, method: http.MethodPost, path: submissionsPath + "/{upload_id}/corrections", tag: "customer uploads", body: bodyJSON,
		summary:  "Correct a customer upload",
		doc:      "A new upload; the original is never overwritten. The original's context names it. A correction can be corrected too.",
		failures: []int{403, 404, 409, 507}, answers: map[int]reflect.Type{201: says[submitted]()},
	}, s.correct)
}

func (s submissions) submit(ctx context.Context, x *exchange, in *submitInput) (answer, error) {
	b := in.Body.withDefaults()
	a, err := s.room.Submit(ctx, x.caller, b.of(in.OrgID, ""), custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpCustomerUpload, Key: string(in.Key),
		RequestHash: requestHash(custody.OpCustomerUpload, in.OrgID, b), Render: render(submittedView),
	})
	return answer{Answer: a}, err
}

func (s submissions) correct(ctx context.Context, x *exchange, in *correctInput) (answer, error) {
	b := in.Body.withDefaults()
	a, err := s.room.Correct(ctx, x.caller, b.of(in.OrgID, in.UploadID), custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpCorrection, Key: string(in.Key),
		RequestHash: requestHash(custody.OpCorrection, in.OrgID, in.UploadID, b), Render: render(submittedView),
	})
	return answer{Answer: a}, err
}

func submittedView(u custody.Upload) (int, any) {
	return http.StatusCreated, submitted{
		UploadID: u.ID, OrgID: u.OrgID, OriginalUploadID: u.OriginalUploadID, Status: string(u.Status), EvaluationStatus: custody.EvaluationStatus,
		Filename: u.Filename, ConsentCapture: u.Consent.Capture(), Sequence: u.Sequence, PipelineID: u.PipelineID,
	}
}

// withDefaults says what leaving a property out says, so that both are one request.
func (s submission) withDefaults() submission {
	if s.ContentType == "" {
		s.ContentType = "text/plain"
	}
	if s.UploaderType == "" {
		s.UploaderType = custody.UploaderCustomer
	}
	return s
}

func (s submission) of(org orgID, original uploadID) custody.Submission {
	return custody.Submission{
		OrgID: string(org), OriginalUploadID: string(original), Filename: string(s.Filename), ContentType: string(s.ContentType),
		Payload: string(s.Payload), Visibility: custody.Visibility(s.Visibility), Consent: s.Consent.kept(),
		UploaderType: s.UploaderType, UploaderOrgID: string(s.UploaderOrgID), AssertedSubjectOrgID: string(s.SubjectOrgID),
		WorkspaceAccess: s.WorkspaceAccess, Body: s.raw,
	}
}

func (c consent) kept() custody.Consent {
	return custody.Consent{
		AgreementVersion: string(c.AgreementVersion), AIReadableVersion: string(c.AIReadableVersion), TextHashSHA256: string(c.TextHash),
		ConsentingUserID: string(c.UserID), ConsentingEmail: string(c.UserEmail), AcceptedAt: c.AcceptedAt.kept(),
	}
}

type payload string

func (payload) Schema(huma.Registry) *huma.Schema {
	return text(1, custody.MaxPayloadBytes, "", "The text: at most 1 MiB of UTF-8.")
}

func (p payload) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	if len(p) > custody.MaxPayloadBytes {
		return wrong(at, fmt.Sprintf("expected at most %d bytes of UTF-8", custody.MaxPayloadBytes))
	}
	return nil
}

type visibility string

func (visibility) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Enum: []any{
		string(custody.VisibilityAIReadable), string(custody.VisibilityPrivateSummary), string(custody.VisibilityInternal), string(custody.VisibilityPublicProfile),
	}, Description: "Who may read what: ai_readable_controlled and public_profile the whole context, private_summary_public the summary alone, internal_only nothing."}
}

// textType is the media type of a payload, which is a JSON string and so UTF-8 text: text/*, and no other charset.
type textType string

func (textType) Schema(huma.Registry) *huma.Schema {
	s := text(6, 255, `^[Tt][Ee][Xx][Tt]/[!-~][ -~]*$`, "A text media type, text/*, with no charset other than utf-8; default text/plain. Markup is read as the text that it is.")
	s.Examples = []any{"text/plain"}
	return s
}

func (m textType) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	if m == "" {
		return nil
	}
	_, params, err := mime.ParseMediaType(string(m))
	if err != nil {
		return wrong(at, "expected a text media type, such as text/plain")
	}
	if charset := strings.ToLower(params["charset"]); charset != "" && charset != "utf-8" && charset != "us-ascii" {
		return wrong(at, "expected no charset other than utf-8")
	}
	return nil
}
