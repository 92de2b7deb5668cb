package client

import (
	"context"
	"net/http"
	"time"
)

// SandboxCredential opens the sandbox and nothing else; it ends by itself. Token is shown this once and is never logged:
// String leaves it out. Use it in a client of its own, made with [WithToken].
type SandboxCredential struct {
	CredentialID string    `json:"credential_id"`
	Scope        string    `json:"scope"` // always "sandbox:echo"
	ExpiresAt    time.Time `json:"expires_at"`
	Token        string    `json:"token"`
	Response     Response  `json:"-"`
}

// String names the credential without its token.
func (c SandboxCredential) String() string { return "sandbox credential " + c.CredentialID }

// GoString is String, so that %#v leaves the token out too.
func (c SandboxCredential) GoString() string { return c.String() }

// SandboxEcho is an input that came back (contract 2.7).
type SandboxEcho struct {
	Echo         string   `json:"echo"`
	CredentialID string   `json:"credential_id"`
	Response     Response `json:"-"`
}

// SandboxBatch is several inputs that came back, in their order.
type SandboxBatch struct {
	Results []struct {
		Index int    `json:"index"`
		Echo  string `json:"echo"`
	} `json:"results"`
	Response Response `json:"-"`
}

// IssueSandboxCredential gets a sandbox credential: free, without an account, and this client sends no credential for it.
// email may be empty; the service keeps it nowhere. 400: an e-mail address that is none; 429: too many from one address.
func (c *Client) IssueSandboxCredential(ctx context.Context, email string) (*SandboxCredential, error) {
	var credential SandboxCredential
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: "/api/v1/sandbox/keys", public: true, into: &credential, response: &credential.Response,
		body: struct {
			Email string `json:"email,omitempty"`
		}{email},
	})
	if err != nil {
		return nil, err
	}
	return &credential, nil
}

// SandboxEcho sends input, at most 1,000 Unicode code points, and gets it back. It needs a client with the token of a sandbox
// credential. 400: a longer input; 401: no sandbox credential, or one that has ended.
func (c *Client) SandboxEcho(ctx context.Context, input string) (*SandboxEcho, error) {
	var echo SandboxEcho
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: "/api/v1/sandbox/echo", into: &echo, response: &echo.Response,
		body: struct {
			Input string `json:"input"`
		}{input},
	})
	if err != nil {
		return nil, err
	}
	return &echo, nil
}

// SandboxBatch is SandboxEcho for 1 to 8 inputs. One that is too long refuses them all.
func (c *Client) SandboxBatch(ctx context.Context, inputs ...string) (*SandboxBatch, error) {
	type operation struct {
		Input string `json:"input"`
	}
	operations := make([]operation, len(inputs))
	for i, input := range inputs {
		operations[i].Input = input
	}
	var batch SandboxBatch
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: "/api/v1/sandbox/batch", into: &batch, response: &batch.Response,
		body: struct {
			Operations []operation `json:"operations"`
		}{operations},
	})
	if err != nil {
		return nil, err
	}
	return &batch, nil
}
