package markup

import (
	"slices"
	"strconv"
	"strings"
)

// Bounds of one style sheet. What is beyond is not looked at.
const (
	maxSheetBytes = 1 << 20
	maxSheetRules = 20_000
)

// declaration is one property of a rule. The one with the greatest weight wins.
type declaration struct {
	name, value string
	weight      uint64
}

// Weights: important, then how specific the selector is, then the place in the order.
const (
	weightImportant = 1 << 63
	weightInline    = 4 << 56
	weightID        = 3 << 56
	weightTagClass  = 2<<56 + 1<<55
	weightClass     = 2 << 56
	weightTag       = 1 << 56
	weightSheet     = 1 << 40 // times the sheet's place; below it the rule's place
)

// sheet holds the rules that can hide text, by their selector: "tag", ".class", "tag.class", "#id" or "*". Rules with
// any other selector are not kept.
type sheet struct {
	rules map[string][]declaration
	count int
}

// add reads CSS. Like a browser it passes over what it cannot read.
func (s *sheet) add(css string) {
	css = css[:min(len(css), maxSheetBytes)]
	s.block(stripComments(css), 0)
}

func (s *sheet) block(css string, depth int) {
	for s.count < maxSheetRules {
		css = strings.TrimLeft(css, space+";}")
		css = strings.TrimPrefix(strings.TrimPrefix(css, "<!--"), "-->")
		end := scanTo(css, "{;")
		if end == len(css) {
			return
		}
		prelude := strings.ToLower(strings.Trim(css[:end], space))
		if css[end] == ';' { // @import, @charset
			css = css[end+1:]
			continue
		}
		body, rest := bracedBody(css[end+1:])
		css = rest
		if strings.HasPrefix(prelude, "@") {
			if depth < 4 && applies(prelude) {
				s.block(body, depth+1)
			}
			continue
		}
		declared := parseDeclarations(body)
		if len(declared) == 0 {
			continue
		}
		for selector := range strings.SplitSeq(prelude, ",") {
			s.rule(strings.Trim(selector, space), declared)
		}
	}
}

func (s *sheet) rule(selector string, declared []declaration) {
	var weight uint64
	switch i := strings.IndexAny(selector, ".#"); {
	case selector == "" || strings.ContainsAny(selector[1:], "#*"+space+">+~:[("):
		return
	case selector == "*":
	case i < 0:
		weight = weightTag
	case selector[i] == '#' && i == 0:
		weight = weightID
	case selector[i] == '.' && !strings.Contains(selector[i+1:], "."):
		if weight = weightClass; i > 0 {
			weight = weightTagClass
		}
	default:
		return
	}
	if s.rules == nil {
		s.rules = map[string][]declaration{}
	}
	s.count++
	kept := s.rules[selector]
	for _, d := range declared {
		d.weight += weight + uint64(s.count)
		// A selector said often keeps one value per property, so that no element has many to look at.
		if i := slices.IndexFunc(kept, func(k declaration) bool { return k.name == d.name }); i < 0 {
			kept = append(kept, d)
		} else if d.weight >= kept[i].weight {
			kept[i] = d
		}
	}
	s.rules[selector] = kept
}

// applies tells whether the rules inside an at-rule hold on a screen.
func applies(prelude string) bool {
	name, condition, _ := strings.Cut(prelude, " ")
	switch name {
	case "@media":
		return !strings.Contains(condition, "print") || strings.Contains(condition, "screen") || strings.Contains(condition, "all")
	case "@supports", "@layer":
		return true
	}
	return false
}

// parseDeclarations keeps, in lower case, the valid ones of properties that can hide text. An invalid one leaves the one
// before it in force.
func parseDeclarations(css string) []declaration {
	var kept []declaration
	put := func(name, value string, weight uint64) {
		if !validDeclaration(name, value) {
			return
		}
		d := declaration{name, value, weight}
		if i := slices.IndexFunc(kept, func(k declaration) bool { return k.name == name }); i < 0 {
			kept = append(kept, d)
		} else if weight >= kept[i].weight {
			kept[i] = d
		}
	}
	for css != "" {
		end := scanTo(css, ";{")
		one := css[:end]
		if end < len(css) && css[end] == '{' { // a nested rule
			_, css = bracedBody(css[end+1:])
			continue
		}
		css = css[min(end+1, len(css)):]
		name, value, ok := strings.Cut(one, ":")
		if !ok {
			continue
		}
		name, value = plainCSS(name), plainCSS(value)
		var weight uint64
		if i := strings.LastIndexByte(value, '!'); i >= 0 && strings.Trim(value[i+1:], space) == "important" {
			value, weight = strings.TrimRight(value[:i], space), weightImportant
		}
		switch name {
		case "background":
			put("background-color", backgroundColour(value), weight)
			put("background-image", value, weight)
		case "font":
			put("font-size", fontSize(value), weight)
		case "overflow-x", "overflow-y":
			put("overflow", value, weight)
		default:
			put(name, value, weight)
		}
	}
	return kept
}

func backgroundColour(value string) string {
	for len(value) > 0 {
		end := scanTo(value, " ")
		if _, ok := parseColour(value[:end]); ok {
			return value[:end]
		}
		value = value[min(end+1, len(value)):]
	}
	return "transparent"
}

func fontSize(value string) string {
	for token := range strings.FieldsSeq(value) {
		token, _, _ = strings.Cut(token, "/")
		if _, ok := parseFontSize(token, defaultSize); ok && strings.Trim(token, "0123456789") != "" {
			return token
		}
	}
	return ""
}

// plainCSS is lower case without escapes: "disp\6c ay" is "display".
func plainCSS(s string) string {
	s = strings.ToLower(strings.Trim(s, space))
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		end := i + 1
		for end < len(s) && end < i+7 && strings.IndexByte("0123456789abcdef", s[end]) >= 0 {
			end++
		}
		if code, err := strconv.ParseUint(s[i+1:end], 16, 32); err == nil {
			b.WriteString(strings.ToLower(string(rune(code))))
			if end == len(s) || strings.IndexByte(space, s[end]) < 0 {
				end--
			}
			i = end
		}
	}
	return b.String()
}

// scanTo is where the first of stops stands outside of quotes and parentheses, or the end.
func scanTo(s, stops string) int {
	depth := 0
	var quote byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case quote != 0:
			if c == quote || c == '\n' {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth = max(depth-1, 0)
		case depth == 0 && strings.IndexByte(stops, c) >= 0:
			return i
		}
	}
	return len(s)
}

// bracedBody splits at the brace that closes the one before s.
func bracedBody(s string) (body, rest string) {
	at, depth := 0, 1
	for {
		n := scanTo(s[at:], "{}")
		if at+n == len(s) {
			return s, ""
		}
		at += n + 1
		if s[at-1] == '{' {
			depth++
		} else if depth--; depth == 0 {
			return s[:at-1], s[at:]
		}
	}
}

func stripComments(css string) string {
	if !strings.Contains(css, "/*") {
		return css
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(css, "/*")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if _, css, found = strings.Cut(after, "*/"); !found {
			return b.String()
		}
		b.WriteByte(' ')
	}
}
