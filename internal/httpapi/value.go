package httpapi

import (
	"encoding/json"
	"fmt"
	"mime"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/accession/accession/internal/custody"
)

// The values of requests. Each states its own limits once, for the document and for the check; Resolve adds what a schema
// cannot say.

const noControls = `^[^\x00-\x1f\x7f]*$`

func text(least, most int, pattern, doc string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, MinLength: &least, MaxLength: &most, Pattern: pattern, Description: doc}
}

func wrong(at *huma.PathBuffer, reason string) []error {
	return []error{&huma.ErrorDetail{Location: at.String(), Message: reason}}
}

type orgID string

func (orgID) Schema(huma.Registry) *huma.Schema {
	return text(1, 128, noControls, "The organization.")
}

type uploadID string

func (uploadID) Schema(huma.Registry) *huma.Schema {
	return text(1, 128, `^[!-~]+$`, "The upload.")
}

type requestID string

func (requestID) Schema(huma.Registry) *huma.Schema {
	return text(1, 128, `^[!-~]+$`, "The request_id of the answer that served a context.")
}

type idempotencyKey string

func (idempotencyKey) Schema(huma.Registry) *huma.Schema {
	return text(8, 128, `^[!-~]+$`, "Names this request; repeating it with the same key repeats the answer. Kept at least 24 hours.")
}

type digest string

func (digest) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: `^[a-f0-9]{64}$`, Description: "SHA-256 in lowercase hex."}
}

// scopeList is scopes separated by spaces.
type scopeList string

func (scopeList) Schema(huma.Registry) *huma.Schema {
	return text(1, 512, `^[ -~]*[!-~][ -~]*$`, "Separated by spaces; default: all of the role.")
}

// label is a short single-line text.
type label string

func (label) Schema(huma.Registry) *huma.Schema { return text(1, 255, noControls, "") }

type notes string

func (notes) Schema(huma.Registry) *huma.Schema {
	return text(0, custody.MaxNotesCharacters, `^[^\x00]*$`, "")
}

type reason string

func (reason) Schema(huma.Registry) *huma.Schema {
	return text(0, custody.MaxReasonCharacters, `^[^\x00]*$`, "Why; kept with the receipt.")
}

type filename string

func (filename) Schema(huma.Registry) *huma.Schema {
	return text(1, custody.MaxFilenameBytes, `^[^\x00-\x1f\x7f/\\]+$`, "A name, not a path: at most 255 bytes of UTF-8.")
}

func (f filename) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	if len(f) > custody.MaxFilenameBytes {
		return wrong(at, fmt.Sprintf("expected at most %d bytes", custody.MaxFilenameBytes))
	}
	return nil
}

type mediaType string

func (mediaType) Schema(huma.Registry) *huma.Schema {
	s := text(3, 255, `^[!-~]+/[ -~]+$`, "The file's media type.")
	s.Examples = []any{"application/pdf"}
	return s
}

func (m mediaType) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	if t, _, err := mime.ParseMediaType(string(m)); m != "" && (err != nil || !strings.Contains(t, "/")) {
		return wrong(at, "expected a media type")
	}
	return nil
}

type email string

func (email) Schema(huma.Registry) *huma.Schema {
	s := text(3, 254, `^[^\x00-\x20\x7f@<>()\[\],;:\\"]+@[^\x00-\x20\x7f@<>()\[\],;:\\"]+$`, "One address, without a name.")
	s.Format = "email"
	return s
}

// accepted is a consent: only true is one.
type accepted bool

func (accepted) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeBoolean, Enum: []any{true}, Extensions: map[string]any{"const": true}}
}

// timestamp is an RFC 3339 date-time, answered in UTC with milliseconds.
type timestamp struct{ time.Time }

const (
	datePattern   = `^\d{4}` + dateAfterYear
	givenPattern  = `^[1-9]\d{3}` + dateAfterYear
	dateAfterYear = `-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	givenExpected = "expected an RFC 3339 date-time of the years 1000 to 9999, such as 2026-11-20T09:30:00Z"
)

func (timestamp) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Pattern: datePattern, Examples: []any{"2026-11-20T09:30:00.000Z"}}
}

// MarshalJSON is how every time goes out.
func (t timestamp) MarshalJSON() ([]byte, error) {
	return appendMoment(nil, "", t.Time), nil
}

// UnmarshalJSON takes what the schema has passed, and refuses days that no month has.
func (t *timestamp) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &t.Time) }

// kept is t in the precision of custody.
func (t timestamp) kept() time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// givenTime is a timestamp in a body. The year 1, the zero value of clients that have no time to send, is none; nor is what is
// no date-time any more once it is in UTC.
type givenTime struct{ timestamp }

func (givenTime) Schema(r huma.Registry) *huma.Schema {
	s := timestamp{}.Schema(r)
	s.Pattern = givenPattern
	return s
}

func (t givenTime) Resolve(_ huma.Context, at *huma.PathBuffer) []error {
	if t.UTC().Year() > 9999 {
		return wrong(at, givenExpected)
	}
	return nil
}

// instant is nil for a time that has not come.
func instant(t time.Time) *timestamp {
	if t.IsZero() {
		return nil
	}
	return &timestamp{t}
}
