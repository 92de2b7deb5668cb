package httpapi

import (
	"errors"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/accession/accession/internal/custody"
)

// field says what is wrong with one field. (Contract decisions, "Errors".) Neither part ever holds what a client sent.
type field struct {
	Path   string `json:"path"` // JSON Pointer into the body; parameters as /path/…, /query/… or /header/…
	Reason string `json:"reason"`
}

const keyPath = "/header/Idempotency-Key"

// invalid is the answer for fields that must change. A bad key, then bad consent, decides the code: they have their own.
func invalid(fields ...field) *custody.Error {
	e := custody.Errorf(custody.CodeInvalidRequest, "the request does not have the form the contract asks for; see details.fields")
	switch {
	case slices.ContainsFunc(fields, func(f field) bool { return f.Path == keyPath }):
		e = custody.Errorf(custody.CodeIdempotencyKeyInvalid, "send one Idempotency-Key header of 8 to 128 visible ASCII characters")
	case slices.ContainsFunc(fields, func(f field) bool { return f.Path == "/consent" || strings.HasPrefix(f.Path, "/consent/") }):
		e = custody.Errorf(custody.CodeConsentInvalid, "the consent is missing, incomplete or not accepted; see details.fields")
	}
	return e.With("fields", fields)
}

// fieldsOf translates huma's findings, one per path.
func fieldsOf(errs []error) []field {
	fields := []field{}
	for _, err := range errs {
		f := fieldOf(err)
		if !slices.ContainsFunc(fields, func(g field) bool { return g.Path == f.Path }) {
			fields = append(fields, f)
		}
	}
	return fields
}

func fieldOf(err error) field {
	var d *huma.ErrorDetail
	if !errors.As(err, &d) {
		return field{"", "is not acceptable"}
	}
	if d.Message == validation.MsgUnexpectedProperty {
		return field{pointer(withoutProperty(d)), "holds a property that this operation does not take"}
	}
	before, after, _ := strings.Cut(validation.MsgExpectedRequiredProperty, "%s")
	if name, ok := strings.CutPrefix(d.Message, before); ok {
		return field{pointer(d.Location) + "/" + strings.TrimSuffix(name, after), "is required"}
	}
	if strings.HasPrefix(d.Message, "required ") && strings.HasSuffix(d.Message, " parameter is missing") {
		return field{pointer(d.Location), "is required"}
	}
	if email, _, _ := strings.Cut(validation.MsgExpectedRFC5322Email, ":"); strings.HasPrefix(d.Message, email) {
		return field{pointer(d.Location), "expected one e-mail address"} // the library's message quotes the address
	}
	if strings.HasSuffix(d.Message, datePattern) {
		return field{pointer(d.Location), "expected an RFC 3339 date-time"}
	}
	return field{pointer(d.Location), d.Message}
}

// withoutProperty is d's location without the name of the unexpected property, which is the client's own word. The longest
// match goes, so that a name with dots leaves nothing behind.
func withoutProperty(d *huma.ErrorDetail) string {
	longest := ""
	properties, _ := d.Value.(map[string]any)
	for name := range properties {
		if strings.HasSuffix(d.Location, "."+name) && len(name) >= len(longest) {
			longest = name
		}
	}
	return strings.TrimSuffix(d.Location, "."+longest)
}

// pointer makes a JSON Pointer of huma's "body.parts[0].sha256".
func pointer(location string) string {
	location = strings.NewReplacer("[", "/", "]", "", ".", "/").Replace(location)
	if rest, ok := strings.CutPrefix(location, "body"); ok {
		return rest
	}
	return "/" + location
}
