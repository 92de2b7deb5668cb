package httpapi

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/accession/accession/internal/custody"
)

// statusChange is what the service posts to a tenant's callback URL. (Section 6; contract decisions, "Webhooks".)
type statusChange struct {
	EventID    string    `json:"event_id" doc:"Deduplicate on it."`
	UploadID   string    `json:"upload_id"`
	Sequence   int64     `json:"sequence" minimum:"1" doc:"Immutable and increasing; recover gaps at the status operation."`
	Status     string    `json:"status" enum:"INITIATED,RECEIVING,PROCESSING,READY,REJECTED,FAILED,EXPIRED,WITHDRAWING,WITHDRAWN"`
	OccurredAt timestamp `json:"occurred_at"`
	PipelineID string    `json:"pipeline_id,omitempty"`
	Stage      string    `json:"stage,omitempty" enum:"integrity,quarantine,malware_scan,extraction,controlled_summary,ai_context" doc:"The gate."`
	RequestID  string    `json:"request_id,omitempty"`
	TraceID    string    `json:"trace_id,omitempty"`
}

// contextRecalled is posted where a context that was served must no longer be used. (Contract decisions, "Webhooks".)
type contextRecalled struct {
	Event          string    `json:"event" enum:"contextRecalled" doc:"Tells it from uploadStatusChanged, which has no such field."`
	EventID        string    `json:"event_id" doc:"Deduplicate on it."`
	UploadID       string    `json:"upload_id"`
	OrgID          string    `json:"org_id"`
	Reason         string    `json:"reason" enum:"withdrawn,rejected" doc:"withdrawn: the upload is being deleted. rejected: it was scanned again and refused."`
	RecalledAt     timestamp `json:"recalled_at"`
	Servings       int64     `json:"servings" minimum:"1" doc:"How often the context was served; the request records name each."`
	ContextSHA256s []string  `json:"context_sha256s" nullable:"false" doc:"Of every context that was served: drop what you hold of them."`
	CredentialIDs  []string  `json:"credential_ids" nullable:"false" doc:"That were served."`
	RequestID      string    `json:"request_id,omitempty"`
	TraceID        string    `json:"trace_id,omitempty"`
}

// webhookTest is posted when the operator asks for it.
type webhookTest struct {
	Event      string    `json:"event" enum:"webhookTest"`
	EventID    string    `json:"event_id"`
	OrgID      string    `json:"org_id"`
	OccurredAt timestamp `json:"occurred_at"`
	RequestID  string    `json:"request_id,omitempty"`
	TraceID    string    `json:"trace_id,omitempty"`
}

// callbacks describes what the service posts; the receiver serves it.
func callbacks(schemas huma.Registry) map[string]*huma.PathItem {
	const eventID = "evt_01jd3xq4f7v9m2r8t6w0z5k1bn"
	return map[string]*huma.PathItem{
		custody.EventUploadStatusChanged: callback(schemas, custody.EventUploadStatusChanged, "An upload's status changed",
			"Signed by Standard Webhooks 1.0. The events of one upload come in the order of their sequence. 2xx and 409 end the delivery, 400 stops it and shows it to the operator, "+
				"410 disables the webhook until it is set again, anything else is tried again for three days.",
			statusChange{
				EventID: eventID, UploadID: exampleUploadID, Sequence: 9, Status: string(custody.StatusProcessing), OccurredAt: exampleTime,
				PipelineID: examplePipelineID, Stage: string(custody.GateMalwareScan), RequestID: exampleRequestID, TraceID: exampleTraceID,
			}),
		custody.EventContextRecalled: callback(schemas, custody.EventContextRecalled, "A served context must no longer be used",
			"Posted right after the status change that takes it back, and only where it was served. Signed and delivered as uploadStatusChanged.",
			contextRecalled{
				Event: custody.EventContextRecalled, EventID: eventID, UploadID: exampleUploadID, OrgID: "org_tidewater", Reason: custody.RecallWithdrawn, RecalledAt: exampleTime,
				Servings: 3, ContextSHA256s: []string{"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}, CredentialIDs: []string{"cred_01jd3xq4f7v9m2r8t6w0z5k1bn"},
				RequestID: exampleRequestID, TraceID: exampleTraceID,
			}),
		custody.EventWebhookTest: callback(schemas, custody.EventWebhookTest, "The operator tests the webhook",
			"Signed as every event, sent once, not tried again.",
			webhookTest{Event: custody.EventWebhookTest, EventID: eventID, OrgID: "org_tidewater", OccurredAt: exampleTime, RequestID: exampleRequestID, TraceID: exampleTraceID}),
	}
}

func callback(schemas huma.Registry, name, summary, doc string, example any) *huma.PathItem {
	header := func(name, doc, example string) *huma.Param {
		return &huma.Param{Name: name, In: "header", Required: true, Description: doc, Schema: &huma.Schema{Type: huma.TypeString}, Example: example}
	}
	return &huma.PathItem{Post: &huma.Operation{
		OperationID: name, Tags: []string{"callbacks"}, Method: "POST", Summary: summary, Description: doc,
		Security: []map[string][]string{{}},
		Parameters: []*huma.Param{
			header("webhook-id", "The event_id.", "evt_01jd3xq4f7v9m2r8t6w0z5k1bn"),
			header("webhook-timestamp", "Seconds since 1970, of this attempt.", "1795167000"),
			header("webhook-signature", "v1, and base64 of HMAC-SHA256 over id.timestamp.body; two, separated by a space, while the secret rotates.", "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="),
		},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {
			Schema: schemas.Schema(reflect.TypeOf(example), true, ""), Example: plain(example),
		}}},
		Responses: map[string]*huma.Response{
			"202": {Description: "The event is accepted, or was before."},
			"400": {Description: "The signature or the event is not valid."},
			"409": {Description: "The event is a duplicate, stale or out of order."},
		},
	}}
}

// plain is v as JSON values, which is what a document holds.
func plain(v any) any {
	b, err := marshal(v)
	if err != nil {
		panic(err) // an example of this package, met at start
	}
	var out any
	if err := json.Unmarshal(b, &out); err != nil {
		panic(err)
	}
	return out
}
