package aicontext

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/accession/accession/internal/custody"
)

// Context is what a reader gets of one upload. (Contract decisions, AI context `context`.)
//
// ContextSHA256 is over the JSON of the context as composed: the same input gives the same digest, and so does each serving.
// It leaves out what belongs to one serving or one moment: text, boundary, canary, generated_at and itself; corrections and
// external_references are in it as empty lists. Text repeats Summary and Excerpts, with a frame around them, for a reader who uses
// it instead of them: TokenCount is the most that Text counts, and never more than TokenLimit.
type Context struct {
	BoundaryLabel      string                 `json:"boundary_label"`
	EvaluationStatus   string                 `json:"evaluation_status"`
	ContentTrust       string                 `json:"content_trust"`
	Summary            string                 `json:"summary"`
	Excerpts           []Excerpt              `json:"excerpts"`
	Truncated          bool                   `json:"truncated"`
	TokenCount         int                    `json:"token_count"`
	TokenLimit         int                    `json:"token_limit"`
	Language           string                 `json:"language"`
	MediaType          string                 `json:"media_type"`
	Source             Source                 `json:"source"`
	ConsentCapture     custody.ConsentCapture `json:"consent_capture"`
	Corrections        []string               `json:"corrections"`
	ExternalReferences []custody.Reference    `json:"external_references"`
	Signals            []Signal               `json:"signals"`
	Text               string                 `json:"text,omitempty"`
	Boundary           *Boundary              `json:"boundary,omitempty"`
	Canary             string                 `json:"canary,omitempty"`
	GeneratedAt        *time.Time             `json:"generated_at,omitempty"`
	ContextSHA256      string                 `json:"context_sha256,omitempty"`
}

// Source says where a context's text came from.
type Source struct {
	SHA256       string             `json:"sha256"`
	SizeBytes    int64              `json:"size_bytes"`
	Filename     string             `json:"filename"`
	SubmittedAt  time.Time          `json:"submitted_at"`
	UploaderType string             `json:"uploader_organization_type"`
	Visibility   custody.Visibility `json:"visibility"`
}

// Compose makes the bounded context of one upload from its pages and their summary. extractionTruncated says that the
// pages are not the whole document. What the visibility keeps back is not in it: a private summary has no excerpts.
// Errors: those of Distill.
func Compose(u custody.Upload, mediaType string, pages []Page, extractionTruncated bool, summary Summary, limits Limits) (Context, error) {
	d, err := Distill(pages, summary, limits)
	if err != nil {
		return Context{}, err
	}
	c := Context{
		BoundaryLabel: custody.BoundaryLabel, EvaluationStatus: custody.EvaluationStatus, ContentTrust: "untrusted",
		Summary: d.Summary, Excerpts: d.Excerpts, Truncated: d.Truncated || extractionTruncated,
		TokenCount: d.TokenCount + frameTokens, TokenLimit: d.TokenLimit + frameTokens, Language: d.Language, MediaType: mediaType,
		Source: Source{
			SHA256: u.SHA256, SizeBytes: u.SizeBytes, Filename: Sanitize(u.Filename), SubmittedAt: u.CreatedAt,
			UploaderType: u.UploaderType, Visibility: u.Visibility,
		},
		ConsentCapture: u.Consent.Capture(), Corrections: []string{}, ExternalReferences: []custody.Reference{}, Signals: d.Signals,
	}
	if u.Visibility == custody.VisibilityPrivateSummary {
		c.Truncated = c.Truncated || len(c.Excerpts) > 0
		c.Excerpts = []Excerpt{}
		n, err := CountTokens(c.Summary)
		if err != nil {
			return Context{}, err
		}
		c.TokenCount = n + frameTokens
	}
	b, err := json.Marshal(c)
	if err != nil {
		return Context{}, err
	}
	sum := sha256.Sum256(b)
	now := custody.Now()
	c.GeneratedAt, c.ContextSHA256 = &now, hex.EncodeToString(sum[:])
	return c, nil
}
