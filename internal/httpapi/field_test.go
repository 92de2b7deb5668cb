package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/accession/accession/internal/custody"
)

// However much of a body is wrong, the answer names a hundred fields, and what decides the code is not lost among them.
func TestTheAnswerToAHostileBodyIsBounded(t *testing.T) {
	b := newBench(t)
	unknown := strings.Builder{}
	for n := range 40_000 {
		fmt.Fprintf(&unknown, `,"unknown-%d":1`, n)
	}
	wrongParts := `{"upload_id":"up_1","parts":[` + strings.Repeat(`1,`, 50_000) + `1]}`
	for name, c := range map[string]struct {
		path, body string
		code       custody.Code
		fields     int
	}{
		"wrong items":     {partners + "/complete", wrongParts, custody.CodeInvalidRequest, 100},
		"unknown members": {partners + "/complete", strings.TrimSuffix(completeJSON, "}") + unknown.String() + "}", custody.CodeInvalidRequest, 1},
		"unknown members of many objects": {partners + "/complete",
			`{"upload_id":"up_1","parts":[` + strings.Repeat(`{"x":1,"y":2},`, 20_000) + `{}]}`, custody.CodeInvalidRequest, 100},
		"too many values": {partners + "/complete", `{"upload_id":"up_1","parts":[` + strings.Repeat(`1,`, 500_000) + `1]}`, custody.CodeInvalidRequest, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			r := b.post(c.path, c.body, asUp)
			r.wants(t, 400, c.code)
			var said struct {
				Details struct{ Fields []field }
			}
			if err := json.Unmarshal(r.raw, &said); err != nil || len(said.Details.Fields) != c.fields {
				t.Errorf("%d fields, %v: %.300s", len(said.Details.Fields), err, r.raw)
			}
		})
	}
}

func TestWhatDecidesTheCodeIsNotLost(t *testing.T) {
	finding := func(location string) error {
		return &huma.ErrorDetail{Location: location, Message: "expected something else"}
	}
	var errs []error
	for n := range 500 {
		errs = append(errs, finding(fmt.Sprintf("body.items[%d]", n)))
	}
	errs = append(errs, finding("body.consent.accepted"))
	if fields := fieldsOf(errs); len(fields) != maxFields+1 || fields[0].Path != "/items/0" || invalid(fields...).Code != custody.CodeConsentInvalid {
		t.Errorf("consent: %d fields, %v", len(fields), invalid(fields...).Code)
	}
	errs = append(errs, finding("header.Idempotency-Key"))
	if fields := fieldsOf(errs); len(fields) != maxFields+2 || invalid(fields...).Code != custody.CodeIdempotencyKeyInvalid {
		t.Errorf("key: %d fields, %v", len(fields), invalid(fields...).Code)
	}
}
