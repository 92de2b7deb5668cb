package aicontext

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/unicode/norm"
)

const (
	maxSentenceTokens = 400 // a "sentence" without end is looked at in pieces
	classMarkup       = "markup"
)

// findMarkup counts marks of chat templates.
func (r reading) findMarkup(found tally) {
	lower := asciiLower(r.text)
	for _, mark := range instructionRules().marks {
		each, hidden := tally{}, tally{}
		for at := 0; ; at += len(mark) {
			next := strings.Index(lower[at:], mark)
			if next < 0 {
				break
			}
			at += next
			place := r.place(at, at+len(mark))
			r.addInstruction(each, classMarkup, place)
			if r.hidden(place) {
				r.addInstruction(hidden, classHiddenInstruction, place)
			}
		}
		for _, t := range []tally{each, hidden} { // marks stand among each other
			for _, s := range t {
				found.merge(*s)
			}
		}
	}
}

// findInstructions counts, by class, the sentences with instruction-like text. A sentence ends at its mark, at a blank line,
// and at a line's end unless the next line goes on in lower case.
func (r reading) findInstructions(found tally) {
	lower := asciiLower(r.text)
	var s sentence
	flush := func() {
		if classes := s.classes(lower); len(classes) > 0 {
			place := r.place(s.start, s.end)
			for class := range classes {
				r.addInstruction(found, class, place)
			}
			if r.hidden(place) {
				r.addInstruction(found, classHiddenInstruction, place)
			}
		}
		s = sentence{words: s.words[:0]}
	}
	breaks := 0
	for it := words.FromString(lower); it.Next(); {
		w := it.Value()
		switch w {
		case " ":
			continue
		case "\n":
			breaks++
			continue
		case ".", "!", "?", "。", "…", "।":
			s.end = it.End()
			flush()
			breaks = 0
			continue
		}
		if breaks > 1 || breaks == 1 && !startsInLowerCase(r.text[it.Start():]) || s.tokens == maxSentenceTokens {
			flush()
		}
		breaks = 0
		s.add(w, it.Start(), it.End())
	}
	flush()
}

// startsInLowerCase holds for scripts without case as well.
func startsInLowerCase(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r) && !unicode.IsUpper(r)
}

// sentence is the words read since the last one's end.
type sentence struct {
	words              []string
	start, end, tokens int
	wide               bool // has letters of a script without spaces
}

func (s *sentence) add(w string, start, end int) {
	if s.tokens == 0 {
		s.start = start
	}
	s.end = end
	s.tokens++
	switch c := w[0]; {
	case c >= 'a' && c <= 'z' && isASCII(w):
		s.words = append(s.words, withoutElision(w))
	case c >= utf8.RuneSelf || c >= 'a' && c <= 'z':
		if r, _ := utf8.DecodeRuneInString(w); isWide(r) {
			s.wide = true
			return
		}
		if w = plainLetters(w); w != "" {
			s.words = append(s.words, w)
		}
	}
}

// classes are those whose phrases stand in the sentence.
func (s *sentence) classes(text string) map[string]bool {
	if s.tokens == 0 {
		return nil
	}
	var found map[string]bool
	mark := func(class string) {
		if found == nil {
			found = map[string]bool{}
		}
		found[class] = true
	}
	for i, w := range s.words {
		for _, p := range instructionRules().spaced[w] {
			if !found[p.class] && !p.takenBack(s.words, i) && p.follows(s.words[i+1:]) {
				mark(p.class)
			}
		}
	}
	if s.wide {
		run := strings.ReplaceAll(strings.ReplaceAll(text[s.start:s.end], " ", ""), "\n", "")
		for i, r := range run {
			for _, p := range instructionRules().wide[r] {
				if !found[p.class] && p.stands(run[i:]) && !hasAnySuffix(run[:i], p.unless) {
					mark(p.class)
				}
			}
		}
	}
	return found
}

// phrase is a row of instruction words in a script with spaces, under its first word.
type phrase struct {
	class         string
	before, after map[string]bool // words that take it back: directly before it, or one of the two after its first word
	steps         []step          // after the first word
	gap           int             // other words between two steps
}

func (p phrase) takenBack(words []string, i int) bool {
	return i > 0 && p.before[words[i-1]] || i+1 < len(words) && p.after[words[i+1]] || i+2 < len(words) && p.after[words[i+2]]
}

type step struct {
	words    map[string]bool
	prefixes []string
}

func (s step) accepts(word string) bool {
	return s.words[word] || slices.ContainsFunc(s.prefixes, func(p string) bool { return strings.HasPrefix(word, p) })
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

// widePhrase is a row in a script without spaces, under the first character of one of its first alternatives.
type widePhrase struct {
	class  string
	unless []string
	first  string
	steps  [][]string
	gap    int // other characters between two steps
}

// stands tells that run begins with the phrase.
func (p widePhrase) stands(run string) bool {
	rest, ok := strings.CutPrefix(run, p.first)
	for _, s := range p.steps {
		if !ok {
			return false
		}
		rest, ok = cutNear(rest, s, p.gap)
	}
	return ok
}

// cutNear is what comes after the nearest of the alternatives that begins within gap characters.
func cutNear(s string, alternatives []string, gap int) (after string, ok bool) {
	for i := range s {
		for _, a := range alternatives {
			if after, ok = strings.CutPrefix(s[i:], a); ok {
				return after, true
			}
		}
		if gap--; gap < 0 {
			break
		}
	}
	return "", false
}

func hasAnySuffix(s string, suffixes []string) bool {
	return slices.ContainsFunc(suffixes, func(x string) bool { return strings.HasSuffix(s, x) })
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// asciiLower keeps every offset, which strings.ToLower does not.
func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// lookAlikes are letters of other alphabets that pass for Latin ones, and Latin ones with a stroke that NFKD keeps.
var lookAlikes = map[rune]rune{
	'а': 'a', 'е': 'e', 'о': 'o', 'р': 'p', 'с': 'c', 'у': 'y', 'х': 'x', 'і': 'i', 'ј': 'j', 'ѕ': 's', 'ԁ': 'd',
	'ӏ': 'l', 'ո': 'n', 'һ': 'h', 'ɡ': 'g', 'ᴏ': 'o', 'օ': 'o', 'ԛ': 'q', 'ԝ': 'w', 'ο': 'o', 'α': 'a', 'ι': 'i', 'ν': 'v', 'ρ': 'p', 'ı': 'i', '’': '\'', 'ł': 'l', 'ø': 'o', 'đ': 'd',
}

// plainLetters is w in lower case, without accents and with look-alikes replaced; "" where w holds no letter.
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
	}, norm.NFKD.String(strings.ToLower(w)))
	if !letters {
		return ""
	}
	return withoutElision(plain)
}

// elided are the articles of three letters and more that Italian writes with the noun; the shorter ones (l'utilisateur,
// qu'il, un'IA) need no list.
var elided = set("all dell nell sull dall coll quest quell tutt")

// withoutElision is the noun in l'utilisateur, d'une, qu'il, all'utente.
func withoutElision(w string) string {
	if i := strings.IndexByte(w, '\''); i == 1 || i == 2 || i > 2 && elided[w[:i]] {
		return w[i+1:]
	}
	return w
}
