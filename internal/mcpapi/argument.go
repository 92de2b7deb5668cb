package mcpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"unicode/utf8"
)

// inputSchema is as much of JSON Schema as the published tools say of their arguments.
type inputSchema struct {
	Required   []string            `json:"required"`
	Properties map[string]argument `json:"properties"`
}

type argument struct {
	Type      string  `json:"type"` // string or integer
	MinLength int     `json:"minLength"`
	MaxLength int     `json:"maxLength"`
	Pattern   string  `json:"pattern"`
	Minimum   float64 `json:"minimum"`
	Maximum   float64 `json:"maximum"`
}

// field says what is wrong with one argument, in the form of REST. Neither part ever holds what a client sent.
type field struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// wrong names the arguments to change. The SDK's own words hold what was sent, and are about its types.
func (s inputSchema) wrong(sent json.RawMessage) (fields []field) {
	var given map[string]json.RawMessage
	if len(sent) > 0 && json.Unmarshal(sent, &given) != nil {
		return []field{{"", "expected object"}}
	}
	for name := range given {
		if _, known := s.Properties[name]; !known {
			fields = append(fields, field{"", "holds an argument that this tool does not take"})
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		a := s.Properties[name]
		switch value, sent := given[name]; {
		case sent && !a.takes(value):
			fields = append(fields, field{"/" + name, a.expected()})
		case !sent && slices.Contains(s.Required, name):
			fields = append(fields, field{"/" + name, "is required"})
		}
	}
	return fields
}

func (a argument) takes(value json.RawMessage) bool {
	var decoded any
	if json.Unmarshal(value, &decoded) != nil {
		return false
	}
	switch v := decoded.(type) {
	case string:
		fits, err := regexp.MatchString(a.Pattern, v)
		n := utf8.RuneCountInString(v)
		return a.Type == "string" && err == nil && fits && n >= a.MinLength && n <= a.MaxLength
	case float64:
		return a.Type == "integer" && v == math.Trunc(v) && v >= a.Minimum && v <= a.Maximum
	}
	return false
}

func (a argument) expected() string {
	switch {
	case a.Type == "integer":
		return fmt.Sprintf("expected an integer from %g to %g", a.Minimum, a.Maximum)
	case a.Pattern != "":
		return fmt.Sprintf("expected a string of %d to %d characters that matches %s", a.MinLength, a.MaxLength, a.Pattern)
	}
	return fmt.Sprintf("expected a string of %d to %d characters", a.MinLength, a.MaxLength)
}
