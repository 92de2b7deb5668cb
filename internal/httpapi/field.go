package httpapi

import (
	"errors"
	"reflect"
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
	case slices.ContainsFunc(fields, func(f field) bool { return inConsent(f.Path) }):
		e = custody.Errorf(custody.CodeConsentInvalid, "the consent is missing, incomplete or not accepted; see details.fields")
	}
	return e.With("fields", fields)
}

// maxFields is how many fields one answer names; who has more wrong learns of the others when these are right.
const maxFields = 100

// fieldsOf translates huma's findings, one per path, in their order and no more than maxFields. Past that only a finding that
// decides the code is still taken in. A hundred thousand of them cost no more than a look each.
func fieldsOf(errs []error) []field {
	fields := []field{}
	seen, objects := map[string]bool{}, map[uintptr]bool{}
	for _, err := range errs {
		var d *huma.ErrorDetail
		if errors.As(err, &d) && d.Message == validation.MsgUnexpectedProperty {
			object := reflect.ValueOf(d.Value).Pointer() // a map: huma names each unexpected property of it, we the object
			if objects[object] {
				continue
			}
			objects[object] = true
		}
		if len(fields) >= maxFields && (d == nil || !decides(pointer(d.Location))) {
			continue
		}
		f := fieldOf(err)
		if seen[f.Path] {
			continue
		}
		seen[f.Path] = true
		fields = append(fields, f)
	}
	return fields
}

// decides tells whether a wrong field of that path has a code of its own. There are few such paths.
func decides(path string) bool { return path == keyPath || inConsent(path) }

func inConsent(path string) bool { return path == "/consent" || strings.HasPrefix(path, "/consent/") }

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
	if strings.HasSuffix(d.Message, givenPattern) {
		return field{pointer(d.Location), givenExpected}
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
