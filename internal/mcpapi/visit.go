package mcpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/accession/accession/internal/custody"
)

// visit is one request: who asks, and whether it was refused as a whole.
type visit struct {
	caller  custody.Caller
	sent    bool           // a credential came with it
	invalid *custody.Error // why that is no good
	scopes  []custody.Scope
	refused *custody.Error
}

type visitKey struct{}

// visitOf is the request that ctx belongs to. Without one nobody has asked.
func visitOf(ctx context.Context) *visit {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		return v
	}
	return &visit{}
}

// methods are the ones that are answered. What is not public documentation is tools/call.
var methods = []string{
	"initialize", "ping", "server/discover", "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read",
}

// codeRefused is the JSON-RPC code of a request that is refused with an HTTP status of its own.
const codeRefused = -32000

// receive decides over every message after it is decoded: what is looked at here is what is acted on.
func (s *Server) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		v := visitOf(ctx)
		defer func() { // the SDK runs this outside of the door's own net
			if p := recover(); p != nil {
				s.cfg.Log.ErrorContext(ctx, "panic", "request_id", v.caller.RequestID, "trace_id", v.caller.TraceID, "method", method, "panic", p, "stack", string(debug.Stack()))
				result, err = nil, v.refuse(internalError)
			}
		}()
		switch {
		case strings.HasPrefix(method, "notifications/"):
			return next(ctx, method, req)
		case v.invalid != nil: // whatever it asks: whoever sends a credential wants to be told that it is no good
			return nil, v.refuse(v.invalid)
		case !slices.Contains(methods, method):
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this server has no such method"}
		case method != "tools/call":
			return next(ctx, method, req)
		}
		p, ok := req.GetParams().(*mcp.CallToolParamsRaw)
		if !ok {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the parameters are no tool call"}
		}
		if e := s.mayCall(v, p.Name); e != nil {
			return nil, v.refuse(e)
		}
		if result, err = next(ctx, method, req); err != nil {
			var said *jsonrpc.Error
			if errors.As(err, &said) {
				return nil, said
			}
			s.cfg.Log.ErrorContext(ctx, "tool failed", "request_id", v.caller.RequestID, "trace_id", v.caller.TraceID, "tool", p.Name, "error", err)
			return nil, v.refuse(internalError)
		}
		called, ok := result.(*mcp.CallToolResult)
		if !ok {
			return result, nil
		}
		return s.settle(ctx, v, p, called)
	}
}

// mayCall asks for what every tool needs, before anything is looked up: a credential of an organization, good for this server,
// with the scope mcp and the tool's own.
func (s *Server) mayCall(v *visit, name string) *custody.Error {
	v.scopes = []custody.Scope{custody.ScopeMCP}
	own := custody.ScopeOf(toolOperations[name])
	if own != "" {
		v.scopes = append(v.scopes, own)
	}
	c := v.caller
	switch {
	case c.CredentialID == "":
		return custody.Errorf(custody.CodeAuthenticationRequired, "calling a tool needs a credential in the x-api-key header or as a Bearer token")
	case c.Admin:
		return custody.Errorf(custody.CodeCredentialInvalid, "tools take the credential of an organization, not the admin token")
	case c.TokenID != "" && !slices.Contains(c.Audience, s.cfg.URL):
		return custody.Errorf(custody.CodeCredentialInvalid, "the access token is for another resource; ask the token endpoint for one with resource=%s", s.cfg.URL)
	}
	for _, scope := range v.scopes {
		if !c.Has(scope) {
			return custody.Errorf(custody.CodeInsufficientScope, "the credential lacks the scope %s", scope).With("required_scope", scope)
		}
	}
	return nil
}

