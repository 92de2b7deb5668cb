package custody

import "time"

// Receipt is what remains after withdrawal; its JSON is the document that is signed. (Section 1, section 3.)
type Receipt struct {
	ID               string     `json:"withdrawal_receipt_id"`
	Issuer           string     `json:"issuer"` // base URL of the service that signed it
	UploadID         string     `json:"upload_id"`
	OrgID            string     `json:"org_id"`
	SHA256           string     `json:"sha256,omitempty"`        // of the file, where it was known
	SizeBytes        int64      `json:"size_bytes,omitempty"`    // of the file, where its digest was known
	CredentialID     string     `json:"requested_by"`            // or AdminCredentialID, RetentionCredentialID
	Reason           string     `json:"reason"`                  // as given; may be empty
	RequestedAt      time.Time  `json:"requested_at"`            // unreadable from then on
	RetainedUntil    time.Time  `json:"retained_until,omitzero"` // the end of the retention that asked for it
	WithdrawnAt      time.Time  `json:"withdrawn_at"`
	QuotaBytes       int64      `json:"quota_bytes"` // set free
	Deletions        []Deletion `json:"deletions"`
	KeyDestroyedAt   time.Time  `json:"key_destroyed_at"`   // when that was confirmed
	KeyBackupHorizon string     `json:"key_backup_horizon"` // ISO 8601 duration, such as PT720H
	Recalled         []Recall   `json:"recalled"`
	Remains          []Remnant  `json:"remains"`

	Signed string `json:"-"` // the document as a compact JWS
}

// Deletion says what one backend confirmed.
type Deletion struct {
	Backend      string    `json:"backend"` // a store's name, or BackendKeys
	Objects      int       `json:"objects"` // deleted in this withdrawal, all its attempts together
	Bytes        int64     `json:"bytes"`   // of their ciphertext; 0 for keys
	Confirmation string    `json:"confirmation"`
	ConfirmedAt  time.Time `json:"confirmed_at"`
}

// BackendKeys is the backend of data keys.
const BackendKeys = "key_store"

// Recall names a credential that was served the context before the withdrawal.
type Recall struct {
	CredentialID string    `json:"credential_id"`
	Servings     int64     `json:"servings"` // at least 1
	LastServedAt time.Time `json:"last_served_at"`
}

// Remnant is something that withdrawal leaves by design.
type Remnant struct {
	What  string    `json:"what"`
	Until time.Time `json:"until,omitzero"` // zero: kept
}

// StoredObject is one object of an upload in a backend.
type StoredObject struct {
	Backend   string
	Key       string
	SizeBytes int64 // of ciphertext; 0 for keys
}

// DeletedObjects is how many objects of an upload a withdrawal found in one backend, all its attempts together.
type DeletedObjects struct {
	Backend string
	Objects int
	Bytes   int64
}
