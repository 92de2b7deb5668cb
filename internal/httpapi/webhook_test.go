package httpapi

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

var hookOfTest = custody.Webhook{
	OrgID: "org_1", EndpointID: "whe_1", URL: "https://hooks.example/", State: custody.WebhookActive, SecretID: "key_1", PreviousSecretID: "key_0",
	OverlapUntil: time.Now().Add(time.Hour), RetryAt: time.Now().Add(-time.Hour), Pending: 3, Dead: 1,
}

type hookSeen struct {
	org, url string
	overlap  time.Duration
}

func (r *rooms) SetWebhook(ctx context.Context, c custody.Caller, org, url string, k custody.Idempotency) (custody.Answer, string, error) {
	a, err := r.take(ctx, c, hookSeen{org, url, 0}, k, custody.WebhookSet{Webhook: hookOfTest, NewSecretID: "key_1"})
	return a, "whsec_once", err
}

func (r *rooms) RotateSecret(ctx context.Context, c custody.Caller, org string, overlap time.Duration, k custody.Idempotency) (custody.Answer, string, error) {
	a, err := r.take(ctx, c, hookSeen{org, "", overlap}, k, custody.WebhookSet{Webhook: hookOfTest, NewSecretID: "key_1"})
	return a, "whsec_next", err
}

func (r *rooms) DeleteWebhook(ctx context.Context, c custody.Caller, org string, k custody.Idempotency) (custody.Answer, error) {
	return r.take(ctx, c, org, k, custody.WebhookDeleted{OrgID: org, Discarded: 2})
}

func (r *rooms) Webhooks(ctx context.Context, c custody.Caller, q custody.WebhookQuery) ([]custody.Webhook, string, error) {
	_, err := r.take(ctx, c, q, custody.Idempotency{}, nil)
	return []custody.Webhook{hookOfTest}, "org_1", err
}

func (r *rooms) Deliveries(ctx context.Context, c custody.Caller, q custody.DeliveryQuery) ([]custody.Delivery, string, error) {
	_, err := r.take(ctx, c, q, custody.Idempotency{}, nil)
	return []custody.Delivery{{
		EventID: "evt_1", UploadID: "up_1", Kind: custody.EventUploadStatusChanged, State: custody.DeliveryDead, Event: custody.Event{Sequence: 4, Status: custody.StatusReady},
		DueAt: time.Now(), EndedAt: time.Now(), Attempts: []custody.DeliveryAttempt{{At: time.Now(), Outcome: custody.DeliveryRefused, Status: 400, Latency: 41 * time.Millisecond}},
	}}, "", err
}

func (r *rooms) Replay(ctx context.Context, c custody.Caller, q custody.WebhookReplay, k custody.Idempotency) (custody.Answer, error) {
	return r.take(ctx, c, q, k, int64(17))
}

func (r *rooms) Test(ctx context.Context, c custody.Caller, org string, k custody.Idempotency) (custody.Answer, error) {
	return r.take(ctx, c, org, k, custody.WebhookTested{EventID: "evt_1", DeliveryAttempt: custody.DeliveryAttempt{At: time.Now(), Outcome: custody.DeliveryAccepted, Status: 202, Latency: 5 * time.Millisecond}})
}

const hookPath = "/admin/organizations/org_1/webhook"

