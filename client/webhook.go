package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Webhook is where an organization's events are posted.
type Webhook struct {
	OrgID        string    `json:"org_id"`
	EndpointID   string    `json:"endpoint_id"`
	URL          string    `json:"url"`
	State        string    `json:"state"` // active, or disabled: the receiver answered 410
	SecretID     string    `json:"secret_id"`
	Secret       string    `json:"secret,omitempty"` // whsec_…, shown once: by SetWebhook of a new one, and by RotateWebhookSecret
	OverlapUntil time.Time `json:"overlap_until,omitzero"`
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at"`
	Failures     int       `json:"failures"` // failed attempts in a row
	PausedUntil  time.Time `json:"paused_until,omitzero"`
	Pending      int64     `json:"pending"` // in lists only
	Dead         int64     `json:"dead"`    // in lists only
	Response     Response  `json:"-"`
}

// String leaves the secret out.
func (w Webhook) String() string {
	return "webhook of " + w.OrgID + " (" + w.State + ")"
}

// GoString leaves the secret out.
func (w Webhook) GoString() string { return w.String() }

// WebhookList is a page of webhooks, by organization.
type WebhookList struct {
	Webhooks   []Webhook `json:"webhooks"`
	NextCursor string    `json:"next_cursor"` // empty on the last page
	Response   Response  `json:"-"`
}

// DeliveryAttempt is one line of the delivery log.
type DeliveryAttempt struct {
	At        time.Time `json:"at"`
	Outcome   string    `json:"outcome"` // accepted, duplicate, refused, gone, unexpected, timeout, no_connection, untrusted, address_refused
	Status    int       `json:"status,omitempty"`
	LatencyMS int64     `json:"latency_ms"`
}

// WebhookTest is what became of a test event.
type WebhookTest struct {
	EventID string `json:"event_id"`
	DeliveryAttempt
	Response Response `json:"-"`
}

// Delivery is one event on its way to a webhook.
type Delivery struct {
	EventID  string            `json:"event_id"`
	Event    string            `json:"event"`
	UploadID string            `json:"upload_id"`
	Sequence int64             `json:"sequence,omitempty"`
	Status   string            `json:"status,omitempty"`
	State    string            `json:"state"` // pending, delivered, dead
	QueuedAt time.Time         `json:"queued_at"`
	DueAt    time.Time         `json:"due_at,omitzero"`
	EndedAt  time.Time         `json:"ended_at,omitzero"`
	Attempts []DeliveryAttempt `json:"attempts"`
}

// DeliveryList is a page of the delivery log, newest event first.
type DeliveryList struct {
	Deliveries []Delivery `json:"deliveries"`
	NextCursor string     `json:"next_cursor"` // empty on the last page
	Response   Response   `json:"-"`
}

// DeliveryQuery selects deliveries.
type DeliveryQuery struct {
	State    string // optional
	UploadID string // optional
	Limit    int    // 1 to 100; 0 means 20
	Cursor   string
}

// WebhookReplay asks for deliveries again: every dead one, those of an upload, or one event.
type WebhookReplay struct {
	UploadID string `json:"upload_id,omitempty"`
	EventID  string `json:"event_id,omitempty"`
}

// ReplayedDeliveries answers ReplayWebhook.
type ReplayedDeliveries struct {
	OrgID    string   `json:"org_id"`
	Queued   int64    `json:"queued"`
	Response Response `json:"-"`
}

// DeletedWebhook answers DeleteWebhook.
type DeletedWebhook struct {
	OrgID     string   `json:"org_id"`
	Deleted   bool     `json:"deleted"`
	Discarded int64    `json:"discarded"` // deliveries that were still pending
	Response  Response `json:"-"`
}

// SetWebhook has an organization's events posted to an address, from now on. A new webhook gets a secret, shown this once; an
// existing one keeps its own, and is active again. It needs the admin token.
func (c *Client) SetWebhook(ctx context.Context, orgID, address, idempotencyKey string) (*Webhook, error) {
	var w Webhook
	return change(ctx, c, http.MethodPut, orgID, "", map[string]string{"url": address}, idempotencyKey, &w, &w.Response)
}

