package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/accession/accession/internal/custody"
)

// Webhooks sets where an organization's events are posted, and tells what became of them. (Section 6.)
type Webhooks interface {
	// SetWebhook and RotateSecret render a custody.WebhookSet and return a secret that was made beside the answer, on a replay too.
	SetWebhook(ctx context.Context, c custody.Caller, orgID, url string, i custody.Idempotency) (custody.Answer, string, error)
	RotateSecret(ctx context.Context, c custody.Caller, orgID string, overlap time.Duration, i custody.Idempotency) (custody.Answer, string, error)
	// DeleteWebhook renders a custody.WebhookDeleted.
	DeleteWebhook(ctx context.Context, c custody.Caller, orgID string, i custody.Idempotency) (custody.Answer, error)
	// Webhooks returns the organization to go on after; empty when there are no more.
	Webhooks(context.Context, custody.Caller, custody.WebhookQuery) (list []custody.Webhook, next string, err error)
	// Deliveries returns the event to continue before; empty when there are no more.
	Deliveries(context.Context, custody.Caller, custody.DeliveryQuery) (list []custody.Delivery, next string, err error)
	// Replay renders the number of deliveries that are queued again, an int64.
	Replay(context.Context, custody.Caller, custody.WebhookReplay, custody.Idempotency) (custody.Answer, error)
	// Test renders a custody.WebhookTested.
	Test(ctx context.Context, c custody.Caller, orgID string, i custody.Idempotency) (custody.Answer, error)
}

// webhooks is the administrator's way to an organization's webhook; it is mounted where the service delivers.
type webhooks struct{ room Webhooks }

const (
	webhooksPath = "/admin/webhooks"
	webhookPath  = "/admin/organizations/{org_id}/webhook"
)

type eventID string

func (eventID) Schema(huma.Registry) *huma.Schema { return text(1, 128, `^[!-~]+$`, "The event.") }

type setWebhookInput struct {
	OrgID orgID          `path:"org_id"`
	Key   idempotencyKey `header:"Idempotency-Key"`
	Body  struct {
		URL string   `json:"url" minLength:"1" maxLength:"2048" doc:"Absolute and https, at port 443 or one from 1024 on, without user, password or fragment. It must lead to public addresses."`
		_   struct{} `additionalProperties:"false"`
	}
}

type webhookInput struct {
	OrgID orgID          `path:"org_id"`
	Key   idempotencyKey `header:"Idempotency-Key"`
	Body  *nothing
}

type rotateSecretInput struct {
	OrgID orgID          `path:"org_id"`
	Key   idempotencyKey `header:"Idempotency-Key"`
	Body  *struct {
		Overlap *int64   `json:"overlap_seconds,omitempty" minimum:"0" maximum:"2592000" doc:"For how long deliveries carry a signature by the secret before it too; default: a day. 0 ends it at once."`
		_       struct{} `additionalProperties:"false"`
	}
}

type replayInput struct {
	OrgID orgID          `path:"org_id"`
	Key   idempotencyKey `header:"Idempotency-Key"`
	Body  *struct {
		UploadID uploadID `json:"upload_id,omitempty" doc:"Every event of this upload, whatever became of it; also those from before the webhook was set."`
		EventID  eventID  `json:"event_id,omitempty" doc:"This event alone."`
		_        struct{} `additionalProperties:"false"`
	}
}

type listWebhooksInput struct {
	OrgID  orgID `query:"org_id"`
	Limit  int   `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Cursor orgID `query:"cursor" doc:"next_cursor of the page before."`
}

type listDeliveriesInput struct {
	OrgID    orgID    `path:"org_id"`
	State    string   `query:"state" enum:"pending,delivered,dead"`
	UploadID uploadID `query:"upload_id"`
	Limit    int      `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Cursor   eventID  `query:"cursor" doc:"next_cursor of the page before, with the same filters."`
}

