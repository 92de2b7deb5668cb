package custody

import (
	"encoding/json"
	"time"
)

// MaxWebhookURLBytes bounds a callback address.
const MaxWebhookURLBytes = 2048

// PurposeWebhook begins the purpose of a webhook's secrets in the key store; its endpoint's id follows.
const PurposeWebhook = "webhook:"

// States of a webhook.
const (
	WebhookActive   = "active"
	WebhookDisabled = "disabled" // the receiver answered 410; events wait until the webhook is set again
)

// Kinds of events that are posted. (Section 6; contract decisions, "Webhooks".)
const (
	EventUploadStatusChanged = "uploadStatusChanged"
	EventContextRecalled     = "contextRecalled"
	EventWebhookTest         = "webhookTest"
)

// Reasons of a recall.
const (
	RecallWithdrawn = "withdrawn" // the upload is being deleted
	RecallRejected  = "rejected"  // a re-scan refused it
)

// Webhook is where an organization wants its events posted. Its secrets are not in it, only their names.
type Webhook struct {
	OrgID            string
	EndpointID       string
	URL              string
	State            string
	SecretID         string
	PreviousSecretID string
	OverlapUntil     time.Time // the previous secret signs too until then
	CreatedAt        time.Time
	UpdatedAt        time.Time
	Failures         int       // failed attempts in a row
	RetryAt          time.Time // no attempt before
	Pending, Dead    int64     // deliveries; filled where webhooks are listed
}

// WebhookQuery selects webhooks by ascending organization id.
type WebhookQuery struct {
	OrgID string // optional
	After string // organization to go on after
	Limit int    // 1 to 100
}

// WebhookSet answers the setting of a webhook or the rotation of its secret. NewSecretID names the secret that was made for
// it; empty where none was.
type WebhookSet struct {
	Webhook
	NewSecretID string
}

// WebhookDeleted answers a deletion.
type WebhookDeleted struct {
	OrgID     string
	Discarded int64 // deliveries that were still pending
}

// WebhookTested is what became of a test event.
type WebhookTested struct {
	EventID string
	DeliveryAttempt
}

// WebhookReplay asks for deliveries again: every dead one, those of an upload whatever became of them, or one event.
type WebhookReplay struct {
	OrgID    string
	UploadID string // optional
	EventID  string // optional
}

// States of a delivery.
const (
	DeliveryPending   = "pending"
	DeliveryDelivered = "delivered"
	DeliveryDead      = "dead" // given up; may be replayed
)

// Outcomes of an attempt to deliver.
const (
	DeliveryAccepted       = "accepted"        // 2xx
	DeliveryDuplicate      = "duplicate"       // 409: it was delivered before
	DeliveryRefused        = "refused"         // 400
	DeliveryGone           = "gone"            // 410
	DeliveryUnexpected     = "unexpected"      // any other status
	DeliveryTimeout        = "timeout"         // no answer in time
	DeliveryNoConnection   = "no_connection"   // none could be made, or it broke
	DeliveryUntrusted      = "untrusted"       // the receiver's certificate
	DeliveryAddressRefused = "address_refused" // the address is not public, and the operator does not allow others
)

// Delivery is one event on its way to its organization's webhook.
type Delivery struct {
	EventID  string
	OrgID    string
	UploadID string
	Kind     string
	Payload  json.RawMessage // of a recall
	Event    Event           // of a change of status
	State    string
	QueuedAt time.Time // or replayed
	DueAt    time.Time // of a pending one
	EndedAt  time.Time // zero while pending
	Lease    string    // names the hold
	Attempt  int       // since QueuedAt, from 1 once it was tried
	Attempts []DeliveryAttempt
}

// LongestPause is how long a webhook that fails again and again is left alone at most, its circuit open.
const LongestPause = 10 * time.Minute

// DeliveryAttempt is one line of the delivery log.
type DeliveryAttempt struct {
	At      time.Time
	Outcome string
	Status  int // of the answer; 0 where there was none
	Latency time.Duration
}

// DeliveryResult is what an attempt changes: the delivery goes to State, due again after Delay where it stays pending.
type DeliveryResult struct {
	DeliveryAttempt
	State   string
	Delay   time.Duration
	Failed  bool                             // counts against the endpoint; otherwise its circuit closes
	Pause   func(failures int) time.Duration // how long the circuit stays open after that many failures in a row
	Disable bool                             // the webhook, until it is set again
}

// DeliveryQuery selects deliveries, newest event first.
type DeliveryQuery struct {
	OrgID    string
	State    string // optional
	UploadID string // optional
	Before   string // event id to continue before
	Limit    int    // 1 to 100
}

// ContextRecall tells an organization that a context which was served must no longer be used.
type ContextRecall struct {
	Event          string    `json:"event"` // EventContextRecalled
	EventID        string    `json:"event_id"`
	UploadID       string    `json:"upload_id"`
	OrgID          string    `json:"org_id"`
	Reason         string    `json:"reason"`
	RecalledAt     time.Time `json:"recalled_at"`
	Servings       int64     `json:"servings"`
	ContextSHA256s []string  `json:"context_sha256s"` // of everything served
	CredentialIDs  []string  `json:"credential_ids"`  // that were served
	RequestID      string    `json:"request_id,omitempty"`
	TraceID        string    `json:"trace_id,omitempty"`
}