// RotateWebhookSecret makes a new secret, shown this once. Deliveries carry two signatures until overlap ends, in whole seconds;
// negative: the service's default, a day. It needs the admin token. 404: no webhook.
func (c *Client) RotateWebhookSecret(ctx context.Context, orgID string, overlap time.Duration, idempotencyKey string) (*Webhook, error) {
	body := map[string]int64{}
	if overlap >= 0 {
		body["overlap_seconds"] = int64(overlap / time.Second)
	}
	var w Webhook
	return change(ctx, c, http.MethodPost, orgID, "/rotate", body, idempotencyKey, &w, &w.Response)
}

// DeleteWebhook destroys an organization's webhook, its secrets and what it has not delivered. It needs the admin token. 404: no
// webhook.
func (c *Client) DeleteWebhook(ctx context.Context, orgID, idempotencyKey string) (*DeletedWebhook, error) {
	var d DeletedWebhook
	return change(ctx, c, http.MethodPost, orgID, "/delete", struct{}{}, idempotencyKey, &d, &d.Response)
}

// TestWebhook posts a signed test event once and says what became of it. It needs the admin token. 404: no webhook.
func (c *Client) TestWebhook(ctx context.Context, orgID, idempotencyKey string) (*WebhookTest, error) {
	var t WebhookTest
	return change(ctx, c, http.MethodPost, orgID, "/test", struct{}{}, idempotencyKey, &t, &t.Response)
}

// ReplayWebhook has events delivered again, with the same event_id. It needs the admin token. 404: no webhook.
func (c *Client) ReplayWebhook(ctx context.Context, orgID string, replay WebhookReplay, idempotencyKey string) (*ReplayedDeliveries, error) {
	var r ReplayedDeliveries
	return change(ctx, c, http.MethodPost, orgID, "/replay", replay, idempotencyKey, &r, &r.Response)
}

// ListWebhooks lists webhooks, those of all organizations where orgID is empty. It needs the admin token.
func (c *Client) ListWebhooks(ctx context.Context, orgID, cursor string) (*WebhookList, error) {
	values := url.Values{"limit": {"100"}}
	for name, value := range map[string]string{"org_id": orgID, "cursor": cursor} {
		if value != "" {
			values.Set(name, value)
		}
	}
	var list WebhookList
	if _, err := c.do(ctx, call{method: http.MethodGet, path: "/admin/webhooks?" + values.Encode(), admin: true, into: &list, response: &list.Response}); err != nil {
		return nil, err
	}
	return &list, nil
}

// ListDeliveries reads an organization's delivery log. It needs the admin token. 404: no webhook.
func (c *Client) ListDeliveries(ctx context.Context, orgID string, q DeliveryQuery) (*DeliveryList, error) {
	path, err := webhookPath(orgID)
	if err != nil {
		return nil, err
	}
	values := url.Values{"limit": {strconv.Itoa(or(q.Limit, 20))}}
	for name, value := range map[string]string{"state": q.State, "upload_id": q.UploadID, "cursor": q.Cursor} {
		if value != "" {
			values.Set(name, value)
		}
	}
	var list DeliveryList
	if _, err := c.do(ctx, call{method: http.MethodGet, path: path + "/deliveries?" + values.Encode(), admin: true, into: &list, response: &list.Response}); err != nil {
		return nil, err
	}
	return &list, nil
}

func webhookPath(orgID string) (string, error) {
	if orgID == "" || orgID == "." || orgID == ".." {
		return "", errors.New("no organization: give the id the service knows")
	}
	return "/admin/organizations/" + url.PathEscape(orgID) + "/webhook", nil
}

// change makes one request about an organization's webhook.
func change[T any](ctx context.Context, c *Client, method, orgID, action string, body any, idempotencyKey string, into *T, response *Response) (*T, error) {
	path, err := webhookPath(orgID)
	if err != nil {
		return nil, err
	}
	if _, err := c.do(ctx, call{
		method: method, path: path + action, admin: true, body: body, idempotencyKey: keyOr(idempotencyKey), into: into, response: response,
	}); err != nil {
		return nil, err
	}
	return into, nil
}
