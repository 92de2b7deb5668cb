package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

func TestContext(t *testing.T) {
	b := newBench(t)
	r := b.call("GET", base+"/ai-context/up_1", nil, "Authorization: bearer "+readerToken)
	data := r.succeeds(t, 200)
	if data["upload_id"] != "up_1" || data["org_id"] != "org_1" || data["visibility"] != "ai_readable_controlled" || data["record_id"] != "rec_1" {
		t.Errorf("data %v", data)
	}
	if !strings.Contains(string(r.raw), `"context":{"boundary_label":"customer-submitted, unverified","summary":"a < b \u003e c"}}`) {
		t.Errorf("the context did not go out byte for byte: %s", r.raw)
	}
	if b.got != any("rest") || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("surface %v, headers %v", b.got, r.Header)
	}
}

func TestRecords(t *testing.T) {
	b := newBench(t)
	records := base + "/request-records"
	data := b.call("GET", records, nil, asAI).succeeds(t, 200)
	if got, ok := data["records"].([]any); !ok || len(got) != 0 || data["next_cursor"] != "" || data["schema_disclaimer"] == "" {
		t.Errorf("empty list: %v", data)
	}
	if want := (custody.RecordQuery{OrgID: "org_1", Limit: 20}); b.got != any(want) {
		t.Errorf("the room got %+v", b.got)
	}

	b.records, b.next = []custody.Record{{ID: "rec_1", ServedAt: time.Date(2026, 11, 20, 9, 0, 0, 5e6, time.UTC)},
		{ID: "rec_0", RecalledAt: time.Date(2026, 11, 20, 9, 1, 0, 0, time.UTC)}}, 41
	filters := "?request_id=req_1&upload_id=up_1&limit=1"
	data = b.call("GET", records+filters, nil, asAI).succeeds(t, 200)
	next, _ := data["next_cursor"].(string)
	if record := data["records"].([]any)[0].(map[string]any); record["record_id"] != "rec_1" || record["served_at"] != "2026-11-20T09:00:00.005Z" {
		t.Errorf("record %v", record)
	} else if _, said := record["recalled_at"]; said {
		t.Errorf("a record that nobody recalled: %v", record)
	}
	if record := data["records"].([]any)[1].(map[string]any); record["recalled_at"] != "2026-11-20T09:01:00.000Z" {
		t.Errorf("a recalled record: %v", record)
	}
	b.call("GET", records+filters+"&cursor="+next, nil, asAI).succeeds(t, 200)
	if want := (custody.RecordQuery{OrgID: "org_1", RequestID: "req_1", UploadID: "up_1", Limit: 1, Before: 41}); b.got != any(want) {
		t.Errorf("the room got %+v", b.got)
	}
	for _, c := range []struct{ query, path string }{
		{"?limit=0", "/query/limit"}, {"?limit=101", "/query/limit"}, {"?limit=x", "/query/limit"},
		{"?cursor=" + next, "/query/cursor"}, {"?cursor=x", "/query/cursor"}, {"?cursor=e30", "/query/cursor"},
		{"?upload_id=" + strings.Repeat("u", 129), "/query/upload_id"}, {"?request_id=a%00", "/query/request_id"},
		{"?request_id=%zz", "/query"}, {"?request_id=%ff", "/query"}, {"?limit=1&limit=2", "/query"},
	} {
		b.call("GET", records+c.query, nil, asAI).wants(t, 400, custody.CodeInvalidRequest, c.path)
	}
}

func TestCanary(t *testing.T) {
	b := newBench(t)
	const at = "/admin/canaries/accession-canary-rec_1"
	data := b.call("GET", at, nil, admin).succeeds(t, 200)
	if data["record_id"] != "rec_1" || data["org_id"] != "org_1" || b.got != any("accession-canary-rec_1") || !b.caller.Admin {
		t.Errorf("data %v, the room got %v of %+v", data, b.got, b.caller)
	}
	b.err = custody.Errorf(custody.CodeCanaryNotFound, "no serving carries this canary")
	b.call("GET", at, nil, admin).wants(t, 404, custody.CodeCanaryNotFound, "")
	b.call("GET", "/admin/canaries/"+strings.Repeat("c", 129), nil, admin).wants(t, 400, custody.CodeInvalidRequest, "/path/canary")
	b.call("GET", at, nil).wants(t, 401, custody.CodeAuthenticationRequired, "")
}
