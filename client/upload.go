package client

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// MaxUploadBytes is the largest upload the contract allows, 8 GiB.
const MaxUploadBytes = 8 << 30

// InitiateRequest reserves an upload (contract 4.6).
type InitiateRequest struct {
	Filename    string  `json:"filename"` // at most 255 bytes
	ContentType string  `json:"content_type"`
	SizeBytes   int64   `json:"size_bytes"` // 1 to MaxUploadBytes
	Consent     Consent `json:"consent"`
	Notes       string  `json:"notes,omitempty"` // at most 2,000 characters
	// MaterialType is free text; Importance is "normal" or "important".
	MaterialType string `json:"material_type,omitempty"`
	Importance   string `json:"importance,omitempty"`
	// IdempotencyKey; empty means a random one.
	IdempotencyKey string `json:"-"`
}

// Reservation is the answer to InitiateUpload (contract 2.6).
type Reservation struct {
	UploadID      string    `json:"upload_id"`
	PartSizeBytes int64     `json:"part_size_bytes"`
	Status        string    `json:"status"`
	ExpiresAt     time.Time `json:"expires_at"`
	Response      Response  `json:"-"`
}

// InitiateUpload reserves an upload and its quota. 401 credential_not_bound: not a solution_company_upload credential of org;
// 409 quota_exceeded, with the figures in Details.
func (c *Client) InitiateUpload(ctx context.Context, org string, request InitiateRequest) (*Reservation, error) {
	path, err := organizationPath(org, "partner-uploads", "initiate")
	if err != nil {
		return nil, err
	}
	var reservation Reservation
	_, err = c.do(ctx, call{
		method: http.MethodPost, path: path, body: request,
		idempotencyKey: keyOr(request.IdempotencyKey), into: &reservation, response: &reservation.Response,
	})
	if err != nil {
		return nil, err
	}
	if reservation.UploadID == "" || reservation.PartSizeBytes < 1 {
		return nil, errors.New("the reservation lacks upload_id or part_size_bytes")
	}
	return &reservation, nil
}

// Part is one part to send. Number starts at 1; every part but the last is exactly part_size_bytes long.
type Part struct {
	Number int
	// Body is read once, as it is sent; an io.SectionReader of the file does. Exactly SizeBytes have to come.
	Body      io.Reader
	SizeBytes int64
	// SHA256, 64 hex digits, is sent as Content-Digest (RFC 9530) for the service to check; optional.
	SHA256 string
	// IdempotencyKey; empty means a random one.
	IdempotencyKey string
}

// PartReceipt is the answer to PutPart: the part is durable (contract 2.6).
type PartReceipt struct {
	UploadID   string   `json:"upload_id"`
	PartNumber int      `json:"part_number"`
	Sequence   int64    `json:"sequence"`
	Status     string   `json:"status"`
	Response   Response `json:"-"`
}

// PutPart sends one part, streaming. 409: out of order, or other bytes than the part already accepted under this number;
// 400: wrong length.
func (c *Client) PutPart(ctx context.Context, org, uploadID string, part Part) (*PartReceipt, error) {
	path, err := organizationPath(org, "partner-uploads", uploadID, "parts", strconv.Itoa(part.Number))
	if err != nil {
		return nil, err
	}
	if part.Body == nil || part.SizeBytes < 1 {
		return nil, errors.New("part has no bytes: set Body and SizeBytes")
	}
	header := http.Header{}
	if part.SHA256 != "" {
		digest, err := hex.DecodeString(part.SHA256)
		if err != nil || len(digest) != 32 {
			return nil, errors.New("part SHA256 is not 64 hex digits")
		}
		header.Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(digest)+":")
	}
	var receipt PartReceipt
	_, err = c.do(ctx, call{
		method: http.MethodPut, path: path, raw: part.Body, size: part.SizeBytes, header: header,
		idempotencyKey: keyOr(part.IdempotencyKey), into: &receipt, response: &receipt.Response,
	})
	if err != nil {
		return nil, err
	}
	return &receipt, nil
}