type webhookView struct {
	OrgID        string     `json:"org_id"`
	EndpointID   string     `json:"endpoint_id"`
	URL          string     `json:"url"`
	State        string     `json:"state" enum:"active,disabled" doc:"disabled: the receiver answered 410. Events wait until the webhook is set again."`
	SecretID     string     `json:"secret_id" doc:"Names the secret that signs; never the secret itself."`
	OverlapUntil *timestamp `json:"overlap_until,omitempty" doc:"Deliveries carry a signature by the secret before it too, until then."`
	CreatedAt    timestamp  `json:"created_at"`
	UpdatedAt    timestamp  `json:"updated_at"`
	Failures     int        `json:"failures" minimum:"0" doc:"Failed attempts in a row."`
	PausedUntil  *timestamp `json:"paused_until,omitempty" doc:"After five failed attempts in a row nothing is sent until then; then one delivery tries."`
}

type webhookSet struct {
	webhookView
	SecretIsNew bool   `json:"secret_is_new"`
	Secret      string `json:"secret,omitempty" doc:"Where one was made: whsec_ and base64, shown this once."`
}

type webhookCounts struct {
	webhookView
	Pending int64 `json:"pending" minimum:"0" doc:"Deliveries that wait or are under way."`
	Dead    int64 `json:"dead" minimum:"0" doc:"Deliveries that were given up; replay sends them again."`
}

type webhookPage struct {
	Webhooks   []webhookCounts `json:"webhooks" nullable:"false" doc:"By organization."`
	NextCursor string          `json:"next_cursor" doc:"Empty on the last page."`
}

type webhookDeleted struct {
	OrgID     string `json:"org_id"`
	Deleted   bool   `json:"deleted"`
	Discarded int64  `json:"discarded" minimum:"0" doc:"Deliveries that were still pending."`
}

type webhookReplayed struct {
	OrgID  string `json:"org_id"`
	Queued int64  `json:"queued" minimum:"0" doc:"Deliveries that are sent again, with the same event_id."`
}

type deliveryAttempt struct {
	At        timestamp `json:"at"`
	Outcome   string    `json:"outcome" enum:"accepted,duplicate,refused,gone,unexpected,timeout,no_connection,untrusted,address_refused"`
	Status    int       `json:"status,omitempty" doc:"Of the answer, if there was one."`
	LatencyMS int64     `json:"latency_ms" minimum:"0"`
}

type webhookTested struct {
	EventID string `json:"event_id"`
	deliveryAttempt
}

type deliveryView struct {
	EventID  string            `json:"event_id"`
	Event    string            `json:"event" enum:"uploadStatusChanged,contextRecalled"`
	UploadID string            `json:"upload_id"`
	Sequence int64             `json:"sequence,omitempty"`
	Status   string            `json:"status,omitempty"`
	State    string            `json:"state" enum:"pending,delivered,dead"`
	QueuedAt timestamp         `json:"queued_at" doc:"Or replayed."`
	DueAt    *timestamp        `json:"due_at,omitempty" doc:"Of a pending one: not before, and not before the upload's earlier events."`
	EndedAt  *timestamp        `json:"ended_at,omitempty"`
	Attempts []deliveryAttempt `json:"attempts" nullable:"false" doc:"Oldest first; never what was sent or answered."`
}

type deliveryPage struct {
	Deliveries []deliveryView `json:"deliveries" nullable:"false" doc:"Newest event first."`
	NextCursor string         `json:"next_cursor" doc:"Empty on the last page."`
}

