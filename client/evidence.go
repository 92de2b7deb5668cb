package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// The two chains of an organization.
const (
	ChainAudit   = "audit"   // who did what
	ChainRecords = "records" // what was served to whom
)

// FirstHash precedes the first line of every chain, and is the head of an empty one.
const FirstHash = "0000000000000000000000000000000000000000000000000000000000000000"

// AuditLine is one line of an organization's audit log: who did what, never content.
type AuditLine struct {
	AuditID      string    `json:"audit_id"`
	OrgID        string    `json:"org_id"`
	At           time.Time `json:"at"`
	Action       string    `json:"action"`
	CredentialID string    `json:"credential_id"`
	UploadID     string    `json:"upload_id"`
	Status       string    `json:"status"`
	Detail       string    `json:"detail"`
	RequestID    string    `json:"request_id"`
	TraceID      string    `json:"trace_id"`
	PreviousHash string    `json:"previous_hash"`
	LineHash     string    `json:"line_hash"`
}

// EvidenceLine is one line of a chain: Audit or Record, never both. Positions count from 1.
type EvidenceLine struct {
	Position int64          `json:"position"`
	Audit    *AuditLine     `json:"audit,omitempty"`
	Record   *RequestRecord `json:"record,omitempty"`
}

// ChainHead is the end of a chain: its last line's position and hash. An empty chain ends at 0 with FirstHash.
type ChainHead struct {
	Position int64  `json:"position"`
	Hash     string `json:"hash"`
}

// EvidenceQuery selects lines of one chain, oldest first.
type EvidenceQuery struct {
	OrgID string // empty: the chain of the installation itself
	Chain string // ChainAudit or ChainRecords
	After int64  // position to go on after; 0 starts at the first
	Limit int    // 1 to 1000; 0 means the service's default
}

// EvidencePage is a part of a chain. Head was read before the lines: what was appended meanwhile lies beyond it.
type EvidencePage struct {
	Head      ChainHead      `json:"head"`
	Lines     []EvidenceLine `json:"lines"`
	NextAfter int64          `json:"next_after"` // 0: no more
	Response  Response       `json:"-"`
}

// Evidence reads a part of one chain; it is empty for an organization the service does not know. It needs the admin token.
// VerifyChain proves a whole chain.
func (c *Client) Evidence(ctx context.Context, q EvidenceQuery) (*EvidencePage, error) {
	values := url.Values{"org_id": {q.OrgID}, "chain": {q.Chain}, "after": {strconv.FormatInt(q.After, 10)}}
	if q.Limit != 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	var page EvidencePage
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/admin/evidence?" + values.Encode(), admin: true, into: &page, response: &page.Response})
	if err != nil {
		return nil, err
	}
	return &page, nil
}

// HeadsPage is a part of the heads of all chains. It is the whole only where NextCursor is empty.
type HeadsPage struct {
	At         time.Time           `json:"at"` // no head is older
	Heads      []OrganizationHeads `json:"heads"`
	NextCursor string              `json:"next_cursor"`
	Response   Response            `json:"-"`
}

// EvidenceHeads reads where the chains of up to 1000 organizations end; cursor is the NextCursor of the page before. It needs
// the admin token.
func (c *Client) EvidenceHeads(ctx context.Context, cursor string) (*HeadsPage, error) {
	path := "/admin/evidence/heads"
	if cursor != "" {
		path += "?" + url.Values{"cursor": {cursor}}.Encode()
	}
	var page HeadsPage
	if _, err := c.do(ctx, call{method: http.MethodGet, path: path, admin: true, into: &page, response: &page.Response}); err != nil {
		return nil, err
	}
	return &page, nil
}
