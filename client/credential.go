package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// The two roles of a credential (contract 4.4).
const (
	RoleUpload   = "solution_company_upload"
	RoleAIReader = "ai_reader"
)

// IssueRequest asks for one credential of one organization (contract 4.4).
type IssueRequest struct {
	OrgID string `json:"org_id"`
	Role  string `json:"role"`
	// Scope narrows the role's scopes, space-separated; empty means all of them.
	Scope string `json:"scope,omitempty"`
	// ExpiresAt; zero means the service's default of 180 days.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// IdempotencyKey; empty means a random one. The same key and request give the same credential again.
	IdempotencyKey string `json:"-"`
}

// Credential is an issued credential. Token is shown this once and is never logged: String leaves it out.
type Credential struct {
	CredentialID string    `json:"credential_id"`
	OrgID        string    `json:"org_id"`
	Role         string    `json:"role"`
	Scope        string    `json:"scope"` // space-separated
	ExpiresAt    time.Time `json:"expires_at"`
	Token        string    `json:"token"`
	Response     Response  `json:"-"`
}

// String names the credential without its token.
func (c Credential) String() string {
	return "credential " + c.CredentialID + " of " + c.OrgID + " (" + c.Role + ")"
}

// GoString is String, so that %#v leaves the token out too.
func (c Credential) GoString() string { return c.String() }

// IssueCredential issues a credential. It needs the admin token. 400: a role, scope or date the service does not
// accept; 401: not the admin token.
func (c *Client) IssueCredential(ctx context.Context, request IssueRequest) (*Credential, error) {
	var credential Credential
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: "/admin/tenant-keys/issue", admin: true, body: request,
		idempotencyKey: keyOr(request.IdempotencyKey), into: &credential, response: &credential.Response,
	})
	if err != nil {
		return nil, err
	}
	return &credential, nil
}

// States of a credential.
const (
	CredentialActive  = "active"
	CredentialExpired = "expired"
	CredentialRevoked = "revoked"
)

// CredentialState is what the service keeps of an issued credential: never its token.
type CredentialState struct {
	CredentialID string    `json:"credential_id"`
	OrgID        string    `json:"org_id"`
	Role         string    `json:"role"`
	Scope        string    `json:"scope"` // space-separated
	State        string    `json:"state"`
	KeyID        string    `json:"key_id"` // the signing key of its token
	CreatedAt    time.Time `json:"created_at"`
	ExpiresAt    time.Time `json:"expires_at"`
	RevokedAt    time.Time `json:"revoked_at"` // zero unless revoked
	Response     Response  `json:"-"`
}

// CredentialQuery selects credentials, newest first. The zero value selects the active ones of every organization.
type CredentialQuery struct {
	OrgID string
	// Ended includes revoked and expired ones.
	Ended bool
	// Limit of a page, 1 to 100; 0 means the service's default.
	Limit int
	// Cursor is the NextCursor of the page before, with the same OrgID and Ended.
	Cursor string
}

// CredentialPage is one page of a list; NextCursor is empty on the last one.
type CredentialPage struct {
	Credentials []CredentialState `json:"credentials"`
	NextCursor  string            `json:"next_cursor"`
	Response    Response          `json:"-"`
}

// RotateRequest asks for the successor of a credential: the same organization, role and scopes.
type RotateRequest struct {
	// Overlap is for how long the old credential goes on being accepted, in whole seconds up to 30 days; nil means the
	// service's default of a day, zero ends it at once.
	Overlap *time.Duration
	// ExpiresAt of the successor; zero means the service's default of 180 days.
	ExpiresAt time.Time
	// IdempotencyKey; empty means a random one. The same key and request give the same successor again.
	IdempotencyKey string
}

// RotatedCredential is the successor, with its token, and what became of the credential before it.
type RotatedCredential struct {
	Credential
	Replaces struct {
		CredentialID string    `json:"credential_id"`
		ExpiresAt    time.Time `json:"expires_at"` // it is accepted until then
	} `json:"replaces"`
}

const credentialsPath = "/admin/tenant-keys/credentials"

// ListCredentials lists issued credentials. It needs the admin token.
func (c *Client) ListCredentials(ctx context.Context, query CredentialQuery) (*CredentialPage, error) {
	values := url.Values{}
	if query.OrgID != "" {
		values.Set("org_id", query.OrgID)
	}
	if query.Ended {
		values.Set("include_ended", "true")
	}
	if query.Limit > 0 {
		values.Set("limit", strconv.Itoa(query.Limit))
	}
	if query.Cursor != "" {
		values.Set("cursor", query.Cursor)
	}
	path := credentialsPath
	if len(values) > 0 {
		path += "?" + values.Encode()
	}
	var page CredentialPage
	_, err := c.do(ctx, call{method: http.MethodGet, path: path, admin: true, into: &page, response: &page.Response})
	if err != nil {
		return nil, err
	}
	return &page, nil
}

// RevokeCredential ends a credential for good: it, and every access token made from it, is refused at the next request.
// Revoking it again changes nothing. It needs the admin token. 404: no such credential.
func (c *Client) RevokeCredential(ctx context.Context, credentialID, idempotencyKey string) (*CredentialState, error) {
	path, err := credentialPath(credentialID, "revoke")
	if err != nil {
		return nil, err
	}
	var state CredentialState
	_, err = c.do(ctx, call{
		method: http.MethodPost, path: path, admin: true, body: struct{}{}, idempotencyKey: keyOr(idempotencyKey), into: &state, response: &state.Response,
	})
	if err != nil {
		return nil, err
	}
	return &state, nil
}

// RotateCredential issues a credential's successor. It needs the admin token. 404: no such credential; 409: it is revoked or
// expired.
func (c *Client) RotateCredential(ctx context.Context, credentialID string, request RotateRequest) (*RotatedCredential, error) {
	path, err := credentialPath(credentialID, "rotate")
	if err != nil {
		return nil, err
	}
	body := struct {
		Overlap   *int64    `json:"overlap_seconds,omitempty"`
		ExpiresAt time.Time `json:"expires_at,omitzero"`
	}{ExpiresAt: request.ExpiresAt}
	if request.Overlap != nil {
		seconds := int64(*request.Overlap / time.Second)
		body.Overlap = &seconds
	}
	var rotated RotatedCredential
	_, err = c.do(ctx, call{
		method: http.MethodPost, path: path, admin: true, body: body, idempotencyKey: keyOr(request.IdempotencyKey), into: &rotated, response: &rotated.Response,
	})
	if err != nil {
		return nil, err
	}
	return &rotated, nil
}

func credentialPath(credentialID, action string) (string, error) {
	if credentialID == "" || credentialID == "." || credentialID == ".." {
		return "", errors.New("no credential id: give the one that ListCredentials shows")
	}
	return credentialsPath + "/" + url.PathEscape(credentialID) + "/" + action, nil
}
