package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// leastNotice is how long a retiring operation or field goes on. (Sections 8 and 9, rule 3.)
const leastNotice = 90 * 24 * time.Hour

// retirement of an operation, or of a field, which has it in struct tags:
//
//	Old string `json:"old" deprecated:"true" since:"2027-01-01" sunset:"2027-06-01" replacement:"new"`
//
// It shows as Deprecation (RFC 9745) and Sunset (RFC 8594) on every answer of the operation, errors too, and in the
// published document. The notice runs from since, which is the day the release that says so is published: counted from each
// start, a service could not be restarted in its last 90 days.
type retirement struct {
	since, sunset time.Time // UTC
	replacement   string    // what to use instead, as its users name it
}

func (r *retirement) check() error {
	switch {
	case r.since.IsZero() || r.sunset.IsZero():
		return fmt.Errorf("say since when it is deprecated and when its sunset is")
	case r.sunset.Sub(r.since) < leastNotice:
		return fmt.Errorf("its sunset is %s after it is deprecated; give at least %d days of notice", r.sunset.Sub(r.since), leastNotice/(24*time.Hour))
	case r.replacement == "":
		return fmt.Errorf("name its replacement")
	}
	return nil
}

func (r *retirement) doc() string {
	return fmt.Sprintf("Deprecated since %s; goes on %s at the earliest. Use %s instead.", r.since.Format(time.DateOnly), r.sunset.Format(time.DateOnly), r.replacement)
}

// announce puts the retirement on an answer.
func (r *retirement) announce(h http.Header) {
	if r == nil {
		return
	}
	h.Set("Deprecation", "@"+strconv.FormatInt(r.since.Unix(), 10))
	h.Set("Sunset", r.sunset.Format(http.TimeFormat))
	h.Add("Link", `</api/v1/ai/openapi.json>; rel="deprecation"; type="application/json"`)
}

// earlier is the one that ends first: an answer has one Sunset.
func (r *retirement) earlier(o *retirement) *retirement {
	if r == nil || (o != nil && o.sunset.Before(r.sunset)) {
		return o
	}
	return r
}

// retiredField is one deprecated field of a request or answer.
type retiredField struct {
	retirement
	owner     reflect.Type // the struct it is a property of
	name      string       // property or parameter
	parameter bool
}

// retiredFields finds the deprecated fields of t and of what it holds.
func retiredFields(t reflect.Type) (found []retiredField, err error) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type) error
	walk = func(t reflect.Type) error {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] {
			return nil
		}
		seen[t] = true
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Tag.Get("deprecated") == "true" {
				r, err := retiredFieldOf(t, f)
				if err != nil {
					return fmt.Errorf("deprecated field %s of %s: %w", f.Name, t, err)
				}
				found = append(found, r)
			}
			if err := walk(f.Type); err != nil {
				return err
			}
		}
		return nil
	}
	return found, walk(t)
}

func retiredFieldOf(owner reflect.Type, f reflect.StructField) (retiredField, error) {
	r := retiredField{owner: owner}
	for _, place := range []string{"query", "header", "path"} {
		if name, _, _ := strings.Cut(f.Tag.Get(place), ","); name != "" {
			r.name, r.parameter = name, true
		}
	}
	if !r.parameter {
		r.name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
	}
	var err error
	for _, day := range []struct {
		tag string
		to  *time.Time
	}{{"since", &r.since}, {"sunset", &r.sunset}} {
		if *day.to, err = time.Parse(time.DateOnly, f.Tag.Get(day.tag)); err != nil {
			return r, fmt.Errorf("the tag %s must be a day such as 2027-06-01", day.tag)
		}
	}
	r.replacement = f.Tag.Get("replacement")
	return r, r.check()
}

// retired is what is deprecated about an operation.
type retired struct {
	first  *retirement // what its answers announce; nil where nothing is deprecated
	fields []retiredField
}

// retired finds and checks what is deprecated about op, whose input is in.
func (op operation) retired(in reflect.Type) (found retired, err error) {
	if op.retires != nil {
		if err := op.retires.check(); err != nil {
			return retired{}, fmt.Errorf("deprecated operation %s: %w", op.name, err)
		}
	}
	found.first = op.retires
	for _, t := range append([]reflect.Type{in}, slices.Collect(maps.Values(op.answers))...) {
		if t == nil {
			continue
		}
		fields, err := retiredFields(t)
		if err != nil {
			return retired{}, err
		}
		for _, f := range fields {
			found.first = found.first.earlier(&f.retirement)
		}
		found.fields = append(found.fields, fields...)
	}
	return found, nil
}

// document marks the operation and its deprecated fields in the document, which huma has made.
func (g retired) document(doc *huma.OpenAPI, op operation) {
	for _, h := range operationsOf(doc.Paths[op.path]) {
		if h.Method != op.method {
			continue
		}
		if op.retires != nil {
			h.Deprecated, h.Description = true, addSentence(h.Description, op.retires.doc())
		}
		if g.first != nil {
			h.Metadata = map[string]any{retiring: true}
		}
		for _, f := range g.fields {
			f.document(doc, h)
		}
	}
}

// retiring marks, for polish, an operation whose answers carry the headers.
const retiring = "retiring"

func (f retiredField) document(doc *huma.OpenAPI, h *huma.Operation) {
	if f.parameter {
		for _, p := range h.Parameters {
			if p.Name == f.name {
				p.Deprecated, p.Description = true, addSentence(p.Description, f.doc())
			}
		}
		return
	}
	s := doc.Components.Schemas.Schema(f.owner, true, "")
	if s.Ref != "" {
		s = doc.Components.Schemas.SchemaFromRef(s.Ref)
	}
	if p := s.Properties[f.name]; p != nil {
		p.Deprecated, p.Description = true, addSentence(p.Description, f.doc())
	}
}

// addSentence says a thing once, however many operations share a schema.
func addSentence(text, sentence string) string {
	if strings.Contains(text, sentence) {
		return text
	}
	return strings.TrimSpace(sentence + " " + text)
}
