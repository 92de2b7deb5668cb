package aicontext

import (
	"errors"
	"slices"
)

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
// sum of CountTokens over the summary and each excerpt with its heading, and never more than limits.Tokens; a summary past that
// limit loses its last sentences. The same input gives the same output, whether the summary brings it along or not. Errors:
// ErrPages, ErrLimits, ErrSummary. Bounded as Summarize is.
func Distill(pages []Page, summary Summary, limits Limits) (Distillate, error) {
	limits, err := limits.withDefaults()
	if err != nil {
		return Distillate{}, err
	}
	if ready := summary.Distilled; ready != nil && ready.TokenLimit == limits.Tokens {
		if err := stand(pages, summary.Sentences, ready.Excerpts); err != nil {
			return Distillate{}, err
		}
		return *ready, nil
	}
	d, err := readDocument(pages)
	if err != nil {
		return Distillate{}, err
	}
	return distillRanked(rank(d), summary, limits)
}

func distillRanked(r *ranking, summary Summary, limits Limits) (Distillate, error) {
	d := r.d
	sentences := summary.Sentences
	text, used := "", 0
	var err error
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
	excerpts, chosen, n, err := pickExcerpts(d, r.order(nil), inSummary, limits.Tokens-used)
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

// stand checks that sentences and excerpts stand where they say in the pages.
func stand(pages []Page, sentences []Sentence, excerpts []Excerpt) error {
	pages, _, err := bounded(pages)
	if err != nil {
		return err
	}
	said := slices.Clone(excerpts)
	wanted := map[int]bool{}
	for _, s := range sentences {
		said = append(said, Excerpt(s))
	}
	for _, s := range said {
		wanted[s.Page] = true
	}
	texts := map[int]string{}
	for _, p := range pages {
		if wanted[p.Number] {
			texts[p.Number] = PageText(p.Text)
		}
	}
	for _, s := range said {
		text := texts[s.Page]
		if s.Start < 0 || s.Start >= s.End || s.End > len(text) || text[s.Start:s.End] != s.Text {
			return ErrSummary
		}
	}
	return nil
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
