package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

func TestStatus(t *testing.T) {
	b := newBench(t)
	b.state.Gates[0].State, b.state.Gates[0].StartedAt = custody.GatePassed, time.Date(2026, 11, 20, 9, 31, 0, 5e6, time.UTC)
	b.state.Gates[0].FinishedAt, b.state.Gates[0].Detail = b.state.Gates[0].StartedAt.Add(time.Second), json.RawMessage(`{"parts":2}`)
	b.state.Failure = &custody.Failure{Gate: custody.GateMalwareScan, Code: "malware_found", Message: "the scan found malware"}
	data := b.call("GET", oneUpload, nil, asUp).succeeds(t, 200)
	for name, want := range map[string]any{
		"upload_id": "up_1", "pipeline_id": "pl_1", "status": "RECEIVING", "sequence": 3.0, "filename": "pump.pdf", "size_bytes": 100.0,
		"received_bytes": 64.0, "next_part_number": 2.0, "created_at": "2026-11-20T09:30:00.120Z", "updated_at": "2026-11-20T09:30:01.000Z",
		"expires_at": "2026-11-21T09:30:00.000Z", "evaluation_status": "not_evaluated",
		"failure": map[string]any{"gate": "malware_scan", "code": "malware_found", "message": "the scan found malware"},
	} {
		if !reflect.DeepEqual(data[name], want) {
			t.Errorf("%s is %v, want %v", name, data[name], want)
		}
	}
	gates, _ := data["gates"].([]any)
	first := map[string]any{"name": "integrity", "state": "passed", "started_at": "2026-11-20T09:31:00.005Z", "finished_at": "2026-11-20T09:31:01.005Z", "detail": map[string]any{"parts": 2.0}}
	if len(gates) != 6 || !reflect.DeepEqual(gates[0], first) {
		t.Errorf("gates %v", gates)
	}
	if b.got != any([2]string{"org_1", "up_1"}) || b.caller.CredentialID != "cred_u" {
		t.Errorf("the room got %v from %+v", b.got, b.caller)
	}
	if data := b.call("GET", oneUpload+"?include_gates=false", nil, asUp).succeeds(t, 200); data["gates"] != nil {
		t.Error("gates in spite of include_gates=false")
	}
	b.call("GET", oneUpload+"?include_gates=perhaps", nil, asUp).wants(t, 400, custody.CodeInvalidRequest, "/query/include_gates")
}

func TestStatusETag(t *testing.T) {
	b := newBench(t)
	get := func(path, tag string) reply { return b.call("GET", path, nil, asUp, "If-None-Match: "+tag) }
	tag := b.call("GET", oneUpload, nil, asUp).Header.Get("ETag")
	for _, sent := range []string{tag, `"other", ` + tag, strings.TrimPrefix(tag, "W/"), "*"} {
		r := get(oneUpload, sent)
		if r.StatusCode != 304 || len(r.raw) != 0 || r.Header.Get("ETag") != tag {
			t.Errorf("If-None-Match %s: %d %q %v", sent, r.StatusCode, r.raw, r.Header)
		}
	}
	get(oneUpload, `"other"`).succeeds(t, 200)
	get(oneUpload+"?include_gates=false", tag).succeeds(t, 200)
	b.state.NextPart++
	get(oneUpload, tag).succeeds(t, 200)
	b.state.NextPart--
	b.state.RetainedUntil = b.state.CreatedAt.Add(time.Hour) // a setting: no event
	get(oneUpload, tag).succeeds(t, 200)
	b.state.RetainedUntil = time.Time{}
	b.state.Withdrawal = &custody.Withdrawing{Attempts: 1}
	get(oneUpload, tag).succeeds(t, 200)
	b.state.Withdrawal = nil
	if r := get(oneUpload, tag); r.StatusCode != 304 {
		t.Errorf("nothing changed after all: %d", r.StatusCode)
	}
	b.state.Sequence++
	get(oneUpload, tag).succeeds(t, 200)
}

