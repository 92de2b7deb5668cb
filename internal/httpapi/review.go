package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/intake"
)

// reviews are references to external reviews of customer uploads. (Section 4.5.)
type reviews struct{ room Submissions }

type reviewInput struct {
	OrgID    orgID          `path:"org_id"`
	UploadID uploadID       `path:"upload_id"`
	Key      idempotencyKey `header:"Idempotency-Key" required:"true"`
	Body     review
}

type review struct {
	ReviewID  label     `json:"review_id"`
	SourceURL sourceURL `json:"source_url,omitempty"`
	Reviewer  label     `json:"reviewer,omitempty"`
	Notes     notes     `json:"notes,omitempty"`
	_         struct{}  `additionalProperties:"false"`

	raw any // the whole body
}

// UnmarshalJSON keeps the body whole beside what the contract knows of it.
func (r *review) UnmarshalJSON(b []byte) error {
	type known review
	return unmarshalWhole(b, &r.raw, (*known)(r))
}

// Resolve calls a property that claims a verdict by its name, and not an unexpected one.
func (r *review) Resolve(huma.Context) []error {
	if err := intake.RefuseClaims(r.raw, nil); err != nil {
		return []error{err}
	}
	return nil
}

type reviewAttached struct {
	UploadID         string `json:"upload_id"`
	ReviewID         string `json:"review_id"`
	EvaluationStatus string `json:"evaluation_status" enum:"not_evaluated"`
}

func (s reviews) mount(d *door) {
	mount(d, operation{
		id: custody.OpExternalReview, method: http.MethodPost, path: submissionsPath + "/{upload_id}/external-review", tag: "customer uploads", body: bodyJSON,
		summary:  "Attach a reference to an external review",
		doc:      "A reference, not an evaluation: the upload's provenance and context stay as they are, and its context names the reference.",
		failures: []int{403, 404, 409}, answers: map[int]reflect.Type{200: says[reviewAttached]()},
	}, s.attach)
}

func (s reviews) attach(ctx context.Context, x *exchange, in *reviewInput) (answer, error) {
	b := in.Body
	a, err := s.room.AttachReview(ctx, x.caller, custody.Review{
		OrgID: string(in.OrgID), UploadID: string(in.UploadID), ReviewID: string(b.ReviewID), SourceURL: string(b.SourceURL),
		Reviewer: string(b.Reviewer), Notes: string(b.Notes), Body: b.raw,
	}, custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpExternalReview, Key: string(in.Key),
		RequestHash: requestHash(custody.OpExternalReview, in.OrgID, in.UploadID, b),
		Render: render(func(r custody.Review) (int, any) {
			return http.StatusOK, reviewAttached{r.UploadID, r.ReviewID, custody.EvaluationStatus}
		}),
	})
	return answer{Answer: a}, err
}

// sourceURL is an absolute http or https address in the characters of RFC 3986, without a user.
type sourceURL string

const maxSourceURLBytes = 2048

func (sourceURL) Schema(huma.Registry) *huma.Schema {
	s := text(8, maxSourceURLBytes, `^[Hh][Tt][Tt][Pp][Ss]?://([A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+$`, "An http or https address.")
	s.Extensions = map[string]any{"format": "uri"} // published; huma's own check is lax, and its message quotes the address
	s.Examples = []any{"https://reviews.example/2026/17"}
	return s
}

func (s sourceURL) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(string(s))
	if err != nil || u.Hostname() == "" || u.User != nil || strings.Contains(u.Fragment, "#") {
		return wrong(at, "expected an absolute http or https address with a host and without a user")
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return wrong(at, "expected a port from 1 to 65535")
		}
	}
	return nil
}