func (s webhooks) mount(d *door) {
	if s.room == nil {
		return
	}
	const tag = "webhooks"
	mount(d, operation{
		id: custody.OpSetWebhook, method: http.MethodPut, path: webhookPath, tag: tag, body: bodyJSON,
		summary: "Set an organization's webhook", doc: "A new one gets a secret, shown once, and events from now on. An existing one gets the address, keeps its secret, and is active again.",
		failures: []int{409}, answers: map[int]reflect.Type{200: says[webhookSet]()},
	}, s.set)
	mount(d, operation{
		id: custody.OpListWebhooks, method: http.MethodGet, path: webhooksPath, tag: tag,
		summary: "List webhooks", answers: map[int]reflect.Type{200: says[webhookPage]()},
	}, s.list)
	mount(d, operation{
		id: custody.OpRotateWebhookSecret, method: http.MethodPost, path: webhookPath + "/rotate", tag: tag, body: bodyJSON,
		summary: "Replace a webhook's secret, with overlap", doc: "The new secret is shown once. Until the overlap ends deliveries carry two signatures.",
		failures: []int{404, 409}, answers: map[int]reflect.Type{200: says[webhookSet]()},
	}, s.rotate)
	mount(d, operation{
		id: custody.OpTestWebhook, method: http.MethodPost, path: webhookPath + "/test", tag: tag, body: bodyJSON,
		summary: "Post a signed test event", doc: "At once and once, also to a disabled webhook; the answer says what became of it.",
		failures: []int{404, 409}, answers: map[int]reflect.Type{200: says[webhookTested]()},
	}, s.test)
	mount(d, operation{
		id: custody.OpDeleteWebhook, method: http.MethodPost, path: webhookPath + "/delete", tag: tag, body: bodyJSON,
		summary: "Delete a webhook", doc: "Its secrets are destroyed; what it has not delivered and the delivery log are forgotten.",
		failures: []int{404, 409}, answers: map[int]reflect.Type{200: says[webhookDeleted]()},
	}, s.delete)
	mount(d, operation{
		id: custody.OpListWebhookDeliveries, method: http.MethodGet, path: webhookPath + "/deliveries", tag: tag,
		summary: "The delivery log", doc: "Delivered events are kept for three days, the newest 10,000 at most; dead ones for thirty days.",
		failures: []int{404}, answers: map[int]reflect.Type{200: says[deliveryPage]()},
	}, s.deliveries)
	mount(d, operation{
		id: custody.OpReplayWebhook, method: http.MethodPost, path: webhookPath + "/replay", tag: tag, body: bodyJSON,
		summary: "Deliver again", doc: "Every dead event, those of an upload, or one.",
		failures: []int{404, 409}, answers: map[int]reflect.Type{200: says[webhookReplayed]()},
	}, s.replay)
}

func (s webhooks) set(ctx context.Context, x *exchange, in *setWebhookInput) (answer, error) {
	a, secret, err := s.room.SetWebhook(ctx, x.caller, string(in.OrgID), in.Body.URL, x.webhookKey(custody.OpSetWebhook, in.Key, render(viewWebhookSet), in.OrgID, in.Body.URL))
	return withWebhookSecret(a, secret, err)
}

func (s webhooks) rotate(ctx context.Context, x *exchange, in *rotateSecretInput) (answer, error) {
	overlap := custody.DefaultOverlap
	if in.Body != nil && in.Body.Overlap != nil {
		overlap = time.Duration(*in.Body.Overlap) * time.Second
	}
	a, secret, err := s.room.RotateSecret(ctx, x.caller, string(in.OrgID), overlap, x.webhookKey(custody.OpRotateWebhookSecret, in.Key, render(viewWebhookSet), in.OrgID, overlap))
	return withWebhookSecret(a, secret, err)
}

func (s webhooks) test(ctx context.Context, x *exchange, in *webhookInput) (answer, error) {
	a, err := s.room.Test(ctx, x.caller, string(in.OrgID), x.webhookKey(custody.OpTestWebhook, in.Key, render(func(t custody.WebhookTested) (int, any) {
		return http.StatusOK, webhookTested{t.EventID, viewAttempt(t.DeliveryAttempt)}
	}), in.OrgID))
	return answer{Answer: a}, err
}

func (s webhooks) delete(ctx context.Context, x *exchange, in *webhookInput) (answer, error) {
	a, err := s.room.DeleteWebhook(ctx, x.caller, string(in.OrgID), x.webhookKey(custody.OpDeleteWebhook, in.Key, render(func(d custody.WebhookDeleted) (int, any) {
		return http.StatusOK, webhookDeleted{d.OrgID, true, d.Discarded}
	}), in.OrgID))
	return answer{Answer: a}, err
}

func (s webhooks) replay(ctx context.Context, x *exchange, in *replayInput) (answer, error) {
	q := custody.WebhookReplay{OrgID: string(in.OrgID)}
	if in.Body != nil {
		q.UploadID, q.EventID = string(in.Body.UploadID), string(in.Body.EventID)
	}
	if q.UploadID != "" && q.EventID != "" {
		return answer{}, invalid(field{"/event_id", "must be left out where upload_id is given"})
	}
	a, err := s.room.Replay(ctx, x.caller, q, x.webhookKey(custody.OpReplayWebhook, in.Key, render(func(n int64) (int, any) {
		return http.StatusOK, webhookReplayed{q.OrgID, n}
	}), q))
	return answer{Answer: a}, err
}