// settle turns the error of a tool into what its caller sees of it: who may not ask is refused as a whole, anything else is a
// result that an agent can act on.
func (s *Server) settle(ctx context.Context, v *visit, p *mcp.CallToolParamsRaw, r *mcp.CallToolResult) (mcp.Result, error) {
	err := r.GetError()
	if r.Meta == nil {
		r.Meta = mcp.Meta{}
	}
	r.Meta["request_id"], r.Meta["trace_id"] = v.caller.RequestID, v.caller.TraceID
	if err == nil {
		return r, nil
	}
	var e *custody.Error
	if !errors.As(err, &e) {
		var broken *internalFailure
		if e = custody.Errorf(custody.CodeInvalidRequest, "the arguments do not match the tool's inputSchema"); errors.As(err, &broken) {
			e = internalError.Because(broken.cause)
		} else if fields := s.arguments[p.Name].wrong(p.Arguments); len(fields) > 0 {
			e = e.With("fields", fields)
		}
	}
	switch status := e.Code.HTTPStatus(); {
	case status == http.StatusUnauthorized, e.Code == custody.CodeAccessDenied, e.Code == custody.CodeInsufficientScope:
		return nil, v.refuse(e)
	case status >= 500:
		s.cfg.Log.ErrorContext(ctx, "tool failed", "request_id", v.caller.RequestID, "trace_id", v.caller.TraceID, "code", string(e.Code), "error", e)
	}
	text, err := json.Marshal(v.told(e))
	if err != nil {
		return nil, fmt.Errorf("rendering an error: %w", err)
	}
	return &mcp.CallToolResult{IsError: true, Meta: r.Meta, Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil
}

// internalFailure is an error of a room that no client may see.
type internalFailure struct{ cause error }

func (f *internalFailure) Error() string { return f.cause.Error() }

// told is what a caller sees of e: what happened, what to do, and what to quote.
func (v *visit) told(e *custody.Error) map[string]any {
	said := map[string]any{"code": e.Code, "message": e.Message, "request_id": v.caller.RequestID, "trace_id": v.caller.TraceID}
	for _, row := range custody.Codes {
		if row.Code == e.Code && (e.Code != custody.CodeInvalidRequest || e.Details["fields"] != nil) { // whose advice is to look there
			said["what_to_do"] = row.Advice
		}
	}
	if len(e.Details) > 0 {
		said["details"] = e.Details
	}
	if e.RetryAfter > 0 {
		said["retry_after_seconds"] = seconds(e)
	}
	return said
}

func seconds(e *custody.Error) int { return max(1, int(math.Ceil(e.RetryAfter.Seconds()))) }

// refuse notes that the whole request is refused, and makes its JSON-RPC error.
func (v *visit) refuse(e *custody.Error) *jsonrpc.Error {
	v.refused = e
	data, err := json.Marshal(v.told(e))
	if err != nil {
		data = nil // details that are no JSON
	}
	return &jsonrpc.Error{Code: codeRefused, Message: e.Message, Data: data}
}

var internalError = custody.Errorf(custody.CodeInternal, "the service failed; repeat the request, and quote the request_id if it stays so")

// challenge is what a client needs to come back with a better credential. (RFC 6750, section 3; RFC 9728, section 5.1.)
func (v *visit) challenge(e *custody.Error, metadata string) string {
	problem := ""
	switch {
	case e.Code == custody.CodeInsufficientScope:
		problem = `, error="insufficient_scope"`
	case e.Code.HTTPStatus() != http.StatusUnauthorized:
		return ""
	case v.sent:
		problem = `, error="invalid_token"`
	}
	asked := v.scopes
	if len(asked) == 0 {
		asked = []custody.Scope{custody.ScopeMCP}
	}
	words := make([]string, len(asked))
	for i, scope := range asked {
		words[i] = string(scope)
	}
	return fmt.Sprintf(`Bearer realm="accession"%s, resource_metadata=%q, scope=%q`, problem, metadata, strings.Join(words, " "))
}

// answerRefused refuses a request that the SDK has not seen.
func (v *visit) answerRefused(w http.ResponseWriter, e *custody.Error, metadata string) custody.Code {
	v.refused = e
	v.headers(w, metadata)
	write(w, e.Code.HTTPStatus(), rpcError(codeRefused, e, v))
	return e.Code
}

func (v *visit) headers(w http.ResponseWriter, metadata string) {
	if challenge := v.challenge(v.refused, metadata); challenge != "" {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	if v.refused.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds(v.refused)))
	}
}

// send sends what the SDK said, with the status of a refusal where there was one. What it says in plain text is for developers of
// servers; a client gets JSON-RPC.
func (v *visit) send(w http.ResponseWriter, said *buffered, metadata string) custody.Code {
	status, body := said.status, said.body.Bytes()
	if status == 0 {
		status = http.StatusOK
	}
	if allow := said.header.Get("Allow"); allow != "" {
		w.Header().Set("Allow", allow)
	}
	mediaType, _, _ := mime.ParseMediaType(said.header.Get("Content-Type"))
	if mediaType == "text/event-stream" { // of a subscription, which is always refused: one event with the error
		_, body, _ = bytes.Cut(body, []byte("data: "))
		body, _, _ = bytes.Cut(body, []byte("\n"))
		mediaType = "application/json"
	}
	if v.refused != nil {
		v.headers(w, metadata)
		write(w, v.refused.Code.HTTPStatus(), body)
		return v.refused.Code
	}
	if status < 400 || mediaType == "application/json" {
		write(w, status, withoutInternals(body))
		return ""
	}
	var e *custody.Error
	code := int64(jsonrpc.CodeInvalidRequest)
	switch {
	case status == http.StatusUnsupportedMediaType:
		e = custody.Errorf(custody.CodeMediaTypeUnsupported, "send the message as application/json").With("accepted", "application/json")
	case status == http.StatusRequestEntityTooLarge:
		e = custody.Errorf(custody.CodeBodyTooLarge, "the message is larger than %d bytes", MaxMessageBytes).With("limit_bytes", MaxMessageBytes)
	case status >= 500:
		e, code = internalError, jsonrpc.CodeInternalError
	default:
		return v.noMessage(w)
	}
	write(w, status, rpcError(code, e, v))
	return e.Code
}

// noMessage refuses a body that cannot be acted on.
func (v *visit) noMessage(w http.ResponseWriter) custody.Code {
	e := custody.Errorf(custody.CodeInvalidRequest, "the body is no JSON-RPC message of a protocol revision that this server speaks: %s", strings.Join(revisions, ", "))
	write(w, e.Code.HTTPStatus(), rpcError(jsonrpc.CodeInvalidRequest, e, v))
	return e.Code
}

// withoutInternals is an answer without what the SDK says of params that it cannot read: they, and the names of its own types.
func withoutInternals(body []byte) []byte {
	var answer struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *struct {
			Code    int64  `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if !bytes.Contains(body, []byte(`"error"`)) || json.Unmarshal(body, &answer) != nil || answer.Error == nil || !strings.HasPrefix(answer.Error.Message, "handling '") {
		return body
	}
	answer.Error.Message = "the params do not fit the method"
	said, err := json.Marshal(answer)
	if err != nil {
		panic(err) // it was JSON
	}
	return said
}
