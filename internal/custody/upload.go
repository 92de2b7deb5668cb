package custody

import (
	"time"
)

// Limits of the contract (section 8; contract decisions, "Responses the specification leaves open").
const (
	MaxUploadBytes        = 8 << 30          // bytes of one partner upload
	MaxFilenameBytes      = 255              // bytes of UTF-8
	MaxNotesCharacters    = 2000             // characters of notes
	MaxPayloadBytes       = 1 << 20          // bytes of UTF-8 of a customer's payload
	MaxReasonCharacters   = 500              // characters of a withdrawal's reason
	ReservationLifetime   = 24 * time.Hour   // from initiate to the last part and complete
	IdempotencyLifetime   = 24 * time.Hour   // how long an answer can be replayed, at least
	DefaultPartSizeBytes  = 16 << 20         // bytes of every part but the last
	DefaultAllowanceBytes = int64(100 << 30) // bytes of quota per organization
)

// EvaluationStatus is the only evaluation this service ever states. (Section 1.)
const EvaluationStatus = "not_evaluated"

// BoundaryLabel goes with every served text. (Contract decisions, AI context.)
const BoundaryLabel = "customer-submitted, unverified"

// Kind of an upload.
type Kind string

const (
	KindPartner    Kind = "partner"
	KindCustomer   Kind = "customer"
	KindCorrection Kind = "correction"
)

// Visibility says which readers may get which text. (Section 2.4.)
type Visibility string

const (
	VisibilityAIReadable     Visibility = "ai_readable_controlled"
	VisibilityPrivateSummary Visibility = "private_summary_public" // summary only, no excerpts
	VisibilityInternal       Visibility = "internal_only"          // never served
	VisibilityPublicProfile  Visibility = "public_profile"
)

// Importance of a partner upload. (Section 4.6.)
type Importance string

const (
	ImportanceNormal    Importance = "normal"
	ImportanceImportant Importance = "important"
)

// Consent is what the uploader agreed to, and who did. The id and e-mail never leave custody: answers carry Capture alone.
// (Section 2.3.)
type Consent struct {
	AgreementVersion  string    // beta_agreement_version
	AIReadableVersion string    // ai_readable_use_consent_version
	TextHashSHA256    string    // 64 lowercase hex digits
	ConsentingUserID  string    // never answered
	ConsentingEmail   string    // never answered
	AcceptedAt        time.Time // as the uploader stated it
}

// ConsentCapture is the redacted form of a Consent: status only.
type ConsentCapture struct {
	Status                      string    `json:"status"` // always "captured"
	BetaAgreementVersion        string    `json:"beta_agreement_version"`
	AIReadableUseConsentVersion string    `json:"ai_readable_use_consent_version"`
	TextHashSHA256              string    `json:"text_hash_sha256"`
	AcceptedAt                  time.Time `json:"accepted_at"`
}

// Capture redacts c.
func (c Consent) Capture() ConsentCapture {
	return ConsentCapture{"captured", c.AgreementVersion, c.AIReadableVersion, c.TextHashSHA256, c.AcceptedAt}
}

// Upload is one document in custody. Times are UTC with millisecond precision, sizes are bytes of plaintext.
type Upload struct {
	ID           string
	OrgID        string
	Kind         Kind
	Status       Status
	Sequence     int64  // of the newest status event; 1 after initiate
	PipelineID   string // names the processing of this upload
	CredentialID string // who initiated it

	Filename     string
	ContentType  string // as declared
	SizeBytes    int64  // as declared; the stored bytes once complete
	Visibility   Visibility
	UploaderType string // uploader_organization_type
	Consent      Consent
	Notes        string
	MaterialType string
	Importance   Importance

	OriginalUploadID string // of a correction: what it corrects

	PartSizeBytes int64
	ReceivedBytes int64
	NextPart      int    // number of the part expected next, from 1
	DigestState   []byte // running SHA-256 over the accepted parts; nil before part 1 and once SHA256 is known
	SHA256        string // of the whole file, 64 lowercase hex digits; empty until the last part is accepted

	ReservedBytes int64 // quota held while receiving
	UsedBytes     int64 // quota held once completed

	CreatedAt time.Time
	UpdatedAt time.Time
	ExpiresAt time.Time // end of the reservation
	Failure   *Failure
}

// LastPart is the number of the upload's last part, at least 1.
func (u Upload) LastPart() int {
	return int((u.SizeBytes + u.PartSizeBytes - 1) / u.PartSizeBytes)
}

// PartLength is the exact length in bytes of part n, for 1 <= n <= LastPart.
func (u Upload) PartLength(n int) int64 {
	if n == u.LastPart() {
		return u.SizeBytes - int64(n-1)*u.PartSizeBytes
	}
	return u.PartSizeBytes
}

// Failure says why an upload is REJECTED, FAILED or EXPIRED, in words for a person.
type Failure struct {
	Gate    GateName `json:"gate"` // empty for EXPIRED
	Code    string   `json:"code"`
	Message string   `json:"message"`
}

// Part is one row of the part ledger: an immutable sealed object.
type Part struct {
	UploadID   string
	Number     int // from 1
	SizeBytes  int64
	SHA256     string // of the part's plaintext, 64 lowercase hex digits
	ObjectKey  string // in the staging store
	AcceptedAt time.Time
}

// Artifact is one derived object of an upload (extracted text, summary, context), sealed under the upload's key.
type Artifact struct {
	UploadID  string
	Name      string // "text", "summary" or "context"
	ObjectKey string // in the staging store
	SizeBytes int64
	SHA256    string // of the plaintext
}

// Event is one status event: append-only, numbered 1, 2, 3, … per upload, never changed.
type Event struct {
	ID         string // event_id
	UploadID   string
	OrgID      string
	PipelineID string
	Sequence   int64
	From       Status // empty for the first
	Trigger    Trigger
	Status     Status
	Stage      GateName  // the gate that changed, if one did
	GateState  GateState // and its new state
	OccurredAt time.Time
	Cause      Cause
}

// Cause ties a change to the request that led to it; both ids stay with the work that the request started.
type Cause struct {
	CredentialID string // empty when the service itself acts
	RequestID    string
	TraceID      string
}

// Quota of one organization, in bytes of plaintext.
type Quota struct {
	OrgID          string
	AllowanceBytes int64
	UsedBytes      int64
	ReservedBytes  int64
	UploadCount    int64
}

// AvailableBytes is what may still be reserved; never negative.
func (q Quota) AvailableBytes() int64 {
	return max(0, q.AllowanceBytes-q.UsedBytes-q.ReservedBytes)
}
