package custody

// Chain names one of the two chains of an organization.
type Chain string

// Chains of an organization.
const (
	ChainAudit   Chain = "audit"   // AuditLines
	ChainRecords Chain = "records" // Records
)

// ChainHead is the end of a chain: its last line's position, which counts from 1, and hash. An empty chain ends at 0 with FirstHash.
type ChainHead struct {
	Position int64  `json:"position"`
	Hash     string `json:"hash"`
}

// EvidenceLine is one line of a chain: Audit or Record, never both.
type EvidenceLine struct {
	Position int64      `json:"position"`
	Audit    *AuditLine `json:"audit,omitempty"`
	Record   *Record    `json:"record,omitempty"`
}

// EvidenceQuery selects lines of one chain, oldest first.
type EvidenceQuery struct {
	OrgID string // empty: the chain of the installation itself
	Chain Chain
	After int64 // position to go on after; 0 starts at the first
	Limit int   // 1 to 1000
}

// EvidencePage is a part of a chain. Head was read before the lines: no page of an untouched chain ends before it, unless
// Next says that more follow.
type EvidencePage struct {
	Head  ChainHead
	Lines []EvidenceLine
	Next  int64 // position to go on after; 0: no more
}

// OrganizationHeads is where an organization's chains end.
type OrganizationHeads struct {
	OrgID   string    `json:"org_id"` // empty: the installation itself
	Audit   ChainHead `json:"audit"`
	Records ChainHead `json:"records"`
}

// HeadsQuery selects organizations by their ids, in ascending order of bytes.
type HeadsQuery struct {
	From  string // the first id asked for
	Limit int    // 1 to 1000
}
