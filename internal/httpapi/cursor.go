package httpapi

import (
	"encoding/base64"
	"encoding/json"

	"github.com/accession/accession/internal/custody"
)

// cursor continues a list. It carries a hash of the filters it belongs to, so that it cannot silently continue another list;
// it is no secret and grants nothing.
type cursor struct {
	Before int64  `json:"b"`
	Query  string `json:"q"`
}

// cursor is empty when there is nothing to continue.
func (in *recordsInput) cursor(next int64) string {
	if next == 0 {
		return ""
	}
	b, err := json.Marshal(cursor{next, in.filters()})
	if err != nil {
		panic(err) // a number and a hex string
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func (in *recordsInput) before() (int64, error) {
	if in.Cursor == "" {
		return 0, nil
	}
	var c cursor
	b, err := base64.RawURLEncoding.DecodeString(in.Cursor)
	if err != nil || strictJSON.Unmarshal(b, &c) != nil || c.Before <= 0 || c.Query != in.filters() {
		return 0, invalid(field{"/query/cursor", "expected the next_cursor of a page with the same organization and filters"})
	}
	return c.Before, nil
}

func (in *recordsInput) filters() string {
	return requestHash(custody.OpRequestRecords, in.OrgID, in.RequestID, in.UploadID)[:16]
}
