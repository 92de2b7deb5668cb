package aicontext

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/unicode/norm"
)

// Types of signals. Contract: AI context, `signals`.
const (
	SignalInstruction  = "instruction_like_text" // counted in sentences
	SignalHiddenText   = "hidden_text"           // counted in runs of characters here; extraction has its own
	SignalPersonalData = "personal_data"         // counted in occurrences
)

// Signal says that something of a class was found, and how often; never what. Signals stand beside the text, they
// remove none of it, and their absence proves nothing.
type Signal struct {
	Type  string `json:"type"`
	Class string `json:"class"`
	Count int    `json:"count"`
}

// Signals finds instruction-like text, invisible characters and personal data in the pages' text as it was
// extracted (before Sanitize removes the evidence). It reads 16 MiB at most and returns the classes found, ordered by
// type and class; never nil.
func Signals(pages []Page) []Signal {
	found := tally{}
	left := maxTextBytes
	for _, p := range pages {
		text := p.Text[:runeBoundary(p.Text, left)]
		left -= len(text)
		findInvisible(text, found)
		visible := norm.NFKC.String(PageText(decodeTags(text)))
		findInstructions(visible, found)
		findPersonalData(visible, found)
	}
	return found.signals()
}

// MergeSignals adds the counts of equal types and classes, in the order of Signals.
func MergeSignals(lists ...[]Signal) []Signal {
	found := tally{}
	for _, list := range lists {
		for _, s := range list {
			found[Signal{Type: s.Type, Class: s.Class}] += s.Count
		}
	}
	return found.signals()
}

// tally counts by type and class (Count is 0 in its keys).
type tally map[Signal]int

func (t tally) add(kind, class string) { t[Signal{Type: kind, Class: class}]++ }

func (t tally) signals() []Signal {
	out := make([]Signal, 0, len(t))
	for s, n := range t {
		s.Count = n
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Signal) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Class, b.Class))
	})
	return out
}

// findInvisible counts runs of characters that show nothing but are read by machines, where no script needs them.
func findInvisible(text string, found tally) {
	var before rune // the last visible character
	flagged := 0    // tag characters since a black flag
	run := ""       // class of the run we are in
	for i, r := range text {
		class := ""
		switch {
		case r < 0x200B:
		case r >= 0xE0020 && r <= 0xE007F:
			// After a black flag, up to six and an end spell a region's flag.
			if flagged++; before != 0x1F3F4 || flagged > 7 {
				class = "tag_characters"
			}
		case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
			class = "bidi_controls"
		case r == 0x200B, r >= 0x2060 && r <= 0x2064, r == 0xFEFF && i > 0,
			(r == 0x200C || r == 0x200D) && unicode.Is(unicode.Latin, before):
			class = "zero_width"
		case r >= 0xE0100 && r <= 0xE01EF && !unicode.Is(unicode.Han, before):
			class = "variation_selectors"
		}
		if class != "" && class != run {
			found.add(SignalHiddenText, class)
		}
		if run = class; class == "" && (r < 0xE0020 || r > 0xE007F) {
			before, flagged = r, 0
		}
	}
}

// decodeTags makes ASCII, on a line of its own, of text written in tag characters, so that the rules see it.
func decodeTags(text string) string {
	if !strings.Contains(text, "\U000e0020"[:2]) {
		return text
	}
	var b strings.Builder
	tagged := false
	for _, r := range text {
		tag := r >= 0xE0020 && r <= 0xE007E
		if tag != tagged {
			b.WriteString("\n\n")
			tagged = tag
		}
		if tag {
			r -= 0xE0000
		}
		b.WriteRune(r)
	}
	return b.String()
}

// instructionRule is one row of the table: a class, a phrase in the notation described there, and its gap.
type instructionRule struct {
	class, phrase string
	gap           int
}

// matcher is the table made ready: the phrases by the words that can start them.
type matcher map[string][]phrase

type phrase struct {
	class string
	steps []step // after the first word
	gap   int
}

