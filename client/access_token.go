package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// WithClientCredentials has the client use a credential as OAuth 2.0 client credentials: it is exchanged for access tokens, which are
// sent instead of it. One token serves all requests until shortly before its end; one that is refused earlier is exchanged for another once.
// credentialID and secret are what IssueCredential answered; scopes narrow what the tokens are for, none means all of the credential's.
// An error if an argument is empty or holds anything but visible ASCII. (Contract 4.3; RFC 6749, section 4.4.)
func WithClientCredentials(credentialID, secret string, scopes ...string) Option {
	return func(c *Client) error {
		if credentialID == "" || secret == "" {
			return errors.New("client credentials are incomplete: give the credential's id and its token")
		}
		c.tokens = &tokens{id: credentialID, secret: secret, scope: strings.Join(scopes, " "), turn: make(chan struct{}, 1)}
		return errors.Join(visibleASCII("credential id", credentialID), visibleASCII("client secret", secret))
	}
}

// forOrganization says whether there is a credential of an organization.
func (c *Client) forOrganization() bool { return c.token != "" || c.tokens != nil }

// tokens gets access tokens for one credential and keeps the newest.
type tokens struct {
	id, secret, scope string
	turn              chan struct{} // whoever could send may touch current; waiting for it ends with a context
	current           *accessToken
}

type accessToken struct {
	value     string
	refreshAt time.Time
	good      atomic.Bool // the service took it at least once
}

// String and GoString keep the credential out of what prints a Client.
func (t *tokens) String() string   { return "client credentials of " + t.id }
func (t *tokens) GoString() string { return t.String() }

// get returns the current token, or a new one; whoever comes meanwhile waits for that.
func (t *tokens) get(ctx context.Context, c *Client) (*accessToken, error) {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-t.turn }()
	if t.current != nil && time.Now().Before(t.current.refreshAt) {
		return t.current, nil
	}
	token, err := t.exchange(ctx, c)
	if err != nil {
		return nil, err
	}
	t.current = token
	return token, nil
}

// drop forgets a token, unless another has taken its place.
func (t *tokens) drop(token *accessToken) {
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	if t.current == token {
		t.current = nil
	}
}

func (t *tokens) exchange(ctx context.Context, c *Client) (*accessToken, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {t.id}, "client_secret": {t.secret}}
	if t.scope != "" {
		form.Set("scope", t.scope)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", c.userAgent)
	asked := time.Now()
	answer, body, err := c.exchange(ctx, request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, newError(answer, body)
	}
	var granted struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"` // seconds
	}
	if json.Unmarshal(body, &granted) != nil || granted.AccessToken == "" {
		return nil, fmt.Errorf("the token endpoint of %s answers no token: check the base URL", request.URL.Host)
	}
	// A minute early, so that no request is under way with a token that ends.
	life := time.Duration(granted.ExpiresIn) * time.Second
	return &accessToken{value: granted.AccessToken, refreshAt: asked.Add(life - min(time.Minute, life/5))}, nil
}

// KeySet reads the service's public keys (RFC 7517): what VerifyReceipt checks receipts with. Keep it while you trust the service.
func (c *Client) KeySet(ctx context.Context) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/oauth/jwks", nil)
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	request.Header.Set("User-Agent", c.userAgent)
	answer, body, err := c.exchange(ctx, request)
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode != http.StatusOK:
		return nil, newError(answer, body)
	case len(body) > MaxKeySetBytes || !json.Valid(body):
		return nil, fmt.Errorf("the answer of %s is no key set: check the base URL", request.URL.Host)
	}
	return body, nil
}