// CompletePart is one line of the part ledger as the client knows it.
type CompletePart struct {
	PartNumber int    `json:"part_number"`
	SHA256     string `json:"sha256,omitempty"`
	SizeBytes  int64  `json:"size_bytes,omitempty"`
}

// CompleteRequest declares what was sent (contract 4.6).
type CompleteRequest struct {
	UploadID         string         `json:"upload_id"`
	Parts            []CompletePart `json:"parts"`
	ClientFileSHA256 string         `json:"client_file_sha256"` // 64 lowercase hex digits
	// IdempotencyKey; empty means a random one.
	IdempotencyKey string `json:"-"`
}

// Completion is the answer to CompleteUpload. The gates have only begun: read the status until it is terminal.
type Completion struct {
	UploadID   string `json:"upload_id"`
	PipelineID string `json:"pipeline_id"`
	Status     string `json:"status"`
	Sequence   int64  `json:"sequence"`
	SHA256     string `json:"sha256"`
	// Job is set when the service answered 202.
	Job      *Job     `json:"job,omitempty"`
	Response Response `json:"-"`
}

// Job is the async job shape (contract 2.6).
type Job struct {
	JobID            string `json:"job_id"`
	StatusURL        string `json:"status_url"`
	PollAfterSeconds int    `json:"poll_after_seconds"`
	Polling          struct {
		Method           string   `json:"method"`
		URL              string   `json:"url"`
		TerminalStatuses []string `json:"terminal_statuses"`
	} `json:"polling"`
}

// CompleteUpload declares the upload whole; the service compares its own digests with the declared ones. 409: the part ledger or
// a digest differs.
func (c *Client) CompleteUpload(ctx context.Context, org string, request CompleteRequest) (*Completion, error) {
	path, err := organizationPath(org, "partner-uploads", request.UploadID, "complete")
	if err != nil {
		return nil, err
	}
	var completion Completion
	_, err = c.do(ctx, call{
		method: http.MethodPost, path: path, body: request,
		idempotencyKey: keyOr(request.IdempotencyKey), into: &completion, response: &completion.Response,
	})
	if err != nil {
		return nil, err
	}
	return &completion, nil
}

// WithdrawRequest deletes an upload for good (contract 4.6).
type WithdrawRequest struct {
	Reason string `json:"reason,omitempty"` // at most 500 characters
	// IdempotencyKey; empty means a random one.
	IdempotencyKey string `json:"-"`
}

// Withdrawal is the receipt of a confirmed deletion (contract 2.6).
type Withdrawal struct {
	UploadID            string   `json:"upload_id"`
	Status              string   `json:"status"`
	Deleted             bool     `json:"deleted"`
	WithdrawalReceiptID string   `json:"withdrawal_receipt_id"`
	QuotaBytes          int64    `json:"quota_bytes"`
	Response            Response `json:"-"`
}

// WithdrawUpload deletes the upload, its copies and its context. It uses the organization's credential, or the admin token
// where only that is set. 403: the credential is not bound to this upload; 502: not yet confirmed in every storage backend, retry with the
// same IdempotencyKey.
func (c *Client) WithdrawUpload(ctx context.Context, org, uploadID string, request WithdrawRequest) (*Withdrawal, error) {
	path, err := organizationPath(org, "partner-uploads", uploadID, "withdraw")
	if err != nil {
		return nil, err
	}
	var withdrawal Withdrawal
	_, err = c.do(ctx, call{
		method: http.MethodPost, path: path, body: request, admin: !c.forOrganization(),
		idempotencyKey: keyOr(request.IdempotencyKey), into: &withdrawal, response: &withdrawal.Response,
	})
	if err != nil {
		return nil, err
	}
	return &withdrawal, nil
}