type step struct {
	words    map[string]bool
	prefixes []string
}

func (s step) accepts(word string) bool {
	return s.words[word] || slices.ContainsFunc(s.prefixes, func(p string) bool { return strings.HasPrefix(word, p) })
}

var instructions = newMatcher(instructionRules)

func newMatcher(rules []instructionRule) matcher {
	m := matcher{}
	for _, r := range rules {
		fields := strings.Fields(r.phrase)
		p := phrase{class: r.class, gap: r.gap}
		for _, field := range fields[1:] {
			s := step{words: map[string]bool{}}
			for word := range strings.SplitSeq(field, "|") {
				if prefix, open := strings.CutSuffix(word, "*"); open {
					s.prefixes = append(s.prefixes, prefix)
				} else {
					s.words[word] = true
				}
			}
			p.steps = append(p.steps, s)
		}
		for word := range strings.SplitSeq(fields[0], "|") {
			m[word] = append(m[word], p)
		}
	}
	return m
}

// classes are those whose phrases stand in one sentence's words.
func (m matcher) classes(sentence []string) map[string]bool {
	found := map[string]bool{}
	for i, w := range sentence {
		for _, p := range m[w] {
			if !found[p.class] && p.follows(sentence[i+1:]) {
				found[p.class] = true
			}
		}
	}
	return found
}

// follows tells that the steps come in order in the rest of the sentence, each the nearest there is within the gap.
func (p phrase) follows(rest []string) bool {
	for _, s := range p.steps {
		at := slices.IndexFunc(rest[:min(len(rest), p.gap+1)], s.accepts)
		if at < 0 {
			return false
		}
		rest = rest[at+1:]
	}
	return true
}

const maxSentenceWords = 400 // a "sentence" without end is looked at in pieces

// findInstructions counts, by class, the sentences with instruction-like text, and chat-template markup.
func findInstructions(text string, found tally) {
	text = strings.ToLower(text)
	for _, mark := range instructionMarkup {
		for range strings.Count(text, mark) {
			found.add(SignalInstruction, "markup")
		}
	}
	var sentence []string
	flush := func() {
		for class := range instructions.classes(sentence) {
			found.add(SignalInstruction, class)
		}
		sentence = sentence[:0]
	}
	for it := words.FromString(text); it.Next(); {
		switch w := it.Value(); {
		case w == "." || w == "!" || w == "?" || w == "\n" || len(sentence) == maxSentenceWords:
			flush()
		case w[0] >= 'a' && w[0] <= 'z' && isASCII(w):
			sentence = append(sentence, withoutElision(w))
		case w[0] >= 0x80 || w[0] >= 'a' && w[0] <= 'z':
			if w = plainLetters(w); w != "" {
				sentence = append(sentence, w)
			}
		}
	}
	flush()
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// lookAlikes are letters of other alphabets that pass for Latin ones.
var lookAlikes = map[rune]rune{
	'а': 'a', 'е': 'e', 'о': 'o', 'р': 'p', 'с': 'c', 'у': 'y', 'х': 'x', 'і': 'i', 'ј': 'j', 'ѕ': 's', 'ԁ': 'd',
	'ӏ': 'l', 'ո': 'n', 'ο': 'o', 'α': 'a', 'ι': 'i', 'ν': 'v', 'ρ': 'p', 'ı': 'i', '’': '\'',
}

// plainLetters is w without accents and with look-alikes replaced; "" where w holds no letter.
func plainLetters(w string) string {
	letters := false
	plain := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		letters = letters || unicode.IsLetter(r)
		if l, ok := lookAlikes[r]; ok {
			return l
		}
		return r
	}, norm.NFD.String(w))
	if !letters {
		return ""
	}
	return withoutElision(plain)
}

// withoutElision is the noun in French l'utilisateur, d'une, qu'il.
func withoutElision(w string) string {
	if i := strings.IndexByte(w, '\''); i == 1 || i == 2 {
		return w[i+1:]
	}
	return w
}
