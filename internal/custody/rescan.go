package custody

import "time"

// RescanScope says which stored uploads are meant: all, those of one organization, one, or one if it is that organization's.
type RescanScope struct {
	OrgID    string // optional
	UploadID string // optional
}

// QueuedRescans answers a request to scan stored uploads again.
type QueuedRescans struct {
	Queued      int       // uploads that are due now; not those being scanned again at this moment
	Waiting     int       // uploads of the scope that wait, these and those being scanned among them
	RequestedAt time.Time // what is scanned from here on answers the request
}

// RescanState is how far re-scans of a scope are, in uploads.
type RescanState struct {
	Waiting    int // to be scanned again, or being scanned
	Unanswered int // of those: tried, and without an answer so far; they stay READY and are tried again
	Clean      int // scanned again since then and clean
	Found      int // scanned again since then and refused: malware
	Unreadable int // scanned again since then and refused: the engine could not look into it
}

// Outcomes of one re-scan.
const (
	RescanClean      = "clean"
	RescanFound      = "found"      // malware
	RescanUnreadable = "unreadable" // could not be looked into: refused like found
	RescanUnanswered = "unanswered" // no verdict: nothing changes, to be tried again
)
