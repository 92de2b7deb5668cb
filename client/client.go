package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxAnswerBytes bounds what is read of one answer. The largest, a context of 4,096 tokens, is far below.
const maxAnswerBytes = 8 << 20

// Client speaks to one service with one credential. It is safe for concurrent use.
type Client struct {
	base       string
	token      string
	tokens     *tokens // instead of token
	adminToken string
	userAgent  string
	retry      *Retry
	http       *http.Client
}

// Option changes a new [Client].
type Option func(*Client) error

// WithToken sets the credential of an organization, sent as x-api-key (contract: Authentication per operation).
// Keep it on the server side. An error if it holds anything but visible ASCII.
func WithToken(token string) Option {
	return func(c *Client) error {
		c.token = token
		return visibleASCII("token", token)
	}
}

// WithAdminToken sets the admin token, sent as Authorization: Bearer. It is used to issue credentials, and to withdraw
// where no organization credential is set. An error if it holds anything but visible ASCII.
func WithAdminToken(token string) Option {
	return func(c *Client) error {
		c.adminToken = token
		return visibleASCII("admin token", token)
	}
}

// WithHTTPClient uses the transport, cookie jar and timeout of h. A timeout has to leave room for one whole part.
// Redirects are never followed: the credential stays with the host it was meant for.
func WithHTTPClient(h *http.Client) Option {
	return func(c *Client) error {
		if h == nil {
			return errors.New("http client is nil")
		}
		own := *h
		c.http = &own
		return nil
	}
}

// WithRetry has every method repeat what fails for a passing reason ([Retryable]), mutations with the Idempotency-Key of their first
// attempt. PutPart alone makes one attempt, since its body is read once: [Uploader] repeats parts. Inside [Retry.Do], which [Uploader] and
// [Client.Follow] use, attempts are not multiplied.
func WithRetry(retry Retry) Option {
	return func(c *Client) error { c.retry = &retry; return nil }
}

// WithUserAgent sets the User-Agent header; the default is "accession-client".
func WithUserAgent(agent string) Option {
	return func(c *Client) error { c.userAgent = agent; return nil }
}

// New returns a client for the service at baseURL, for example "https://custody.example". An error if that is no
// absolute http or https address, or carries a user, a query or a fragment.
func New(baseURL string, options ...Option) (*Client, error) {
	u, err := url.Parse(baseURL)
	switch {
	case err != nil:
		return nil, errors.New("base URL cannot be parsed: write it like https://custody.example")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, fmt.Errorf("base URL %q is not absolute: write it like https://custody.example", u.Redacted())
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("base URL carries a user, a query or a fragment: leave scheme, host and path only")
	}
	c := &Client{base: strings.TrimRight(baseURL, "/"), userAgent: "accession-client"}
	for _, option := range options {
		if err := option(c); err != nil {
			return nil, err
		}
	}
	if c.token != "" && c.tokens != nil {
		return nil, errors.New("both a token and client credentials: give one of them")
	}
	if c.http == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		// Above the 30 s a status may be held, and room for a part to become durable.
		transport.ResponseHeaderTimeout = 2 * time.Minute
		c.http = &http.Client{Transport: transport}
	}
	// x-api-key would travel along to another host, which net/http only prevents for Authorization.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// Response is what every successful answer carries beside its data (contract 2.1).
type Response struct {
	RequestID string
	TraceID   string
	// Replayed says that the service repeated the answer to an earlier request with the same Idempotency-Key.
	Replayed bool
	// Data is the data object as received, with fields this package has no name for.
	Data json.RawMessage
}

// NewIdempotencyKey returns a random key of 26 characters. Send the same key when you repeat the same mutation.
func NewIdempotencyKey() string { return rand.Text() }

// call is one request and where its answer goes.
type call struct {
	method, path   string
	admin          bool
	public         bool   // goes without a credential
	bearer         string // an access token instead of the credential
	body           any    // JSON, unless raw is set
	raw            io.Reader
	size           int64
	idempotencyKey string
	header         http.Header
	into           any // decoded from data
	response       *Response
}

// do makes one request, again where the client retries. Header and status of the answer are returned on success; a service's refusal
// is an *Error.
func (c *Client) do(ctx context.Context, call call) (header http.Header, err error) {
	if c.retry == nil || call.raw != nil || insideRetry(ctx) {
		return c.authorized(ctx, call)
	}
	err = c.retry.Do(ctx, func(ctx context.Context) error {
		header, err = c.authorized(ctx, call)
		return err
	})
	return header, err
}

