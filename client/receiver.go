package client

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxEventBytes bounds an event; the largest, a recall, names contexts and credentials.
const maxEventBytes = 1 << 20

// What a webhook posts beside changes of status.
const (
	EventContextRecalled = "contextRecalled"
	EventWebhookTest     = "webhookTest"
)

// StatusChanged is one change of an upload's status (contract, section 6).
type StatusChanged struct {
	EventID    string    `json:"event_id"`
	UploadID   string    `json:"upload_id"`
	Sequence   int64     `json:"sequence"`
	Status     string    `json:"status"`
	OccurredAt time.Time `json:"occurred_at"`
	PipelineID string    `json:"pipeline_id,omitempty"`
	Stage      string    `json:"stage,omitempty"`
	RequestID  string    `json:"request_id,omitempty"`
	TraceID    string    `json:"trace_id,omitempty"`
	// Recovered is set where events before this one never came: the status as it stands now, which stands for all of them up to
	// Sequence. EventID and Status are then the status operation's, not an event's; EventID is empty.
	Recovered *UploadStatus `json:"-"`
}

// ContextRecalled says that a context which was served must no longer be used: drop what you hold of it.
type ContextRecalled struct {
	Event          string    `json:"event"`
	EventID        string    `json:"event_id"`
	UploadID       string    `json:"upload_id"`
	OrgID          string    `json:"org_id"`
	Reason         string    `json:"reason"` // withdrawn, rejected
	RecalledAt     time.Time `json:"recalled_at"`
	Servings       int64     `json:"servings"`
	ContextSHA256s []string  `json:"context_sha256s"`
	CredentialIDs  []string  `json:"credential_ids"`
	RequestID      string    `json:"request_id,omitempty"`
	TraceID        string    `json:"trace_id,omitempty"`
}

// Receiver takes an organization's events: it verifies signature and time, passes each event on once, those of an upload in the
// order of their sequence, and recovers what is missing from the status operation. It answers 202, 400 for what is not from the
// service, 409 for what it had before, and 503 where it could not take the event, so that it comes again.
//
// An event is noted once its function returned nil: after a crash in between, the same event is passed on again. Events of one
// upload are never passed on at the same time in one process; with several, Store must keep them apart.
type Receiver struct {
	// Secrets as whsec_…; two while the secret rotates. None refuses everything.
	Secrets []string
	// Status is told of every change; an error answers 503. nil: nobody is told.
	Status func(context.Context, StatusChanged) error
	// Recall is told of every recall; an error answers 503. nil: nobody is told.
	Recall func(context.Context, ContextRecalled) error
	// Client and Org recover gaps, with a credential that has metadata_read. Without them events that never came are passed over.
	Client *Client
	Org    string
	// Store remembers what was taken; nil: memory, which ends with the process.
	Store ReceiverStore
	// Tolerance of the sender's clock; 0 means 5 minutes.
	Tolerance time.Duration
	// Failed hears why an event was not taken; nil: nobody. It never holds a secret.
	Failed func(error)

	once   sync.Once
	memory ReceiverStore
	mu     sync.Mutex
	busy   map[string]*turn
}

// ReceiverStore remembers what a Receiver took. Its methods are called for one upload at a time.
type ReceiverStore interface {
	// Seen tells whether an event was noted.
	Seen(ctx context.Context, eventID string) (bool, error)
	// Sequence is the highest noted of an upload; 0 where there is none.
	Sequence(ctx context.Context, uploadID string) (int64, error)
	// Note keeps both durably; an event without a sequence has 0, a recovered status no event.
	Note(ctx context.Context, eventID, uploadID string, sequence int64) error
}

// ErrSignature says that a request is not from the service, or not from now.
var ErrSignature = errors.New("signature is not valid")

type turn struct {
	sync.Mutex
	waiting int
}

// ServeHTTP takes one event.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.once.Do(func() {
		r.busy = map[string]*turn{}
		if r.memory = r.Store; r.memory == nil {
			r.memory = NewReceiverMemory()
		}
	})
	status, err := r.take(w, request)
	if err != nil && r.Failed != nil {
		r.Failed(err)
	}
	w.WriteHeader(status)
}

