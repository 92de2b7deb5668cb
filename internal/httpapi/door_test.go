package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/tenant"
)

const (
	uploaderToken = "acc_uploader"
	readerToken   = "acc_reader"
	adminToken    = "admin-token-of-thirty-two-characters"

	base      = "/api/v1/organizations/org_1"
	partners  = base + "/partner-uploads"
	oneUpload = partners + "/up_1"

	key   = "Idempotency-Key: key-12345"
	asJ   = "Content-Type: application/json"
	asB   = "Content-Type: application/octet-stream"
	asUp  = "X-Api-Key: " + uploaderToken
	asAI  = "X-Api-Key: " + readerToken
	admin = "Authorization: Bearer " + adminToken
)

// rooms stands in for the rooms behind the door: it injects their answers and keeps what reached them.
type rooms struct {
	caller   custody.Caller
	got      any
	key      custody.Idempotency
	part     []byte
	err      error
	replay   bool
	accepted bool
	state    custody.UploadState
	awaited  func(context.Context) (custody.UploadState, error)
	work     func(context.Context) error // done once the body is in
	records  []custody.Record
	receipt  custody.Receipt
	next     int64
	office   *tenant.Service // takes over credentials and tokens where a test wants the real thing
}

func (r *rooms) take(ctx context.Context, c custody.Caller, got any, key custody.Idempotency, result any) (custody.Answer, error) {
	r.caller, r.got, r.key = c, got, key
	if r.work != nil {
		if err := r.work(ctx); err != nil {
			return custody.Answer{}, err
		}
	}
	if r.err != nil || key.Render == nil {
		return custody.Answer{}, r.err
	}
	a, err := key.Render(result)
	a.Replayed = r.replay
	return a, err
}

func (r *rooms) Initiate(ctx context.Context, c custody.Caller, v custody.Reservation, k custody.Idempotency) (custody.Answer, error) {
	return r.take(ctx, c, v, k, r.state.Upload)
}

func (r *rooms) AcceptPart(ctx context.Context, c custody.Caller, p custody.IncomingPart, k custody.Idempotency) (custody.Answer, error) {
	var err error
	if r.part, err = io.ReadAll(p.Body); err != nil {
		return custody.Answer{}, custody.Unavailable(err) // as a store would report it
	}
	return r.take(ctx, c, p, k, custody.AcceptedPart{UploadID: p.UploadID, Number: p.Number, Sequence: 2, Status: custody.StatusReceiving})
}

func (r *rooms) Complete(ctx context.Context, c custody.Caller, v custody.Completion, k custody.Idempotency) (custody.Answer, error) {
	return r.take(ctx, c, v, k, custody.Completed{Upload: r.state.Upload, Accepted: r.accepted})
}

func (r *rooms) Status(ctx context.Context, c custody.Caller, org, id string) (custody.UploadState, error) {
	_, err := r.take(ctx, c, [2]string{org, id}, custody.Idempotency{}, nil)
	return r.state, err
}

func (r *rooms) AwaitChange(ctx context.Context, _ custody.Caller, _, _ string, sequence int64, nextPart int) (custody.UploadState, error) {
	r.got = [2]int64{sequence, int64(nextPart)}
	return r.awaited(ctx)
}

func (r *rooms) Quota(_ context.Context, _ custody.Caller, org string) (custody.Quota, error) {
	return custody.Quota{OrgID: org, AllowanceBytes: 100, UsedBytes: 30, ReservedBytes: 20, UploadCount: 2}, r.err
}

func (r *rooms) Withdraw(ctx context.Context, c custody.Caller, v custody.Withdrawal, k custody.Idempotency) (custody.Answer, error) {
	return r.take(ctx, c, v, k, custody.Receipt{ID: "wr_1", UploadID: v.UploadID, QuotaBytes: 7})
}

func (r *rooms) Receipt(ctx context.Context, c custody.Caller, org, id string) (custody.Receipt, error) {
	_, err := r.take(ctx, c, [2]string{org, id}, custody.Idempotency{}, nil)
	return r.receipt, err
}

func (r *rooms) Retention(ctx context.Context, c custody.Caller, org string) (custody.Retention, error) {
	_, err := r.take(ctx, c, org, custody.Idempotency{}, nil)
	return custody.Retention{OrgID: org, Days: 30}, err
}

func (r *rooms) SetRetention(ctx context.Context, c custody.Caller, v custody.Retention, k custody.Idempotency) (custody.Answer, error) {
	return r.take(ctx, c, v, k, v)
}

func (r *rooms) Serve(ctx context.Context, c custody.Caller, org, id, surface string) (custody.Serving, error) {
	_, err := r.take(ctx, c, surface, custody.Idempotency{}, nil)
	return custody.Serving{UploadID: id, OrgID: org, Visibility: custody.VisibilityAIReadable, RecordID: "rec_1",
		Context: json.RawMessage(`{"boundary_label":"customer-submitted, unverified","summary":"a < b \u003e c"}`)}, err
}