// authorized makes one attempt, and one more where an access token that was good before is refused.
func (c *Client) authorized(ctx context.Context, call call) (http.Header, error) {
	if c.tokens == nil || call.public || call.admin {
		return c.attempt(ctx, call)
	}
	token, err := c.tokens.get(ctx, c)
	if err != nil {
		return nil, err
	}
	call.bearer = token.value
	header, err := c.attempt(ctx, call)
	var refusal *Error
	refused := errors.As(err, &refusal) && refusal.Status == http.StatusUnauthorized && refusal.Code == "credential_invalid"
	if !refused {
		if err == nil || refusal != nil || errors.Is(err, ErrNotModified) {
			token.good.Store(true)
		}
		return header, err
	}
	if !token.good.Load() { // new, and refused: another would be as well
		return header, err
	}
	c.tokens.drop(token)
	if call.raw != nil { // it was read; whoever has it again may repeat it
		refusal.renewed = true
		return header, err
	}
	if token, err = c.tokens.get(ctx, c); err != nil {
		return nil, err
	}
	call.bearer = token.value
	return c.attempt(ctx, call)
}

func (c *Client) attempt(ctx context.Context, call call) (http.Header, error) {
	request, err := c.newRequest(ctx, call)
	if err != nil {
		return nil, err
	}
	answer, body, err := c.exchange(ctx, request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusNotModified {
		return answer.Header, ErrNotModified
	}
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return answer.Header, newError(answer, body)
	}
	var envelope struct {
		RequestID string          `json:"request_id"`
		TraceID   string          `json:"trace_id"`
		Data      json.RawMessage `json:"data"`
	}
	if len(body) > maxAnswerBytes || json.Unmarshal(body, &envelope) != nil || len(envelope.Data) == 0 {
		return nil, fmt.Errorf("the answer of %s is not this service's: check the base URL", request.URL.Host)
	}
	*call.response = Response{
		RequestID: envelope.RequestID, TraceID: envelope.TraceID, Data: envelope.Data,
		Replayed: answer.Header.Get("Idempotent-Replayed") == "true",
	}
	if err := json.Unmarshal(envelope.Data, call.into); err != nil {
		return nil, fmt.Errorf("the answer to request %s has unexpected data: %w", envelope.RequestID, err)
	}
	return answer.Header, nil
}

// exchange sends a request and reads its answer, up to one byte more than maxAnswerBytes.
func (c *Client) exchange(ctx context.Context, request *http.Request) (*http.Response, []byte, error) {
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, nil, newNetworkError(ctx, request.URL.Host, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes+1))
	if err != nil {
		return nil, nil, newNetworkError(ctx, request.URL.Host, err)
	}
	return answer, body, nil
}

func (c *Client) newRequest(ctx context.Context, call call) (*http.Request, error) {
	body, contentType := call.raw, "application/octet-stream"
	if call.body != nil {
		encoded, err := json.Marshal(call.body)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		body, contentType = bytes.NewReader(encoded), "application/json"
	}
	request, err := http.NewRequestWithContext(ctx, call.method, c.base+call.path, body)
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	if call.raw != nil {
		request.ContentLength = call.size
	}
	if call.header != nil {
		request.Header = call.header.Clone()
	}
	if body != nil {
		request.Header.Set("Content-Type", contentType)
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", c.userAgent)
	if call.idempotencyKey != "" {
		request.Header.Set("Idempotency-Key", call.idempotencyKey)
	}
	switch {
	case call.public:
	case call.admin && c.adminToken != "":
		request.Header.Set("Authorization", "Bearer "+c.adminToken)
	case call.bearer != "":
		request.Header.Set("Authorization", "Bearer "+call.bearer)
	case !call.admin && c.token != "":
		request.Header.Set("x-api-key", c.token)
	default:
		return nil, ErrNoCredential
	}
	return request, nil
}

// organizationPath joins the path of an operation; arguments are escaped, empty ones and dot segments refused.
func organizationPath(org string, segments ...string) (string, error) {
	var path strings.Builder
	path.WriteString("/api/v1/organizations")
	for i, segment := range append([]string{org}, segments...) {
		if segment == "" || segment == "." || segment == ".." {
			name := "upload id"
			if i == 0 {
				name = "organization"
			}
			return "", fmt.Errorf("%s %q cannot be used: give the id the service knows", name, segment)
		}
		path.WriteString("/" + url.PathEscape(segment))
	}
	return path.String(), nil
}

func keyOr(key string) string {
	if key != "" {
		return key
	}
	return NewIdempotencyKey()
}

func visibleASCII(name, value string) error {
	if strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%s holds spaces, line ends or characters outside ASCII: copy it again, nothing around it", name)
	}
	return nil
}
