package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Organization is an organization as its operator sees it; bytes are of plaintext.
type Organization struct {
	OrgID             string    `json:"org_id"`
	AllowanceBytes    int64     `json:"allowance_bytes"`
	UsedBytes         int64     `json:"used_bytes"`
	ReservedBytes     int64     `json:"reserved_bytes"`
	AvailableBytes    int64     `json:"available_bytes"`
	UploadCount       int64     `json:"upload_count"`
	CreatedAt         time.Time `json:"created_at"`
	RetentionDays     int       `json:"retention_days"`     // 0: without end
	ActiveCredentials int       `json:"active_credentials"` // neither revoked nor expired
}

// OrganizationPage is a part of all organizations, by ascending id. It is the whole only where NextCursor is empty.
type OrganizationPage struct {
	Organizations []Organization `json:"organizations"`
	NextCursor    string         `json:"next_cursor"`
	Response      Response       `json:"-"`
}

// ListOrganizations reads up to 100 organizations; cursor is the NextCursor of the page before. It needs the admin token.
func (c *Client) ListOrganizations(ctx context.Context, cursor string) (*OrganizationPage, error) {
	values := url.Values{"limit": {"100"}}
	if cursor != "" {
		values.Set("cursor", cursor)
	}
	var page OrganizationPage
	if _, err := c.do(ctx, call{method: http.MethodGet, path: "/admin/organizations?" + values.Encode(), admin: true, into: &page, response: &page.Response}); err != nil {
		return nil, err
	}
	return &page, nil
}

// Allowance is what an organization may keep and keeps.
type Allowance struct {
	Quota
	DefaultBytes int64 `json:"default_allowance_bytes"` // what a new organization gets
}

// DefaultAllowance stands for what a new organization gets.
const DefaultAllowance = -1

// Allowance reads what an organization may keep. It needs the admin token. 404: no such organization.
func (c *Client) Allowance(ctx context.Context, orgID string) (*Allowance, error) {
	return c.allowance(ctx, orgID, call{method: http.MethodGet})
}

// SetAllowance changes how many bytes an organization may keep, or sets it to DefaultAllowance. An allowance below what is kept deletes
// nothing: nothing more is accepted. It needs the admin token. 404: no such organization.
func (c *Client) SetAllowance(ctx context.Context, orgID string, bytes int64, idempotencyKey string) (*Allowance, error) {
	var body struct {
		AllowanceBytes *int64 `json:"allowance_bytes"`
	}
	if bytes != DefaultAllowance {
		body.AllowanceBytes = &bytes
	}
	return c.allowance(ctx, orgID, call{method: http.MethodPut, body: body, idempotencyKey: keyOr(idempotencyKey)})
}

func (c *Client) allowance(ctx context.Context, orgID string, request call) (*Allowance, error) {
	if orgID == "" || orgID == "." || orgID == ".." {
		return nil, errors.New("no organization: give its org_id")
	}
	var a Allowance
	request.path, request.admin, request.into, request.response = "/admin/organizations/"+url.PathEscape(orgID)+"/quota", true, &a, &a.Response
	if _, err := c.do(ctx, request); err != nil {
		return nil, err
	}
	return &a, nil
}

// AuditQuery selects audit lines of all organizations and of the installation itself; empty fields select all.
type AuditQuery struct {
	OrgID        string
	UploadID     string
	CredentialID string // who did it
	Action       string // such as withdrawal_accepted
	Since, Until time.Time
	Limit        int    // 1 to 100; 0 means the service's default
	Cursor       string // NextCursor of the page before, with the same filters
}

// AuditPage is a part of what was found, newest first. It is the whole only where NextCursor is empty.
type AuditPage struct {
	Lines      []EvidenceLine `json:"lines"`
	NextCursor string         `json:"next_cursor"`
	Response   Response       `json:"-"`
}

// SearchAudit finds audit lines, newest first. It needs the admin token. To prove that a log is whole, see VerifyChain.
func (c *Client) SearchAudit(ctx context.Context, q AuditQuery) (*AuditPage, error) {
	values := url.Values{}
	for name, value := range map[string]string{"org_id": q.OrgID, "upload_id": q.UploadID, "credential_id": q.CredentialID, "action": q.Action, "cursor": q.Cursor} {
		if value != "" {
			values.Set(name, value)
		}
	}
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			values.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	if q.Limit != 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	path := "/admin/audit"
	if len(values) > 0 {
		path += "?" + values.Encode()
	}
	var page AuditPage
	if _, err := c.do(ctx, call{method: http.MethodGet, path: path, admin: true, into: &page, response: &page.Response}); err != nil {
		return nil, err
	}
	return &page, nil
}
