package client

import (
	"context"
	"net/http"
	"net/url"
)

// StorageFinding is one disagreement between the service's rows, objects and keys.
type StorageFinding struct {
	UploadID string `json:"upload_id"`
	OrgID    string `json:"org_id"` // empty where there is no such upload
	Status   string `json:"status"` // empty where there is no such upload
	Problem  string `json:"problem"`
	Backend  string `json:"backend"`
	Objects  int    `json:"objects"` // or keys
	Repaired bool   `json:"repaired"`
}

// StorageReport is one step of CheckStorage.
type StorageReport struct {
	Uploads   int              `json:"uploads"` // looked at in this step
	Findings  []StorageFinding `json:"findings"`
	Omitted   int              `json:"omitted"`    // findings beyond those listed; not repaired
	NextAfter string           `json:"next_after"` // for the next step; empty after the last
	Response  Response         `json:"-"`
}

// CheckStorage does one step of comparing rows, objects and keys, of the uploads after one; the first step is after "". With repair
// it deletes what no row names. It needs the admin token.
func (c *Client) CheckStorage(ctx context.Context, after string, repair bool, idempotencyKey string) (*StorageReport, error) {
	body := struct {
		After  string `json:"after,omitempty"`
		Repair bool   `json:"repair,omitempty"`
	}{after, repair}
	var report StorageReport
	if _, err := c.do(ctx, call{
		method: http.MethodPost, path: "/admin/fsck", admin: true, body: body, idempotencyKey: keyOr(idempotencyKey), into: &report, response: &report.Response,
	}); err != nil {
		return nil, err
	}
	return &report, nil
}

// Resumed answers ResumeUpload.
type Resumed struct {
	UploadID   string   `json:"upload_id"`
	PipelineID string   `json:"pipeline_id"`
	Status     string   `json:"status"`
	Sequence   int64    `json:"sequence"`
	Gate       string   `json:"gate"` // that starts anew
	Response   Response `json:"-"`
}

// ResumeUpload lets a FAILED upload go on at the gate that failed. It needs the admin token.
func (c *Client) ResumeUpload(ctx context.Context, orgID, uploadID, idempotencyKey string) (*Resumed, error) {
	body := struct {
		OrgID string `json:"org_id"`
	}{orgID}
	var resumed Resumed
	if _, err := c.do(ctx, call{
		method: http.MethodPost, path: "/admin/uploads/" + url.PathEscape(uploadID) + "/resume", admin: true, body: body,
		idempotencyKey: keyOr(idempotencyKey), into: &resumed, response: &resumed.Response,
	}); err != nil {
		return nil, err
	}
	return &resumed, nil
}
