package httpapi

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// selfWritten is data that writes its own JSON: what marshal would make of it otherwise, in a fraction of the processor time. Only what
// is read most often does, and a test holds both forms against each other.
type selfWritten interface {
	appendJSON([]byte) []byte
}

// The functions below append one value after what stands before it, such as `,"name":`.

func appendText(b []byte, before, s string) []byte {
	b = append(b, before...)
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := marshal(s) // any text can be encoded
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func appendNumber(b []byte, before string, n int64) []byte {
	return strconv.AppendInt(append(b, before...), n, 10)
}

func appendMoment(b []byte, before string, t time.Time) []byte {
	b = append(append(b, before...), '"')
	b = t.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	return append(b, '"')
}

// appendInstant appends nothing for a time that has not come.
func appendInstant(b []byte, before string, t *timestamp) []byte {
	if t == nil {
		return b
	}
	return appendMoment(b, before, t.Time)
}

// keptObject is a JSON object that goes out as it is kept, without white space; nothing is the empty one.
type keptObject json.RawMessage

// MarshalJSON is k itself.
func (k keptObject) MarshalJSON() ([]byte, error) {
	if len(k) == 0 {
		return []byte("{}"), nil
	}
	return k, nil
}

// Schema is that of any object.
func (keptObject) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[map[string]any]())
}
