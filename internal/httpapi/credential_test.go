package httpapi

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

func TestIssue(t *testing.T) {
	b := newBench(t)
	const path = "/admin/tenant-keys/issue"
	data := b.post(path, `{"org_id":"org_1","role":"ai_reader","scope":"ai_context mcp","expires_at":"2027-05-01T12:00:00Z"}`, admin).succeeds(t, 201)
	want := map[string]any{"credential_id": "cred_9", "org_id": "org_1", "role": "ai_reader", "scope": "ai_context mcp", "expires_at": "2027-05-01T12:00:00.000Z", "token": "acc_secret"}
	if !reflect.DeepEqual(data, want) {
		t.Errorf("data %v", data)
	}
	wantReq := custody.CredentialRequest{OrgID: "org_1", Role: custody.RoleAIReader, Scopes: []custody.Scope{"ai_context", "mcp"}, ExpiresAt: time.Date(2027, 5, 1, 12, 0, 0, 0, time.UTC)}
	if !reflect.DeepEqual(b.got, wantReq) || !b.caller.Admin || b.key.CredentialID != "admin" {
		t.Errorf("the room got %+v from %+v", b.got, b.caller)
	}
	stored, err := b.key.Render(custody.Credential{ID: "cred_9"})
	if err != nil || strings.Contains(string(stored.Data), "token") {
		t.Errorf("the stored answer is %s, %v", stored.Data, err)
	}

	b.replay = true
	r := b.post(path, `{"org_id":"org_1","role":"ai_reader"}`, admin)
	if data := r.succeeds(t, 201); data["token"] != "acc_secret" || r.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("replayed: %v %v", data, r.Header)
	}
	if req := b.got.(custody.CredentialRequest); req.Scopes != nil || !req.ExpiresAt.IsZero() {
		t.Errorf("defaults belong to the room: %+v", req)
	}
	for name, c := range map[string]struct{ body, path string }{
		"no org":       {`{"role":"ai_reader"}`, "/org_id"},
		"empty org":    {`{"org_id":"","role":"ai_reader"}`, "/org_id"},
		"long org":     {`{"org_id":"` + strings.Repeat("o", 129) + `","role":"ai_reader"}`, "/org_id"},
		"control":      {`{"org_id":"a\nb","role":"ai_reader"}`, "/org_id"},
		"unknown role": {`{"org_id":"o","role":"admin"}`, "/role"},
		"empty scope":  {`{"org_id":"o","role":"ai_reader","scope":""}`, "/scope"},
		"blank scope":  {`{"org_id":"o","role":"ai_reader","scope":" "}`, "/scope"},
		"bad expiry":   {`{"org_id":"o","role":"ai_reader","expires_at":"soon"}`, "/expires_at"},
		"zero time":    {`{"org_id":"o","role":"ai_reader","expires_at":"0001-01-01T00:00:00Z"}`, "/expires_at"},
		"year 10000":   {`{"org_id":"o","role":"ai_reader","expires_at":"9999-12-31T23:59:59-00:01"}`, "/expires_at"},
		"extra":        {`{"org_id":"o","role":"ai_reader","x":1}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			b.post(path, c.body, admin).wants(t, 400, custody.CodeInvalidRequest, c.path)
		})
	}
}

func TestWithdraw(t *testing.T) {
	b := newBench(t)
	want := map[string]any{"upload_id": "up_1", "status": "WITHDRAWN", "deleted": true, "withdrawal_receipt_id": "wr_1", "quota_bytes": 7.0}
	for name, c := range map[string]struct{ body, as, reason string }{
		"no body": {"", asUp, ""}, "empty object": {"{}", asUp, ""}, "reason": {`{"reason":"mistake"}`, asUp, "mistake"}, "admin": {"{}", admin, ""},
	} {
		if data := b.post(oneUpload+"/withdraw", c.body, c.as).succeeds(t, 200); !reflect.DeepEqual(data, want) {
			t.Errorf("%s: data %v", name, data)
		}
		if b.got != any(custody.Withdrawal{OrgID: "org_1", UploadID: "up_1", Reason: c.reason}) {
			t.Errorf("%s: the room got %+v", name, b.got)
		}
	}
	b.call("POST", oneUpload+"/withdraw", nil, asUp, key).succeeds(t, 200)
	b.post(oneUpload+"/withdraw", `{"reason":"`+strings.Repeat("ü", 500)+`"}`, asUp).succeeds(t, 200)
	b.post(oneUpload+"/withdraw", `{"reason":"`+strings.Repeat("ü", 501)+`"}`, asUp).wants(t, 400, custody.CodeInvalidRequest, "/reason")
	b.post(oneUpload+"/withdraw", `{"why":"x"}`, asUp).wants(t, 400, custody.CodeInvalidRequest, "")
	b.post(oneUpload+"/withdraw", `null`, asUp).wants(t, 400, custody.CodeInvalidRequest, "")

	b.err = custody.Errorf(custody.CodeDeletionNotConfirmed, "not yet").Because(errors.New("bucket secret-bucket"))
	r := b.post(oneUpload+"/withdraw", `{}`, asUp)
	r.wants(t, 502, custody.CodeDeletionNotConfirmed)
	if strings.Contains(string(r.raw), "secret-bucket") || !strings.Contains(b.log.String(), "secret-bucket") {
		t.Errorf("the cause belongs in the log alone: %s", r.raw)
	}
}
