package custody

import "time"

// What an operator is shown of a whole installation; none of it is content.

// MaxAllowanceBytes bounds an organization's allowance: what JSON numbers hold exactly.
const MaxAllowanceBytes = 1<<53 - 1

// OrganizationState is an organization as its operator sees it.
type OrganizationState struct {
	Quota
	CreatedAt         time.Time
	RetentionDays     int // 0: without end
	ActiveCredentials int // neither revoked nor expired
}

// OrganizationQuery selects organizations by their ids, in ascending order of bytes.
type OrganizationQuery struct {
	After string    // the id to go on after; empty: from the first
	Limit int       // 1 to 100
	At    time.Time // when a credential has to be active to count
}

// Allowance is how many bytes an organization may keep; an organization that is new gets DefaultBytes.
type Allowance struct {
	Quota
	DefaultBytes int64
}

// AllowanceChange sets what an organization may keep. An allowance below what it keeps deletes nothing: nothing more is accepted.
type AllowanceChange struct {
	OrgID string
	Bytes *int64 // 0 to MaxAllowanceBytes; nil: what a new organization gets
}

// AuditQuery selects audit lines of all organizations and of the installation itself; empty fields select all.
type AuditQuery struct {
	OrgID        string
	UploadID     string
	CredentialID string
	Action       string
	Since, Until time.Time     // at Since or later, before Until
	Before       AuditPosition // go on before it; zero: from the newest
	Limit        int           // 1 to 100
}

// AuditPosition is a place in the order of time over all audit logs. Ids decide within a millisecond.
type AuditPosition struct {
	At time.Time
	ID string
}

// InstallationState is what an installation does and waits for.
type InstallationState struct {
	At             time.Time
	Process        ProcessState
	Lanes          []LaneState
	Stuck          StuckUploads
	Webhooks       WebhookBacklog
	RescansWaiting int
	Scanner        ScannerState
}

// ProcessState is the one process that answers.
type ProcessState struct {
	Version   string
	Roles     []string
	StartedAt time.Time
}

// LaneState is how busy the workers of a lane are, over all replicas.
type LaneState struct {
	Name    string
	Waiting int           // due, and no worker has it
	Running int           // a worker has it
	Oldest  time.Duration // how long the longest of those that wait has been due
}

// NamedLanes are the lanes with the names that operators and metrics use.
var NamedLanes = []struct {
	Name string
	Lane Lane
}{{"gates", LaneGates}, {"deletions", LaneDeletions}, {"rescans", LaneRescans}}

// StuckUploads are those that somebody should look at: held ones, whose gate has had no answer yet and is tried again, and FAILED
// ones, which wait to be resumed.
type StuckUploads struct {
	Held, Failed int           // of all
	Listed       []StuckUpload // held ones, the longest first; then FAILED ones, the newest first
}

// StuckUpload is one of them.
type StuckUpload struct {
	OrgID    string
	UploadID string
	Status   Status // PROCESSING: held
	Failure         // why: of the newest attempt
	Since    time.Time
}

// WebhookBacklog is the deliveries of all organizations together.
type WebhookBacklog struct {
	Waiting, Dead int
	Oldest        time.Duration // since the oldest that waits was queued
}

// ScannerState is the malware scanner as it answers now; Engine is empty where it does not.
type ScannerState struct {
	OK               bool // it proves that it finds what it must, and its signatures may pass content
	Engine           string
	EngineVersion    string
	SignatureVersion string
	SignatureDate    time.Time // zero where it is not known
	Sentence         string    // what is so, and what to do
}
