package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
)

// The values of a fuzzed request: a tree that keeps its order, so that one seed is one request, and that can hold what JSON
// cannot: a property twice, or bytes that are no JSON at all.
type (
	jsonObject []jsonMember
	jsonMember struct {
		name  string
		value any
	}
	jsonRaw string // written as it is
)

// encode writes v: jsonObject, []any, jsonRaw, or what encoding/json takes.
func encode(v any) []byte {
	var b bytes.Buffer
	write(&b, v)
	return b.Bytes()
}

func write(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case jsonObject:
		b.WriteByte('{')
		for i, m := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			write(b, m.name)
			b.WriteByte(':')
			write(b, m.value)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			write(b, item)
		}
		b.WriteByte(']')
	case jsonRaw:
		b.WriteString(string(v))
	default:
		text, err := json.Marshal(v)
		if err != nil {
			panic(err) // strings, numbers and booleans
		}
		b.Write(text)
	}
}

// fuzzer makes the values of one request.
type fuzzer struct {
	*rand.Rand
	mark  string           // stands in every text that it makes up
	known map[string][]any // by name of property or parameter: values that exist
}

func (f *fuzzer) chance(percent int) bool { return f.IntN(100) < percent }

func pick[T any](f *fuzzer, of []T) T { return of[f.IntN(len(of))] }

// value is one that the schema of a property of that name allows.
func (f *fuzzer) value(name string, s *openapi3.Schema) any {
	if values := f.known[name]; len(values) > 0 && f.chance(90) {
		return copied(pick(f, values)) // mutations change a tree in place
	}
	switch {
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return pick(f, s.Enum)
	case s.Type.Is("object"):
		return f.object(s)
	case s.Type.Is("array"):
		n := int(s.MinItems) + f.IntN(3)
		if s.MaxItems != nil {
			n = min(n, int(*s.MaxItems))
		}
		list := []any{}
		for range n {
			list = append(list, f.value("", s.Items.Value))
		}
		return list
	case s.Type.Is("boolean"):
		return f.chance(50)
	case s.Type.Is("integer"), s.Type.Is("number"):
		low, high := 0.0, 1e6
		if s.Min != nil {
			low = *s.Min
		}
		if s.Max != nil {
			high = *s.Max
		}
		if f.chance(40) {
			return pick(f, []int64{int64(low), int64(low) + 1, int64(high)})
		}
		return int64(low) + f.Int64N(int64(high-low)+1)
	}
	return f.text(s)
}

func copied(v any) any {
	switch v := v.(type) {
	case jsonObject:
		o := make(jsonObject, len(v))
		for i, m := range v {
			o[i] = jsonMember{m.name, copied(m.value)}
		}
		return o
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = copied(item)
		}
		return list
	}
	return v
}

func (f *fuzzer) object(s *openapi3.Schema) any {
	o := jsonObject{}
	for _, name := range sorted(s.Properties) {
		if slices.Contains(s.Required, name) || f.chance(40) {
			o = append(o, jsonMember{name, f.value(name, s.Properties[name].Value)})
		}
	}
	f.Shuffle(len(o), func(i, j int) { o[i], o[j] = o[j], o[i] })
	return o
}

func sorted[T any](m map[string]T) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// text is one that s allows, with the mark in it where s leaves room for it.
func (f *fuzzer) text(s *openapi3.Schema) string {
	switch s.Format {
	case "date-time":
		return fmt.Sprintf("20%02d-%02d-%02dT12:00:00Z", 20+f.IntN(20), 1+f.IntN(12), 1+f.IntN(28))
	case "email":
		return f.mark + "@example.com"
	case "uri":
		return "https://example.com/" + f.mark
	}
	pattern := s.Pattern
	if pattern == "" {
		pattern = `^[ -~\x{a0}-\x{17f}\x{1f600}-\x{1f64f}]*$`
	}
	text := f.match(pattern)
	if marked := f.mark + text; regexp.MustCompile(pattern).MatchString(marked) {
		text = marked
	}
	for n := utf8.RuneCountInString(text); n < int(s.MinLength); n++ {
		text += "x"
	}
	if s.MaxLength != nil && utf8.RuneCountInString(text) > int(*s.MaxLength) {
		text = string([]rune(text)[:*s.MaxLength])
	}
	return text
}

// match is a text that the expression matches.
func (f *fuzzer) match(expression string) string {
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		panic(err) // of the served document, which was validated
	}
	var b strings.Builder
	f.walk(&b, tree)
	return b.String()
}

func (f *fuzzer) walk(b *strings.Builder, e *syntax.Regexp) {
	times := func(least, most int) {
		for range least + f.IntN(most-least+1) {
			f.walk(b, e.Sub[0])
		}
	}
	switch e.Op {
	case syntax.OpLiteral:
		b.WriteString(string(e.Rune))
	case syntax.OpCharClass:
		b.WriteRune(f.rune(e.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteRune(rune(' ' + f.IntN(95)))
	case syntax.OpCapture:
		f.walk(b, e.Sub[0])
	case syntax.OpStar:
		times(0, 12)
	case syntax.OpPlus:
		times(1, 12)
	case syntax.OpQuest:
		times(0, 1)
	case syntax.OpRepeat:
		most := e.Max
		if most < 0 {
			most = e.Min + 12
		}
		times(e.Min, most)
	case syntax.OpConcat:
		for _, sub := range e.Sub {
			f.walk(b, sub)
		}
	case syntax.OpAlternate:
		f.walk(b, pick(f, e.Sub))
	}
}

// rune is one of a character class, of ASCII more often than not.
func (f *fuzzer) rune(pairs []rune) rune {
	i := 2 * f.IntN(len(pairs)/2)
	low, high := pairs[i], pairs[i+1]
	if low < 0x7f && high > 0x7e && f.chance(70) {
		high = 0x7e
	}
	r := low + rune(f.IntN(int(high-low)+1))
	if !utf8.ValidRune(r) {
		return low
	}
	return r
}
