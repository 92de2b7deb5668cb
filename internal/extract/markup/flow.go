package markup

import (
	"strings"

	"github.com/accession/accession/internal/extract/page"
)

// flow writes running text as it would be laid out: what separates two pieces is owed until the second one comes.
type flow struct {
	w      *page.Writer
	breaks int    // owed: 1 a line end, 2 a blank line
	tabs   int    // owed: cells of a table row
	cell   bool   // nothing is written yet in a cell that has begun
	space  bool   // owed: a space between words
	marker string // owed: the mark of a list item
	ended  bool   // what is written last ends a line by itself
	rows   []row  // open table rows, inner last
}

type row struct {
	cells int
	text  bool // something was written in it
}

func (f *flow) line() { f.owe(max(f.breaks, 1)) }

func (f *flow) paragraph() { f.owe(2) }

// lineBreak is a forced one: two of them make a blank line.
func (f *flow) lineBreak() { f.owe(min(f.breaks+1, 2)) }

// owe does without breaks at the beginning of a cell.
func (f *flow) owe(breaks int) {
	f.space = false
	if f.tabs == 0 && !f.cell {
		f.breaks = breaks
	}
}

func (f *flow) openTable() {
	f.paragraph()
	f.rows = append(f.rows, row{})
}

func (f *flow) closeTable() {
	f.openRow()
	f.rows = f.rows[:len(f.rows)-1]
	f.paragraph()
}

// openRow leaves out the cells that nothing was written into at the end of the last row, and what its last cell ended with.
func (f *flow) openRow() {
	f.tabs, f.cell = 0, false
	if n := len(f.rows); n > 0 {
		if f.rows[n-1].text {
			f.breaks = 0
		}
		f.rows[n-1] = row{}
	}
	f.line()
}

// openCell keeps the row's cells on one line, whatever blocks they are filled with.
func (f *flow) openCell() {
	n := len(f.rows)
	if n == 0 {
		f.line()
		return
	}
	r := &f.rows[n-1]
	if r.cells > 0 {
		if r.text {
			f.breaks = 0
		}
		f.tabs, f.space = f.tabs+1, false
	}
	r.cells++
	f.cell = true
}

// words writes text with white space collapsed.
func (f *flow) words(text, class string) {
	var b strings.Builder
	for text != "" {
		if n := len(text) - len(strings.TrimLeft(text, space)); n > 0 {
			text, f.space = text[n:], true
			continue
		}
		end := strings.IndexAny(text, space)
		if end < 0 {
			end = len(text)
		}
		f.owed(&b)
		b.WriteString(text[:end])
		text = text[end:]
	}
	f.w.Write(b.String(), class)
	f.ended = f.ended && b.Len() == 0
}

// literal writes text as it stands, line ends and all.
func (f *flow) literal(text, class string) {
	if text == "" {
		return
	}
	var b strings.Builder
	f.owed(&b)
	b.WriteString(text)
	f.w.Write(b.String(), class)
	f.ended = strings.HasSuffix(text, "\n")
}

const space = " \t\n\r\f"

// owed puts down line ends and tabs, which are not part of a hidden run, and begins b with what is.
func (f *flow) owed(b *strings.Builder) {
	started := f.w.Len() > 0 || b.Len() > 0
	if f.ended && f.breaks > 0 {
		f.breaks--
	}
	if f.space && started && f.breaks == 0 && f.tabs == 0 {
		b.WriteByte(' ')
	}
	if started {
		f.w.Write("\n\n"[:f.breaks], "")
	}
	if f.tabs > 0 {
		f.w.Write(strings.Repeat("\t", f.tabs), "")
	}
	b.WriteString(f.marker)
	f.breaks, f.tabs, f.cell, f.space, f.marker = 0, 0, false, false, ""
	for i := range f.rows {
		f.rows[i].text = true
	}
}
