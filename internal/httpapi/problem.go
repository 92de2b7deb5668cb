package httpapi

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/accession/accession/internal/custody"
)

// problem is the error object of section 2.2. This file is the one place that turns internal errors into what a client
// sees; causes go to the log alone.
type problem struct {
	status     int
	retryAfter time.Duration

	Code      errorCode    `json:"code"`
	Message   string       `json:"message" doc:"For a person; may change."`
	RequestID string       `json:"request_id"`
	TraceID   string       `json:"trace_id"`
	Details   errorDetails `json:"details,omitempty"`
}

func (p *problem) Error() string  { return string(p.Code) }
func (p *problem) GetStatus() int { return p.status }

var errInternal = custody.Errorf(custody.CodeInternal, "the service failed; repeat the request, and quote the request_id if it stays so")

// leastRetry is the Retry-After of codes that always carry one.
var leastRetry = map[custody.Code]time.Duration{
	custody.CodeIdempotencyInProgress: time.Second,
	custody.CodeUnavailable:           5 * time.Second,
}

func newProblem(x *exchange, e *custody.Error) *problem {
	x.code = e.Code
	return &problem{
		status: e.Code.HTTPStatus(), retryAfter: max(e.RetryAfter, leastRetry[e.Code]),
		Code: errorCode(e.Code), Message: e.Message, RequestID: x.requestID, TraceID: x.traceID, Details: e.Details,
	}
}

// fail answers err. A *custody.Error is what a client may see; anything else is internal_error. A client that went away
// gets nothing: its connection is cut, so that no half answer can pass for a whole one.
func (d *door) fail(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r.Context())
	if gone(r.Context(), err) {
		panic(http.ErrAbortHandler)
	}
	var e *custody.Error
	if !errors.As(err, &e) {
		e = errInternal.Because(err)
	}
	p := newProblem(x, e)
	if p.status >= 500 {
		d.cfg.Log.ErrorContext(r.Context(), "request failed", "request_id", x.requestID, "trace_id", x.traceID,
			"route", x.route, "code", string(e.Code), "error", err)
	}
	writeProblem(w, p)
}

func writeProblem(w http.ResponseWriter, p *problem) {
	h := w.Header()
	if p.retryAfter > 0 {
		h.Set("Retry-After", retrySeconds(p.retryAfter))
	}
	switch custody.Code(p.Code) {
	case custody.CodeAuthenticationRequired:
		h.Set("WWW-Authenticate", `Bearer realm="accession"`)
	case custody.CodeCredentialInvalid, custody.CodeCredentialNotBound:
		h.Set("WWW-Authenticate", `Bearer realm="accession", error="invalid_token"`)
	case custody.CodeRequestTimeout:
		h.Set("Connection", "close")
	}
	b, err := json.Marshal(p)
	if err != nil { // details that are no JSON
		p.Details = nil
		b, _ = json.Marshal(p)
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(p.status)
	_, _ = w.Write(b) // nobody left to tell
}

// retrySeconds is d in whole seconds, rounded up, at least 1. (Section 8.)
func retrySeconds(d time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(d.Seconds()))))
}

// huma asks package variables for its errors; there is one shape, so every API of the process shares it.
func init() {
	huma.NewErrorWithContext = refusal
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return refusal(nil, status, msg, errs...)
	}
	huma.ValidateStrictCasing = true
}

// refusal is what huma found wrong before an operation ran: the body's size or pace, or a field.
func refusal(ctx huma.Context, status int, _ string, errs ...error) huma.StatusError {
	if ctx == nil { // only the document asks
		return &problem{}
	}
	var e *custody.Error
	switch status {
	case http.StatusRequestEntityTooLarge:
		e = bodyTooLarge(ctx.Operation().MaxBodyBytes - 1)
	case http.StatusRequestTimeout:
		e = custody.Errorf(custody.CodeRequestTimeout, "the body did not arrive in time")
		ctx.SetHeader("Connection", "close")
	case http.StatusInternalServerError: // the body could not be read; no handler reports errors this way
		e = invalid(field{"", "the body could not be read to its end"})
	default:
		if len(errs) == 0 { // where a body is needed, and there is none
			e = invalid(field{"", "is required"})
		} else if !errors.As(errors.Join(errs...), &e) { // a check of ours that says more than which fields are wrong
			e = invalid(fieldsOf(errs)...)
		}
	}
	return newProblem(exchangeOf(ctx.Context()), e)
}

func bodyTooLarge(limit int64) *custody.Error {
	return custody.Errorf(custody.CodeBodyTooLarge, "the body is larger than %d bytes", limit).With("limit_bytes", limit)
}

// errorCode is a custody.Code, published as the enum of the catalogue.
type errorCode string

func (errorCode) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Description: "For programs. What each means stands with the responses that carry it."}
	for _, c := range custody.Codes {
		s.Enum = append(s.Enum, string(c.Code))
	}
	return s
}

// errorDetails is free-form; details.fields names the fields to change.
type errorDetails map[string]any

func (errorDetails) Schema(huma.Registry) *huma.Schema {
	text := func(doc string) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Description: doc} }
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, Properties: map[string]*huma.Schema{
		"fields": {Type: huma.TypeArray, Items: &huma.Schema{
			Type: huma.TypeObject, Required: []string{"path", "reason"}, AdditionalProperties: true,
			Properties: map[string]*huma.Schema{
				"path":   text("JSON Pointer into the body; parameters as /path/…, /query/… or /header/…"),
				"reason": text("What to change."),
			},
		}},
	}}
}
