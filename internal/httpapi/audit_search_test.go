package httpapi

import (
	"context"
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

func (r *rooms) Search(ctx context.Context, c custody.Caller, q custody.AuditQuery) ([]custody.EvidenceLine, custody.AuditPosition, error) {
	if _, err := r.take(ctx, c, q, custody.Idempotency{}, nil); err != nil || !q.Before.At.IsZero() {
		return nil, custody.AuditPosition{}, err
	}
	at := time.Date(2026, 11, 20, 9, 30, 0, 7e6, time.UTC)
	return []custody.EvidenceLine{{Position: 7, Audit: &custody.AuditLine{ID: "aud_7", OrgID: "org_1", At: at, Action: "quota_set"}}}, custody.AuditPosition{At: at, ID: "aud_7"}, nil
}

func TestSearchAudit(t *testing.T) {
	b := newBench(t)
	data := b.call("GET", searchAuditPath, nil, admin).succeeds(t, 200)
	if b.got != (custody.AuditQuery{Limit: 20}) || !b.caller.Admin {
		t.Errorf("it came as %+v", b.got)
	}
	line := data["lines"].([]any)[0].(map[string]any)
	if line["position"] != 7.0 || line["audit"].(map[string]any)["audit_id"] != "aud_7" || line["audit"].(map[string]any)["action"] != "quota_set" {
		t.Errorf("data %v", data)
	}
	cursor, _ := data["next_cursor"].(string)
	filters := "?org_id=org_1&upload_id=up_1&credential_id=cred_1&action=quota_set&since=2026-11-20T09:00:00.0000001Z&until=2026-11-20T11:30:00.001%2B01:00&limit=100"
	data = b.call("GET", searchAuditPath+filters+"&cursor="+cursor, nil, admin).succeeds(t, 200)
	if lines, ok := data["lines"].([]any); !ok || len(lines) != 0 || data["next_cursor"] != "" {
		t.Errorf("the last page is %v", data)
	}
	got, _ := b.got.(custody.AuditQuery)
	if !got.Since.Equal(time.Date(2026, 11, 20, 9, 0, 0, 1e6, time.UTC)) || !got.Until.Equal(time.Date(2026, 11, 20, 10, 30, 0, 1e6, time.UTC)) ||
		!got.Before.At.Equal(time.Date(2026, 11, 20, 9, 30, 0, 7e6, time.UTC)) || got.Before.ID != "aud_7" {
		t.Errorf("it came as %+v", got)
	}
	got.Since, got.Until, got.Before = time.Time{}, time.Time{}, custody.AuditPosition{}
	if got != (custody.AuditQuery{OrgID: "org_1", UploadID: "up_1", CredentialID: "cred_1", Action: "quota_set", Limit: 100}) {
		t.Errorf("it came as %+v", got)
	}
	b.call("GET", searchAuditPath+"?until=0001-01-01T00:00:00Z", nil, admin).succeeds(t, 200) // before all that there is, and not left out
	if got := b.got.(custody.AuditQuery); got.Until.IsZero() || got.Until.UnixMilli() != 0 {
		t.Errorf("it came as %+v", got)
	}
	for query, at := range map[string]string{
		"?limit=0": "/query/limit", "?limit=101": "/query/limit", "?action=DROP": "/query/action", "?since=yesterday": "/query/since", "?until=2026-11-31T00:00:00Z": "/query/until",
		"?since=2026-11-20T09:30:00Z&until=2026-11-20T09:30:00Z": "/query/until", "?upload_id=a%20b": "/query/upload_id", "?credential_id=%C3%A9": "/query/credential_id", "?org_id=%01": "/query/org_id",
		"?cursor=x": "/query/cursor", "?cursor=" + base64.RawURLEncoding.EncodeToString([]byte("soon aud_7")): "/query/cursor",
		"?cursor=" + base64.RawURLEncoding.EncodeToString([]byte("7 ")): "/query/cursor", "?cursor=" + base64.RawURLEncoding.EncodeToString([]byte("7 a\x00")): "/query/cursor",
	} {
		b.call("GET", searchAuditPath+query, nil, admin).wants(t, 400, custody.CodeInvalidRequest, at)
	}
	b.err = errors.New("disk /var/lib on fire")
	b.call("GET", searchAuditPath, nil, admin).wants(t, 500, custody.CodeInternal)
}
