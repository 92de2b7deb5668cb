package aicontext

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// instructionTable is the rules that find text which addresses an AI reader rather than a person; it says itself how it is
// to be read. testdata/signals.tsv is the corpus: change both together.
//
//go:embed signal_rules.tsv
var instructionTable string

// instructionRules are read at first use: every worker starts as this program does, and has no need of them.
var instructionRules = sync.OnceValue(func() rules { return mustReadRules(instructionTable) })

// rules is the table made ready: the phrases by the words, or the characters, that can start them.
type rules struct {
	spaced map[string][]phrase
	wide   map[rune][]widePhrase
	marks  []string
	rows   int
}

func mustReadRules(table string) rules {
	r, err := readRules(table)
	if err != nil {
		panic("instruction rules: " + err.Error())
	}
	return r
}

// readRules fails, naming the line, on a row that could never match or would match everything.
func readRules(table string) (rules, error) {
	r := rules{spaced: map[string][]phrase{}, wide: map[rune][]widePhrase{}}
	n := 0
	for line := range strings.Lines(table) {
		n++
		if line = strings.TrimRight(line, "\r\n"); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := r.readRow(strings.Split(line, "\t")); err != nil {
			return rules{}, fmt.Errorf("line %d: %w", n, err)
		}
		r.rows++
	}
	return r, nil
}

func (r *rules) readRow(cells []string) error {
	if len(cells) != 4 {
		return fmt.Errorf("%d cells, want class, language, gap, phrase", len(cells))
	}
	class, language := cells[0], cells[1]
	if !hiddenClass.MatchString(class) || class == classHiddenInstruction {
		return fmt.Errorf("class %q", class)
	}
	if class == classMarkup {
		if cells[3] == "" || cells[3] != asciiLower(cells[3]) {
			return fmt.Errorf("mark %q: text is compared in lower case", cells[3])
		}
		r.marks = append(r.marks, cells[3])
		return nil
	}
	gap, err := strconv.Atoi(cells[2])
	if err != nil || gap < 0 || gap > 20 {
		return fmt.Errorf("gap %q", cells[2])
	}
	steps := strings.Fields(cells[3])
	var before, after []string
	if len(steps) > 0 && strings.HasPrefix(steps[0], "!") {
		before, steps = strings.Split(steps[0][1:], "|"), steps[1:]
	}
	if len(steps) > 1 && strings.HasPrefix(steps[1], "!") {
		after, steps = strings.Split(steps[1][1:], "|"), slices.Delete(steps, 1, 2)
	}
	if len(steps) == 0 || len(steps) == 1 && language != "zh" && language != "ja" {
		return fmt.Errorf("phrase %q: two steps or more", cells[3])
	}
	if language == "zh" || language == "ja" {
		if after != nil {
			return fmt.Errorf("phrase %q: a script without spaces has no words after the first", cells[3])
		}
		return r.addWide(class, before, steps, gap)
	}
	return r.addSpaced(phrase{class: class, gap: gap, before: plainSet(before), after: plainSet(after)}, steps)
}

func plainSet(words []string) map[string]bool {
	s := map[string]bool{}
	for _, w := range words {
		s[plainLetters(w)] = true
	}
	return s
}

func (r *rules) addSpaced(p phrase, steps []string) error {
	for i, alternatives := range steps {
		s := step{words: map[string]bool{}}
		for word := range strings.SplitSeq(alternatives, "|") {
			word, open := strings.CutSuffix(word, "*")
			plain := plainLetters(word)
			switch {
			case plain == "" || strings.ContainsAny(plain, "*!"):
				return fmt.Errorf("word %q", word)
			case open && (i == 0 || utf8.RuneCountInString(plain) < 3):
				return fmt.Errorf("word %q: an open ending needs three letters, and none is open in the first step", word)
			case open:
				s.prefixes = append(s.prefixes, plain)
			default:
				s.words[plain] = true
			}
		}
		p.steps = append(p.steps, s)
	}
	first := p.steps[0].words
	p.steps = p.steps[1:]
	for word := range first {
		r.spaced[word] = append(r.spaced[word], p)
	}
	return nil
}

func (r *rules) addWide(class string, unless, steps []string, gap int) error {
	p := widePhrase{class: class, unless: unless, gap: gap}
	for _, alternatives := range steps {
		words := strings.Split(asciiLower(alternatives), "|")
		for _, w := range words {
			if w == "" || strings.ContainsAny(w, "*!") {
				return fmt.Errorf("word %q", w)
			}
		}
		p.steps = append(p.steps, words)
	}
	first := p.steps[0]
	p.steps = p.steps[1:]
	for _, p.first = range first {
		c, _ := utf8.DecodeRuneInString(p.first)
		r.wide[c] = append(r.wide[c], p)
	}
	return nil
}
