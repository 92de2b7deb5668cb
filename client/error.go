package client

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

var (
	// ErrNotModified is returned by UploadStatus when nothing changed since the ETag that was sent.
	ErrNotModified = errors.New("not modified")
	// ErrNoCredential is returned before anything is sent: the operation needs a token that the client was not given.
	ErrNoCredential = errors.New("no credential: the operation needs WithToken or, for admins, WithAdminToken")
	// ErrFileChanged is returned by Uploader when the file is no longer the one whose first parts were accepted.
	ErrFileChanged = errors.New("the file changed since its upload began")
)

// Error is a refusal by the service (contract 2.2). Code is stable, Message is for people. Code is empty where the
// answer did not come from the service itself, a proxy's 502 for example.
type Error struct {
	Status    int
	Code      string
	Message   string
	RequestID string
	TraceID   string
	// Details is free-form: "fields" for a 400, the quota's figures for quota_exceeded.
	Details map[string]any
	// RetryAfter is how long the service asks to wait; zero where it did not say.
	RetryAfter time.Duration

	renewed bool // the access token that it refused was dropped
}

// Error gives the message, code, status and request id; never the credential nor what was sent.
func (e *Error) Error() string {
	text := e.Message
	if text == "" {
		text = "the service answered " + strconv.Itoa(e.Status) + " " + http.StatusText(e.Status)
	}
	about := "HTTP " + strconv.Itoa(e.Status)
	if e.Code != "" {
		about = e.Code + ", " + about
	}
	if e.RequestID != "" {
		about += ", request_id " + e.RequestID
	}
	return text + " (" + about + ")"
}

// FieldError is one entry of details.fields (contract: Errors).
type FieldError struct {
	Path   string // JSON Pointer
	Reason string
}

// Fields returns what the service said about single fields; nil where it said nothing.
func (e *Error) Fields() []FieldError {
	list, _ := e.Details["fields"].([]any)
	var fields []FieldError
	for _, entry := range list {
		object, _ := entry.(map[string]any)
		path, _ := object["path"].(string)
		reason, _ := object["reason"].(string)
		if path != "" || reason != "" {
			fields = append(fields, FieldError{Path: path, Reason: reason})
		}
	}
	return fields
}

// Retryable says whether the same request, with the same Idempotency-Key, may succeed later: a dropped connection, 408,
// 429, most 5xx, and 409 idempotency_in_progress. A refusal (other 4xx), an untrusted certificate and a cancelled
// context are final.
func Retryable(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrFileChanged) {
		return false
	}
	var refusal *Error
	if errors.As(err, &refusal) {
		switch refusal.Status {
		case http.StatusRequestTimeout, http.StatusTooManyRequests:
			return true
		case http.StatusConflict:
			return refusal.Code == "idempotency_in_progress"
		case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
			return false
		}
		return refusal.Status >= 500 || refusal.renewed
	}
	var network *NetworkError
	if !errors.As(err, &network) {
		return false
	}
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return !errors.As(err, &certificate) && !errors.As(err, &record) && !errors.Is(err, http.ErrSchemeMismatch)
}

// NetworkError means that no whole answer came: the request may or may not have been carried out.
type NetworkError struct {
	Host string
	Err  error
}

func (e *NetworkError) Error() string { return fmt.Sprintf("no answer from %s: %v", e.Host, e.Err) }

// Unwrap returns the cause.
func (e *NetworkError) Unwrap() error { return e.Err }

var errStalled = errors.New("the connection stalled")

func newNetworkError(ctx context.Context, host string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if !errors.Is(cause, errStalled) {
			return cause
		}
		err = cause
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // its text repeats the whole address
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		err = fmt.Errorf("%w", dial.Err)
	}
	return &NetworkError{Host: host, Err: err}
}

func newError(answer *http.Response, body []byte) *Error {
	refusal := &Error{Status: answer.StatusCode, RetryAfter: retryAfter(answer.Header)}
	var object struct {
		Code      string         `json:"code"`
		Message   string         `json:"message"`
		OAuthCode string         `json:"error"` // of the token endpoint (RFC 6749, section 5.2)
		OAuthText string         `json:"error_description"`
		RequestID string         `json:"request_id"`
		TraceID   string         `json:"trace_id"`
		Details   map[string]any `json:"details"`
	}
	if json.Unmarshal(body, &object) == nil {
		refusal.Code, refusal.Message = or(object.Code, object.OAuthCode), or(object.Message, object.OAuthText)
		refusal.RequestID, refusal.TraceID, refusal.Details = object.RequestID, object.TraceID, object.Details
	}
	return refusal
}

// retryAfter reads Retry-After in either of its forms, a day at most; zero where there is none.
func retryAfter(header http.Header) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return time.Duration(min(seconds, int(longestRetryAfter/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(0, time.Until(at)), longestRetryAfter)
	}
	return 0
}

const longestRetryAfter = 24 * time.Hour
