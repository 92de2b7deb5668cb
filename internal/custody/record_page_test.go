package custody

import (
	"encoding/base64"
	"testing"
)

func TestRecordCursor(t *testing.T) {
	q := RecordQuery{OrgID: "org_1", UploadID: "up_1"}
	if q.Cursor(0) != "" {
		t.Error("the last page has a cursor")
	}
	if before, ok := q.After(""); before != 0 || !ok {
		t.Errorf("without a cursor: %d, %v", before, ok)
	}
	c := q.Cursor(42)
	other := q
	other.Limit, other.Before = 7, 9 // no filters
	if before, ok := other.After(c); before != 42 || !ok {
		t.Errorf("the next page: %d, %v", before, ok)
	}
	for name, q := range map[string]RecordQuery{
		"organization": {OrgID: "org_2", UploadID: "up_1"}, "upload": {OrgID: "org_1", UploadID: "up_2"}, "request": {OrgID: "org_1", UploadID: "up_1", RequestID: "r"},
		"shifted": {OrgID: "org_1", RequestID: "up_1"},
	} {
		if _, ok := q.After(c); ok {
			t.Errorf("it continues a list of another %s", name)
		}
	}
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for _, c := range []string{"x", "%", encode("{}"), encode("null"), encode(`{"b":-1,"q":"` + q.filters() + `"}`), encode(`{"b":0,"q":"` + q.filters() + `"}`)} {
		if before, ok := q.After(c); ok || before != 0 {
			t.Errorf("%q continues before %d", c, before)
		}
	}
}
