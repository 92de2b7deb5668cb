package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

func (r *rooms) Evidence(ctx context.Context, c custody.Caller, q custody.EvidenceQuery) (custody.EvidencePage, error) {
	if _, err := r.take(ctx, c, q, custody.Idempotency{}, nil); err != nil || q.OrgID == "" {
		return custody.EvidencePage{}, err
	}
	at := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	if q.Chain == custody.ChainRecords {
		return custody.EvidencePage{Lines: []custody.EvidenceLine{{Position: 1, Record: &custody.Record{ID: "rec_1", ServedAt: at}}}}, nil
	}
	return custody.EvidencePage{
		Head:  custody.ChainHead{Position: 9, Hash: "aa"},
		Lines: []custody.EvidenceLine{{Position: 7, Audit: &custody.AuditLine{ID: "aud_7", At: at, Detail: "<&>"}}}, Next: 7,
	}, nil
}

func (r *rooms) Heads(ctx context.Context, c custody.Caller, q custody.HeadsQuery) ([]custody.OrganizationHeads, string, error) {
	if _, err := r.take(ctx, c, q, custody.Idempotency{}, nil); err != nil || q.From == "zebra" {
		return nil, "", err
	}
	return []custody.OrganizationHeads{{OrgID: "org_1", Audit: custody.ChainHead{Position: 9, Hash: "aa"}}}, "zebra", nil
}

func TestEvidence(t *testing.T) {
	b := newBench(t)
	data := b.call("GET", evidencePath+"?org_id=org_1&chain=audit&after=6&limit=1", nil, admin).succeeds(t, 200)
	if want := (custody.EvidenceQuery{OrgID: "org_1", Chain: custody.ChainAudit, After: 6, Limit: 1}); b.got != want || !b.caller.Admin {
		t.Errorf("it came as %+v, want %+v", b.got, want)
	}
	said, _ := json.Marshal(data)
	const want = `{"chain":"audit","head":{"hash":"aa","position":9},"lines":[{"audit":{"action":"","at":"2026-11-20T09:30:00Z","audit_id":"aud_7","credential_id":"","detail":"\u003c\u0026\u003e","line_hash":"","org_id":"","previous_hash":"","request_id":"","status":"","trace_id":"","upload_id":""},"position":7}],"next_after":7,"org_id":"org_1"}`
	if string(said) != want {
		t.Errorf("data %s", said)
	}
	data = b.call("GET", evidencePath+"?org_id=org_1&chain=records", nil, admin).succeeds(t, 200)
	if line := data["lines"].([]any)[0].(map[string]any); line["position"] != 1.0 || line["record"].(map[string]any)["record_id"] != "rec_1" || line["audit"] != nil {
		t.Errorf("a record came as %v", line)
	}
	if want := (custody.EvidenceQuery{OrgID: "org_1", Chain: custody.ChainRecords, Limit: 100}); b.got != want {
		t.Errorf("it came as %+v, want %+v", b.got, want)
	}
	for _, house := range []string{"?chain=audit", "?chain=audit&org_id="} {
		if data := b.call("GET", evidencePath+house, nil, admin).succeeds(t, 200); len(data["lines"].([]any)) != 0 || b.got != (custody.EvidenceQuery{Chain: custody.ChainAudit, Limit: 100}) {
			t.Errorf("%s: %v of %+v", house, data, b.got)
		}
	}
	for query, at := range map[string]string{
		"": "/query/chain", "?chain=": "/query/chain", "?chain=blocks": "/query/chain", "?chain=audit&limit=0": "/query/limit", "?chain=audit&limit=1001": "/query/limit",
		"?chain=audit&after=-1": "/query/after", "?chain=audit&after=x": "/query/after",
	} {
		b.call("GET", evidencePath+query, nil, admin).wants(t, 400, custody.CodeInvalidRequest, at)
	}
	b.err = errors.New("disk /var/lib on fire")
	b.call("GET", evidencePath+"?chain=audit", nil, admin).wants(t, 500, custody.CodeInternal)
}

func TestHeads(t *testing.T) {
	b := newBench(t)
	data := b.call("GET", headsPath, nil, admin).succeeds(t, 200)
	if b.got != (custody.HeadsQuery{Limit: 1000}) || data["at"] == "" || data["heads"].([]any)[0].(map[string]any)["org_id"] != "org_1" {
		t.Errorf("%v of %+v", data, b.got)
	}
	data = b.call("GET", headsPath+"?limit=3&cursor="+data["next_cursor"].(string), nil, admin).succeeds(t, 200)
	if b.got != (custody.HeadsQuery{From: "zebra", Limit: 3}) || data["next_cursor"] != "" || len(data["heads"].([]any)) != 0 {
		t.Errorf("%v of %+v", data, b.got)
	}
	b.call("GET", headsPath+"?cursor=!", nil, admin).wants(t, 400, custody.CodeInvalidRequest, "/query/cursor")
	b.call("GET", headsPath+"?limit=0", nil, admin).wants(t, 400, custody.CodeInvalidRequest, "/query/limit")
}