func (r *rooms) Records(_ context.Context, _ custody.Caller, q custody.RecordQuery) ([]custody.Record, int64, error) {
	r.got = q
	return r.records, r.next, r.err
}

func (r *rooms) FindCanary(ctx context.Context, c custody.Caller, canary string) (custody.Record, error) {
	_, err := r.take(ctx, c, canary, custody.Idempotency{}, nil)
	return custody.Record{ID: "rec_1", OrgID: "org_1"}, err
}

func (r *rooms) Authenticate(ctx context.Context, token string) (custody.Caller, error) {
	if r.office != nil {
		return r.office.Authenticate(ctx, token)
	}
	switch token {
	case uploaderToken:
		return custody.Caller{CredentialID: "cred_u", OrgID: "org_1", Role: custody.RoleSolutionCompanyUpload, Scopes: custody.RoleScopes[custody.RoleSolutionCompanyUpload]}, nil
	case readerToken:
		return custody.Caller{CredentialID: "cred_r", OrgID: "org_1", Role: custody.RoleAIReader, Scopes: custody.RoleScopes[custody.RoleAIReader]}, nil
	case adminToken:
		return custody.Caller{CredentialID: custody.AdminCredentialID, Admin: true}, nil
	}
	return custody.Caller{}, custody.Errorf(custody.CodeCredentialInvalid, "the credential is not valid")
}

func (r *rooms) Issue(ctx context.Context, c custody.Caller, v custody.CredentialRequest, k custody.Idempotency) (custody.Answer, string, error) {
	if r.office != nil {
		return r.office.Issue(ctx, c, v, k)
	}
	a, err := r.take(ctx, c, v, k, custody.Credential{ID: "cred_9", OrgID: v.OrgID, Role: v.Role, Scopes: []custody.Scope{"ai_context", "mcp"},
		ExpiresAt: time.Date(2027, 5, 1, 12, 0, 0, 0, time.UTC)})
	return a, "acc_secret", err
}

func (r *rooms) Ready(context.Context) error { return r.err }

// bench is a door over rooms, served over real HTTP; every answer it sees is held against the published document.
type bench struct {
	*rooms
	t      *testing.T
	url    string
	log    *lockedBuffer
	router routers.Router
	stop   func() // ends once every request is logged
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newBench(t *testing.T, change ...func(*Config)) *bench {
	t.Helper()
	b := &bench{rooms: &rooms{}, t: t, log: &lockedBuffer{}}
	b.state = custody.UploadState{Upload: custody.Upload{
		ID: "up_1", OrgID: "org_1", PipelineID: "pl_1", Status: custody.StatusReceiving, Sequence: 3, NextPart: 2,
		Filename: "pump.pdf", SizeBytes: 100, ReceivedBytes: 64, PartSizeBytes: 64, SHA256: strings.Repeat("a", 64),
		CreatedAt: time.Date(2026, 11, 20, 9, 30, 0, 120e6, time.UTC), UpdatedAt: time.Date(2026, 11, 20, 9, 30, 1, 0, time.UTC),
		ExpiresAt: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC),
	}}
	for _, g := range custody.Gates {
		b.state.Gates = append(b.state.Gates, custody.GateShown{Name: g.Name, State: custody.GatePending})
	}
	server := httptest.NewUnstartedServer(nil)
	b.url = "http://" + server.Listener.Addr().String()
	cfg := Config{BaseURL: b.url, MaxPartBytes: 1 << 20, Log: slog.New(slog.NewTextHandler(b.log, nil)), Sandbox: newSandbox(t, nil), MCP: &messages{}, Webhooks: b, Agreement: &Agreement{"2026-11", "2026-10", "I may submit this.\n", strings.Repeat("a", 64)}}
	for _, c := range change {
		c(&cfg)
	}
	handler, err := New(cfg, b, b, b, b, b, b, b, Check{Name: "database", Readiness: b})
	if err != nil {
		t.Fatal(err)
	}
	server.Config = Server(handler)
	server.Listener = Listener(server.Listener, cfg.Log, nil)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	server.Start()
	b.stop = server.Close
	t.Cleanup(server.Close)

	b.router = publishedRouter(t, handler)
	return b
}

var published struct {
	once   sync.Once
	router routers.Router
	err    error
}

// publishedRouter routes by the published document, which differs between doors in the server's URL alone: it is read once.
func publishedRouter(t *testing.T, handler http.Handler) routers.Router {
	t.Helper()
	published.once.Do(func() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/ai/openapi.json", nil))
		doc, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
		if err == nil {
			err = doc.Validate(context.Background())
		}
		if err == nil {
			doc.Servers = nil
			published.router, err = gorillamux.NewRouter(doc)
		}
		published.err = err
	})
	if published.err != nil {
		t.Fatal(published.err)
	}
	return published.router
}

