package httpapi

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/accession/accession/internal/custody"
)

type statusInput struct {
	OrgID        orgID    `path:"org_id"`
	UploadID     uploadID `path:"upload_id"`
	IncludeGates bool     `query:"include_gates" default:"true"`
	Prefer       string   `header:"Prefer" doc:"wait=N holds the answer until the next event, up to N (at most 30) seconds. (RFC 7240)"`
	IfNoneMatch  string   `header:"If-None-Match" doc:"ETags of earlier answers; 304 while nothing has changed."`
}

// uploadStatus is the status of section 2.6, with what the contract decisions add to it.
type uploadStatus struct {
	UploadID         string     `json:"upload_id"`
	PipelineID       string     `json:"pipeline_id"`
	Status           string     `json:"status" enum:"INITIATED,RECEIVING,PROCESSING,READY,REJECTED,FAILED,EXPIRED,WITHDRAWING,WITHDRAWN"`
	Sequence         int64      `json:"sequence" minimum:"1" doc:"Of the newest status event; only ever grows."`
	EvaluationStatus string     `json:"evaluation_status" enum:"not_evaluated"`
	Gates            []gate     `json:"gates,omitempty" nullable:"false" doc:"The six gates in order; left out with include_gates=false."`
	Filename         string     `json:"filename"`
	SizeBytes        int64      `json:"size_bytes" minimum:"0"`
	ReceivedBytes    int64      `json:"received_bytes" minimum:"0"`
	PartSizeBytes    int64      `json:"part_size_bytes" minimum:"0"`
	NextPartNumber   int        `json:"next_part_number" minimum:"0" doc:"Where an interrupted client resumes."`
	CreatedAt        timestamp  `json:"created_at"`
	UpdatedAt        timestamp  `json:"updated_at"`
	ExpiresAt        *timestamp `json:"expires_at,omitempty"`
	Failure          *failure   `json:"failure,omitempty"`
	RetainedUntil    *timestamp `json:"retained_until,omitempty" doc:"Then it is withdrawn by itself; left out where the organization has no retention."`

	Withdrawal *withdrawalState `json:"withdrawal,omitempty" doc:"While WITHDRAWING."`
}

// withdrawalState says why an upload is not WITHDRAWN yet.
type withdrawalState struct {
	RequestedAt      timestamp  `json:"requested_at" doc:"The content is unreadable from then on."`
	Attempts         int        `json:"attempts" minimum:"0" doc:"Deletions that were tried and not confirmed everywhere; it is tried again without end."`
	Unconfirmed      []string   `json:"unconfirmed" nullable:"false" doc:"The backends that did not confirm the newest attempt."`
	UnconfirmedSince *timestamp `json:"unconfirmed_since,omitempty" doc:"The first attempt that was not confirmed."`
}

type gate struct {
	Name       string     `json:"name" enum:"integrity,quarantine,malware_scan,extraction,controlled_summary,ai_context"`
	State      string     `json:"state" enum:"pending,running,passed,rejected,failed"`
	StartedAt  *timestamp `json:"started_at,omitempty"`
	FinishedAt *timestamp `json:"finished_at,omitempty"`
	Detail     keptObject `json:"detail" doc:"Metadata only."`
}