func (s webhooks) list(ctx context.Context, x *exchange, in *listWebhooksInput) (answer, error) {
	found, next, err := s.room.Webhooks(ctx, x.caller, custody.WebhookQuery{OrgID: string(in.OrgID), After: string(in.Cursor), Limit: in.Limit})
	if err != nil {
		return answer{}, err
	}
	page := webhookPage{Webhooks: []webhookCounts{}, NextCursor: next}
	for _, w := range found {
		page.Webhooks = append(page.Webhooks, webhookCounts{viewWebhook(w), w.Pending, w.Dead})
	}
	return respond(page)
}

func (s webhooks) deliveries(ctx context.Context, x *exchange, in *listDeliveriesInput) (answer, error) {
	found, next, err := s.room.Deliveries(ctx, x.caller, custody.DeliveryQuery{
		OrgID: string(in.OrgID), State: in.State, UploadID: string(in.UploadID), Before: string(in.Cursor), Limit: in.Limit,
	})
	if err != nil {
		return answer{}, err
	}
	page := deliveryPage{Deliveries: []deliveryView{}, NextCursor: next}
	for _, d := range found {
		v := deliveryView{
			EventID: d.EventID, Event: d.Kind, UploadID: d.UploadID, Sequence: d.Event.Sequence, Status: string(d.Event.Status), State: d.State,
			QueuedAt: timestamp{d.QueuedAt}, EndedAt: instant(d.EndedAt), Attempts: []deliveryAttempt{},
		}
		if d.State == custody.DeliveryPending {
			v.DueAt = instant(d.DueAt)
		}
		for _, a := range d.Attempts {
			v.Attempts = append(v.Attempts, viewAttempt(a))
		}
		page.Deliveries = append(page.Deliveries, v)
	}
	return respond(page)
}

// webhookKey ties a change to its Idempotency-Key.
func (x *exchange) webhookKey(op custody.Operation, key idempotencyKey, render func(any) (custody.Answer, error), request ...any) custody.Idempotency {
	return custody.Idempotency{CredentialID: x.caller.CredentialID, Operation: op, Key: string(key), RequestHash: requestHash(op, request...), Render: render}
}

// withWebhookSecret joins a secret to the answer, which is kept without it.
func withWebhookSecret(a custody.Answer, secret string, err error) (answer, error) {
	if err != nil || secret == "" {
		return answer{Answer: a}, err
	}
	var set webhookSet
	if err := json.Unmarshal(a.Data, &set); err != nil {
		return answer{}, fmt.Errorf("reading the stored answer of a webhook: %w", err)
	}
	set.Secret = secret
	a.Data, err = marshal(set)
	return answer{Answer: a}, err
}

func viewWebhookSet(w custody.WebhookSet) (int, any) {
	return http.StatusOK, webhookSet{webhookView: viewWebhook(w.Webhook), SecretIsNew: w.NewSecretID != ""}
}

func viewWebhook(w custody.Webhook) webhookView {
	v := webhookView{
		OrgID: w.OrgID, EndpointID: w.EndpointID, URL: w.URL, State: w.State, SecretID: w.SecretID,
		CreatedAt: timestamp{w.CreatedAt}, UpdatedAt: timestamp{w.UpdatedAt}, Failures: w.Failures,
	}
	now := time.Now()
	if w.PreviousSecretID != "" && now.Before(w.OverlapUntil) {
		v.OverlapUntil = instant(w.OverlapUntil)
	}
	if now.Before(w.RetryAt) {
		v.PausedUntil = instant(w.RetryAt)
	}
	return v
}

func viewAttempt(a custody.DeliveryAttempt) deliveryAttempt {
	return deliveryAttempt{At: timestamp{a.At}, Outcome: a.Outcome, Status: a.Status, LatencyMS: a.Latency.Milliseconds()}
}
