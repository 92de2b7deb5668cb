package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/accession/accession/internal/custody"
)

// upkeeps are the administrator's ways to keep custody whole.
type upkeeps struct{ room Upkeep }

const (
	checkStoragePath = "/admin/fsck"
	resumePath       = "/admin/uploads/{upload_id}/resume"
)

type checkStorageInput struct {
	Key  idempotencyKey `header:"Idempotency-Key"`
	Body *storageCheck
}

type storageCheck struct {
	Repair bool     `json:"repair,omitempty" doc:"Delete what no row names. What is missing cannot be mended."`
	After  uploadID `json:"after,omitempty"`
	_      struct{} `additionalProperties:"false"`
}

type storageReport struct {
	Uploads   int              `json:"uploads" minimum:"0" maximum:"200" doc:"Looked at in this step."`
	Findings  []storageFinding `json:"findings" nullable:"false" maxItems:"1000"`
	Omitted   int              `json:"omitted" minimum:"0" doc:"Findings beyond those listed; not repaired."`
	NextAfter string           `json:"next_after" doc:"For after of the next step; empty after the last."`
}

type storageFinding struct {
	UploadID string `json:"upload_id"`
	OrgID    string `json:"org_id" doc:"Empty where there is no such upload."`
	Status   string `json:"status" doc:"Empty where there is no such upload."`
	Problem  string `json:"problem" enum:"orphan_objects,orphan_key,missing_objects,missing_copies,missing_key"`
	Backend  string `json:"backend"`
	Objects  int    `json:"objects" minimum:"1" doc:"Or keys."`
	Repaired bool   `json:"repaired"`
}

type resumeInput struct {
	UploadID uploadID       `path:"upload_id"`
	Key      idempotencyKey `header:"Idempotency-Key"`
	Body     struct {
		OrgID orgID    `json:"org_id"`
		_     struct{} `additionalProperties:"false"`
	}
}

type uploadResumed struct {
	UploadID   string `json:"upload_id"`
	PipelineID string `json:"pipeline_id"`
	Status     string `json:"status" enum:"PROCESSING"`
	Sequence   int64  `json:"sequence" minimum:"1"`
	Gate       string `json:"gate" enum:"integrity,quarantine,malware_scan,extraction,controlled_summary,ai_context" doc:"It starts anew, with a whole deadline."`
}

func (u upkeeps) mount(d *door) {
	const tag = "upkeep"
	mount(d, operation{
		id: custody.OpCheckStorage, method: http.MethodPost, path: checkStoragePath, tag: tag, body: bodyJSON,
		summary: "Compare rows, objects and keys", doc: "One step of at most 200 uploads; the first also looks for objects and data keys of no upload. It is safe on a live service: " +
			"what disagrees is looked at twice, and objects without a row count once they are 2 hours old. With repair they are deleted; what is missing is only reported.",
		failures: []int{409}, answers: map[int]reflect.Type{200: says[storageReport]()},
	}, u.check)
	mount(d, operation{
		id: custody.OpResumeUpload, method: http.MethodPost, path: resumePath, tag: tag, body: bodyJSON,
		summary: "Let a FAILED upload go on", doc: "The gates that passed stay passed; the one that failed starts anew, with a whole deadline.",
		failures: []int{404, 409}, answers: map[int]reflect.Type{200: says[uploadResumed]()},
	}, u.resume)
	u.mountState(d)
}

func (u upkeeps) check(ctx context.Context, x *exchange, in *checkStorageInput) (answer, error) {
	var q custody.StorageCheck
	if in.Body != nil {
		q = custody.StorageCheck{After: string(in.Body.After), Repair: in.Body.Repair}
	}
	a, err := u.room.Check(ctx, x.caller, q, custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpCheckStorage, Key: string(in.Key), RequestHash: requestHash(custody.OpCheckStorage, q),
		Render: render(func(r custody.StorageReport) (int, any) {
			found := make([]storageFinding, len(r.Findings))
			for i, f := range r.Findings {
				found[i] = storageFinding{f.UploadID, f.OrgID, string(f.Status), string(f.Problem), f.Backend, f.Objects, f.Repaired}
			}
			return http.StatusOK, storageReport{r.Uploads, found, r.Omitted, r.NextAfter}
		}),
	})
	return answer{Answer: a}, err
}

func (u upkeeps) resume(ctx context.Context, x *exchange, in *resumeInput) (answer, error) {
	r := custody.Resumption{OrgID: string(in.Body.OrgID), UploadID: string(in.UploadID)}
	a, err := u.room.Resume(ctx, x.caller, r, custody.Idempotency{
		CredentialID: x.caller.CredentialID, Operation: custody.OpResumeUpload, Key: string(in.Key), RequestHash: requestHash(custody.OpResumeUpload, r),
		Render: render(func(r custody.Resumed) (int, any) {
			return http.StatusOK, uploadResumed{r.UploadID, r.PipelineID, string(r.Status), r.Sequence, string(r.Gate)}
		}),
	})
	return answer{Answer: a}, err
}
