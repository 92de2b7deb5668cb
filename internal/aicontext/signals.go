package aicontext

import (
	"cmp"
	"slices"
)

// Types of signals. Contract: AI context, `signals`.
const (
	SignalInstruction  = "instruction_like_text" // counted in sentences; class "markup" in marks of chat templates
	SignalHiddenText   = "hidden_text"           // counted in runs of characters
	SignalPersonalData = "personal_data"         // counted in occurrences
)

// maxPositions bounds the positions of one signal.
const maxPositions = 20

// Signal says that something of a class was found, how often and where; never what. Signals stand beside the text, they
// remove none of it, and their absence proves nothing. Count is the whole number, Positions are the first 20 in document
// order.
//
// Classes of instruction-like text are those of signal_rules.tsv and "hidden", which counts once more what stands in hidden
// text. Classes of hidden text are those of the extraction (HiddenRun) and of invisible characters: tag_characters,
// bidi_controls, zero_width, variation_selectors. Classes of personal data: email, phone, iban, payment_card, mrz (of a travel
// document) and national_id_ with a country (ISO 3166, lower case).
type Signal struct {
	Type      string     `json:"type"`
	Class     string     `json:"class"`
	Count     int        `json:"count"`
	Positions []Position `json:"positions,omitempty"`
}

// Position is where a signal stands: PageText(page.Text)[Start:End], in bytes, of the page whose Number is Page. It is the
// whole sentence for instruction-like text, the match for personal data, the run for hidden text. Invisible characters
// and what is written in them are not in PageText: Start equals End, at the place where they stood.
type Position struct {
	Page  int `json:"page,omitempty"`
	Start int `json:"start"`
	End   int `json:"end"`
}

func (p Position) compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Page, q.Page), cmp.Compare(p.Start, q.Start), cmp.Compare(p.End, q.End))
}

// Signals finds instruction-like text, hidden text and personal data in the pages' text as it was extracted (before
// Sanitize removes the evidence). It reads 16 MiB at most, in time linear to it, and returns the classes found, ordered by
// type and class; never nil.
func Signals(pages []Page) []Signal {
	found := tally{}
	left := maxTextBytes
	for _, p := range pages {
		p.Text = p.Text[:runeBoundary(p.Text, left)]
		left -= len(p.Text)
		found.readPage(p)
	}
	return found.signals()
}

// MergeSignals adds the counts of equal types and classes and merges their positions, in the order of Signals.
func MergeSignals(lists ...[]Signal) []Signal {
	found := tally{}
	for _, list := range lists {
		for _, s := range list {
			found.merge(s)
		}
	}
	return found.signals()
}

// tally is the signals by type and class.
type tally map[[2]string]*Signal

func (t tally) entry(kind, class string) *Signal {
	s := t[[2]string{kind, class}]
	if s == nil {
		s = &Signal{Type: kind, Class: class}
		t[[2]string{kind, class}] = s
	}
	return s
}

// add counts one more, which must stand after those of its type and class that were added before.
func (t tally) add(kind, class string, at Position) {
	s := t.entry(kind, class)
	s.Count++
	if len(s.Positions) < maxPositions {
		s.Positions = append(s.Positions, at)
	}
}

// merge adds counts and positions from anywhere.
func (t tally) merge(more Signal) {
	s := t.entry(more.Type, more.Class)
	s.Count += more.Count
	if len(more.Positions) > 0 {
		s.Positions = append(s.Positions, more.Positions...)
		slices.SortFunc(s.Positions, Position.compare)
		s.Positions = s.Positions[:min(len(s.Positions), maxPositions)]
	}
}

func (t tally) signals() []Signal {
	out := make([]Signal, 0, len(t))
	for _, s := range t {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Signal) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Class, b.Class))
	})
	return out
}

// readPage finds everything on one page.
func (t tally) readPage(p Page) {
	runs, at := hiddenRuns(p)
	text := pageTextAt(p.Text, at)
	hidden := t.countHidden(p.Number, runs, at)

	f := fold(text)
	page := reading{text: f.text, hidden: hidden, place: func(start, end int) Position {
		return Position{p.Number, f.original(start), f.original(end)}
	}}
	// Each pass goes through the page once more, so each has its own tally: add wants document order.
	for _, pass := range []func(reading, tally){reading.findMarkup, reading.findInstructions, reading.findEmails,
		reading.findNumbers, reading.findTravelDocuments} {
		t.pass(page, pass)
	}
	t.readInvisible(p)
}

func (t tally) pass(r reading, find func(reading, tally)) {
	found := tally{}
	find(r, found)
	for _, s := range found {
		t.merge(*s)
	}
}

// reading is a text to find something in, where in the page text its offsets are, and what of that is hidden.
type reading struct {
	text   string // folded
	place  func(start, end int) Position
	hidden func(Position) bool
}

func (r reading) addInstruction(found tally, class string, at Position) {
	found.add(SignalInstruction, class, at)
}

func (r reading) addPersonal(found tally, class string, start, end int) {
	found.add(SignalPersonalData, class, r.place(start, end))
}
