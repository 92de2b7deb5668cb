package aicontext

import "strings"

// Excerpt is a run of the document's text, verbatim: PageText(page.Text)[Start:End] == Text for the page whose Number
// is Page. Start and End are byte offsets. Contract: AI context, `excerpts`.
type Excerpt struct {
	Text  string `json:"text"`
	Page  int    `json:"page,omitempty"`
	Start int    `json:"start"`
	End   int    `json:"end"`
}

// selection is the sentences chosen for excerpts, a flag for each of d.sentences.
type selection []bool

// excerpts are the runs of selected neighbours on one page, in document order; they never overlap.
func (s selection) excerpts(d *document) []Excerpt {
	out := []Excerpt{}
	for i := 0; i < len(s); i++ {
		if !s[i] {
			continue
		}
		first := d.sentences[i]
		for i+1 < len(s) && s[i+1] && d.sentences[i+1].page == first.page {
			i++
		}
		page, end := d.pages[first.page], d.sentences[i].end
		out = append(out, Excerpt{Text: page.Text[first.start:end], Page: page.Number, Start: int(first.start), End: int(end)})
	}
	return out
}

// headingTokens is about what an excerpt counts beside its text.
const headingTokens = 10

func countExcerpts(excerpts []Excerpt) (total int, err error) {
	for i, e := range excerpts {
		n, err := CountTokens(e.headed(i))
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// pickExcerpts returns the whole document where it fits into budget tokens, else the best sentences with their
// neighbours. Sentences of the summary are not sought again, but may come along as neighbours.
func pickExcerpts(d *document, order []int, inSummary map[int]bool, budget int) ([]Excerpt, selection, int, error) {
	whole := make(selection, len(d.sentences))
	for i := range whole {
		whole[i] = true
	}
	if size(d.sentences)/16 <= budget { // far more bytes than tokens can hold need no count
		out := whole.excerpts(d)
		n, err := countExcerpts(out)
		if err != nil || n <= budget {
			return out, whole, n, err
		}
	}

	chosen := make(selection, len(d.sentences))
	var seeds [][]int // each seed with the neighbours it brought, so that it can be taken back
	left := budget
	for _, seed := range order {
		if chosen[seed] || inSummary[seed] || fewestTokens(d.text(d.sentences[seed])) > left {
			continue
		}
		group, cost, err := passage(d, chosen, seed, left)
		if err != nil {
			return nil, nil, 0, err
		}
		for _, i := range group {
			chosen[i] = true
		}
		if len(group) > 0 {
			seeds, left = append(seeds, group), left-cost
		}
	}
	for {
		out := chosen.excerpts(d)
		n, err := countExcerpts(out)
		if err != nil || n <= budget {
			return out, chosen, n, err
		}
		// Joined text counts a little more than its sentences: give the last seed back.
		for _, i := range seeds[len(seeds)-1] {
			chosen[i] = false
		}
		seeds = seeds[:len(seeds)-1]
	}
}

// passage is the seed and those neighbours in its paragraph that are not chosen yet and fit into left tokens; nothing
// where the seed itself does not fit.
func passage(d *document, chosen selection, seed, left int) (group []int, cost int, err error) {
	if !d.joins(chosen, seed) {
		cost = headingTokens
	}
	for _, i := range []int{seed, seed - 1, seed + 1} {
		if i < 0 || i >= len(chosen) || chosen[i] || !d.sameParagraph(min(i, seed), max(i, seed)) {
			continue
		}
		n, err := CountTokens(d.text(d.sentences[i]))
		if err != nil {
			return nil, 0, err
		}
		if cost+n <= left {
			group, cost = append(group, i), cost+n
		} else if i == seed {
			return nil, 0, nil
		}
	}
	return group, cost, nil
}

// joins tells that a neighbour on the same page is chosen, so that i continues an excerpt.
func (d *document) joins(chosen selection, i int) bool {
	for _, n := range []int{i - 1, i + 1} {
		if n >= 0 && n < len(chosen) && chosen[n] && d.sentences[n].page == d.sentences[i].page {
			return true
		}
	}
	return false
}

// fewestTokens is a bound that counts nothing: no token of the encoding has a space but as its first character, or is of spaces
// alone.
func fewestTokens(s string) (n int) {
	for i := range len(s) {
		if s[i] != ' ' && s[i] != '\n' && (i == 0 || s[i-1] == ' ' || s[i-1] == '\n') {
			n++
		}
	}
	return n
}

// sameParagraph tells that no page's end and no blank line stands between two neighbours.
func (d *document) sameParagraph(i, j int) bool {
	a, b := d.sentences[i], d.sentences[j]
	return a.page == b.page && (i == j || !strings.Contains(d.pages[a.page].Text[a.end:b.start], "\n\n"))
}
