package aicontext

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// labelled is a line of testdata/signals.tsv, which says what its cells are.
type labelled struct {
	number               int
	part, language, text string
	labels               []string // none for an innocent line
}

var escape = regexp.MustCompile(`\\n|\\u\{[0-9a-f]+\}`)

func signalCorpus(t testing.TB) (lines []labelled) {
	t.Helper()
	raw, err := os.ReadFile("testdata/signals.tsv")
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	for line := range strings.Lines(string(raw)) {
		number++
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(cells) != 4 || cells[0] != "tuned" && cells[0] != "held" {
			t.Fatalf("line %d: %q", number, line)
		}
		l := labelled{number: number, part: cells[0], language: cells[1]}
		if cells[2] != "-" {
			l.labels = strings.Split(cells[2], ",")
		}
		l.text = escape.ReplaceAllStringFunc(cells[3], func(s string) string {
			if s == `\n` {
				return "\n"
			}
			r, err := strconv.ParseUint(s[3:len(s)-1], 16, 21)
			if err != nil {
				t.Fatalf("line %d: %v", number, err)
			}
			return string(rune(r))
		})
		lines = append(lines, l)
	}
	return lines
}

// labelsOf are the signals of a line in the corpus's words, by the type of signal.
func labelsOf(text string) map[string]string {
	labels := map[string]string{}
	for _, s := range Signals([]Page{{Text: text}}) {
		if s.Type == SignalInstruction {
			labels["instruction"] = s.Type
		} else {
			labels[s.Class] = s.Type
		}
	}
	return labels
}

func typeOf(label string) string {
	switch label {
	case "instruction":
		return SignalInstruction
	case "tag_characters", "bidi_controls", "zero_width", "variation_selectors":
		return SignalHiddenText
	}
	return SignalPersonalData
}

// score is what the rules make of a part of the corpus.
type score struct{ right, wrong, missed int }

func (s score) precision() float64 { return float64(s.right) / float64(max(1, s.right+s.wrong)) }
func (s score) recall() float64    { return float64(s.right) / float64(max(1, s.right+s.missed)) }

func (s score) String() string {
	return fmt.Sprintf("precision %.3f (%d of %d), recall %.3f (%d of %d)", s.precision(), s.right, s.right+s.wrong, s.recall(), s.right, s.right+s.missed)
}

// TestSignalCorpus prints what the rules reach: go test -run SignalCorpus -v ./internal/aicontext
func TestSignalCorpus(t *testing.T) {
	scores := map[string]*score{}
	lines, innocent, languages := map[string]int{}, map[string]int{}, map[string]int{}
	for _, l := range signalCorpus(t) {
		lines[l.part]++
		languages[l.language]++
		if len(l.labels) == 0 {
			innocent[l.part]++
		}
		got := labelsOf(l.text)
		add := func(kind string, by score) {
			for _, key := range []string{l.part + " " + kind, l.part + " " + l.language + " " + kind} {
				if scores[key] == nil {
					scores[key] = &score{}
				}
				scores[key].right += by.right
				scores[key].wrong += by.wrong
				scores[key].missed += by.missed
			}
		}
		for _, want := range l.labels {
			if _, ok := got[want]; ok {
				add(typeOf(want), score{right: 1})
			} else {
				add(typeOf(want), score{missed: 1})
				t.Logf("%s, line %d: missed %s: %s", l.part, l.number, want, l.text)
			}
		}
		for g, kind := range got {
			if !slices.Contains(l.labels, g) {
				add(kind, score{wrong: 1})
				t.Logf("%s, line %d: wrongly %s: %s", l.part, l.number, g, l.text)
			}
		}
	}
	all := lines["tuned"] + lines["held"]
	t.Logf("%d lines, %d held out; %d innocent, %d of them held out; languages %v", all, lines["held"], innocent["tuned"]+innocent["held"], innocent["held"], languages)
	if all < 300 || (innocent["tuned"]+innocent["held"])*2 < all || lines["held"] < 100 {
		t.Error("want 300 lines or more, half of them innocent, and 100 held out")
	}
	// What was reached, per part and type.
	for _, want := range []struct {
		part, kind        string
		precision, recall float64
	}{
		{"tuned", SignalInstruction, 1, 228. / 230}, {"tuned", SignalHiddenText, 1, 1}, {"tuned", SignalPersonalData, 82. / 83, 1},
		{"held", SignalInstruction, 1, 41. / 52}, {"held", SignalHiddenText, 1, 1}, {"held", SignalPersonalData, 1, 20. / 21},
	} {
		s := scores[want.part+" "+want.kind]
		if s == nil {
			s = &score{}
		}
		t.Logf("%-5s %-22s %v", want.part, want.kind, s)
		if s.precision() < want.precision || s.recall() < want.recall {
			t.Errorf("%s %s: want precision %.3f and recall %.3f, the figures that were reached", want.part, want.kind, want.precision, want.recall)
		}
	}
	for _, language := range []string{"en", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "zh", "ja"} {
		for _, part := range []string{"tuned", "held"} {
			s := scores[part+" "+language+" "+SignalInstruction]
			if s == nil || s.right+s.missed == 0 {
				t.Errorf("%s: no instruction-like lines in %s", part, language)
				continue
			}
			t.Logf("%-5s %-2s instructions: %v", part, language, s)
		}
	}
}
