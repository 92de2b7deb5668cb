package httpapi

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

func (r *rooms) Organizations(ctx context.Context, c custody.Caller, q custody.OrganizationQuery) ([]custody.OrganizationState, string, error) {
	if _, err := r.take(ctx, c, q, custody.Idempotency{}, nil); err != nil || q.After == "zebra" {
		return nil, "", err
	}
	return []custody.OrganizationState{{
		Quota:     custody.Quota{OrgID: "org_1", AllowanceBytes: 40, UsedBytes: 30, ReservedBytes: 20, UploadCount: 2},
		CreatedAt: time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC), RetentionDays: 7, ActiveCredentials: 3,
	}}, "zebra", nil
}

func (r *rooms) Allowance(ctx context.Context, c custody.Caller, org string) (custody.Allowance, error) {
	_, err := r.take(ctx, c, org, custody.Idempotency{}, nil)
	return custody.Allowance{Quota: custody.Quota{OrgID: org, AllowanceBytes: 100, UsedBytes: 30, ReservedBytes: 20, UploadCount: 2}, DefaultBytes: 500}, err
}

func (r *rooms) SetAllowance(ctx context.Context, c custody.Caller, v custody.AllowanceChange, k custody.Idempotency) (custody.Answer, error) {
	return r.take(ctx, c, v, k, custody.Allowance{Quota: custody.Quota{OrgID: v.OrgID, AllowanceBytes: 100}, DefaultBytes: 500})
}

// wantData compares the fields of an answer's data.
func wantData(t *testing.T, data, want map[string]any) {
	t.Helper()
	for name, v := range want {
		if data[name] != v {
			t.Errorf("%s is %v, want %v", name, data[name], v)
		}
	}
	if len(data) != len(want) {
		t.Errorf("data %v, want %v", data, want)
	}
}

func TestOrganizations(t *testing.T) {
	b := newBench(t)
	data := b.call("GET", organizationsPath+"?limit=1&cursor=org_0", nil, admin).succeeds(t, 200)
	if b.got != (custody.OrganizationQuery{After: "org_0", Limit: 1}) || !b.caller.Admin || data["next_cursor"] != "zebra" {
		t.Errorf("it came as %+v: %v", b.got, data)
	}
	wantData(t, data["organizations"].([]any)[0].(map[string]any), map[string]any{
		"org_id": "org_1", "allowance_bytes": 40.0, "used_bytes": 30.0, "reserved_bytes": 20.0, "available_bytes": 0.0, "upload_count": 2.0,
		"created_at": "2026-11-20T09:30:00.000Z", "retention_days": 7.0, "active_credentials": 3.0,
	})
	b.call("GET", organizationsPath, nil, admin).succeeds(t, 200)
	if b.got != (custody.OrganizationQuery{Limit: 20}) {
		t.Errorf("it came as %+v", b.got)
	}
	data = b.call("GET", organizationsPath+"?cursor=zebra", nil, admin).succeeds(t, 200)
	if list, ok := data["organizations"].([]any); !ok || len(list) != 0 || data["next_cursor"] != "" {
		t.Errorf("the last page is %v", data)
	}
	for query, at := range map[string]string{"?limit=0": "/query/limit", "?limit=101": "/query/limit", "?limit=x": "/query/limit", "?cursor=%00": "/query/cursor"} {
		b.call("GET", organizationsPath+query, nil, admin).wants(t, 400, custody.CodeInvalidRequest, at)
	}
	b.err = errors.New("disk /var/lib on fire")
	b.call("GET", organizationsPath, nil, admin).wants(t, 500, custody.CodeInternal)
}

func TestAllowance(t *testing.T) {
	const path = "/admin/organizations/org_1/quota"
	b := newBench(t)
	wantData(t, b.call("GET", path, nil, admin).succeeds(t, 200), map[string]any{
		"org_id": "org_1", "allowance_bytes": 100.0, "used_bytes": 30.0, "reserved_bytes": 20.0, "available_bytes": 50.0, "upload_count": 2.0, "default_allowance_bytes": 500.0,
	})
	for body, want := range map[string]int64{`{"allowance_bytes":100}`: 100, `{"allowance_bytes":0}`: 0, `{"allowance_bytes":9007199254740991}`: custody.MaxAllowanceBytes, `{"allowance_bytes":null}`: -1} {
		data := b.call("PUT", path, strings.NewReader(body), admin, key, asJ).succeeds(t, 200)
		got, ok := b.got.(custody.AllowanceChange)
		if !ok || got.OrgID != "org_1" || (want < 0) != (got.Bytes == nil) || want >= 0 && *got.Bytes != want || b.key.Operation != custody.OpSetAllowance || b.key.Key != "key-12345" {
			t.Errorf("%s came as %+v under %+v", body, b.got, b.key)
		}
		if data["allowance_bytes"] != 100.0 || data["default_allowance_bytes"] != 500.0 {
			t.Errorf("data %v", data)
		}
	}
	for _, body := range []string{``, `{}`, `{"allowance_bytes":-1}`, `{"allowance_bytes":9007199254740992}`, `{"allowance_bytes":1.5}`, `{"allowance_bytes":"1"}`, `{"allowance_bytes":1,"used_bytes":0}`} {
		b.call("PUT", path, strings.NewReader(body), admin, key, asJ).wants(t, 400, custody.CodeInvalidRequest)
	}
	b.err = custody.OrganizationNotFound()
	b.call("GET", path, nil, admin).wants(t, 404, custody.CodeOrganizationNotFound)
	b.call("PUT", path, strings.NewReader(`{"allowance_bytes":1}`), admin, key, asJ).wants(t, 404, custody.CodeOrganizationNotFound)
}