type failure struct {
	Gate    string `json:"gate"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

type quotaInput struct {
	OrgID orgID `path:"org_id"`
}

type quota struct {
	OrgID          string `json:"org_id"`
	AllowanceBytes int64  `json:"allowance_bytes" minimum:"0"`
	UsedBytes      int64  `json:"used_bytes" minimum:"0"`
	ReservedBytes  int64  `json:"reserved_bytes" minimum:"0"`
	AvailableBytes int64  `json:"available_bytes" minimum:"0"`
	UploadCount    int64  `json:"upload_count" minimum:"0"`
}

func (s uploads) mountReads(d *door) {
	mount(d, operation{
		id: custody.OpUploadStatus, method: http.MethodGet, path: uploadsPath + "/{upload_id}", tag: "partner uploads",
		summary: "Poll an upload", doc: "Metadata only, no content. Answers for every kind of upload.",
		failures: []int{403, 404}, answers: map[int]reflect.Type{200: says[uploadStatus](), 304: nil},
	}, s.status)
	mount(d, operation{
		id: custody.OpQuota, method: http.MethodGet, path: "/api/v1/organizations/{org_id}/quota", tag: "partner uploads",
		summary: "Read the storage allowance", failures: []int{403}, answers: map[int]reflect.Type{200: says[quota]()},
	}, s.quota)
}

// status answers at once if the client's copy is stale or nothing more will happen; otherwise it may wait for the next change.
func (s uploads) status(ctx context.Context, x *exchange, in *statusInput) (answer, error) {
	org, id := string(in.OrgID), string(in.UploadID)
	state, err := s.room.Status(ctx, x.caller, org, id)
	if err != nil {
		return answer{}, err
	}
	header := map[string]string{"Cache-Control": "private, no-cache"}
	wait := waitOf(in.Prefer)
	fresh := in.IfNoneMatch == "" || matches(in.IfNoneMatch, etag(state, in.IncludeGates))
	if wait > 0 && fresh && !state.Status.Terminal() {
		header["Preference-Applied"] = fmt.Sprintf("wait=%d", int(wait.Seconds()))
		waiting, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		x.giveTurn()
		if state, err = s.room.AwaitChange(waiting, x.caller, org, id, state.Sequence, state.NextPart); err != nil {
			return answer{}, err
		}
	}
	tag := etag(state, in.IncludeGates)
	header["ETag"] = tag
	if matches(in.IfNoneMatch, tag) {
		return answer{Answer: custody.Answer{Status: http.StatusNotModified}, header: header}, nil
	}
	a, err := respond(statusView(state, in.IncludeGates))
	a.header = header
	return a, err
}

func statusView(u custody.UploadState, gates bool) uploadStatus {
	v := uploadStatus{
		UploadID: u.ID, PipelineID: u.PipelineID, Status: string(u.Status), Sequence: u.Sequence, EvaluationStatus: custody.EvaluationStatus,
		Filename: u.Filename, SizeBytes: u.SizeBytes, ReceivedBytes: u.ReceivedBytes, PartSizeBytes: u.PartSizeBytes,
		NextPartNumber: u.NextPart, CreatedAt: timestamp{u.CreatedAt}, UpdatedAt: timestamp{u.UpdatedAt}, RetainedUntil: instant(u.RetainedUntil),
	}
	if w := u.Withdrawal; w != nil {
		v.Withdrawal = &withdrawalState{timestamp{w.RequestedAt}, w.Attempts, append([]string{}, w.Unconfirmed...), instant(w.UnconfirmedSince)}
	}
	switch u.Status {
	case custody.StatusInitiated, custody.StatusReceiving, custody.StatusExpired: // a complete upload has no end
		v.ExpiresAt = instant(u.ExpiresAt)
	}
	if u.Failure != nil {
		v.Failure = &failure{string(u.Failure.Gate), u.Failure.Code, u.Failure.Message}
	}
	if gates {
		v.Gates = make([]gate, 0, len(u.Gates))
		for _, g := range u.Gates {
			v.Gates = append(v.Gates, gate{string(g.Name), string(g.State), instant(g.StartedAt), instant(g.FinishedAt), keptObject(g.Detail)})
		}
	}
	return v
}

// appendJSON has the members in their order, and leaves out what is empty.
func (v uploadStatus) appendJSON(b []byte) []byte {
	b = appendText(b, `{"upload_id":`, v.UploadID)
	b = appendText(b, `,"pipeline_id":`, v.PipelineID)
	b = appendText(b, `,"status":`, v.Status)
	b = appendNumber(b, `,"sequence":`, v.Sequence)
	b = appendText(b, `,"evaluation_status":`, v.EvaluationStatus)
	for i, g := range v.Gates {
		b = append(b, gateBegins[min(i, 1)]...)
		b = g.appendJSON(b)
	}
	if len(v.Gates) > 0 {
		b = append(b, ']')
	}
	b = appendText(b, `,"filename":`, v.Filename)
	b = appendNumber(b, `,"size_bytes":`, v.SizeBytes)
	b = appendNumber(b, `,"received_bytes":`, v.ReceivedBytes)
	b = appendNumber(b, `,"part_size_bytes":`, v.PartSizeBytes)
	b = appendNumber(b, `,"next_part_number":`, int64(v.NextPartNumber))
	b = appendMoment(b, `,"created_at":`, v.CreatedAt.Time)
	b = appendMoment(b, `,"updated_at":`, v.UpdatedAt.Time)
	b = appendInstant(b, `,"expires_at":`, v.ExpiresAt)
	if f := v.Failure; f != nil {
		b = appendText(b, `,"failure":{"gate":`, f.Gate)
		b = appendText(b, `,"code":`, f.Code)
		b = appendText(b, `,"message":`, f.Message)
		b = append(b, '}')
	}
	b = appendInstant(b, `,"retained_until":`, v.RetainedUntil)
	if v.Withdrawal != nil {
		withdrawal, _ := marshal(v.Withdrawal) // texts, numbers and times can be encoded
		b = append(append(b, `,"withdrawal":`...), withdrawal...)
	}
	return append(b, '}')
}

// gateBegins stands before the first gate, and before the others.
var gateBegins = [2]string{`,"gates":[`, `,`}

func (g gate) appendJSON(b []byte) []byte {
	b = appendText(b, `{"name":`, g.Name)
	b = appendText(b, `,"state":`, g.State)
	b = appendInstant(b, `,"started_at":`, g.StartedAt)
	b = appendInstant(b, `,"finished_at":`, g.FinishedAt)
	detail, _ := g.Detail.MarshalJSON() // never fails
	return append(append(append(b, `,"detail":`...), detail...), '}')
}

func (s uploads) quota(ctx context.Context, x *exchange, in *quotaInput) (answer, error) {
	q, err := s.room.Quota(ctx, x.caller, string(in.OrgID))
	if err != nil {
		return answer{}, err
	}
	return respond(viewQuota(q))
}

func viewQuota(q custody.Quota) quota {
	return quota{q.OrgID, q.AllowanceBytes, q.UsedBytes, q.ReservedBytes, q.AvailableBytes(), q.UploadCount}
}

// etag names a state: every event has its own sequence, every accepted part moves the next one, and a running gate's detail
// shows its progress, as a withdrawal's attempts do. The retention may change without an event. It is weak, because answers differ in their ids.
func etag(u custody.UploadState, gates bool) string {
	progress := fnv.New64a()
	_, _ = fmt.Fprint(progress, gates) // with and without gates it is not the same answer
	if !u.RetainedUntil.IsZero() {
		_, _ = fmt.Fprint(progress, u.RetainedUntil.UnixMilli())
	}
	if u.Withdrawal != nil {
		_, _ = fmt.Fprint(progress, u.Withdrawal.Attempts)
	}
	for _, g := range u.Gates {
		if gates && g.State == custody.GateRunning {
			_, _ = progress.Write(g.Detail)
		}
	}
	return fmt.Sprintf(`W/"%d.%d.%x"`, u.Sequence, u.NextPart, progress.Sum64())
}

// matches is the weak comparison of RFC 9110, section 13.1.2.
func matches(ifNoneMatch, tag string) bool {
	for sent := range strings.SplitSeq(ifNoneMatch, ",") {
		sent = strings.TrimSpace(sent)
		if sent == "*" || strings.TrimPrefix(sent, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

// waitOf is the wait preference, at most 30 s. A preference is a wish: what cannot be read is not one. (RFC 7240.)
func waitOf(prefer string) time.Duration {
	for p := range strings.SplitSeq(prefer, ",") {
		p, _, _ = strings.Cut(p, ";")
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		n, err := strconv.Atoi(strings.Trim(strings.TrimSpace(value), `"`))
		if strings.EqualFold(strings.TrimSpace(name), "wait") && err == nil && n > 0 {
			return time.Duration(min(n, int(maxWait/time.Second))) * time.Second
		}
	}
	return 0
}
