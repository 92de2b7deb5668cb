package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"
)

// The statuses of an upload (contract: Statuses, stages, gates), in the order they come.
const (
	StatusInitiated   = "INITIATED"   // reserved, no part yet
	StatusReceiving   = "RECEIVING"   // the client sends parts
	StatusProcessing  = "PROCESSING"  // the gates run
	StatusReady       = "READY"       // the context is published
	StatusRejected    = "REJECTED"    // a gate refused the content
	StatusFailed      = "FAILED"      // a gate could not finish; an operator may resume it
	StatusExpired     = "EXPIRED"     // the reservation lapsed
	StatusWithdrawing = "WITHDRAWING" // deletion begun, content already unreadable
	StatusWithdrawn   = "WITHDRAWN"   // deletion confirmed
)

// Terminal says whether a status is final. A status this package does not know is not.
func Terminal(status string) bool {
	switch status {
	case StatusReady, StatusRejected, StatusFailed, StatusExpired, StatusWithdrawn:
		return true
	}
	return false
}

// The states of a gate.
const (
	GatePending  = "pending"
	GateRunning  = "running"
	GatePassed   = "passed"
	GateRejected = "rejected"
	GateFailed   = "failed"
)

// Gate is one of the six checks after completion.
type Gate struct {
	Name       string          `json:"name"`
	State      string          `json:"state"`
	StartedAt  time.Time       `json:"started_at,omitzero"`
	FinishedAt time.Time       `json:"finished_at,omitzero"`
	Detail     json.RawMessage `json:"detail,omitempty"` // metadata only, never content
}

// DetailText renders Detail on one line, the members of an object in alphabetical order; empty where there is none.
func (g Gate) DetailText() string {
	var value any
	if len(g.Detail) == 0 || json.Unmarshal(g.Detail, &value) != nil {
		return ""
	}
	return plain(value, false)
}

func plain(value any, nested bool) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	case []any:
		parts := make([]string, len(value))
		for i, v := range value {
			parts[i] = plain(v, true)
		}
		return strings.Join(parts, " ")
	case map[string]any:
		var parts []string
		for name, v := range value {
			if text := plain(v, true); text != "" {
				parts = append(parts, strings.ReplaceAll(name, "_", " ")+" "+text)
			}
		}
		sort.Strings(parts)
		text := strings.Join(parts, ", ")
		if nested && text != "" {
			text = "(" + text + ")"
		}
		return text
	}
	return fmt.Sprint(value)
}

// Failure says which gate ended the upload and why.
type Failure struct {
	Gate    string `json:"gate"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// WithdrawalState says why an upload is not WITHDRAWN yet.
type WithdrawalState struct {
	RequestedAt      time.Time `json:"requested_at"` // unreadable from then on
	Attempts         int       `json:"attempts"`     // deletions that were not confirmed everywhere; it is tried again without end
	Unconfirmed      []string  `json:"unconfirmed"`  // the backends that did not confirm the newest attempt
	UnconfirmedSince time.Time `json:"unconfirmed_since,omitzero"`
}

// UploadStatus is the status of an upload: metadata only, no content.
type UploadStatus struct {
	UploadID       string    `json:"upload_id"`
	PipelineID     string    `json:"pipeline_id,omitempty"`
	Status         string    `json:"status"`
	Sequence       int64     `json:"sequence"`
	Gates          []Gate    `json:"gates"`
	Filename       string    `json:"filename"`
	SizeBytes      int64     `json:"size_bytes"`
	ReceivedBytes  int64     `json:"received_bytes"`
	NextPartNumber int       `json:"next_part_number"`
	CreatedAt      time.Time `json:"created_at,omitzero"`
	UpdatedAt      time.Time `json:"updated_at,omitzero"`
	ExpiresAt      time.Time `json:"expires_at,omitzero"`
	Failure        *Failure  `json:"failure,omitempty"`
	// RetainedUntil is when it is withdrawn by itself; zero where the organization has no retention.
	RetainedUntil time.Time `json:"retained_until,omitzero"`
	// Withdrawal is set while WITHDRAWING.
	Withdrawal *WithdrawalState `json:"withdrawal,omitempty"`
	// ETag names this version; send it in StatusOptions to hear of the next one only.
	ETag     string   `json:"-"`
	Response Response `json:"-"`
}

// StatusOptions of one status request.
type StatusOptions struct {
	// Wait holds the answer until the next event, rounded down to seconds; the service holds it 30 s at most.
	Wait time.Duration
	// ETag of the version already known. Nothing newer: ErrNotModified.
	ETag string
}

// UploadStatus reads the status. 404: no such upload for this credential. ErrNotModified: nothing newer than options.ETag.
func (c *Client) UploadStatus(ctx context.Context, org, uploadID string, options StatusOptions) (*UploadStatus, error) {
	path, err := organizationPath(org, "partner-uploads", uploadID)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	if seconds := int(options.Wait / time.Second); seconds > 0 {
		header.Set("Prefer", "wait="+strconv.Itoa(seconds))
	}
	if options.ETag != "" {
		header.Set("If-None-Match", options.ETag)
	}
	var status UploadStatus
	answer, err := c.do(ctx, call{
		method: http.MethodGet, path: path, header: header, into: &status, response: &status.Response,
	})
	if err != nil {
		return nil, err
	}
	status.ETag = answer.Get("ETag")
	return &status, nil
}
