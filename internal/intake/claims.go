package intake

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const (
	maxClaimPathBytes    = 256 // a longer path is cut to an ancestor
	maxVerdictValueWords = 6   // a value of more words is text
)

// FieldClaim finds a claim in a JSON body as encoding/json decodes it (map[string]any, []any, string, bool, nil,
// float64 or json.Number): a field, at any depth, that asserts verified, certified, endorsed, a ranking, or an
// evaluation_status other than not_evaluated. path is the field's JSON Pointer (RFC 6901), the first in the order of
// names; one of more than 256 bytes is cut to the nearest ancestor that fits. It holds names that the client chose.
//
// A field asserts when
//   - it is an evaluation status (evaluation_status, evaluationStatus, status within evaluation) and neither null nor
//     not_evaluated;
//   - its name speaks of a verdict (is_verified, certifiedBy, endorsements), does not leave it open
//     (verification_required), and its value is no denial (false, null, 0, "", "no", "pending", "unverified");
//   - its name denies a verdict (unverified, not_certified) and its value is false;
//   - its name speaks of a ranking and its value is a number or no denial;
//   - its value is a verdict and nothing else ("certified", "officially verified"), or text that TextClaim finds.
//
// Within an object or array under such a name each value counts, but where a status stands among them it alone does.
// The texts filename, notes, reviewer and payload of the body itself are left to TextClaim.
// Contract: Verification claims; section 4.5.
func FieldClaim(body any) (path string, found bool) {
	var s fieldSearch
	if !s.finds(body, field{}, field{}) || len(s.steps) == 0 { // a body that is a scalar has no fields
		return "", false
	}
	return s.pointer(), true
}

// fieldSearch walks a body; steps lead to where it stands, and stay when it finds a claim.
type fieldSearch struct{ steps []string }

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func (s *fieldSearch) pointer() string {
	var b strings.Builder
	for _, step := range s.steps {
		step = pointerEscapes.Replace(step)
		if b.Len()+1+len(step) > maxClaimPathBytes {
			break
		}
		b.WriteString("/" + step)
	}
	return b.String()
}

// finds tells that v, the value of field f within the field `in`, is a claim or holds one.
func (s *fieldSearch) finds(v any, f, in field) bool {
	switch v := v.(type) {
	case map[string]any:
		return s.findsMember(v, f)
	case []any:
		for i, element := range v {
			s.steps = append(s.steps, strconv.Itoa(i))
			if s.finds(element, f, in) {
				return true
			}
			s.steps = s.steps[:len(s.steps)-1]
		}
		return false
	}
	return f.asserts(v, in)
}

func (s *fieldSearch) findsMember(object map[string]any, f field) bool {
	names := slices.Sorted(maps.Keys(object))
	members := make([]field, len(names))
	hasStatus := false
	for i, name := range names {
		members[i] = fieldNamed(name)
		hasStatus = hasStatus || members[i].status
	}
	for i, name := range names {
		m := members[i]
		if _, isText := object[name].(string); isText && m.text && len(s.steps) == 0 {
			continue
		}
		if !m.verdict && !m.ranking && (m.status || !hasStatus) {
			m.verdict, m.ranking = f.verdict, f.ranking
			m.open, m.denies = m.open || f.open, m.denies || f.denies
		}
		s.steps = append(s.steps, name)
		if s.finds(object[name], m, f) {
			return true
		}
		s.steps = s.steps[:len(s.steps)-1]
	}
	return false
}

// field is what a name says.
type field struct {
	verdict, ranking             bool // it speaks of one
	denies, open                 bool // … and turns it round, or leaves it open
	evaluation, evaluationStatus bool
	status                       bool // decides for its companions
	text                         bool // TextClaim's
}

func fieldNamed(name string) field {
	parts := nameWords(name)
	whole := strings.Join(parts, "")
	has := func(list []string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return slices.Contains(list, p) })
	}
	f := field{
		ranking:          has(fieldRules.ranks) || slices.Contains(fieldRules.ranks, whole),
		denies:           has(fieldRules.undoing),
		open:             has(fieldRules.open),
		evaluation:       whole == "evaluation",
		evaluationStatus: strings.Contains(whole, "evaluationstatus"),
		status:           has(fieldRules.status),
		text:             slices.Contains(fieldRules.texts, name),
	}
	for _, stem := range fieldRules.stems {
		before, after, found := "", whole, true
		for !f.verdict {
			if before, after, found = strings.Cut(after, stem); !found {
				break
			}
			f.verdict = !startsWithAny(after, fieldRules.notEndings)
		}
		if f.verdict {
			f.denies = f.denies || endsWithAny(before, fieldRules.undoing)
			break
		}
	}
	return f
}

func startsWithAny(s string, list []string) bool {
	return slices.ContainsFunc(list, func(p string) bool { return strings.HasPrefix(s, p) })
}

func endsWithAny(s string, list []string) bool {
	return slices.ContainsFunc(list, func(p string) bool { return strings.HasSuffix(s, p) })
}

// asserts tells that the scalar v makes the field, within the field `in`, a claim.
func (f field) asserts(v any, in field) bool {
	text, isText := v.(string)
	said := ""
	if isText {
		said = strings.Join(valueWords(text), "")
	}
	switch {
	case f.evaluationStatus || f.status && in.evaluation:
		return v != nil && said != "notevaluated"
	case (f.verdict || f.ranking) && f.open:
		return false
	case (f.verdict || f.ranking) && f.denies:
		return v == false || said == "false" || said == "no"
	case f.ranking && isNumber(v):
		return true
	case f.verdict || f.ranking:
		return !isDenial(v, said)
	}
	return isText && (isVerdict(text) || TextClaim(text))
}

func isNumber(v any) bool {
	switch v.(type) {
	case float64, json.Number:
		return true
	}
	return false
}

// isDenial tells that the value v, whose folded words are said, asserts nothing.
func isDenial(v any, said string) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return strings.TrimSpace(v) == "" || denials[said]
	case float64:
		return v == 0
	case json.Number:
		n, err := v.Float64()
		return err == nil && n == 0
	}
	return false
}

// isVerdict tells that a value is a verdict and nothing else.
func isVerdict(value string) bool {
	if len(value) > 64*maxVerdictValueWords {
		return false
	}
	g := grammar()
	parts := valueWords(value)
	found := false
	for _, w := range parts {
		switch g.names[g.class(w)] {
		case "verdict", "rank":
			found = true
		case "adv", "official", "be", "conj", "ord":
		default:
			return false
		}
	}
	return found && len(parts) <= maxVerdictValueWords
}

// nameWords are the folded words of a name: is_verified, isVerified, is-verified and IS VERIFIED are one.
func nameWords(name string) []string { return foldedWords(name, true) }

func valueWords(value string) []string { return foldedWords(value, false) }

func foldedWords(s string, camelCase bool) []string {
	var b strings.Builder
	var before rune
	for _, r := range plainText(s) {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) ||
			camelCase && (unicode.IsUpper(r) && unicode.IsLower(before) || unicode.IsDigit(r) && unicode.IsLetter(before)) {
			b.WriteByte(' ')
		}
		if before = r; unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return strings.Fields(b.String())
}
