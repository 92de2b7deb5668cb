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

// statusWebhook describes the callback; the receiver serves it.
func statusWebhook(schemas huma.Registry) *huma.PathItem {
	header := func(name, doc, example string) *huma.Param {
		return &huma.Param{Name: name, In: "header", Required: true, Description: doc, Schema: &huma.Schema{Type: huma.TypeString}, Example: example}
	}
	return &huma.PathItem{Post: &huma.Operation{
		OperationID: "uploadStatusChanged", Tags: []string{"callbacks"}, Method: "POST",
		Summary:     "An upload's status changed",
		Description: "Signed by Standard Webhooks 1.0. The events of one upload come in the order of their sequence. 2xx and 409 end the delivery, 400 and 410 stop it and show it to the operator, anything else is tried again for three days.",
		Security:    []map[string][]string{{}},
		Parameters: []*huma.Param{
			header("webhook-id", "The event_id.", "evt_01jd3xq4f7v9m2r8t6w0z5k1bn"),
			header("webhook-timestamp", "Seconds since 1970, of this attempt.", "1795167000"),
			header("webhook-signature", "v1, and base64 of HMAC-SHA256 over id.timestamp.body; two, separated by a space, while the secret rotates.", "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="),
		},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {
			Schema: schemas.Schema(reflect.TypeFor[statusChange](), true, ""),
			Example: plain(statusChange{
				EventID: "evt_01jd3xq4f7v9m2r8t6w0z5k1bn", UploadID: exampleUploadID, Sequence: 9, Status: string(custody.StatusProcessing), OccurredAt: exampleTime,
				PipelineID: examplePipelineID, Stage: string(custody.GateMalwareScan), RequestID: exampleRequestID, TraceID: exampleTraceID,
			}),
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
