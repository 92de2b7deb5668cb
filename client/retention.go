package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// Retention is how long an organization's uploads stay, in days of 24 hours from an upload's creation; 0: without end.
type Retention struct {
	OrgID         string   `json:"org_id"`
	RetentionDays int      `json:"retention_days"`
	Response      Response `json:"-"`
}

// Retention reads how long an organization's uploads stay. It needs the admin token. 404: no such organization.
func (c *Client) Retention(ctx context.Context, orgID string) (*Retention, error) {
	return c.retention(ctx, orgID, call{method: http.MethodGet})
}

// SetRetention has an organization's uploads withdrawn once they are so many days old, those that are there already too; 0 ends
// that. At most 36,500. It needs the admin token. 404: no such organization.
func (c *Client) SetRetention(ctx context.Context, orgID string, days int, idempotencyKey string) (*Retention, error) {
	return c.retention(ctx, orgID, call{method: http.MethodPut, body: map[string]int{"retention_days": days}, idempotencyKey: keyOr(idempotencyKey)})
}

func (c *Client) retention(ctx context.Context, orgID string, request call) (*Retention, error) {
	if orgID == "" || orgID == "." || orgID == ".." {
		return nil, errors.New("no organization: give its org_id")
	}
	var r Retention
	request.path, request.admin, request.into, request.response = "/admin/organizations/"+url.PathEscape(orgID)+"/retention", true, &r, &r.Response
	if _, err := c.do(ctx, request); err != nil {
		return nil, err
	}
	return &r, nil
}
