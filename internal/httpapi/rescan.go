package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/accession/accession/internal/custody"
)

// rescans is the administrator's way to have stored uploads scanned again.
type rescans struct{ room Rescans }

const rescansPath = "/admin/rescans"

type queueRescansInput struct {
	Key  idempotencyKey `header:"Idempotency-Key"`
	Body *rescanRequest
}

type rescanRequest struct {
	OrgID    orgID    `json:"org_id,omitempty"`
	UploadID uploadID `json:"upload_id,omitempty"`
	_        struct{} `additionalProperties:"false"`
}

type rescansQueued struct {
	Queued      int       `json:"queued" minimum:"0" doc:"Uploads that are scanned again from now on; not those being scanned again at this moment."`
	Waiting     int       `json:"waiting" minimum:"0" doc:"Uploads that wait or are being scanned, these among them."`
	RequestedAt timestamp `json:"requested_at" doc:"For since, to see how these end."`
}

type rescansInput struct {
	OrgID    orgID     `query:"org_id"`
	UploadID uploadID  `query:"upload_id"`
	Since    sinceTime `query:"since" doc:"Counts outcomes from then on; default: all."`
}

// sinceTime is a timestamp in a query.
type sinceTime string

func (sinceTime) Schema(r huma.Registry) *huma.Schema { return timestamp{}.Schema(r) }

func (s sinceTime) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	if _, err := time.Parse(time.RFC3339, string(s)); s != "" && err != nil {
		return wrong(at, "expected an RFC 3339 date-time")
	}
	return nil
}

type rescanState struct {
	Waiting    int `json:"waiting" minimum:"0" doc:"Uploads to be scanned again, or being scanned."`
	Unanswered int `json:"unanswered" minimum:"0" doc:"Of those: tried, so far without an answer. They stay READY and are tried again."`
	Clean      int `json:"clean" minimum:"0"`
	Found      int `json:"found" minimum:"0" doc:"Refused for malware: REJECTED, and their context is withdrawn."`
	Unreadable int `json:"unreadable" minimum:"0" doc:"Refused because the engine could not look into them."`
}

func (s rescans) mount(d *door) {
	const tag = "re-scans"
	mount(d, operation{
		id: custody.OpQueueRescans, method: http.MethodPost, path: rescansPath, tag: tag, body: bodyJSON,
		summary: "Scan stored uploads again", doc: "Every READY upload, those of an organization, or one. What is found becomes REJECTED and its context is withdrawn; everything else stays READY. " +
			"Signatures that changed are loaded first. They also start a re-scan by themselves.",
		failures: []int{409}, answers: map[int]reflect.Type{202: says[rescansQueued]()},
	}, s.queue)
	mount(d, operation{
		id: custody.OpRescans, method: http.MethodGet, path: rescansPath, tag: tag,
		summary: "How far re-scans are", answers: map[int]reflect.Type{200: says[rescanState]()},
	}, s.state)
}

func (s rescans) queue(ctx context.Context, x *exchange, in *queueRescansInput) (answer, error) {
	var scope custody.RescanScope
	if in.Body != nil {
		scope = custody.RescanScope{OrgID: string(in.Body.OrgID), UploadID: string(in.Body.UploadID)}
	}
	a, err := s.room.Queue(ctx, x.caller, scope, custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpQueueRescans, Key: string(in.Key),
		RequestHash: requestHash(custody.OpQueueRescans, scope),
		Render: render(func(q custody.QueuedRescans) (int, any) {
			return http.StatusAccepted, rescansQueued{q.Queued, q.Waiting, timestamp{q.RequestedAt}}
		}),
	})
	return answer{Answer: a}, err
}

func (s rescans) state(ctx context.Context, x *exchange, in *rescansInput) (answer, error) {
	since, _ := time.Parse(time.RFC3339, string(in.Since)) // resolved; zero where it is not given
	found, err := s.room.State(ctx, x.caller, custody.RescanScope{OrgID: string(in.OrgID), UploadID: string(in.UploadID)}, since)
	if err != nil {
		return answer{}, err
	}
	return respond(rescanState(found))
}
