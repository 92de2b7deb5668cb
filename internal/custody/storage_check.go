package custody

import "time"

// HeldObject is one object of an upload as a backend lists it.
type HeldObject struct {
	StoredObject
	ModTime time.Time
}

// StorageProblem is a way in which rows, objects and keys disagree.
type StorageProblem string

const (
	ProblemOrphanObjects  StorageProblem = "orphan_objects"  // no row names them, or their upload is gone
	ProblemOrphanKey      StorageProblem = "orphan_key"      // a data key of no upload, or of one that is gone
	ProblemMissingObjects StorageProblem = "missing_objects" // a row names them, and they are not there or not whole
	ProblemMissingCopies  StorageProblem = "missing_copies"  // the upload is past quarantine, and copies are not there or not whole
	ProblemMissingKey     StorageProblem = "missing_key"     // the upload is not withdrawn, and its data key is not there or does not open
)

// Orphan tells whether a repair may delete what the problem names. Nothing else can be mended: what is lost is lost.
func (p StorageProblem) Orphan() bool { return p == ProblemOrphanObjects || p == ProblemOrphanKey }

// StorageFinding is one problem of one upload in one backend.
type StorageFinding struct {
	UploadID string
	OrgID    string // empty where there is no such upload
	Status   Status // empty where there is no such upload
	Problem  StorageProblem
	Backend  string
	Objects  int // or keys; at least 1
	Repaired bool
}

// StorageCheck asks for one step of a check: the uploads that come after one, in the order of their ids. The first step, after
// none, also looks for what belongs to no upload.
type StorageCheck struct {
	After  string
	Repair bool // delete the orphans
}

// StorageReport is what one step found.
type StorageReport struct {
	Uploads   int // looked at in this step
	Findings  []StorageFinding
	Omitted   int    // findings beyond those listed; not repaired
	NextAfter string // empty after the last step
}

// Resumption asks for a FAILED upload to go on at the gate that failed.
type Resumption struct {
	OrgID    string
	UploadID string
}

// Resumed answers a Resumption.
type Resumed struct {
	UploadID   string
	PipelineID string
	Status     Status
	Sequence   int64
	Gate       GateName // that starts anew
}
