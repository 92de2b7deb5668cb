package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/accession/accession/internal/custody"
)

// contextReads are AI context and the records of its serving. (Section 4.7.)
type contextReads struct{ room Contexts }

// surfaceREST is what a record says of a context served here.
const surfaceREST = "rest"

type contextInput struct {
	OrgID    orgID    `path:"org_id"`
	UploadID uploadID `path:"upload_id"`
}

type servedContext struct {
	UploadID   string      `json:"upload_id"`
	OrgID      string      `json:"org_id"`
	Visibility string      `json:"visibility"`
	RecordID   string      `json:"record_id" doc:"The request record of this serving."`
	Context    contextData `json:"context"`
}

func (c servedContext) appendJSON(b []byte) []byte {
	b = appendText(b, `{"upload_id":`, c.UploadID)
	b = appendText(b, `,"org_id":`, c.OrgID)
	b = appendText(b, `,"visibility":`, c.Visibility)
	b = appendText(b, `,"record_id":`, c.RecordID)
	return append(append(append(b, `,"context":`...), c.Context...), '}')
}

type recordsInput struct {
	OrgID     orgID     `path:"org_id"`
	RequestID requestID `query:"request_id"`
	UploadID  uploadID  `query:"upload_id"`
	Limit     int       `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Cursor    string    `query:"cursor" maxLength:"256" doc:"next_cursor of the page before, with the same filters."`
}

type recordPage struct {
	Records          []requestRecord `json:"records" nullable:"false" doc:"Newest first."`
	NextCursor       string          `json:"next_cursor" doc:"Empty on the last page."`
	SchemaDisclaimer string          `json:"schema_disclaimer"`
}

// requestRecord is a request record as it is answered.
type requestRecord struct {
	custody.Record
	RecalledAt *timestamp `json:"recalled_at,omitempty" doc:"When the upload was withdrawn: drop what was served. Derived when read; no part of what record_hash is over."`
}

func recordView(r custody.Record) requestRecord { return requestRecord{r, instant(r.RecalledAt)} }

func (s contextReads) mount(d *door) {
	mount(d, operation{
		id: custody.OpAIContext, method: http.MethodGet, path: "/api/v1/organizations/{org_id}/ai-context/{upload_id}", tag: "AI context",
		summary: "Read the bounded AI context", doc: "Customer-submitted, unverified, untrusted text. Served only once its request record is durable.",
		failures: []int{403, 404}, answers: map[int]reflect.Type{200: says[servedContext]()},
	}, s.context)
	mount(d, operation{
		id: custody.OpRequestRecords, method: http.MethodGet, path: "/api/v1/organizations/{org_id}/request-records", tag: "AI context",
		summary: "List request records", doc: "A page with a next_cursor is not the whole.",
		failures: []int{403}, answers: map[int]reflect.Type{200: says[recordPage]()},
	}, s.records)
}

func (s contextReads) context(ctx context.Context, x *exchange, in *contextInput) (answer, error) {
	v, err := s.room.Serve(ctx, x.caller, string(in.OrgID), string(in.UploadID), surfaceREST)
	if err != nil {
		return answer{}, err
	}
	return respond(servedContext{v.UploadID, v.OrgID, string(v.Visibility), v.RecordID, contextData(v.Context)})
}

func (s contextReads) records(ctx context.Context, x *exchange, in *recordsInput) (answer, error) {
	q := custody.RecordQuery{OrgID: string(in.OrgID), RequestID: string(in.RequestID), UploadID: string(in.UploadID), Limit: in.Limit}
	var ok bool
	if q.Before, ok = q.After(in.Cursor); !ok {
		return answer{}, invalid(field{"/query/cursor", "expected the next_cursor of a page with the same organization and filters"})
	}
	records, next, err := s.room.Records(ctx, x.caller, q)
	if err != nil {
		return answer{}, err
	}
	page := []requestRecord{}
	for _, r := range records {
		page = append(page, recordView(r))
	}
	return respond(recordPage{page, q.Cursor(next), custody.RecordDisclaimer})
}

// contextData is the context as it was hashed; it goes out byte for byte.
type contextData json.RawMessage

// MarshalJSON is c itself.
func (c contextData) MarshalJSON() ([]byte, error) { return json.RawMessage(c).MarshalJSON() }

// Schema describes what the contract decisions list; more fields may come.
func (contextData) Schema(huma.Registry) *huma.Schema {
	str := &huma.Schema{Type: "string"}
	num := &huma.Schema{Type: "integer"}
	obj := &huma.Schema{Type: "object", AdditionalProperties: true}
	list := &huma.Schema{Type: "array", Items: obj}
	only := func(v string) *huma.Schema { return &huma.Schema{Type: "string", Enum: []any{v}} }
	return &huma.Schema{Type: "object", AdditionalProperties: true, Properties: map[string]*huma.Schema{
		"boundary_label": only(custody.BoundaryLabel), "evaluation_status": only(custody.EvaluationStatus), "content_trust": only("untrusted"),
		"summary": str, "excerpts": list, "truncated": {Type: "boolean"}, "token_count": num, "token_limit": num,
		"language": str, "media_type": str, "source": obj, "consent_capture": obj,
		"corrections": {Type: "array", Items: str}, "external_references": list, "signals": {},
		"text":         {Type: "string", Description: "Summary, excerpts and canary between the two lines of the boundary, to put before a model instead of summary and excerpts."},
		"canary":       {Type: "string", Description: "Of this serving alone; an administrator finds its request record by it."},
		"boundary":     {Type: "object", Description: "The first and the last line of text, and the random marker in them, which stands nowhere else in the context.", AdditionalProperties: true, Properties: map[string]*huma.Schema{"marker": str, "begin": str, "end": str}},
		"generated_at": {Type: "string", Format: "date-time"}, "context_sha256": {Type: "string", Pattern: "^[a-f0-9]{64}$"},
	}}
}
