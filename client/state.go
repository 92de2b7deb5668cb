package client

import (
	"context"
	"net/http"
	"time"
)

// ServiceState is what a service does and waits for. Queues, uploads and webhooks are of all its replicas together.
type ServiceState struct {
	At      time.Time `json:"at"`
	Process struct {  // the one that answered
		Version       string    `json:"version"`
		Roles         []string  `json:"roles"`
		StartedAt     time.Time `json:"started_at"`
		UptimeSeconds int64     `json:"uptime_seconds"`
	} `json:"process"`
	Queues  []QueueState `json:"queues"`
	Uploads struct {     // that somebody should look at
		Held   int           `json:"held"` // a gate had no answer so far and is tried again
		Failed int           `json:"failed"`
		Listed []StuckUpload `json:"listed"` // some held ones, the longest first; then some FAILED ones, the newest first
	} `json:"uploads"`
	Webhooks struct {
		Waiting       int   `json:"waiting"`
		Dead          int   `json:"dead"`
		OldestSeconds int64 `json:"oldest_seconds"`
	} `json:"webhooks"`
	RescansWaiting int          `json:"rescans_waiting"`
	Scanner        ScannerState `json:"scanner"`
	Response       Response     `json:"-"`
}

// QueueState is how busy one lane is: gates, deletions or rescans.
type QueueState struct {
	Lane          string `json:"lane"`
	Waiting       int    `json:"waiting"` // due, and no worker has it
	Running       int    `json:"running"`
	OldestSeconds int64  `json:"oldest_seconds"` // the longest of those that wait has been due
}

// StuckUpload is held (PROCESSING) or FAILED.
type StuckUpload struct {
	OrgID    string    `json:"org_id"`
	UploadID string    `json:"upload_id"`
	Status   string    `json:"status"`
	Gate     string    `json:"gate"`
	Code     string    `json:"code"`
	Message  string    `json:"message"`
	Since    time.Time `json:"since"`
}

// ScannerState is the malware scanner; all but OK and Sentence are empty where it does not answer.
type ScannerState struct {
	OK               bool      `json:"ok"`
	Engine           string    `json:"engine"`
	EngineVersion    string    `json:"engine_version"`
	SignatureVersion string    `json:"signature_version"`
	SignatureDate    time.Time `json:"signature_date"` // zero where it is not known
	Sentence         string    `json:"sentence"`       // what is so, and what to do
}

// State tells what the service does and waits for. It needs the admin token.
func (c *Client) State(ctx context.Context) (*ServiceState, error) {
	var state ServiceState
	if _, err := c.do(ctx, call{method: http.MethodGet, path: "/admin/state", admin: true, into: &state, response: &state.Response}); err != nil {
		return nil, err
	}
	return &state, nil
}
