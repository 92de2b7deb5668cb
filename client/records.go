package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// RequestRecord is the evidence of one request for a context: what was served to whom and when, not that it is true
// (contract 2.7). The records of an organization form a chain of hashes.
type RequestRecord struct {
	RecordID      string    `json:"record_id"`
	RequestID     string    `json:"request_id"`
	TraceID       string    `json:"trace_id"`
	OrgID         string    `json:"org_id"`
	UploadID      string    `json:"upload_id"`
	CredentialID  string    `json:"credential_id"`
	Surface       string    `json:"surface"` // "rest" or "mcp"
	Outcome       string    `json:"outcome"` // "served", or why not
	ContextSHA256 string    `json:"context_sha256"`
	Bytes         int64     `json:"bytes"`
	ServedAt      time.Time `json:"served_at"`
	PreviousHash  string    `json:"previous_hash"`
	RecordHash    string    `json:"record_hash"`
	// RecalledAt is when the upload was withdrawn, zero while it is not: drop what was served. It is no part of what
	// RecordHash is over.
	RecalledAt time.Time `json:"recalled_at"`
}

// RecordFilter selects request records. The zero value asks for the newest 20.
type RecordFilter struct {
	RequestID string
	UploadID  string
	Limit     int    // 1 to 100; 0 means the service's default
	Cursor    string // NextCursor of the page before, with the same filter
}

// RecordPage is one page of request records, newest first. It is the whole only where NextCursor is empty.
type RecordPage struct {
	Records          []RequestRecord `json:"records"`
	NextCursor       string          `json:"next_cursor"`
	SchemaDisclaimer string          `json:"schema_disclaimer"`
	Response         Response        `json:"-"`
}

// RequestRecords reads one page. It needs a credential with the ai_context scope. 400: a limit out of range, or a cursor of
// other filters.
func (c *Client) RequestRecords(ctx context.Context, org string, filter RecordFilter) (*RecordPage, error) {
	path, err := organizationPath(org, "request-records")
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	for name, value := range map[string]string{"request_id": filter.RequestID, "upload_id": filter.UploadID, "cursor": filter.Cursor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if filter.Limit != 0 {
		query.Set("limit", strconv.Itoa(filter.Limit))
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var page RecordPage
	if _, err := c.do(ctx, call{method: http.MethodGet, path: path, into: &page, response: &page.Response}); err != nil {
		return nil, err
	}
	return &page, nil
}

// AllRequestRecords reads page after page as far as the loop goes, newest first; filter.Limit is the size of a page. An error, as of
// RequestRecords, is the last of the sequence.
func (c *Client) AllRequestRecords(ctx context.Context, org string, filter RecordFilter) iter.Seq2[RequestRecord, error] {
	return func(yield func(RequestRecord, error) bool) {
		for {
			page, err := c.RequestRecords(ctx, org, filter)
			if err != nil {
				yield(RequestRecord{}, err)
				return
			}
			for _, record := range page.Records {
				if !yield(record, nil) {
					return
				}
			}
			if filter.Cursor = page.NextCursor; filter.Cursor == "" {
				return
			}
		}
	}
}
