package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/accession/accession/internal/custody"
)

type installationState struct {
	At             timestamp    `json:"at"`
	Process        processState `json:"process" doc:"The one that answers; there may be others."`
	Queues         []laneState  `json:"queues" nullable:"false" minItems:"3" maxItems:"3" doc:"Of all replicas together: gates, deletions, rescans."`
	Uploads        stuckUploads `json:"uploads" doc:"Those that somebody should look at."`
	Webhooks       hookBacklog  `json:"webhooks"`
	RescansWaiting int          `json:"rescans_waiting" minimum:"0" doc:"Stored uploads to be scanned again, those included that are tried again later."`
	Scanner        scannerState `json:"scanner"`
}

type processState struct {
	Version   string    `json:"version"`
	Roles     []string  `json:"roles" nullable:"false" doc:"api: it answers requests; worker: it works."`
	StartedAt timestamp `json:"started_at"`
	Uptime    int64     `json:"uptime_seconds" minimum:"0"`
}

type laneState struct {
	Lane    string `json:"lane" enum:"gates,deletions,rescans"`
	Waiting int    `json:"waiting" minimum:"0" doc:"Uploads that are due and that no worker has taken."`
	Running int    `json:"running" minimum:"0" doc:"Uploads that workers hold."`
	Oldest  int64  `json:"oldest_seconds" minimum:"0" doc:"How long the longest of those that wait has been due."`
}

type stuckUploads struct {
	Held   int           `json:"held" minimum:"0" doc:"PROCESSING; the gate had no answer so far and is tried again until its deadline."`
	Failed int           `json:"failed" minimum:"0" doc:"FAILED; they wait to be resumed or withdrawn."`
	Listed []stuckUpload `json:"listed" nullable:"false" maxItems:"40" doc:"Up to 20 held ones, the longest first; then up to 20 FAILED ones, the newest first."`
}

type stuckUpload struct {
	OrgID    string    `json:"org_id"`
	UploadID string    `json:"upload_id"`
	Status   string    `json:"status" enum:"PROCESSING,FAILED"`
	Gate     string    `json:"gate" enum:"integrity,quarantine,malware_scan,extraction,controlled_summary,ai_context"`
	Code     string    `json:"code"`
	Message  string    `json:"message" doc:"Why the newest attempt had no answer."`
	Since    timestamp `json:"since" doc:"When the gate began, or the upload failed."`
}

type hookBacklog struct {
	Waiting int   `json:"waiting" minimum:"0" doc:"Deliveries that are not delivered yet."`
	Dead    int   `json:"dead" minimum:"0" doc:"Deliveries that were given up; replay sends them again."`
	Oldest  int64 `json:"oldest_seconds" minimum:"0" doc:"How long the oldest of those that wait has waited."`
}

type scannerState struct {
	OK               bool       `json:"ok" doc:"false: no upload passes its malware_scan gate; uploads wait there."`
	Engine           string     `json:"engine,omitempty"`
	EngineVersion    string     `json:"engine_version,omitempty"`
	SignatureVersion string     `json:"signature_version,omitempty"`
	SignatureDate    *timestamp `json:"signature_date,omitempty" doc:"Left out where it is not known."`
	SignatureAge     *int64     `json:"signature_age_seconds,omitempty" minimum:"0"`
	Sentence         string     `json:"sentence" doc:"What is so, and what to do."`
}

func (u upkeeps) mountState(d *door) {
	mount(d, operation{
		id: custody.OpState, method: http.MethodGet, path: "/admin/state", tag: "upkeep",
		summary: "What the service does and waits for", doc: "Queues, stuck uploads and deliveries are of all replicas together. The scanner is asked to prove itself, for at most 2 seconds.",
		answers: map[int]reflect.Type{200: says[installationState]()},
	}, u.state)
}

func (u upkeeps) state(ctx context.Context, x *exchange, _ *struct{}) (answer, error) {
	found, err := u.room.InstallationState(ctx, x.caller)
	if err != nil {
		return answer{}, err
	}
	return respond(viewState(found))
}

func viewState(s custody.InstallationState) installationState {
	v := installationState{
		At: timestamp{s.At}, Queues: []laneState{}, RescansWaiting: s.RescansWaiting,
		Process:  processState{s.Process.Version, append([]string{}, s.Process.Roles...), timestamp{s.Process.StartedAt}, whole(s.At.Sub(s.Process.StartedAt))},
		Uploads:  stuckUploads{s.Stuck.Held, s.Stuck.Failed, []stuckUpload{}},
		Webhooks: hookBacklog{s.Webhooks.Waiting, s.Webhooks.Dead, whole(s.Webhooks.Oldest)},
		Scanner: scannerState{
			OK: s.Scanner.OK, Engine: s.Scanner.Engine, EngineVersion: s.Scanner.EngineVersion, SignatureVersion: s.Scanner.SignatureVersion,
			SignatureDate: instant(s.Scanner.SignatureDate), Sentence: s.Scanner.Sentence,
		},
	}
	if !s.Scanner.SignatureDate.IsZero() {
		age := whole(s.At.Sub(s.Scanner.SignatureDate))
		v.Scanner.SignatureAge = &age
	}
	for _, l := range s.Lanes {
		v.Queues = append(v.Queues, laneState{l.Name, l.Waiting, l.Running, whole(l.Oldest)})
	}
	for _, u := range s.Stuck.Listed {
		v.Uploads.Listed = append(v.Uploads.Listed, stuckUpload{u.OrgID, u.UploadID, string(u.Status), string(u.Gate), u.Code, u.Message, timestamp{u.Since}})
	}
	return v
}

// whole seconds; a clock that is behind another's makes none negative.
func whole(d time.Duration) int64 { return int64(max(0, d) / time.Second) }
