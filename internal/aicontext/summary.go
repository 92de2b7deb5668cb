package aicontext

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	servedTokens            = 4096                       // of the text that is served, its frame included
	defaultTokens           = servedTokens - frameTokens // of what the frame holds
	defaultSummarySentences = 5
	defaultSummaryTokens    = 600
	summaryTries            = 50 // candidates tried for a place before the summary is taken as full
)

// ErrLimits reports a limit below zero.
var ErrLimits = errors.New("limits must not be negative; 0 takes the default")

// Limits bounds what is served of one document. Zero values take the defaults.
type Limits struct {
	Tokens           int // summary and excerpts with their headings; default 3920
	SummarySentences int // default 5
	SummaryTokens    int // default 600, never more than Tokens
}

func (l Limits) withDefaults() (Limits, error) {
	if l.Tokens < 0 || l.SummarySentences < 0 || l.SummaryTokens < 0 {
		return l, fmt.Errorf("limits %+v: %w", l, ErrLimits)
	}
	if l.Tokens == 0 {
		l.Tokens = defaultTokens
	}
	if l.SummarySentences == 0 {
		l.SummarySentences = defaultSummarySentences
	}
	if l.SummaryTokens == 0 {
		l.SummaryTokens = defaultSummaryTokens
	}
	l.SummaryTokens = min(l.SummaryTokens, l.Tokens)
	return l, nil
}

// Sentence is one sentence of the document, verbatim: PageText(page.Text)[Start:End] == Text for the page whose Number
// is Page. Start and End are byte offsets.
type Sentence struct {
	Text  string `json:"text"`
	Page  int    `json:"page,omitempty"`
	Start int    `json:"start"`
	End   int    `json:"end"`
}

// Summary is what the controlled_summary gate keeps: bounded, extractive, sentences of the document only, in the
// document's order. Architecture: gate 5.
type Summary struct {
	Text       string     `json:"text"` // the sentences, joined by one space
	Sentences  []Sentence `json:"sentences"`
	Language   string     `json:"language"` // ISO 639-1, "und" when unsure
	Signals    []Signal   `json:"signals"`
	TokenCount int        `json:"token_count"` // CountTokens(Text)
	Truncated  bool       `json:"truncated"`   // the document has more text than the summary

	// Distilled is what Distill makes of the same pages within the same limits, since the document is read already. A
	// summary of an earlier version has none.
	Distilled *Distillate `json:"distilled,omitempty"`
}

// Summarize chooses the sentences that say most of the document. An empty document gives an empty summary. The same
// input gives the same output. Errors: ErrPages, ErrLimits. Time and memory are bounded: it reads at most 16 MiB of
// text and 200,000 sentences, and compares 1,500 of them.
func Summarize(pages []Page, limits Limits) (Summary, error) {
	limits, err := limits.withDefaults()
	if err != nil {
		return Summary{}, err
	}
	d, err := readDocument(pages)
	if err != nil {
		return Summary{}, err
	}
	r := rank(d)
	picked, err := pickSummary(d, r.fromStart(), limits)
	if err != nil {
		return Summary{}, err
	}
	s := Summary{Sentences: sentencesOf(d, picked), Language: language(d), Signals: Signals(pages)}
	s.Text = joinSentences(s.Sentences)
	if s.TokenCount, err = CountTokens(s.Text); err != nil {
		return Summary{}, err
	}
	s.Truncated = d.cut || size(picked) < size(d.sentences)
	distilled, err := distillRanked(r, s, limits)
	if err != nil {
		return Summary{}, err
	}
	s.Distilled = &distilled
	return s, nil
}

// pickSummary takes sentences in rank order while they fit, prose where there is any, and returns them in the
// document's order. Where not one fits, it takes the start of the best.
func pickSummary(d *document, order []int, limits Limits) ([]span, error) {
	prose := slices.DeleteFunc(slices.Clone(order), func(i int) bool { return !d.sentences[i].prose })
	if len(prose) > 0 {
		order = prose
	}
	// Half of a short document at most: a summary that repeats all of it is none.
	most := min(limits.SummarySentences, (len(order)+1)/2)
	var picked []int
	for _, i := range order[:min(len(order), summaryTries)] {
		if len(picked) == most {
			break
		}
		with := append(slices.Clone(picked), i)
		slices.Sort(with)
		n, err := CountTokens(joinSentences(sentencesOf(d, spans(d, with))))
		if err != nil {
			return nil, err
		}
		if n <= limits.SummaryTokens {
			picked = with
		}
	}
	if len(picked) > 0 || len(order) == 0 {
		return spans(d, picked), nil
	}
	first := d.sentences[order[0]]
	start, err := clip(d.text(first), limits.SummaryTokens)
	if err != nil {
		return nil, err
	}
	start = strings.TrimRight(start, " ")
	if start == "" {
		return nil, nil
	}
	first.end = first.start + int32(len(start))
	return []span{first}, nil
}

func spans(d *document, indexes []int) []span {
	out := make([]span, len(indexes))
	for i, n := range indexes {
		out[i] = d.sentences[n]
	}
	return out
}

// size is the bytes of the spans' text.
func size(of []span) (n int) {
	for _, s := range of {
		n += int(s.end - s.start)
	}
	return n
}

func sentencesOf(d *document, from []span) []Sentence {
	out := make([]Sentence, len(from))
	for i, s := range from {
		out[i] = Sentence{Text: d.text(s), Page: d.pages[s.page].Number, Start: int(s.start), End: int(s.end)}
	}
	return out
}

func joinSentences(from []Sentence) string {
	texts := make([]string, len(from))
	for i, s := range from {
		texts[i] = s.Text
	}
	return strings.Join(texts, " ")
}
