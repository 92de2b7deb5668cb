package office

import (
	"strings"

	"github.com/accession/accession/internal/extract/page"
)

const (
	maxColumns   = 16_384  // of a sheet, by the format
	maxSpans     = 4096    // column descriptions of one sheet
	cellBytes    = 8 << 20 // of one cell with its text
	unseenPoints = 1       // a lower row is not seen
	unseenChars  = 0.1     // a narrower column is not seen
)

// sheet reads the rows of one sheet of an XLSX.
type sheet struct {
	*book
	flow     *flow
	class    string // of all text, where the sheet is hidden
	hidden   spans  // columns
	unlisted bool   // rows without a height of their own are hidden
	row      string // class of the row
	column   int    // of the cell before
	at       int    // of the open cell
	typ      string
	style    int
	value    strings.Builder
	pieces   []piece // of an inline string
	run      look
	short    bool // a string that is not there was asked for
	lost     bool
}

func (s *sheet) start(e *element) error {
	switch e.name {
	case "sheetFormatPr":
		s.unlisted = on(e.attr("zeroHeight"))
	case "col":
		width := e.attr("width")
		if on(e.attr("hidden")) || width != "" && decimal(width) < unseenChars {
			s.hidden.add(span{count(e.attr("min"), 1, maxColumns), count(e.attr("max"), 1, maxColumns)})
		}
	case "row":
		s.startRow(e)
	case "c":
		s.startCell(e)
	case "r":
		s.run = s.styles.look(s.style)
	case "rPh", "f", "extLst", "conditionalFormatting", "dataValidations":
		return errSkip
	default:
		if e.parent() == "rPr" {
			s.styles.font(e, &s.run)
		}
	}
	return nil
}

func (s *sheet) startRow(e *element) {
	s.row, s.column = s.class, 0
	height := e.attr("ht")
	if on(e.attr("hidden")) || height != "" && decimal(height) < unseenPoints || s.unlisted && height == "" && !off(e.attr("hidden")) {
		s.row = page.HiddenCell
	}
	s.flow.line()
}

func (s *sheet) startCell(e *element) {
	s.at = columnOf(e.attr("r"))
	if s.at <= s.column {
		s.at = min(s.column+1, maxColumns)
	}
	s.typ, s.style = e.attr("t"), count(e.attr("s"), 0, maxStyles)
	s.value.Reset()
	s.pieces = nil
	s.run = s.styles.look(s.style)
}

// columnOf is the number, from 1, of the column in a reference like "AB12"; 0 if there is none.
func columnOf(reference string) int {
	n := 0
	for _, r := range reference {
		if r >= 'a' && r <= 'z' {
			r -= 'a' - 'A'
		}
		if r < 'A' || r > 'Z' {
			break
		}
		if n = n*26 + int(r-'A'+1); n > maxColumns {
			return 0
		}
	}
	return n
}

func (s *sheet) text(text string, e *element) error {
	switch {
	case e.name == "v" && e.parent() == "c":
		if s.value.Len()+len(text) > cellBytes {
			s.lost = true
			return nil
		}
		s.value.WriteString(text)
	case e.name == "t" && (e.parent() == "is" || e.grandparent() == "is") && len(s.pieces) < maxSpans:
		s.pieces = append(s.pieces, piece{text: text, look: s.run})
	}
	return nil
}

func (s *sheet) end(e *element) error {
	if e.name != "c" {
		return nil
	}
	pieces := s.pieces
	if pieces == nil {
		pieces = s.stored(s.value.String())
	}
	class := s.row
	if len(pieces) > 0 && s.hidden.has(s.at) {
		class = page.HiddenCell
	}
	for range min(s.at-max(s.column, 1), maxTabs) {
		s.flow.cell()
	}
	for _, one := range pieces {
		own := class
		if own == "" {
			own = one.look.class(unset)
		}
		s.flow.write(inline(one.text), own)
	}
	s.column = s.at
	if s.flow.w.Full() {
		return errFull
	}
	return nil
}

// stored is what a cell shows, by the type of what it stores.
func (s *sheet) stored(value string) []piece {
	l := s.styles.look(s.style)
	switch s.typ {
	case "s":
		pieces, ok := s.strings.get(count(strings.TrimSpace(value), -1, 1<<30), l)
		s.short = s.short || !ok
		return pieces
	case "b":
		value = map[string]string{"1": "TRUE", "0": "FALSE"}[value]
	case "", "n":
		if kind := s.styles.date(s.style); kind != notDate {
			value = formatDate(value, kind, s.from1904)
		}
	}
	if value == "" {
		return nil
	}
	return []piece{{text: value, look: l}}
}
