package intake

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// grammar is the tables made ready, on first use.
var grammar = sync.OnceValue(newGrammar)

const (
	otherWord = '_' // a word in no class
	alphabet  = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%@#!'/;=`\""
)

// claimGrammar reads and judges sentences of word classes, one letter a class.
type claimGrammar struct {
	letters  map[string]byte // of the classes
	names    map[byte]string // of the letters
	words    map[string]byte
	stems    map[byte][]stem // by their first letter
	rewrites []substitution
	excuses  []phrase
	claims   []phrase

	verdicts, parties letterSet // a sentence without one of each holds no claim
	excusable         letterSet
}

type stem struct {
	text  string
	class byte
}

// phrase is a pattern ready to match. A sentence that lacks a class of one of needs cannot match: most never reach the
// expression.
type phrase struct {
	expression *regexp.Regexp
	needs      []letterSet
}

func (p phrase) possible(sentence letterSet) bool {
	for _, need := range p.needs {
		if !need.meets(sentence) {
			return false
		}
	}
	return true
}

type substitution struct {
	phrase
	to string
}

// letterSet is a set of classes, by letter.
type letterSet [utf8.RuneSelf / 64]uint64

func (s *letterSet) add(letter byte)           { s[letter/64] |= 1 << (letter % 64) }
func (s letterSet) has(letter byte) bool       { return s[letter/64]&(1<<(letter%64)) != 0 }
func (s letterSet) meets(other letterSet) bool { return s[0]&other[0]|s[1]&other[1] != 0 }

func lettersOf[T string | []byte](sentence T) (s letterSet) {
	for i := range len(sentence) {
		s.add(sentence[i])
	}
	return s
}

func newGrammar() *claimGrammar {
	g := &claimGrammar{
		letters: map[string]byte{"other": otherWord}, names: map[byte]string{otherWord: "other"},
		words: map[string]byte{}, stems: map[byte][]stem{},
	}
	names := append(slices.Collect(maps.Keys(claimLexicon)), "comma", "aside", "colon", "question", "digits")
	for _, r := range claimRewrites {
		names = append(names, r.to)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if name != "" {
			letter := alphabet[len(g.letters)-1]
			g.letters[name], g.names[letter] = letter, name
		}
	}
	for class, list := range claimLexicon {
		for w := range strings.FieldsSeq(list) {
			if s, open := strings.CutSuffix(w, "*"); open {
				g.stems[s[0]] = append(g.stems[s[0]], stem{s, g.letters[class]})
			} else {
				if g.words[w] != 0 {
					panic(fmt.Sprintf("claim rules: %q is in two classes", w))
				}
				g.words[w] = g.letters[class]
			}
		}
	}
	for _, r := range claimRewrites {
		to := byte(otherWord)
		if r.to != "" {
			to = g.letters[r.to]
		}
		g.rewrites = append(g.rewrites, substitution{g.compile(r.pattern), string(to)})
	}
	for _, e := range claimExcuses {
		g.excuses = append(g.excuses, g.compile(e))
	}
	for _, c := range claimPhrases {
		g.claims = append(g.claims, g.compile(c))
	}
	g.verdicts = g.set("K|inf|passed|ord|number")
	g.parties = g.set("name|svc|sys|doc|sub|status")
	g.excusable = g.set("K")
	return g
}

// set is the letters of a|b, sets of the tables included.
func (g *claimGrammar) set(list string) (s letterSet) {
	for name := range strings.SplitSeq(list, "|") {
		if names, ok := claimSets[name]; ok {
			inner := g.set(names)
			s[0], s[1] = s[0]|inner[0], s[1]|inner[1]
		} else if g.letters[name] != 0 {
			s.add(g.letters[name])
		} else {
			panic(fmt.Sprintf("claim rules: no class %q", name))
		}
	}
	return s
}

var classReference = regexp.MustCompile(`<[^<>]*>`)

// compile makes a phrase of a pattern of the tables.
func (g *claimGrammar) compile(pattern string) (p phrase) {
	pattern = strings.ReplaceAll(pattern, " ", "")
	var expression strings.Builder
	depth, at := 0, 0
	for _, span := range classReference.FindAllStringIndex(pattern, -1) {
		between := pattern[at:span[0]]
		expression.WriteString(between)
		depth += strings.Count(between, "(") - strings.Count(between, ")")
		list, not := strings.CutPrefix(pattern[span[0]+1:span[1]-1], "!")
		set := g.set(list)
		at = span[1]
		rest := pattern[at:]
		if !not && depth == 0 && !strings.HasPrefix(rest, "?") && !strings.HasPrefix(rest, "*") && !strings.HasPrefix(rest, "{0,") {
			p.needs = append(p.needs, set)
		}
		expression.WriteByte('[')
		if not {
			expression.WriteByte('^')
		}
		for letter := range byte(utf8.RuneSelf) {
			if set.has(letter) {
				expression.WriteByte(letter)
			}
		}
		expression.WriteByte(']')
	}
	expression.WriteString(pattern[at:])
	p.expression = regexp.MustCompile(expression.String())
	return p
}

// class is the class of a folded word.
func (g *claimGrammar) class(w string) byte {
	if c, ok := g.words[w]; ok {
		return c
	}
	for _, s := range g.stems[w[0]] {
		if strings.HasPrefix(w, s.text) {
			return s.class
		}
	}
	return otherWord
}

// holdsClaim tells that a sentence, as its words' classes, holds a claim.
func (g *claimGrammar) holdsClaim(sentence string) bool {
	has := lettersOf(sentence)
	for _, r := range g.rewrites {
		if r.possible(has) {
			sentence = r.expression.ReplaceAllLiteralString(sentence, r.to)
			has = lettersOf(sentence)
		}
	}
	// Excuses only take away: most sentences need none.
	if !g.claimed(sentence, has) {
		return false
	}
	for _, e := range g.excuses {
		if e.possible(has) {
			sentence = e.expression.ReplaceAllStringFunc(sentence, g.excuse)
		}
	}
	return g.claimed(sentence, lettersOf(sentence))
}

func (g *claimGrammar) claimed(sentence string, has letterSet) bool {
	return slices.ContainsFunc(g.claims, func(c phrase) bool { return c.possible(has) && c.expression.MatchString(sentence) })
}

// excuse takes the verdicts out of an excused phrase.
func (g *claimGrammar) excuse(words string) string {
	out := []byte(words)
	for i, letter := range out {
		if g.excusable.has(letter) {
			out[i] = otherWord
		}
	}
	return string(out)
}

const (
	maxGluedBytes = 60 // a word that could be several: verifiedbyaccession
	maxGluedPart  = 16 // the longest word looked for in it
)

var verdictStems = []string{"verif", "rtif", "endors", "rank"}

// unglue is the classes of words written without spaces, where one of them is a verdict; nil for anything else.
func (g *claimGrammar) unglue(w string) []byte {
	if len(w) < 8 || len(w) > maxGluedBytes || strings.HasPrefix(w, "un") ||
		!slices.ContainsFunc(verdictStems, func(s string) bool { return strings.Contains(w, s) }) {
		return nil
	}
	best := make([][]byte, len(w)+1) // the reading of w's first n bytes in the fewest words
	best[0] = []byte{}
	for from := range w {
		for to := from + 2; best[from] != nil && to <= min(len(w), from+maxGluedPart); to++ {
			if class, known := g.words[w[from:to]]; known && (best[to] == nil || len(best[from])+1 < len(best[to])) {
				best[to] = append(slices.Clone(best[from]), class)
			}
		}
	}
	return best[len(w)]
}
