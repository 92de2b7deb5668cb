package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/ratelimit"
	"github.com/accession/accession/internal/tenant"
)

// oauth is the client-credentials flow for machines, and the documents that describe it. What a client gets wrong is answered
// as RFC 6749 has it, {error, error_description}; everything else that can fail, in the error object of section 2.2.
// (Section 4.3; RFC 6749, 7009, 7662, 8414, 9068, 9728.)
type oauth struct {
	room    TokenServer
	baseURL string
	mcpURL  string
}

// TokenServer makes access tokens and knows them. (Sections 4.3 and 5.) Its errors are *tenant.OAuthError where the client is
// to blame.
type TokenServer interface {
	AuthenticateClient(ctx context.Context, clientID, secret string) (custody.Credential, error)
	GrantToken(ctx context.Context, client custody.Credential, r tenant.TokenRequest) (tenant.AccessToken, error)
	RevokeToken(ctx context.Context, client custody.Caller, token string) error
	Introspect(ctx context.Context, client custody.Credential, token string) (tenant.Introspection, error)
	KeySet(ctx context.Context) (json.RawMessage, error)
}

const oauthTag = "identity and tokens"

// publicAge is for how long others may keep the metadata and the key set; a new key is published for longer before it signs.
const publicAge = time.Minute

type tokenForm struct {
	GrantType    string `json:"grant_type" enum:"client_credentials"`
	ClientID     string `json:"client_id,omitempty" doc:"The credential_id. Here, or by HTTP Basic, not both."`
	ClientSecret string `json:"client_secret,omitempty" doc:"The credential's token."`
	Scope        string `json:"scope,omitempty" doc:"A subset of the credential's scopes, separated by spaces; default: all."`
	Resource     string `json:"resource,omitempty" doc:"RFC 8707: a resource that the protected resource metadata names. May repeat."`
}

type tokenQuestion struct {
	Token         string `json:"token"`
	TokenTypeHint string `json:"token_type_hint,omitempty"`
	ClientID      string `json:"client_id,omitempty" doc:"The credential_id. Here, or by HTTP Basic, not both."`
	ClientSecret  string `json:"client_secret,omitempty" doc:"The credential's token."`
}

type tokenAnswer struct {
	AccessToken string `json:"access_token" doc:"An RFC 9068 JWT, for Authorization: Bearer."`
	TokenType   string `json:"token_type" enum:"Bearer"`
	ExpiresIn   int    `json:"expires_in" minimum:"1" maximum:"600" doc:"Seconds."`
	Scope       string `json:"scope"`
}

type tokenState struct {
	Active    bool     `json:"active" doc:"False, and nothing else, for a token that is not good now or not of the client's organization."`
	Scope     string   `json:"scope,omitempty"`
	ClientID  string   `json:"client_id,omitempty"`
	TokenType string   `json:"token_type,omitempty"`
	Expires   int64    `json:"exp,omitempty" doc:"Seconds since 1970."`
	IssuedAt  int64    `json:"iat,omitempty" doc:"Seconds since 1970."`
	Subject   string   `json:"sub,omitempty"`
	Audience  []string `json:"aud,omitempty" nullable:"false"`
	Issuer    string   `json:"iss,omitempty"`
	TokenID   string   `json:"jti,omitempty"`
	OrgID     string   `json:"org_id,omitempty"`
	Role      string   `json:"role,omitempty"`
}

type oauthProblem struct {
	Error       string `json:"error" enum:"invalid_request,invalid_client,invalid_scope,invalid_target,unsupported_grant_type,unsupported_response_type"`
	Description string `json:"error_description,omitempty" doc:"For a person; may change."`
}

