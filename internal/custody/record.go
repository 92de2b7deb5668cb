package custody

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Record is the durable evidence of one serving. (Section 2.7; contract decisions, request records.)
// Records of one organization form a chain: each carries the hash of the one before it.
type Record struct {
	ID            string    `json:"record_id"`
	RequestID     string    `json:"request_id"`
	TraceID       string    `json:"trace_id"`
	OrgID         string    `json:"org_id"`
	UploadID      string    `json:"upload_id"`
	CredentialID  string    `json:"credential_id"`
	Surface       string    `json:"surface"` // "rest" or "mcp"
	Outcome       string    `json:"outcome"` // "served", or why not
	ContextSHA256 string    `json:"context_sha256"`
	Bytes         int64     `json:"bytes"` // length of the served context as JSON
	ServedAt      time.Time `json:"served_at"`
	PreviousHash  string    `json:"previous_hash"` // 64 zeros for an organization's first
	Hash          string    `json:"record_hash"`

	// RecalledAt is when the withdrawal of the upload was accepted; zero while there is none. It is derived when the record is
	// read and is no part of what is hashed.
	RecalledAt time.Time `json:"-"`
}

// Outcomes of a request for context.
const (
	OutcomeServed            = "served"
	OutcomeRefusedVisibility = "refused_visibility"
)

// FirstHash precedes the first link of every chain.
const FirstHash = "0000000000000000000000000000000000000000000000000000000000000000"

// Link sets r's previous hash and computes its own: SHA-256 over its JSON with record_hash empty.
func (r *Record) Link(previous string) {
	r.PreviousHash, r.Hash = previous, ""
	r.Hash = chainHash(r)
}

// AuditLine is one line of an organization's audit log: who did what, never content. Chained like records.
type AuditLine struct {
	ID           string    `json:"audit_id"`
	OrgID        string    `json:"org_id"`
	At           time.Time `json:"at"`
	Action       string    `json:"action"` // a Trigger, or "credential_issued"
	CredentialID string    `json:"credential_id"`
	UploadID     string    `json:"upload_id"`
	Status       Status    `json:"status"`
	Detail       string    `json:"detail"`
	RequestID    string    `json:"request_id"`
	TraceID      string    `json:"trace_id"`
	PreviousHash string    `json:"previous_hash"`
	Hash         string    `json:"line_hash"`
}

// Link sets l's previous hash and computes its own: SHA-256 over its JSON with line_hash empty.
func (l *AuditLine) Link(previous string) {
	l.PreviousHash, l.Hash = previous, ""
	l.Hash = chainHash(l)
}

func chainHash(v any) string {
	b, err := json.Marshal(v) // fixed field order; plain strings and times cannot fail
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// RecordQuery selects request records, newest first. (Section 4.7.)
type RecordQuery struct {
	OrgID     string
	RequestID string // optional
	UploadID  string // optional
	Before    int64  // position to continue before; 0 starts at the newest
	Limit     int    // 1 to 100
}
