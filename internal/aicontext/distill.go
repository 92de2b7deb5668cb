package aicontext

import "errors"

// ErrSummary reports a summary whose sentences do not stand where it says in the pages given with it.
var ErrSummary = errors.New("summary is not of these pages: summarize them again")

// Distillate is the bounded text of one document: what the ai_context gate publishes, before labels, source and
// evidence are put around it. Contract: AI context, `context`.
type Distillate struct {
	Summary    string    `json:"summary"`
	Excerpts   []Excerpt `json:"excerpts"`
	Truncated  bool      `json:"truncated"` // the document has more text than summary and excerpts together
	TokenCount int       `json:"token_count"`
	TokenLimit int       `json:"token_limit"`
	Language   string    `json:"language"`
	Signals    []Signal  `json:"signals"`
}

// Distill puts the best excerpts beside the summary, which must be Summarize's for the same pages. TokenCount is the
// sum of CountTokens over the summary and each excerpt's text, and never more than limits.Tokens; a summary past that
// limit loses its last sentences. The same input gives the same output. Errors: ErrPages, ErrLimits,
// ErrSummary. Bounded as Summarize is.
func Distill(pages []Page, summary Summary, limits Limits) (Distillate, error) {
	limits, err := limits.withDefaults()
	if err != nil {
		return Distillate{}, err
	}
	d, err := readDocument(pages)
	if err != nil {
		return Distillate{}, err
	}
	sentences := summary.Sentences
	text, used := "", 0
	for ; ; sentences = sentences[:len(sentences)-1] {
		text = joinSentences(sentences)
		if used, err = CountTokens(text); err != nil {
			return Distillate{}, err
		}
		if used <= limits.Tokens {
			break
		}
	}
	inSummary, err := locate(d, sentences)
	if err != nil {
		return Distillate{}, err
	}
	excerpts, chosen, n, err := pickExcerpts(d, rank(d), inSummary, limits.Tokens-used)
	if err != nil {
		return Distillate{}, err
	}
	truncated := d.cut
	for i := range chosen {
		truncated = truncated || !chosen[i] && !inSummary[i]
	}
	return Distillate{Summary: text, Excerpts: excerpts, Truncated: truncated, TokenCount: used + n,
		TokenLimit: limits.Tokens, Language: summary.Language, Signals: summary.Signals}, nil
}

// locate finds the summary's sentences among the document's; one that is only the start of its sentence is checked
// but not found, since the rest of it is not served.
func locate(d *document, sentences []Sentence) (map[int]bool, error) {
	type place struct{ page, start, end int }
	wanted := map[place]bool{}
	pages := map[int]string{}
	for _, p := range d.pages {
		pages[p.Number] = p.Text
	}
	for _, s := range sentences {
		text := pages[s.Page]
		if s.Start < 0 || s.Start >= s.End || s.End > len(text) || text[s.Start:s.End] != s.Text {
			return nil, ErrSummary
		}
		wanted[place{s.Page, s.Start, s.End}] = true
	}
	found := map[int]bool{}
	for i, s := range d.sentences {
		if wanted[place{d.pages[s.page].Number, int(s.start), int(s.end)}] {
			found[i] = true
		}
	}
	return found, nil
}