func TestStatusWaits(t *testing.T) {
	b := newBench(t)
	changed := b.state
	changed.Sequence, changed.Status = 4, custody.StatusProcessing
	var until time.Time
	b.awaited = func(ctx context.Context) (custody.UploadState, error) {
		until, _ = ctx.Deadline()
		return changed, nil
	}
	begun := time.Now()
	waits := func(d time.Duration) bool { return !until.Before(begun.Add(d)) && !until.After(time.Now().Add(d)) }
	r := b.call("GET", oneUpload, nil, asUp, "Prefer: respond-async, wait=7")
	if data := r.succeeds(t, 200); data["sequence"] != 4.0 || r.Header.Get("Preference-Applied") != "wait=7" || r.Header.Get("ETag") != etag(changed, true) {
		t.Errorf("data %v, headers %v", data, r.Header)
	}
	if b.got != any([2]int64{3, 2}) || !waits(7*time.Second) {
		t.Errorf("waited from %v for %v", b.got, until.Sub(begun))
	}
	begun = time.Now()
	b.call("GET", oneUpload, nil, asUp, "Prefer: wait=3600").succeeds(t, 200)
	if !waits(30 * time.Second) {
		t.Errorf("a wait of an hour became %v", until.Sub(begun))
	}

	b.awaited = func(context.Context) (custody.UploadState, error) { return b.state, nil } // the deadline passed
	if r := b.call("GET", oneUpload, nil, asUp, "Prefer: wait=1", "If-None-Match: "+etag(b.state, true)); r.StatusCode != 304 {
		t.Errorf("nothing changed, but the answer is %d", r.StatusCode)
	}
	b.call("GET", oneUpload, nil, asUp, "Prefer: wait=1").succeeds(t, 200)

	b.awaited = func(context.Context) (custody.UploadState, error) {
		t.Error("waited")
		return changed, nil
	}
	for _, prefer := range []string{"wait=0", "wait=-1", "wait=soon", "wait", "handling=strict"} {
		b.call("GET", oneUpload, nil, asUp, "Prefer: "+prefer).succeeds(t, 200)
	}
	b.call("GET", oneUpload, nil, asUp, "Prefer: wait=9", `If-None-Match: "stale"`).succeeds(t, 200)
	b.state.Status = custody.StatusReady
	b.call("GET", oneUpload, nil, asUp, "Prefer: wait=9").succeeds(t, 200)
}

func TestClientHangsUpWhileWaiting(t *testing.T) {
	b := newBench(t)
	entered, left := make(chan struct{}), make(chan error, 1)
	b.awaited = func(ctx context.Context) (custody.UploadState, error) {
		close(entered)
		<-ctx.Done()
		left <- ctx.Err()
		return custody.UploadState{}, ctx.Err()
	}
	ctx, hangUp := context.WithCancel(context.Background())
	defer hangUp()
	req, err := http.NewRequestWithContext(ctx, "GET", b.url+oneUpload, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", uploaderToken)
	req.Header.Set("Prefer", "wait=30")
	go func() { <-entered; hangUp() }()
	if res, err := http.DefaultClient.Do(req); err == nil {
		res.Body.Close()
		t.Fatalf("answered %d", res.StatusCode)
	}
	if err := <-left; err != context.Canceled {
		t.Errorf("the room's wait ended with %v", err)
	}
	b.stop()
	if log := b.log.String(); !strings.Contains(log, "status=499") || strings.Contains(log, "level=ERROR") {
		t.Errorf("a hang-up is no failure of ours: %s", log)
	}
}

func TestQuota(t *testing.T) {
	b := newBench(t)
	want := map[string]any{"org_id": "org_1", "allowance_bytes": 100.0, "used_bytes": 30.0, "reserved_bytes": 20.0, "available_bytes": 50.0, "upload_count": 2.0}
	if data := b.call("GET", base+"/quota", nil, asAI).succeeds(t, 200); !reflect.DeepEqual(data, want) {
		t.Errorf("data %v", data)
	}
}
