package httpapi

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
)

func (r *rooms) Check(ctx context.Context, c custody.Caller, q custody.StorageCheck, k custody.Idempotency) (custody.Answer, error) {
	return r.take(ctx, c, q, k, custody.StorageReport{Uploads: 2, NextAfter: "up_9", Omitted: 1, Findings: []custody.StorageFinding{
		{UploadID: "up_1", OrgID: "org_1", Status: custody.StatusReady, Problem: custody.ProblemMissingKey, Backend: custody.BackendKeys, Objects: 1, Repaired: true},
	}})
}

func (r *rooms) Resume(ctx context.Context, c custody.Caller, q custody.Resumption, k custody.Idempotency) (custody.Answer, error) {
	return r.take(ctx, c, q, k, custody.Resumed{UploadID: q.UploadID, PipelineID: "pl_1", Status: custody.StatusProcessing, Sequence: 7, Gate: custody.GateExtraction})
}

func TestCheckStorage(t *testing.T) {
	b := newBench(t)
	data := b.call("POST", checkStoragePath, strings.NewReader(`{"repair":true,"after":"up_0"}`), admin, key, asJ).succeeds(t, 200)
	if b.got != (custody.StorageCheck{After: "up_0", Repair: true}) || b.key.Operation != custody.OpCheckStorage || b.key.Key != "key-12345" || !b.caller.Admin {
		t.Errorf("it came as %+v under %+v", b.got, b.key)
	}
	finding, _ := data["findings"].([]any)[0].(map[string]any)
	for name, want := range map[string]any{"upload_id": "up_1", "org_id": "org_1", "status": "READY", "problem": "missing_key", "backend": "key_store", "objects": 1.0, "repaired": true} {
		if finding[name] != want {
			t.Errorf("%s is %v, want %v", name, finding[name], want)
		}
	}
	if data["uploads"] != 2.0 || data["omitted"] != 1.0 || data["next_after"] != "up_9" {
		t.Errorf("data %v", data)
	}
	b.call("POST", checkStoragePath, nil, admin).succeeds(t, 200) // body and key may be left out
	if b.got != (custody.StorageCheck{}) {
		t.Errorf("without a body it came as %+v", b.got)
	}
	for _, body := range []string{`{"repair":"yes"}`, `{"after":""}`, `{"all":true}`} {
		b.post(checkStoragePath, body, admin).wants(t, 400, custody.CodeInvalidRequest)
	}
	b.err = errors.New("disk /var/lib on fire")
	b.post(checkStoragePath, `{}`, admin).wants(t, 500, custody.CodeInternal)
}

func TestResume(t *testing.T) {
	b := newBench(t)
	data := b.call("POST", "/admin/uploads/up_1/resume", strings.NewReader(`{"org_id":"org_1"}`), admin, key, asJ).succeeds(t, 200)
	if b.got != (custody.Resumption{OrgID: "org_1", UploadID: "up_1"}) || b.key.Operation != custody.OpResumeUpload || b.key.Key != "key-12345" {
		t.Errorf("it came as %+v under %+v", b.got, b.key)
	}
	for name, want := range map[string]any{"upload_id": "up_1", "pipeline_id": "pl_1", "status": "PROCESSING", "sequence": 7.0, "gate": "extraction"} {
		if data[name] != want {
			t.Errorf("%s is %v, want %v", name, data[name], want)
		}
	}
	for _, body := range []string{``, `{}`, `{"org_id":"org_1","gate":"x"}`} {
		b.post("/admin/uploads/up_1/resume", body, admin).wants(t, 400, custody.CodeInvalidRequest)
	}
	b.err = custody.Errorf(custody.CodeUploadNotFailed, "the upload is READY")
	b.post("/admin/uploads/up_1/resume", `{"org_id":"org_1"}`, admin).wants(t, 409, custody.CodeUploadNotFailed)
}
