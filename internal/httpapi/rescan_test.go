package httpapi

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

func (r *rooms) Queue(ctx context.Context, c custody.Caller, scope custody.RescanScope, k custody.Idempotency) (custody.Answer, error) {
	return r.take(ctx, c, scope, k, custody.QueuedRescans{Queued: 2, Waiting: 3, RequestedAt: time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)})
}

func (r *rooms) State(ctx context.Context, c custody.Caller, scope custody.RescanScope, since time.Time) (custody.RescanState, error) {
	_, err := r.take(ctx, c, rescansSeen{scope, since}, custody.Idempotency{}, nil)
	return custody.RescanState{Waiting: 1, Unanswered: 1, Clean: 4, Found: 2, Unreadable: 5}, err
}

type rescansSeen struct {
	scope custody.RescanScope
	since time.Time
}

func TestQueueRescans(t *testing.T) {
	b := newBench(t)
	for body, want := range map[string]custody.RescanScope{
		``: {}, `{}`: {}, `{"org_id":"org_1"}`: {OrgID: "org_1"}, `{"org_id":"org_1","upload_id":"up_1"}`: {OrgID: "org_1", UploadID: "up_1"},
	} {
		headers := []string{admin, key}
		if body != "" {
			headers = append(headers, asJ)
		}
		data := b.call("POST", rescansPath, strings.NewReader(body), headers...).succeeds(t, 202)
		if b.got != want || b.key.Key != "key-12345" || b.key.Operation != custody.OpQueueRescans || !b.caller.Admin {
			t.Errorf("%q came as %+v under %+v", body, b.got, b.key)
		}
		if data["queued"] != 2.0 || data["waiting"] != 3.0 || data["requested_at"] != "2026-11-20T09:30:00.000Z" {
			t.Errorf("data %v", data)
		}
	}
	b.call("POST", rescansPath, nil, admin).succeeds(t, 202) // the key may be left out
	for _, body := range []string{`{"org_id":""}`, `{"upload_id":"a b"}`, `{"all":true}`, `[]`} {
		b.post(rescansPath, body, admin).wants(t, 400, custody.CodeInvalidRequest)
	}
	b.err = errors.New("disk /var/lib on fire")
	b.post(rescansPath, `{}`, admin).wants(t, 500, custody.CodeInternal)
}

func TestRescanState(t *testing.T) {
	b := newBench(t)
	data := b.call("GET", rescansPath+"?org_id=org_1&upload_id=up_1&since=2026-11-20T09:30:00.5Z", nil, admin).succeeds(t, 200)
	want := rescansSeen{custody.RescanScope{OrgID: "org_1", UploadID: "up_1"}, time.Date(2026, 11, 20, 9, 30, 0, 5e8, time.UTC)}
	if b.got != want {
		t.Errorf("it came as %+v, want %+v", b.got, want)
	}
	for name, count := range map[string]float64{"waiting": 1, "unanswered": 1, "clean": 4, "found": 2, "unreadable": 5} {
		if data[name] != count {
			t.Errorf("%s is %v, want %v", name, data[name], count)
		}
	}
	b.call("GET", rescansPath, nil, admin).succeeds(t, 200)
	if b.got != (rescansSeen{}) {
		t.Errorf("without filters it came as %+v", b.got)
	}
	for _, since := range []string{"yesterday", "2026-02-30T00:00:00Z", "2026-11-20"} {
		b.call("GET", rescansPath+"?since="+since, nil, admin).wants(t, 400, custody.CodeInvalidRequest, "/query/since")
	}
}