func TestWebhookOperations(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		method, path, body string
		op                 custody.Operation
		got                any
		want               map[string]any
	}{
		{"PUT", hookPath, `{"url":"https://hooks.example/"}`, custody.OpSetWebhook, hookSeen{"org_1", "https://hooks.example/", 0},
			map[string]any{"secret": "whsec_once", "secret_is_new": true, "url": "https://hooks.example/", "state": "active", "secret_id": "key_1", "paused_until": nil}},
		{"POST", hookPath + "/rotate", ``, custody.OpRotateWebhookSecret, hookSeen{"org_1", "", 24 * time.Hour}, map[string]any{"secret": "whsec_next"}},
		{"POST", hookPath + "/rotate", `{"overlap_seconds":0}`, custody.OpRotateWebhookSecret, hookSeen{"org_1", "", 0}, nil},
		{"POST", hookPath + "/test", ``, custody.OpTestWebhook, "org_1", map[string]any{"event_id": "evt_1", "outcome": "accepted", "status": 202.0, "latency_ms": 5.0}},
		{"POST", hookPath + "/delete", `{}`, custody.OpDeleteWebhook, "org_1", map[string]any{"deleted": true, "discarded": 2.0}},
		{"POST", hookPath + "/replay", ``, custody.OpReplayWebhook, custody.WebhookReplay{OrgID: "org_1"}, map[string]any{"queued": 17.0}},
		{"POST", hookPath + "/replay", `{"upload_id":"up_1"}`, custody.OpReplayWebhook, custody.WebhookReplay{OrgID: "org_1", UploadID: "up_1"}, nil},
		{"POST", hookPath + "/replay", `{"event_id":"evt_1"}`, custody.OpReplayWebhook, custody.WebhookReplay{OrgID: "org_1", EventID: "evt_1"}, nil},
	} {
		data := b.change(c.method, c.path, c.body).succeeds(t, 200)
		if b.got != c.got || b.key.Operation != c.op || b.key.Key != "key-12345" || !b.caller.Admin {
			t.Errorf("%s %s %s came as %+v under %+v", c.method, c.path, c.body, b.got, b.key)
		}
		for name, want := range c.want {
			if data[name] != want {
				t.Errorf("%s: %s is %v, want %v", c.path, name, data[name], want)
			}
		}
	}
	for _, c := range [][3]string{
		{"PUT", hookPath, `{}`}, {"PUT", hookPath, `{"url":""}`}, {"PUT", hookPath, `{"url":"https://x.example/","secret":"mine"}`}, {"POST", hookPath + "/rotate", `{"overlap_seconds":-1}`},
		{"POST", hookPath + "/rotate", `{"overlap_seconds":2592001}`}, {"POST", hookPath + "/replay", `{"upload_id":"up_1","event_id":"evt_1"}`}, {"POST", hookPath + "/test", `{"url":"x"}`},
	} {
		b.change(c[0], c[1], c[2]).wants(t, 400, custody.CodeInvalidRequest)
	}
	b.err = custody.Errorf(custody.CodeWebhookNotFound, "the organization has no webhook")
	b.change("POST", hookPath+"/test", ``).wants(t, 404, custody.CodeWebhookNotFound)
	b.err = errors.New("disk /var/lib on fire")
	b.change("PUT", hookPath, `{"url":"https://hooks.example/"}`).wants(t, 500, custody.CodeInternal)
}

func TestWebhookLists(t *testing.T) {
	b := newBench(t)
	data := b.call("GET", webhooksPath+"?org_id=org_1&limit=7&cursor=org_0", nil, admin).succeeds(t, 200)
	if b.got != (custody.WebhookQuery{OrgID: "org_1", After: "org_0", Limit: 7}) || data["next_cursor"] != "org_1" {
		t.Errorf("it came as %+v: %v", b.got, data)
	}
	if w := data["webhooks"].([]any)[0].(map[string]any); w["pending"] != 3.0 || w["dead"] != 1.0 || w["secret"] != nil || w["overlap_until"] == nil {
		t.Errorf("webhook %v", w)
	}
	data = b.call("GET", hookPath+"/deliveries?state=dead&upload_id=up_1&cursor=evt_2", nil, admin).succeeds(t, 200)
	if b.got != (custody.DeliveryQuery{OrgID: "org_1", State: "dead", UploadID: "up_1", Before: "evt_2", Limit: 20}) {
		t.Errorf("it came as %+v", b.got)
	}
	d := data["deliveries"].([]any)[0].(map[string]any)
	attempt := d["attempts"].([]any)[0].(map[string]any)
	if d["sequence"] != 4.0 || d["status"] != "READY" || d["due_at"] != nil || attempt["outcome"] != "refused" || attempt["status"] != 400.0 || attempt["latency_ms"] != 41.0 {
		t.Errorf("delivery %v", d)
	}
	for _, query := range []string{"?state=lost", "?limit=0", "?limit=101", "?upload_id=a%20b"} {
		b.call("GET", hookPath+"/deliveries"+query, nil, admin).wants(t, 400, custody.CodeInvalidRequest)
	}
}

// change makes one request of the administrator with a key; without a body where there is none.
func (b *bench) change(method, path, body string) reply {
	headers := []string{admin, key}
	if body == "" {
		return b.call(method, path, nil, headers...)
	}
	return b.call(method, path, strings.NewReader(body), append(headers, asJ)...)
}