func (r *Receiver) take(w http.ResponseWriter, request *http.Request) (status int, err error) {
	if request.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxEventBytes))
	if err != nil {
		return http.StatusBadRequest, fmt.Errorf("read event: %w", err)
	}
	if err := VerifyWebhook(r.Secrets, request.Header, body, time.Now(), r.Tolerance); err != nil {
		return http.StatusBadRequest, err
	}
	var about struct {
		Event    string `json:"event"`
		EventID  string `json:"event_id"`
		UploadID string `json:"upload_id"`
	}
	if err := json.Unmarshal(body, &about); err != nil || about.EventID == "" || about.EventID != request.Header.Get("webhook-id") {
		return http.StatusBadRequest, errors.New("the event has no event_id, or another than its webhook-id")
	}
	defer r.await(about.UploadID)()
	ctx := request.Context()
	if seen, err := r.memory.Seen(ctx, about.EventID); err != nil || seen {
		if seen {
			return http.StatusConflict, nil
		}
		return http.StatusServiceUnavailable, fmt.Errorf("receiver's store: %w", err)
	}
	switch about.Event {
	case "":
		var e StatusChanged
		if err := json.Unmarshal(body, &e); err != nil || e.UploadID == "" || e.Sequence < 1 || e.Status == "" {
			return http.StatusBadRequest, errors.New("the event is no change of status")
		}
		return r.status(ctx, e)
	case EventContextRecalled:
		var e ContextRecalled
		if err := json.Unmarshal(body, &e); err != nil || e.UploadID == "" {
			return http.StatusBadRequest, errors.New("the event is no recall")
		}
		if r.Recall != nil {
			if err := r.Recall(ctx, e); err != nil {
				return http.StatusServiceUnavailable, fmt.Errorf("recall: %w", err)
			}
		}
	}
	// A test, or a kind of event that this version does not know: nothing to do.
	return r.note(ctx, about.EventID, about.UploadID, 0)
}

func (r *Receiver) status(ctx context.Context, e StatusChanged) (int, error) {
	last, err := r.memory.Sequence(ctx, e.UploadID)
	if err != nil {
		return http.StatusServiceUnavailable, fmt.Errorf("receiver's store: %w", err)
	}
	if e.Sequence <= last {
		return http.StatusConflict, nil
	}
	if r.Status == nil {
		return r.note(ctx, e.EventID, e.UploadID, e.Sequence)
	}
	if e.Sequence > last+1 && r.Client != nil {
		recovered, err := r.Client.UploadStatus(ctx, r.Org, e.UploadID, StatusOptions{})
		if err != nil {
			return http.StatusServiceUnavailable, fmt.Errorf("recover the events before %d: %w", e.Sequence, err)
		}
		if recovered.Sequence >= e.Sequence { // it says more than this event does
			now := StatusChanged{
				UploadID: e.UploadID, Sequence: recovered.Sequence, Status: recovered.Status, OccurredAt: recovered.UpdatedAt, PipelineID: recovered.PipelineID,
				RequestID: recovered.Response.RequestID, TraceID: recovered.Response.TraceID, Recovered: recovered,
			}
			if err := r.Status(ctx, now); err != nil {
				return http.StatusServiceUnavailable, fmt.Errorf("recovered status: %w", err)
			}
			return r.note(ctx, e.EventID, e.UploadID, recovered.Sequence)
		}
	}
	if err := r.Status(ctx, e); err != nil {
		return http.StatusServiceUnavailable, fmt.Errorf("change of status: %w", err)
	}
	return r.note(ctx, e.EventID, e.UploadID, e.Sequence)
}

func (r *Receiver) note(ctx context.Context, eventID, uploadID string, sequence int64) (int, error) {
	if err := r.memory.Note(ctx, eventID, uploadID, sequence); err != nil {
		return http.StatusServiceUnavailable, fmt.Errorf("receiver's store: %w", err)
	}
	return http.StatusAccepted, nil
}

// await takes an upload's turn and returns what ends it.
func (r *Receiver) await(uploadID string) func() {
	r.mu.Lock()
	t := r.busy[uploadID]
	if t == nil {
		t = &turn{}
		r.busy[uploadID] = t
	}
	t.waiting++
	r.mu.Unlock()
	t.Lock()
	return func() {
		t.Unlock()
		r.mu.Lock()
		defer r.mu.Unlock()
		if t.waiting--; t.waiting == 0 {
			delete(r.busy, uploadID)
		}
	}
}

// VerifyWebhook checks a delivery's signature by any of the secrets (whsec_…), and that it was sent within tolerance of now; 0
// means 5 minutes. Errors: ErrSignature; a secret that is none. (Standard Webhooks 1.0.)
func VerifyWebhook(secrets []string, header http.Header, body []byte, now time.Time, tolerance time.Duration) error {
	id, at := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || id == "" {
		return fmt.Errorf("%w: a header is missing", ErrSignature)
	}
	if off := now.Sub(time.Unix(seconds, 0)); off.Abs() > or(tolerance, 5*time.Minute) {
		return fmt.Errorf("%w: it is too old, or from the future", ErrSignature)
	}
	good := false
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) < 24 { // an empty key would sign for anybody
			return errors.New("a webhook secret is not whsec_ and base64")
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.", id, at)
		mac.Write(body)
		want := mac.Sum(nil)
		for signature := range strings.FieldsSeq(header.Get("webhook-signature")) {
			text, versioned := strings.CutPrefix(signature, "v1,")
			sent, err := base64.StdEncoding.DecodeString(text)
			good = good || versioned && err == nil && hmac.Equal(sent, want)
		}
	}
	if !good {
		return ErrSignature
	}
	return nil
}
