package custody

import (
	"encoding/json"
	"io"
	"time"
)

// Reservation asks for custody of one partner upload. (Section 4.6, initiate.)
type Reservation struct {
	OrgID        string
	Filename     string
	ContentType  string
	SizeBytes    int64
	Consent      Consent
	Notes        string
	MaterialType string
	Importance   Importance
	Body         any // as it was decoded: see Submission
}

// IncomingPart is one part on its way in. Body is read once, to its end.
type IncomingPart struct {
	OrgID          string
	UploadID       string
	Number         int
	Length         int64 // Content-Length in bytes
	Body           io.Reader
	DeclaredSHA256 string // from Content-Digest, 64 lowercase hex digits; empty when not sent
}

// AcceptedPart answers an IncomingPart.
type AcceptedPart struct {
	UploadID string
	Number   int
	Sequence int64
	Status   Status
}

// DeclaredPart is one row of the ledger as the client remembers it.
type DeclaredPart struct {
	Number    int
	SHA256    string // optional
	SizeBytes int64  // optional, 0: not declared
}

// Completion closes the part ledger. (Section 4.6, complete.)
type Completion struct {
	OrgID        string
	UploadID     string
	Parts        []DeclaredPart
	ClientSHA256 string // 64 lowercase hex digits
}

// Completed answers a Completion: Accepted tells a new job (202) from one that was accepted before (200).
type Completed struct {
	Upload   Upload
	Accepted bool
}

// UploadState is what a status tells of an upload. Consent, notes, digests, quota and who sent it are no part of that: they are zero.
type UploadState struct {
	Upload
	Gates         []GateShown
	RetainedUntil time.Time    // when its retention ends; zero where it has no end, or a withdrawal began
	Withdrawal    *Withdrawing // while WITHDRAWING
}

// Withdrawal asks for permanent deletion. (Section 4.6, withdraw.)
type Withdrawal struct {
	OrgID    string
	UploadID string
	Reason   string
}

// CredentialRequest asks for a new credential. (Section 4.4.)
type CredentialRequest struct {
	OrgID     string
	Role      Role
	Scopes    []Scope   // empty: the role's own
	ExpiresAt time.Time // zero: 180 days from now
}

// Published is what the serving of an upload's context goes by.
type Published struct {
	Status     Status
	Visibility Visibility
	Context    Artifact // zero where none was made
}

// Serving is one context on its way to one reader; its record is durable already.
type Serving struct {
	UploadID   string
	OrgID      string
	Visibility Visibility
	Context    json.RawMessage
	RecordID   string
}
