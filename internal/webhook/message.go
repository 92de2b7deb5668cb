package webhook

import (
	"encoding/json"
	"time"

	"github.com/accession/accession/internal/custody"
)

const momentFormat = "2006-01-02T15:04:05.000Z"

// statusChanged is the body of uploadStatusChanged, exactly. (Section 6.)
type statusChanged struct {
	EventID    string `json:"event_id"`
	UploadID   string `json:"upload_id"`
	Sequence   int64  `json:"sequence"`
	Status     string `json:"status"`
	OccurredAt string `json:"occurred_at"`
	PipelineID string `json:"pipeline_id,omitempty"`
	Stage      string `json:"stage,omitempty"`
	RequestID  string `json:"request_id,omitempty"`
	TraceID    string `json:"trace_id,omitempty"`
}

// test is the body of a test event.
type test struct {
	Event      string `json:"event"`
	EventID    string `json:"event_id"`
	OrgID      string `json:"org_id"`
	OccurredAt string `json:"occurred_at"`
	RequestID  string `json:"request_id,omitempty"`
	TraceID    string `json:"trace_id,omitempty"`
}

// body of a delivery; the same bytes at every attempt.
func body(d custody.Delivery) ([]byte, error) {
	if d.Kind != custody.EventUploadStatusChanged {
		return d.Payload, nil
	}
	e := d.Event
	return json.Marshal(statusChanged{
		EventID: e.ID, UploadID: e.UploadID, Sequence: e.Sequence, Status: string(e.Status), OccurredAt: e.OccurredAt.UTC().Format(momentFormat),
		PipelineID: e.PipelineID, Stage: string(e.Stage), RequestID: e.Cause.RequestID, TraceID: e.Cause.TraceID,
	})
}

func testBody(orgID, eventID string, c custody.Caller, at time.Time) ([]byte, error) {
	return json.Marshal(test{custody.EventWebhookTest, eventID, orgID, at.UTC().Format(momentFormat), c.RequestID, c.TraceID})
}