func (s oauth) mount(d *door) {
	s.mountForm(d, operation{
		name: "issueAccessToken", path: "/oauth/token", summary: "Exchange a tenant credential for an access token",
		doc:     "OAuth 2.0 client credentials. The token is bound to the credential's organization, lives 10 minutes at most, and dies with the credential.",
		answers: map[int]reflect.Type{200: reflect.TypeFor[tokenAnswer]()},
	}, reflect.TypeFor[tokenForm](), s.token)
	s.mountForm(d, operation{
		name: "revokeAccessToken", path: "/oauth/revoke", summary: "Revoke an access token",
		doc:     "RFC 7009. Only the client that a token was made for can end it; for any other token the answer is the same and nothing changes.",
		answers: map[int]reflect.Type{200: nil},
	}, reflect.TypeFor[tokenQuestion](), s.revoke)
	s.mountForm(d, operation{
		name: "introspectAccessToken", path: "/oauth/introspect", summary: "Ask about an access token of one's own organization",
		doc:     "RFC 7662.",
		answers: map[int]reflect.Type{200: reflect.TypeFor[tokenState]()},
	}, reflect.TypeFor[tokenQuestion](), s.introspect)
	mount(d, operation{
		id: custody.OpIdentity, method: http.MethodGet, path: "/oauth/identity", tag: oauthTag,
		summary: "The organization and scopes bound to an access token", answers: map[int]reflect.Type{200: says[identity]()},
	}, s.identity)

	s.mountDocument(d, "getKeySet", "/oauth/jwks", "The keys that access tokens and withdrawal receipts can be verified with", reflect.TypeFor[keySet](), s.room.KeySet)
	s.mountDocument(d, "getAuthorizationServerMetadata", "/.well-known/oauth-authorization-server", "Authorization server metadata",
		reflect.TypeFor[serverMetadata](), fixed(s.serverMetadata()))
	s.mountDocument(d, "getProtectedResourceMetadata", "/.well-known/oauth-protected-resource", "Protected resource metadata",
		reflect.TypeFor[resourceMetadata](), fixed(s.resourceMetadata(s.baseURL, scopesSupported)))
	s.mountDocument(d, "getProtectedResourceMetadataOfMCP", "/.well-known/oauth-protected-resource"+d.cfg.mcpPath(), "Protected resource metadata of the MCP endpoint",
		reflect.TypeFor[resourceMetadata](), fixed(s.resourceMetadata(s.mcpURL, mcpScopes)))
	// Clients demand the address of an authorization endpoint; there is no such flow, so it stands in no contract.
	d.mux.HandleFunc("GET /oauth/authorize", s.refuseAuthorization)
}

func (s oauth) token(ctx context.Context, x *exchange, client custody.Credential, form form) (any, error) {
	granted, err := s.room.GrantToken(ctx, client, tenant.TokenRequest{
		GrantType: form.value("grant_type"), Scope: form.value("scope"), Resources: form["resource"],
	})
	if err != nil {
		return nil, err
	}
	return tokenAnswer{granted.Token, "Bearer", int(granted.Lifetime / time.Second), scopeText(granted.Scopes)}, nil
}

func (s oauth) revoke(ctx context.Context, x *exchange, _ custody.Credential, form form) (any, error) {
	token, err := form.token()
	if err != nil {
		return nil, err
	}
	return nil, s.room.RevokeToken(ctx, x.caller, token)
}

func (s oauth) introspect(ctx context.Context, _ *exchange, client custody.Credential, form form) (any, error) {
	token, err := form.token()
	if err != nil {
		return nil, err
	}
	t, err := s.room.Introspect(ctx, client, token)
	if err != nil || !t.Active {
		return tokenState{}, err
	}
	return tokenState{
		Active: true, Scope: scopeText(t.Scopes), ClientID: t.ClientID, TokenType: "Bearer", Expires: t.ExpiresAt.Unix(), IssuedAt: t.IssuedAt.Unix(),
		Subject: t.ClientID, Audience: t.Audience, Issuer: t.Issuer, TokenID: t.TokenID, OrgID: t.OrgID, Role: string(t.Role),
	}, nil
}

type identityInput struct {
	IncludeScopes bool `query:"include_scopes" default:"true"`
}

type identity struct {
	OrgID        string    `json:"org_id"`
	Role         string    `json:"role"`
	CredentialID string    `json:"credential_id"`
	Scopes       []string  `json:"scopes,omitempty" nullable:"false" doc:"Left out with include_scopes=false."`
	ExpiresAt    timestamp `json:"expires_at" doc:"Of the access token."`
}

func (s oauth) identity(_ context.Context, x *exchange, in *identityInput) (answer, error) {
	data := identity{OrgID: x.caller.OrgID, Role: string(x.caller.Role), CredentialID: x.caller.CredentialID, ExpiresAt: timestamp{x.caller.TokenExpiresAt}}
	if in.IncludeScopes {
		for _, scope := range x.caller.Scopes {
			data.Scopes = append(data.Scopes, string(scope))
		}
	}
	return respond(data)
}

func (s oauth) refuseAuthorization(w http.ResponseWriter, r *http.Request) {
	writeOAuthProblem(w, r, &tenant.OAuthError{
		Code: tenant.UnsupportedResponseType, Description: "there is no authorization flow; use grant_type client_credentials at the token endpoint",
	})
}

