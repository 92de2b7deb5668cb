package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/ratelimit"
	"github.com/accession/accession/internal/sandbox"
)

// sandboxes is the free trial, apart from everything else. (Sections 2.7 and 4.2.)
type sandboxes struct {
	room    Sandbox
	baseURL string
}

const (
	sandboxPath = "/api/v1/sandbox"
	sandboxTag  = "sandbox"
)

type limitsInput struct {
	IncludeLimits bool `query:"include_limits" default:"true"`
}

// never is the constant false; always the constant true.
type (
	never  struct{}
	always struct{}
)

func constant(v bool) *huma.Schema {
	return &huma.Schema{Type: huma.TypeBoolean, Enum: []any{v}, Extensions: map[string]any{"const": v}}
}

func (never) Schema(huma.Registry) *huma.Schema  { return constant(false) }
func (always) Schema(huma.Registry) *huma.Schema { return constant(true) }

// MarshalJSON is false.
func (never) MarshalJSON() ([]byte, error) { return []byte("false"), nil }

// MarshalJSON is true.
func (always) MarshalJSON() ([]byte, error) { return []byte("true"), nil }

type sandboxInfo struct {
	Environment          string         `json:"environment" enum:"sandbox"`
	Status               string         `json:"status"`
	ProductionDataAccess never          `json:"production_data_access"`
	CredentialEndpoint   string         `json:"credential_endpoint" format:"uri"`
	EchoEndpoint         string         `json:"echo_endpoint" format:"uri"`
	CustomerUploads      never          `json:"customer_uploads"`
	AIContext            never          `json:"ai_context"`
	Limits               *sandboxLimits `json:"limits,omitempty" doc:"Left out with include_limits=false."`
}

type sandboxKeyInfo struct {
	Method               string         `json:"method" enum:"POST"`
	Endpoint             string         `json:"endpoint" format:"uri"`
	Free                 always         `json:"free"`
	ProductionDataAccess never          `json:"production_data_access"`
	Status               string         `json:"status"`
	AccountRequired      never          `json:"account_required"`
	CredentialScope      string         `json:"credential_scope"`
	Limits               *sandboxLimits `json:"limits,omitempty" doc:"Left out with include_limits=false."`
}

type sandboxLimits struct {
	MaxInputCharacters        int `json:"max_input_characters" doc:"Unicode code points of one input."`
	MinOperations             int `json:"min_operations"`
	MaxOperations             int `json:"max_operations"`
	CredentialLifetimeSeconds int `json:"credential_lifetime_seconds"`
}

// A sandbox request may carry an Idempotency-Key: its form is checked, and nothing is replayed, because nothing is kept.
type sandboxKeyInput struct {
	Key  idempotencyKey `header:"Idempotency-Key" doc:"Checked for its form alone: the sandbox keeps nothing that it could repeat."`
	Body *sandboxKeyRequest
}

type sandboxKeyRequest struct {
	Email email    `json:"email,omitempty"`
	_     struct{} `additionalProperties:"false"`
}

type sandboxCredential struct {
	Token                string    `json:"token" doc:"The secret, shown once."`
	CredentialID         string    `json:"credential_id"`
	Status               string    `json:"status"`
	Scope                string    `json:"scope" enum:"sandbox:echo"`
	ProductionDataAccess never     `json:"production_data_access"`
	ExpiresAt            timestamp `json:"expires_at"`
}

type echoInput struct {
	Key  idempotencyKey `header:"Idempotency-Key" doc:"Checked for its form alone: the sandbox keeps nothing that it could repeat."`
	Body echoRequest
}

type echoRequest struct {
	Input string   `json:"input" maxLength:"1000"`
	_     struct{} `additionalProperties:"false"`
}

type sandboxEcho struct {
	Status               string `json:"status" enum:"sandbox_ok"`
	ProductionDataAccess never  `json:"production_data_access"`
	Persisted            never  `json:"persisted"`
	Echo                 string `json:"echo"`
	CredentialID         string `json:"credential_id"`
}

type batchInput struct {
	Key  idempotencyKey `header:"Idempotency-Key" doc:"Checked for its form alone: the sandbox keeps nothing that it could repeat."`
	Body batchRequest
}

type batchRequest struct {
	Operations []batchOperation `json:"operations" minItems:"1" maxItems:"8" nullable:"false"`
}

type batchOperation struct {
	Input string `json:"input,omitempty" maxLength:"1000"`
}

type sandboxBatch struct {
	Status               string        `json:"status" enum:"sandbox_ok"`
	ProductionDataAccess never         `json:"production_data_access"`
	Persisted            never         `json:"persisted"`
	Results              []batchResult `json:"results" nullable:"false"`
}

type batchResult struct {
	Index  int    `json:"index" minimum:"0" doc:"Of the operation, from 0."`
	Status string `json:"status" enum:"sandbox_ok"`
	Echo   string `json:"echo"`
}

