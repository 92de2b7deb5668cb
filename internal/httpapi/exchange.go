package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/accession/accession/internal/custody"
)

// exchange is one request and its answer, from first byte to log line.
type exchange struct {
	requestID   string
	traceID     string
	traceparent string // what the answer carries: the trace, and this request in it
	caller      custody.Caller
	orgID       string // of the path
	route       string // pattern, never the raw path
	operation   string // operationId; empty where no operation was reached
	address     string // whom the request counts against before it is known who asks
	code        custody.Code
	control     *http.ResponseController
	answer      *recorder
	received    *counted  // the body; nil where there is none
	body        *partBody // of a part
	digest      string    // of a part's Content-Digest
	cookie      string    // of the session, where the operation is about it
	leave       func()    // gives the slot back; nil where it has none
	turns       giver     // of the turn that it has; nil where it has none
	arrived     func()    // the body is awaited no longer; nil where it is not awaited, or has a slot
	began       time.Time
	ended       func(method, route, operation string, status int, code custody.Code) // of its trace
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// identify gives the request its ids. The request_id is always ours; the trace_id is the caller's if it sent a valid one.
func (d *door) identify(w http.ResponseWriter, r *http.Request) (*exchange, http.ResponseWriter, *http.Request) {
	x := &exchange{requestID: custody.NewID("req"), began: time.Now(), route: "unmatched"}
	sent, ctx := sentTrace(r.Header.Values("Traceparent")), r.Context()
	x.traceID, x.traceparent = trace(sent)
	if d.cfg.Traces != nil {
		ctx, x.traceparent, x.ended = d.cfg.Traces.Request(ctx, x.requestID, sent)
		x.traceID = traceparent.FindStringSubmatch(x.traceparent)[2]
	}
	x.answer = &recorder{ResponseWriter: w, before: x.giveTurn}
	x.control = http.NewResponseController(w)
	x.caller = custody.Caller{RequestID: x.requestID, TraceID: x.traceID}
	// A copy: net/http looks at the body of its own request to answer Expect: 100-continue without waiting for the bytes.
	r = r.WithContext(context.WithValue(ctx, exchangeKey{}, x))
	if r.ContentLength != 0 {
		x.received = &counted{ReadCloser: r.Body, length: r.ContentLength}
		r.Body = x.received
		x.answer.before = func() {
			x.giveTurn()
			x.settle(w.Header(), r)
		}
	}
	return x, x.answer, r
}

// finish turns a panic into a 500 and writes the log line.
func (d *door) finish(x *exchange, r *http.Request) {
	panicked := recover()
	x.giveTurn()
	x.arrive()
	if x.leave != nil {
		x.leave()
	}
	aborted := panicked == http.ErrAbortHandler
	if panicked != nil && !aborted {
		d.cfg.Log.ErrorContext(r.Context(), "panic", "request_id", x.requestID, "trace_id", x.traceID, "route", x.route,
			"panic", panicked, "stack", string(debug.Stack()))
		x.code = custody.CodeInternal
		if aborted = x.answer.status != 0; !aborted { // half an answer cannot be taken back: cut the connection instead
			writeProblem(x.answer, newProblem(x, errInternal))
		}
	}
	status := x.answer.status
	if status == 0 || aborted {
		status = 499
	}
	d.cfg.Log.InfoContext(r.Context(), "request",
		"method", r.Method, "route", x.route, "status", status, "code", string(x.code), "bytes", x.answer.bytes,
		"duration", time.Since(x.began), "request_id", x.requestID, "trace_id", x.traceID,
		"org_id", x.logOrg(), "credential_id", x.caller.CredentialID)
	if d.cfg.Requests != nil {
		d.cfg.Requests.Request(x.operation, status, x.received.bytes(), x.answer.bytes, time.Since(x.began))
	}
	if x.ended != nil {
		x.ended(knownMethod(r.Method), x.route, x.operation, status, x.code)
	}
	if aborted {
		panic(http.ErrAbortHandler)
	}
}

// reached notes which operation x came to.
func (d *door) reached(x *exchange, operation string) {
	x.operation = operation
	if d.cfg.Requests != nil {
		d.cfg.Requests.Begun(operation)
	}
}

// knownMethod is method, or empty where HTTP has no such: what a stranger makes up is not ours to pass on.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace, http.MethodConnect:
		return method
	}
	return ""
}

// counted is a body that counts what is read of it.
type counted struct {
	io.ReadCloser
	length int64 // announced, or -1
	n      int64
	ended  bool
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n += int64(n)
	c.ended = c.ended || err == io.EOF
	return n, err
}

// whole tells whether there is nothing left to read.
func (c *counted) whole() bool { return c.ended || c.n == c.length }

func (c *counted) bytes() int64 {
	if c == nil {
		return 0
	}
	return c.n
}

// logOrg is the organization of an authenticated request; a stranger's path is not ours to write down.
func (x *exchange) logOrg() string {
	if x.caller.OrgID != "" || x.caller.CredentialID == "" {
		return x.caller.OrgID
	}
	return x.orgID
}

// recorder remembers what was answered.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
	before func() // the answer begins; may be nil
}

func (rec *recorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

func (rec *recorder) begin(status int) {
	if rec.status != 0 {
		return
	}
	rec.status = status
	if rec.before != nil {
		rec.before()
	}
}

func (rec *recorder) WriteHeader(status int) {
	rec.begin(status)
	rec.ResponseWriter.WriteHeader(status)
}

func (rec *recorder) Write(b []byte) (int, error) {
	rec.begin(http.StatusOK)
	n, err := rec.ResponseWriter.Write(b)
	rec.bytes += int64(n)
	return n, err
}

var traceparent = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$`)

// sentTrace is the valid W3C traceparent header among those sent, or empty.
func sentTrace(sent []string) string {
	if len(sent) == 1 {
		m := traceparent.FindStringSubmatch(sent[0])
		if m != nil && m[1] != "ff" && (m[1] != "00" || m[5] == "") &&
			strings.Trim(m[2], "0") != "" && strings.Trim(m[3], "0") != "" {
			return sent[0]
		}
	}
	return ""
}

// trace takes the trace id of a valid traceparent, or makes one. parent is the traceparent of the answer: the same trace with a
// span id of its own, sampled if the sender's was.
func trace(sent string) (id, parent string) {
	var random [24]byte
	rand.Read(random[:])
	span := hex.EncodeToString(random[16:])
	if m := traceparent.FindStringSubmatch(sent); m != nil {
		sampled := "00"
		if flags, _ := hex.DecodeString(m[4]); flags[0]&1 == 1 {
			sampled = "01"
		}
		return m[2], "00-" + m[2] + "-" + span + "-" + sampled
	}
	id = hex.EncodeToString(random[:16])
	return id, "00-" + id + "-" + span + "-00"
}

// gone tells whether err comes from a client that went away: there is nobody to answer.
func gone(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}