// mountForm registers an endpoint that takes a form from an authenticated client. huma's formats are API-wide and its errors
// are not RFC 6749's, so the document alone comes from it.
func (s oauth) mountForm(d *door, op operation, takes reflect.Type, act func(context.Context, *exchange, custody.Credential, form) (any, error)) {
	op.method, op.tag, op.class, op.failures = http.MethodPost, oauthTag, ratelimit.Token, []int{401, 408, 413}
	op.public = true // as far as the door's own credentials go
	doc := d.document(op)
	schemas := d.api.OpenAPI().Components.Schemas
	doc.Security = []map[string][]string{{}, {"clientBasic": {}}}
	doc.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{formType: {Schema: schemas.Schema(takes, true, "")}}}
	for _, status := range op.statuses() {
		says := &huma.MediaType{Schema: schemas.Schema(reflect.TypeFor[problem](), true, "")}
		description := http.StatusText(status)
		if own, ok := oauthRefusals[status]; ok {
			description = own.meaning
			says = &huma.MediaType{Schema: schemas.Schema(reflect.TypeFor[oauthProblem](), true, ""), Example: own.example}
		}
		doc.Responses[strconv.Itoa(status)] = &huma.Response{Description: description, Content: map[string]*huma.MediaType{"application/json": says}}
	}
	d.api.OpenAPI().AddOperation(&doc)
	d.mux.HandleFunc(op.method+" "+op.path, func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r.Context())
		d.reached(x, op.name)
		if err := d.allowCaller(w, r, x, op); err != nil {
			d.fail(w, r, err)
			return
		}
		x.giveTurn()
		said, err := s.answerForm(d, op, x, r, act)
		var refused *tenant.OAuthError
		switch {
		case errors.As(err, &refused):
			writeOAuthProblem(w, r, refused)
		case err != nil:
			d.fail(w, r, err)
		default:
			writeOAuth(w, http.StatusOK, said)
		}
	})
}

// oauthRefusals are the statuses with which a client is refused as RFC 6749 has it.
var oauthRefusals = map[int]struct {
	meaning string
	example map[string]any
}{
	http.StatusBadRequest: {"What is wrong with the request, as RFC 6749 has it.",
		map[string]any{"error": tenant.InvalidRequest, "error_description": "grant_type is missing"}},
	http.StatusUnauthorized: {"`invalid_client`: the client is not authenticated.",
		map[string]any{"error": tenant.InvalidClient, "error_description": "client authentication failed"}},
}

func (s oauth) answerForm(d *door, op operation, x *exchange, r *http.Request, act func(context.Context, *exchange, custody.Credential, form) (any, error)) (any, error) {
	form, err := d.readForm(x, r)
	if err != nil {
		return nil, err
	}
	if err := d.enter(x, op); err != nil {
		return nil, err
	}
	id, secret, err := clientOf(r, form)
	if err != nil {
		return nil, err
	}
	client, err := s.room.AuthenticateClient(r.Context(), id, secret)
	if err != nil {
		return nil, err
	}
	x.caller = custody.Caller{CredentialID: client.ID, OrgID: client.OrgID, Role: client.Role, Scopes: client.Scopes, RequestID: x.requestID, TraceID: x.traceID}
	return act(custody.InScopeOf(r.Context(), x.caller), x, client, form)
}

func writeOAuthProblem(w http.ResponseWriter, r *http.Request, e *tenant.OAuthError) {
	exchangeOf(r.Context()).code = custody.Code(e.Code)
	status := http.StatusBadRequest
	if e.Code == tenant.InvalidClient {
		status = http.StatusUnauthorized
		if r.Header.Get("Authorization") != "" { // RFC 6749, section 5.2
			w.Header().Set("WWW-Authenticate", `Basic realm="accession", charset="UTF-8"`)
		}
	}
	writeOAuth(w, status, oauthProblem{e.Code, e.Description})
}

// writeOAuth sends an answer of an OAuth endpoint: no envelope, never stored. (RFC 6749, section 5.1.)
func writeOAuth(w http.ResponseWriter, status int, said any) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Pragma", "no-cache")
	if said == nil {
		h.Set("Content-Length", "0")
		w.WriteHeader(status)
		return
	}
	b, err := marshal(said)
	if err != nil {
		panic(err) // strings and numbers
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // nobody left to tell
}

// mountDocument registers a public document without an envelope, which any page may read.
func (s oauth) mountDocument(d *door, name, path, summary string, says reflect.Type, read func(context.Context) (json.RawMessage, error)) {
	op := operation{
		name: name, method: http.MethodGet, path: path, tag: oauthTag, public: true, failures: []int{503},
		summary: summary, doc: "Without an envelope.", answers: map[int]reflect.Type{200: says},
	}
	huma.Register(d.api, d.document(op), func(ctx context.Context, _ *struct{}) (*written, error) {
		b, err := read(ctx)
		return &written{func(hc huma.Context) {
			r, w := humago.Unwrap(hc)
			if err != nil {
				d.fail(w, r, err)
				return
			}
			h := w.Header()
			h.Set("Content-Type", "application/json")
			h.Set("Cache-Control", "public, max-age="+strconv.Itoa(int(publicAge/time.Second)))
			h.Set("Access-Control-Allow-Origin", "*")
			h.Set("Content-Length", strconv.Itoa(len(b)))
			_, _ = w.Write(b)
		}}, nil
	})
}
