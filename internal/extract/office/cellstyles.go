package office

import (
	"strings"

	"github.com/accession/accession/internal/extract/page"
)

// cellStyles are the formats of an XLSX's cells as far as they hide text or make a number a date.
type cellStyles struct {
	fonts   []look
	fills   []colour
	formats map[string]numberFormat // by id
	cells   []cellFormat
}

type numberFormat struct {
	date dateKind
	none bool // it shows nothing
}

type cellFormat struct {
	look look
	date dateKind
}

func readCellStyles(c *container, rels *relations) (*cellStyles, error) {
	s := &cellStyles{formats: map[string]numberFormat{}}
	for _, part := range rels.of(c, "styles") {
		if err := optional(c, part, "styleSheet", s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *cellStyles) start(e *element) error {
	if len(s.fonts) > maxStyles || len(s.fills) > maxStyles || len(s.cells) > 2*maxStyles || len(s.formats) > maxStyles {
		return page.ErrTooLarge
	}
	switch e.name {
	case "dxfs", "cellStyleXfs", "tableStyles", "extLst":
		return errSkip
	case "numFmt":
		code := e.attr("formatCode")
		s.formats[e.attr("numFmtId")] = numberFormat{date: dateFormat(code), none: strings.Trim(code, "; ") == "" && strings.Count(code, ";") >= 2}
		return nil
	case "xf":
		s.cell(e)
		return nil
	}
	switch e.parent() {
	case "fonts":
		s.fonts = append(s.fonts, plain)
	case "font":
		if len(s.fonts) > 0 {
			s.font(e, &s.fonts[len(s.fonts)-1])
		}
	case "fills":
		s.fills = append(s.fills, unset)
	case "fill":
		if e.name == "gradientFill" || e.name == "patternFill" && e.attr("patternType") != "" && e.attr("patternType") != "none" {
			s.fills[len(s.fills)-1] = mixed
		}
	case "patternFill":
		if n := len(s.fills); n > 0 && e.name == "fgColor" && s.fills[n-1] == mixed {
			s.fills[n-1] = sheetColour(e)
		}
	}
	return nil
}

func (s *cellStyles) cell(e *element) {
	f := cellFormat{look: plain}
	if i := count(e.attr("fontId"), -1, maxStyles); i >= 0 && i < len(s.fonts) {
		f.look = s.fonts[i]
	}
	if i := count(e.attr("fillId"), -1, maxStyles); i >= 0 && i < len(s.fills) {
		f.look.ground = s.fills[i]
	}
	id := e.attr("numFmtId")
	if custom, ok := s.formats[id]; ok {
		f.date = custom.date
		if custom.none {
			f.look.hidden = yes
		}
	} else {
		f.date = builtinDate(count(id, 0, 1000))
	}
	s.cells = append(s.cells, f)
}

func (s *cellStyles) end(*element) error          { return nil }
func (s *cellStyles) text(string, *element) error { return nil }

// font takes one child of a font into l.
func (s *cellStyles) font(e *element, l *look) {
	switch e.name {
	case "color":
		l.ink = sheetColour(e)
	case "sz":
		l.points = max(decimal(e.attr("val")), 0.01)
	}
}

// sheetColour reads a colour. The first of a theme is the ground of windows.
func sheetColour(e *element) colour {
	tinted := e.attr("tint") != "" && decimal(e.attr("tint")) != 0
	switch {
	case e.attr("rgb") != "":
		return hex(e.attr("rgb"))
	case tinted:
		return mixed
	case e.attr("theme") == "0", e.attr("indexed") == "1", e.attr("indexed") == "9":
		return white
	case e.attr("theme") == "1", e.attr("indexed") == "0", e.attr("indexed") == "8":
		return 0
	}
	return mixed
}

func (s *cellStyles) look(i int) look {
	if i < 0 || i >= len(s.cells) {
		return plain
	}
	return s.cells[i].look
}

func (s *cellStyles) date(i int) dateKind {
	if i < 0 || i >= len(s.cells) {
		return notDate
	}
	return s.cells[i].date
}
