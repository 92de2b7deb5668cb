package aicontext

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/station.golden.json anew")

// station is the invented report of testdata, a page per form feed.
func station(t testing.TB) (pages []Page) {
	t.Helper()
	raw, err := os.ReadFile("testdata/station.txt")
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range strings.Split(string(raw), "\f") {
		pages = append(pages, Page{Number: i + 1, Text: text})
	}
	return pages
}

func distill(t testing.TB, pages []Page, limits Limits) (Summary, Distillate) {
	t.Helper()
	s, err := Summarize(pages, limits)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Distill(pages, s, limits)
	if err != nil {
		t.Fatal(err)
	}
	return s, d
}

func TestGolden(t *testing.T) {
	const file = "testdata/station.golden.json"
	s, d := distill(t, station(t), Limits{Tokens: 400, SummaryTokens: 150})
	s.Distilled = nil // it is d
	got, err := json.MarshalIndent(struct {
		Summary    Summary
		Distillate Distillate
	}{s, d}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != strings.TrimSpace(string(want)) {
		t.Errorf("the context of testdata/station.txt changed; readers' context_sha256 change with it. Got:\n%s", got)
	}
}

// check holds for every document and every limit.
func check(t *testing.T, pages []Page, limits Limits) {
	t.Helper()
	s, d := distill(t, pages, limits)
	bounds, err := limits.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	texts := map[int]string{}
	visible := 0
	for _, p := range pages {
		texts[p.Number] = PageText(p.Text)
		visible += len(strings.Join(strings.Fields(texts[p.Number]), ""))
	}
	verbatim := func(what, text string, page, start, end int) {
		if start >= end || texts[page][start:end] != text {
			t.Errorf("%s is not at page %d, %d to %d: %q", what, page, start, end, text)
		}
		checkClean(t, text)
	}
	served := map[int][]bool{}
	for n, text := range texts {
		served[n] = make([]bool, len(text))
	}
	page, end := -1, 0
	for _, e := range s.Sentences {
		verbatim("sentence", e.Text, e.Page, e.Start, e.End)
		if e.Page < page || e.Page == page && e.Start < end {
			t.Error("summary sentences overlap or are out of order")
		}
		page, end = e.Page, e.End
		for i := e.Start; i < e.End; i++ {
			served[e.Page][i] = true
		}
	}
	if s.Text != joinSentences(s.Sentences) || len(s.Sentences) > bounds.SummarySentences {
		t.Errorf("summary of %d sentences: %q", len(s.Sentences), s.Text)
	}
	tokens := count(t, d.Summary)
	if s.TokenCount != count(t, s.Text) || s.TokenCount > bounds.SummaryTokens {
		t.Errorf("summary says %d tokens of %d, has %d", s.TokenCount, bounds.SummaryTokens, count(t, s.Text))
	}
	page, end = -1, 0
	for i, e := range d.Excerpts {
		verbatim("excerpt", e.Text, e.Page, e.Start, e.End)
		if e.Page < page || e.Page == page && e.Start < end {
			t.Error("excerpts overlap or are out of order")
		}
		page, end = e.Page, e.End
		for i := e.Start; i < e.End; i++ {
			served[e.Page][i] = true
		}
		tokens += count(t, e.headed(i))
	}
	if d.TokenCount != tokens || tokens > bounds.Tokens || d.TokenLimit != bounds.Tokens {
		t.Errorf("says %d tokens of %d, has %d, limit %d", d.TokenCount, d.TokenLimit, tokens, bounds.Tokens)
	}
	shown := 0
	for n, text := range texts {
		for i, on := range served[n] {
			if on && text[i] != ' ' && text[i] != '\n' {
				shown++
			}
		}
	}
	if d.Truncated != (shown < visible) {
		t.Errorf("truncated is %v, but %d of %d bytes are served", d.Truncated, shown, visible)
	}
	s.Distilled = nil // as a summary of an earlier version
	if anew, err := Distill(pages, s, limits); err != nil || !reflect.DeepEqual(anew, d) {
		t.Errorf("made anew %+v, error %v; brought along %+v", anew, err, d)
	}
	if d.Summary != s.Text || d.Language != s.Language || !reflect.DeepEqual(d.Signals, s.Signals) {
		t.Error("the distillate does not carry the summary on")
	}
}

// checkTwice also holds the output against a second run's.
func checkTwice(t *testing.T, pages []Page, limits Limits) {
	t.Helper()
	check(t, pages, limits)
	s, d := distill(t, pages, limits)
	if again, dAgain := distill(t, pages, limits); !reflect.DeepEqual(s, again) || !reflect.DeepEqual(d, dAgain) {
		t.Error("same input, different output")
	}
}

func count(t *testing.T, s string) int {
	t.Helper()
	n, err := CountTokens(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDistillHoldsForEveryLimit(t *testing.T) {
	pages := station(t)
	for _, tokens := range []int{1, 7, 50, 200, 1000, 0} {
		checkTwice(t, pages, Limits{Tokens: tokens})
	}
	check(t, pages, Limits{SummarySentences: 1, SummaryTokens: 10})
}

func TestDistillHoldsForHostileTexts(t *testing.T) {
	for name, text := range hostileTexts() {
		t.Run(name, func(t *testing.T) {
			check(t, []Page{{Text: text}}, Limits{})
			check(t, []Page{{Number: 1, Text: text}, {Number: 3, Text: text}}, Limits{Tokens: 60})
		})
	}
}

// hostileTexts are no proper documents.
func hostileTexts() map[string]string {
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 8_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	return map[string]string{
		"empty":                 "",
		"white space":           " \n\t\u200b ",
		"one word":              "Pump",
		"one giant word":        strings.Repeat("a", 30_000),
		"one giant sentence":    strings.Repeat("the pump and ", 3_000),
		"closing brackets":      strings.Repeat("End."+strings.Repeat(")", 10_000), 10),
		"full stops":            strings.Repeat(". ", 5_000),
		"abbreviations":         strings.Repeat("Dr. ", 4_000),
		"short lines":           strings.Repeat("a\n", 6_000),
		"the same sentence":     strings.Repeat("The pump was inspected in March. ", 800),
		"table":                 strings.Repeat("Valve 12 | 3.4 bar | ok\nValve 13 | 3.5 bar | ok\n\n", 500),
		"Chinese":               strings.Repeat("水泵站于三月进行了检查，密封件已经更换。下一次检查定于明年春季进行。", 300),
		"Chinese without stops": strings.Repeat("水泵站于三月进行了检查密封件已经更换", 500),
		"emoji":                 strings.Repeat("👩\u200d👩\u200d👧\u200d👦🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", 500),
		"stacked marks":         strings.Repeat("a"+strings.Repeat("\u0301\u0316", 40), 100),
		"marks alone":           strings.Repeat("\u0316", 10_000),
		"noise":                 string(noise),
		"line feeds":            strings.Repeat("\n", 100_000),
		"at signs":              strings.Repeat("@", 10_000) + strings.Repeat("a@", 5_000),
		"digits":                strings.Repeat("4111 ", 5_000),
	}
}

func TestDistillOfRandomDocuments(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	stock := strings.Fields("the pump station Pump. was inspected! in March 水泵。 密封 3.4 bar Dr. No. 12 \n \n\n - über café\u0301 \u200b \u202e (see fig. 2) “quoted.” ended?")
	stock = append(stock, "\n", "\n\n", "\f")
	for range 40 {
		var pages []Page
		for n := range random.IntN(5) {
			var b strings.Builder
			for range random.IntN(400) {
				b.WriteString(stock[random.IntN(len(stock))])
				if random.IntN(8) > 0 {
					b.WriteByte(' ')
				}
			}
			pages = append(pages, Page{Number: n + 1, Text: b.String()})
		}
		checkTwice(t, pages, Limits{Tokens: 1 + random.IntN(500)})
	}
}

func TestShortDocumentIsServedWhole(t *testing.T) {
	text := "The pump was inspected in March. The seals were replaced by the team. No further defects were found that day."
	s, d := distill(t, []Page{{Text: text}}, Limits{})
	if d.Truncated || len(d.Excerpts) != 1 || d.Excerpts[0].Text != text {
		t.Errorf("distillate %+v, want the whole text", d)
	}
	if !s.Truncated || len(s.Sentences) != 2 {
		t.Errorf("summary %+v, want two of three sentences, truncated", s)
	}
}

func TestRunningHeadsAreNotSummarized(t *testing.T) {
	var pages []Page
	for i := range 6 {
		pages = append(pages, Page{Number: i + 1, Text: fmt.Sprintf("Report of the harbour pump station\n\n"+
			"Valve %c was opened and cleaned on that day.\n\nPage %d of 6", 'A'+i, i+1)})
	}
	d, err := readDocument(pages)
	if err != nil {
		t.Fatal(err)
	}
	order := rank(d).order(nil)
	if len(order) != 6 {
		t.Errorf("%d sentences take part, want 6", len(order))
	}
	for _, i := range order {
		if !d.sentences[i].prose {
			t.Errorf("%q takes part", d.text(d.sentences[i]))
		}
	}
}

func TestEightMiB(t *testing.T) {
	var b strings.Builder
	random := rand.New(rand.NewPCG(5, 6))
	stock := strings.Fields("pump valve seal station inspection pressure the a of in was were found replaced cleaned report March")
	for b.Len() < 8<<20 {
		for range 5 + random.IntN(15) {
			b.WriteString(stock[random.IntN(len(stock))])
			b.WriteByte(' ')
		}
		b.WriteString("done.\n")
	}
	s, d := distill(t, []Page{{Text: b.String()}}, Limits{})
	if !d.Truncated || d.TokenCount > defaultTokens || d.TokenCount < 3400 || len(s.Sentences) != 5 {
		t.Errorf("truncated %v, %d tokens, %d sentences", d.Truncated, d.TokenCount, len(s.Sentences))
	}
}

func TestTextPastTheBoundIsSaidToBeTruncated(t *testing.T) {
	// All that is read is served; the second page is past the bound.
	pages := []Page{{Number: 1, Text: "The pump ran." + strings.Repeat(" ", maxTextBytes)}, {Number: 2, Text: "The end is here."}}
	s, d := distill(t, pages, Limits{})
	if len(d.Excerpts) != 1 || !s.Truncated || !d.Truncated {
		t.Errorf("truncated %v and %v with %d excerpts, want both true with one", s.Truncated, d.Truncated, len(d.Excerpts))
	}
}

func TestDistillRefusesAnotherDocumentsSummary(t *testing.T) {
	pages := station(t)
	s, _ := distill(t, pages, Limits{})
	earlier := s
	earlier.Distilled = nil
	for name, other := range map[string][]Page{
		"changed text": {{Number: 1, Text: strings.ReplaceAll(pages[0].Text, "pump", "tank")}, pages[1], pages[2]},
		"other text":   {{Number: 1, Text: "Something else entirely is written here."}},
		"no pages":     nil,
	} {
		for _, s := range []Summary{s, earlier} {
			if _, err := Distill(other, s, Limits{}); !errors.Is(err, ErrSummary) {
				t.Errorf("%s: error %v, want ErrSummary", name, err)
			}
		}
	}
	last := pages[len(pages)-1]
	last.Text = strings.ReplaceAll(last.Text, "e", "i") // no sentence of the summary is of this page
	if _, err := Distill(append(slices.Clone(pages[:len(pages)-1]), last), s, Limits{}); !errors.Is(err, ErrSummary) {
		t.Errorf("changed excerpts: error %v, want ErrSummary", err)
	}
	s.Sentences[0].Start = -1
	earlier.Sentences[0].Start = -1
	for _, s := range []Summary{s, earlier} {
		if _, err := Distill(pages, s, Limits{}); !errors.Is(err, ErrSummary) {
			t.Errorf("offset -1: error %v, want ErrSummary", err)
		}
	}
}

func TestFewestTokensIsABound(t *testing.T) {
	texts := hostileTexts()
	for _, p := range station(t) {
		texts[fmt.Sprint("page ", p.Number)] = p.Text
	}
	random := rand.New(rand.NewPCG(7, 8))
	for i := range 300 {
		runes := make([]rune, 60)
		for j := range runes {
			runes[j] = []rune("  \n\tab.,'s12é水\u00a0-/()\u0301")[random.IntN(18)]
		}
		texts[fmt.Sprint("random ", i)] = string(runes)
	}
	for name, text := range texts {
		if n := fewestTokens(PageText(text)); n > count(t, PageText(text)) {
			t.Errorf("%s: %d tokens at least, but it has %d", name, n, count(t, PageText(text)))
		}
	}
}

func TestNegativeLimits(t *testing.T) {
	for _, l := range []Limits{{Tokens: -1}, {SummarySentences: -1}, {SummaryTokens: -1}} {
		if _, err := Summarize(nil, l); !errors.Is(err, ErrLimits) {
			t.Errorf("%+v: error %v, want ErrLimits", l, err)
		}
	}
}

func TestASmallerLimitAtDistillShortensTheSummary(t *testing.T) {
	pages := station(t)
	s, err := Summarize(pages, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := Distill(pages, s, Limits{Tokens: s.TokenCount - 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Summary) >= len(s.Text) || !strings.HasPrefix(s.Text, d.Summary) || d.TokenCount > s.TokenCount-1 {
		t.Errorf("summary %q, %d tokens", d.Summary, d.TokenCount)
	}
}

// 160 KB: the size that the prototype was measured with.
func benchmarkPages(b *testing.B) []Page {
	var pages []Page
	size := 0
	source := station(b)
	for i := 0; size < 160_000; i++ {
		// Numbers keep the copies from being the same sentences.
		text := strings.ReplaceAll(source[i%len(source)].Text, ". ", fmt.Sprintf(" in round %d. ", i))
		pages = append(pages, Page{Number: i + 1, Text: text})
		size += len(text)
	}
	return pages
}

func BenchmarkSummarize160KB(b *testing.B) {
	pages := benchmarkPages(b)
	for b.Loop() {
		if _, err := Summarize(pages, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDistill160KB(b *testing.B) {
	pages := benchmarkPages(b)
	s, _ := distill(b, pages, Limits{})
	for b.Loop() {
		if _, err := Distill(pages, s, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}
