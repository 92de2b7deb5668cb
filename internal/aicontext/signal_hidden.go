package aicontext

import (
	"cmp"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// HiddenRun is a stretch of a page's extracted text (Page.Text, before Sanitize) that nobody sees who looks at the page.
// Start and End are byte offsets. Class says why: 1 to 32 of a to z and _, any other counts as "other". Runs ascend and
// do not overlap; what overlaps the run before counts to that one.
type HiddenRun struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Class string `json:"class"`
}

const (
	classHiddenInstruction = "hidden"
	classOtherHidden       = "other"
	maxClasses             = 64 // of one document; the worker that names some of them is not trusted
)

var hiddenClass = regexp.MustCompile(`^[a-z_]{1,32}$`)

// hiddenRuns are the page's runs in order, within the text, and their starts and ends by turns.
func hiddenRuns(p Page) (runs []HiddenRun, at []int) {
	sorted := slices.Clone(p.Hidden)
	slices.SortStableFunc(sorted, func(a, b HiddenRun) int { return cmp.Compare(a.Start, b.Start) })
	end := 0
	for _, r := range sorted {
		r.Start, r.End = max(r.Start, end), min(r.End, len(p.Text))
		if r.Start >= r.End {
			continue
		}
		r.Start = runeBoundary(p.Text, r.Start)
		for r.End < len(p.Text) && !utf8.RuneStart(p.Text[r.End]) {
			r.End++
		}
		if !hiddenClass.MatchString(r.Class) {
			r.Class = classOtherHidden
		}
		end = r.End
		runs, at = append(runs, r), append(at, r.Start, r.End)
	}
	return runs, at
}

// countHidden counts the runs that have something in the page text, whose offsets there are at, and tells what of the page lies in one of them.
func (t tally) countHidden(page int, runs []HiddenRun, at []int) func(Position) bool {
	kept := at[:0]
	for i, r := range runs {
		p := Position{page, at[2*i], at[2*i+1]}
		if p.Start == p.End {
			continue
		}
		kept = append(kept, p.Start, p.End)
		if t[[2]string{SignalHiddenText, r.Class}] == nil && len(t) >= maxClasses {
			r.Class = classOtherHidden
		}
		t.add(SignalHiddenText, r.Class, p)
	}
	return func(p Position) bool {
		// The first run that ends after p's start.
		i := sort.Search(len(kept)/2, func(i int) bool { return kept[2*i+1] > p.Start })
		return 2*i < len(kept) && kept[2*i] < p.End
	}
}

// readInvisible counts runs of characters that show nothing but are read by machines, where no script needs them, and
// reads what tag characters spell.
func (t tally) readInvisible(p Page) {
	found := tally{} // positions are offsets of p.Text until the end
	var spelt strings.Builder
	var runs []tagRun
	findInvisible(p.Text, func(class string, at int) {
		found.add(SignalHiddenText, class, Position{p.Number, at, at})
	}, func(r byte, at int, first bool) {
		if first {
			spelt.WriteByte(' ') // what is spelt in pieces is read as one
			runs = append(runs, tagRun{spelt.Len(), at})
		}
		spelt.WriteByte(r)
	})
	if len(runs) > 0 {
		r := reading{text: spelt.String(), hidden: func(Position) bool { return true }, place: func(start, _ int) Position {
			i := sort.Search(len(runs), func(i int) bool { return runs[i].spelt > start })
			at := runs[max(i-1, 0)].at
			return Position{p.Number, at, at}
		}}
		for _, pass := range []func(reading, tally){reading.findMarkup, reading.findInstructions, reading.findEmails, reading.findNumbers} {
			found.pass(r, pass)
		}
	}
	found.toPageText(p.Text)
	for _, s := range found {
		t.merge(*s)
	}
}

// tagRun is a run of tag characters: where it begins in what they spell, and in the page's extracted text.
type tagRun struct{ spelt, at int }

// toPageText makes the empty positions in raw text positions in its page text.
func (t tally) toPageText(raw string) {
	var places []*Position
	for _, s := range t {
		for i := range s.Positions {
			places = append(places, &s.Positions[i])
		}
	}
	if len(places) == 0 {
		return
	}
	slices.SortFunc(places, func(a, b *Position) int { return a.compare(*b) })
	at := make([]int, 0, 2*len(places))
	for _, p := range places {
		at = append(at, p.Start, p.End)
	}
	pageTextAt(raw, at)
	for i, p := range places {
		p.Start, p.End = at[2*i], at[2*i]
	}
}

// findInvisible calls run for each run of one class, and tag for each tag character that spells ASCII.
func findInvisible(text string, run func(class string, at int), tag func(r byte, at int, first bool)) {
	var before rune // the last visible character
	flagged := 0    // tag characters since a black flag
	current := ""   // class of the run we are in
	tagged := false
	for i, r := range text {
		class := ""
		isTag := r >= 0xE0020 && r <= 0xE007F
		switch {
		case r < 0x200B:
		case isTag:
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
		if class != "" && class != current {
			run(class, i)
		}
		if isTag && r < 0xE007F {
			tag(byte(r-0xE0000), i, !tagged)
		}
		tagged = isTag
		if current = class; class == "" && !isTag {
			before, flagged = r, 0
		}
	}
}
