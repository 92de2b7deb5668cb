package custody

import (
	"encoding/base64"
	"testing"
)

// A cursor that is taken is the one that a page before has given: there is no second spelling of it, and none of another list.
func FuzzRecordCursor(f *testing.F) {
	q := RecordQuery{OrgID: "org_1", UploadID: "up_1"}
	other := RecordQuery{OrgID: "org_2", UploadID: "up_1"}
	f.Add(q.Cursor(7))
	f.Add(other.Cursor(7))
	f.Add(q.Cursor(1<<63 - 1))
	f.Add(q.Cursor(7) + "\n")
	for _, text := range []string{`{"b":7}`, `{"b":-7,"q":""}`, `{"B":7,"Q":"","b":8}`, `{"b":1e3,"q":"` + q.filters() + `"}`, `null`, `[]`, `{"b": 7,"q":"` + q.filters() + `"}`} {
		f.Add(base64.RawURLEncoding.EncodeToString([]byte(text)))
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		before, ok := q.After(cursor)
		switch {
		case !ok && before != 0:
			t.Errorf("%q is refused, with position %d", cursor, before)
		case ok && (before < 0 || q.Cursor(before) != cursor):
			t.Errorf("%q is taken for position %d, whose cursor is %q", cursor, before, q.Cursor(before))
		}
		if _, ok := other.After(cursor); ok && cursor != "" && before != 0 {
			t.Errorf("%q continues two lists", cursor)
		}
	})
}
