package custody

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
)

// RecordDisclaimer goes with every page of request records. (Section 2.7.)
const RecordDisclaimer = "Serving-evidence metadata only: a record says what was served to whom and when, not that its content is true. Fields may be added."

// recordCursor continues a list. It carries a hash of the filters it belongs to, so that it cannot silently continue another list;
// it is no secret and grants nothing.
type recordCursor struct {
	Before int64  `json:"b"`
	Query  string `json:"q"`
}

// Cursor continues q before the position next; it is empty when there is nothing to continue.
func (q RecordQuery) Cursor(next int64) string {
	if next == 0 {
		return ""
	}
	b, err := json.Marshal(recordCursor{next, q.filters()})
	if err != nil {
		panic(err) // a number and a hex string
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// After is the position that a cursor of the same filters continues before: 0, the newest, for an empty one. ok is false for a
// cursor that is none, or of other filters.
func (q RecordQuery) After(cursor string) (before int64, ok bool) {
	if cursor == "" {
		return 0, true
	}
	var c recordCursor
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || json.Unmarshal(b, &c) != nil || c.Before <= 0 || q.Cursor(c.Before) != cursor { // the one spelling of it
		return 0, false
	}
	return c.Before, true
}

func (q RecordQuery) filters() string {
	b, err := json.Marshal([]any{OpRequestRecords, q.OrgID, q.RequestID, q.UploadID})
	if err != nil {
		panic(err) // strings
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