// reply is an answer, read whole.
type reply struct {
	*http.Response
	raw  []byte
	body struct {
		RequestID string         `json:"request_id"`
		TraceID   string         `json:"trace_id"`
		Data      map[string]any `json:"data"`
		Code      string         `json:"code"`
		Message   string         `json:"message"`
		Details   struct {
			Fields []field `json:"fields"`
		} `json:"details"`
	}
}

// chunked among the headers of a call leaves Content-Length out.
const chunked = "chunked"

// call sends a request; headers come as "Name: value".
func (b *bench) call(method, path string, body io.Reader, headers ...string) reply {
	b.t.Helper()
	req, err := http.NewRequest(method, b.url+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, h := range headers {
		if h == chunked {
			req.ContentLength = -1
			continue
		}
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	return b.send(req)
}

// callLength announces length, whatever body holds.
func (b *bench) callLength(method, path string, body io.Reader, length int64, headers ...string) reply {
	b.t.Helper()
	req, err := http.NewRequest(method, b.url+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	req.ContentLength = length
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	return b.send(req)
}

func (b *bench) post(path, body string, headers ...string) reply {
	b.t.Helper()
	return b.call("POST", path, strings.NewReader(body), append([]string{asJ, key}, headers...)...)
}

func (b *bench) send(req *http.Request) reply {
	b.t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	out := reply{Response: res, raw: raw}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &out.body); err != nil {
			b.t.Fatalf("%s %s answered %d %q: %v", req.Method, req.URL.Path, res.StatusCode, raw, err)
		}
	}
	b.conforms(req, out)
	return out
}

// bare tells answers that carry no request_id: documents, and what OAuth's own RFCs shape.
func bare(path string, raw []byte) bool {
	return strings.HasSuffix(path, "openapi.json") || !bytes.Contains(raw, []byte(`"request_id"`)) &&
		(strings.HasPrefix(path, "/.well-known/") || strings.HasPrefix(path, "/oauth/"))
}

// conforms holds an answer against the published document: its status, headers and body must be there.
func (b *bench) conforms(req *http.Request, out reply) {
	b.t.Helper()
	id := out.Header.Get("X-Request-Id")
	if enveloped := len(out.raw) > 0 && !bare(req.URL.Path, out.raw); id == "" || (enveloped && id != out.body.RequestID) {
		b.t.Errorf("%s %s: X-Request-Id %q beside request_id %q", req.Method, req.URL.Path, id, out.body.RequestID)
	}
	route, params, err := b.router.FindRoute(req)
	if errors.Is(err, routers.ErrPathNotFound) || errors.Is(err, routers.ErrMethodNotAllowed) {
		return
	}
	if err != nil {
		b.t.Fatal(err)
	}
	in := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route},
		Status:                 out.StatusCode, Header: out.Header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	if len(out.raw) > 0 {
		in.SetBodyBytes(out.raw)
	} else {
		in.Options.ExcludeResponseBody = true
	}
	if err := openapi3filter.ValidateResponse(context.Background(), in); err != nil {
		b.t.Errorf("%s %s answered %d, which the document does not allow: %v\n%s", req.Method, req.URL.Path, out.StatusCode, err, out.raw)
		return
	}
	documented := map[string]bool{}
	for name := range route.Operation.Responses.Status(out.StatusCode).Value.Headers {
		documented[http.CanonicalHeaderKey(name)] = true
	}
	for name := range out.Header {
		if !documented[name] && !slices.Contains(ofAnyAnswer, name) {
			b.t.Errorf("%s %s answered %d with the header %s, of which the document knows nothing", req.Method, req.URL.Path, out.StatusCode, name)
		}
	}
}

// ofAnyAnswer are headers that say nothing about an operation.
var ofAnyAnswer = []string{"Access-Control-Allow-Origin", "Cache-Control", "Connection", "Content-Length", "Content-Type", "Date", "Pragma", "X-Content-Type-Options"}

// wants checks an error answer.
func (r reply) wants(t *testing.T, status int, code custody.Code, paths ...string) {
	t.Helper()
	if r.StatusCode != status || r.body.Code != string(code) {
		t.Fatalf("answered %d %s, want %d %s\n%s", r.StatusCode, r.body.Code, status, code, r.raw)
	}
	if r.body.Message == "" || r.body.RequestID == "" || r.body.TraceID == "" {
		t.Errorf("incomplete error object: %s", r.raw)
	}
	got := []string{}
	for _, f := range r.body.Details.Fields {
		got = append(got, f.Path)
		if f.Reason == "" {
			t.Errorf("no reason for %s", f.Path)
		}
	}
	if len(paths) > 0 && strings.Join(got, " ") != strings.Join(paths, " ") {
		t.Errorf("fields %q, want %q\n%s", got, paths, r.raw)
	}
}

func (r reply) succeeds(t *testing.T, status int) map[string]any {
	t.Helper()
	if r.StatusCode != status {
		t.Fatalf("answered %d, want %d\n%s", r.StatusCode, status, r.raw)
	}
	return r.body.Data
}
