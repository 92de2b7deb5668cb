package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// RescanScope says which stored uploads are meant; the zero value means all of the installation.
type RescanScope struct {
	OrgID    string `json:"org_id,omitempty"`
	UploadID string `json:"upload_id,omitempty"`
}

// QueuedRescans answers QueueRescans, in uploads.
type QueuedRescans struct {
	Queued      int       `json:"queued"`  // scanned again from now on
	Waiting     int       `json:"waiting"` // that wait or are being scanned, these among them
	RequestedAt time.Time `json:"requested_at"`
	Response    Response  `json:"-"`
}

// RescanState is how far re-scans are, in uploads.
type RescanState struct {
	Waiting    int      `json:"waiting"`    // to be scanned again, or being scanned
	Unanswered int      `json:"unanswered"` // of those: tried, so far without an answer
	Clean      int      `json:"clean"`
	Found      int      `json:"found"`      // REJECTED for malware, their context withdrawn
	Unreadable int      `json:"unreadable"` // REJECTED because the engine could not look into them
	Response   Response `json:"-"`
}

const rescansPath = "/admin/rescans"

// QueueRescans has stored READY uploads scanned again, with the newest signatures the service has. It needs the admin token.
func (c *Client) QueueRescans(ctx context.Context, scope RescanScope, idempotencyKey string) (*QueuedRescans, error) {
	var queued QueuedRescans
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: rescansPath, admin: true, body: scope, idempotencyKey: keyOr(idempotencyKey), into: &queued, response: &queued.Response,
	})
	if err != nil {
		return nil, err
	}
	return &queued, nil
}

// Rescans tells how far the re-scans of a scope are; it counts the outcomes since then, all where since is zero. It needs the
// admin token.
func (c *Client) Rescans(ctx context.Context, scope RescanScope, since time.Time) (*RescanState, error) {
	values := url.Values{}
	for name, value := range map[string]string{"org_id": scope.OrgID, "upload_id": scope.UploadID} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if !since.IsZero() {
		values.Set("since", since.UTC().Format(time.RFC3339Nano))
	}
	path := rescansPath
	if len(values) > 0 {
		path += "?" + values.Encode()
	}
	var state RescanState
	_, err := c.do(ctx, call{method: http.MethodGet, path: path, admin: true, into: &state, response: &state.Response})
	if err != nil {
		return nil, err
	}
	return &state, nil
}