func (s sandboxes) mount(d *door) {
	op := operation{
		name: "getSandbox", method: http.MethodGet, path: sandboxPath, tag: sandboxTag, public: true, class: ratelimit.Sandbox,
		summary: "What the sandbox is", doc: "No production data, no uploads, no context, nothing kept.",
		answers: map[int]reflect.Type{200: says[sandboxInfo]()},
	}
	mount(d, op, func(_ context.Context, _ *exchange, in *limitsInput) (answer, error) {
		i := s.room.Info(s.endpoints(), in.IncludeLimits)
		return respond(sandboxInfo{Environment: i.Environment, Status: i.Status, CredentialEndpoint: i.CredentialEndpoint, EchoEndpoint: i.EchoEndpoint, Limits: limitsView(i.Limits)})
	})

	op.name, op.path, op.summary, op.doc = "getSandboxKeys", sandboxPath+"/keys", "How to get a sandbox credential", "Issues nothing."
	op.answers = map[int]reflect.Type{200: says[sandboxKeyInfo]()}
	mount(d, op, func(_ context.Context, _ *exchange, in *limitsInput) (answer, error) {
		i := s.room.KeyInfo(s.endpoints(), in.IncludeLimits)
		return respond(sandboxKeyInfo{Method: i.Method, Endpoint: i.Endpoint, Status: i.Status, CredentialScope: i.CredentialScope, Limits: limitsView(i.Limits)})
	})

	op.name, op.method, op.body = "createSandboxKey", http.MethodPost, bodyJSON
	op.summary, op.doc = "Get a sandbox credential", "Free, without an account; it ends by itself. An e-mail address is checked for its form and goes nowhere."
	op.answers = map[int]reflect.Type{201: says[sandboxCredential]()}
	mount(d, op, func(_ context.Context, _ *exchange, in *sandboxKeyInput) (answer, error) {
		address := ""
		if in.Body != nil {
			address = string(in.Body.Email)
		}
		c := s.room.Issue(address)
		a, err := respond(sandboxCredential{Token: c.Token, CredentialID: c.CredentialID, Status: c.Status, Scope: c.Scope, ExpiresAt: timestamp{c.ExpiresAt}})
		a.Status = http.StatusCreated
		return a, err
	})

	op.name, op.path, op.public, op.sandboxed = "echoSandbox", sandboxPath+"/echo", false, true
	op.summary, op.doc = "Echo an input", "Nothing is kept."
	op.answers = map[int]reflect.Type{200: says[sandboxEcho]()}
	mount(d, op, func(_ context.Context, x *exchange, in *echoInput) (answer, error) {
		e, err := s.room.Echo(x.caller.CredentialID, in.Body.Input)
		if err != nil {
			return answer{}, err
		}
		return respond(sandboxEcho{Status: e.Status, Echo: e.Echo, CredentialID: e.CredentialID})
	})

	op.name, op.path, op.summary, op.doc = "batchSandbox", sandboxPath+"/batch", "Echo several inputs", "One that is not fit refuses the whole batch."
	op.answers = map[int]reflect.Type{200: says[sandboxBatch]()}
	mount(d, op, s.batch)
}

func (s sandboxes) batch(_ context.Context, x *exchange, in *batchInput) (answer, error) {
	ops := make([]sandbox.Operation, len(in.Body.Operations))
	for i, o := range in.Body.Operations {
		ops[i] = sandbox.Operation{Input: o.Input}
	}
	b, err := s.room.Batch(x.caller.CredentialID, ops)
	if err != nil {
		return answer{}, err
	}
	data := sandboxBatch{Status: b.Status, Results: make([]batchResult, len(b.Results))}
	for i, r := range b.Results {
		data.Results[i] = batchResult{r.Index, r.Status, r.Echo}
	}
	return respond(data)
}

func (s sandboxes) endpoints() sandbox.Endpoints {
	return sandbox.Endpoints{Credential: s.baseURL + sandboxPath + "/keys", Echo: s.baseURL + sandboxPath + "/echo"}
}

func limitsView(l *sandbox.Limits) *sandboxLimits {
	if l == nil {
		return nil
	}
	return &sandboxLimits{l.MaxInputCharacters, l.MinOperations, l.MaxOperations, int(l.CredentialLifetime.Seconds())}
}

// authenticateSandbox finds out which sandbox credential asks. A tenant credential is none here, and a sandbox credential
// is none anywhere else: their tokens differ in prefix, form and signing key. (Section 5, rule 9.)
func (d *door) authenticateSandbox(x *exchange, r *http.Request) error {
	token, _, err := credentialOf(r.Header)
	if err != nil {
		return err
	}
	id, err := d.cfg.Sandbox.Authenticate(token)
	if err != nil {
		return err
	}
	x.caller = custody.Caller{CredentialID: id, RequestID: x.requestID, TraceID: x.traceID}
	return nil
}
