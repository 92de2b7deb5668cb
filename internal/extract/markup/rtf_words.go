package markup

import (
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"
)

// Where the text of a group goes that begins with one of these words. Any other that begins with \* goes nowhere.
var destinations = map[string]destination{
	"fonttbl": toFonts, "colortbl": toColours,
	"header": toAside, "headerl": toAside, "headerr": toAside, "headerf": toAside,
	"footer": toAside, "footerl": toAside, "footerr": toAside, "footerf": toAside,
	"footnote": toAside, "annotation": toAside,
	"shpinst": toShape, "do": toShape, "upr": toUnicode,
	"stylesheet": toNothing, "info": toNothing, "pict": toNothing, "object": toNothing, "nonshppict": toNothing,
	"shprslt": toNothing, "fldinst": toNothing, "themedata": toNothing, "colorschememapping": toNothing,
	"datastore": toNothing, "filetbl": toNothing, "listtable": toNothing, "listoverridetable": toNothing,
	"revtbl": toNothing, "rsidtbl": toNothing, "xmlnstbl": toNothing, "latentstyles": toNothing, "generator": toNothing,
	"private": toNothing, "template": toNothing, "xe": toNothing, "rxe": toNothing, "tc": toNothing, "tcn": toNothing,
	"txe": toNothing, "bkmkstart": toNothing, "bkmkend": toNothing, "atnid": toNothing, "atnauthor": toNothing,
	"panose": toNothing, "falt": toNothing, "fname": toNothing, "pn": toNothing, "pnseclvl": toNothing,
	"formfield": toNothing, "datafield": toNothing, "objdata": toNothing, "blipuid": toNothing, "keycode": toNothing,
	"mmathPr": toNothing, "sp": toNothing, "background": toNothing,
}

// Characters that have a word of their own.
var characters = map[string]string{
	"tab": "\t", "emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“",
	"rdblquote": "”", "emspace": " ", "enspace": " ", "qmspace": " ",
}

// word does what a control word says. n is its parameter; given is false where it has none.
func (r *rtf) word(w string, n int, given bool) error {
	r.flush()
	if w == "bin" {
		_, err := r.in.Discard(max(n, 0))
		return ignoreEnd(err)
	}
	if r.destination(w) {
		return nil
	}
	on := !given || n != 0
	switch s := &r.state; w {
	case "u":
		r.unicode(n)
	case "uc":
		s.unicodeSkip = min(max(n, 0), 100)

	case "v":
		s.invisible = on
	case "deleted":
		s.deleted = on
	case "cf":
		s.ink = n
	case "highlight", "cb", "chcbpat":
		s.highlight = n
	case "fs":
		s.size = n
		if !given {
			s.size = defaultRTFSize
		}
	case "f":
		s.font = n
		if s.to == toFonts {
			r.defining = n
		}
	case "plain":
		s.invisible, s.deleted, s.ink, s.highlight, s.size, s.font = false, false, 0, 0, defaultRTFSize, r.standard
	case "pard":
		s.shade, s.inTable = 0, false
	case "cbpat":
		s.shade = n
	case "intbl":
		s.inTable = on

	case "par", "line":
		r.out().lineBreak()
	case "sect":
		r.out().paragraph()
		r.section = true
	case "sbknone", "sbkcol":
		r.section = false
	case "column":
		r.out().paragraph()
	case "page":
		return r.pageBreak()
	case "pagebb":
		if on && r.text.w.Len() > 0 {
			return r.pageBreak()
		}

	case "trowd", "clcbpat", "cellx", "cell", "row", "nestcell", "nestrow":
		r.table(w, n)
	case "fcharset", "cpg", "ansicpg", "mac", "pc", "pca", "deff", "red", "green", "blue":
		r.define(w, n)
	default:
		if c, ok := characters[w]; ok {
			r.special(c)
		}
	}
	return nil
}

// destination tells whether the word says where the group's text goes.
func (r *rtf) destination(w string) bool {
	to, known := destinations[w]
	switch here := r.state.to; {
	case here == toShape && (w == "shptxt" || w == "dptxbxtext"):
		r.state.to = toText
		r.text.paragraph()
	case here == toUnicode && w == "ud":
		r.state.to = toText
	case here != toText && here != toAside:
		return false
	case known:
		if to == toAside {
			r.asides.paragraph()
		}
		r.state.to = to
	case r.starred:
		r.state.to = toNothing
	default:
		return false
	}
	return true
}

func (r *rtf) unicode(n int) {
	r.passing = r.state.unicodeSkip
	c := rune(n)
	if n < 0 {
		c = rune(uint16(n))
	}
	if utf16.IsSurrogate(c) {
		if both := utf16.DecodeRune(r.high, c); both != '\uFFFD' {
			r.put(string(both))
		} else {
			r.high = c
		}
		return
	}
	if c == 0xF0B7 || c == 0xF0A7 { // the bullets of symbol fonts
		c = '•'
	}
	if c >= ' ' || c == '\t' {
		r.put(string(c))
	}
}

func (r *rtf) pageBreak() error {
	if r.state.to != toText {
		r.out().paragraph()
		return nil
	}
	return r.endPage()
}

func (r *rtf) table(w string, n int) {
	switch w {
	case "trowd":
		r.cells, r.cell, r.shade = r.cells[:0], 0, 0
		r.text.rows[0] = row{}
	case "clcbpat":
		r.shade = n
	case "cellx":
		if len(r.cells) < maxColumns {
			r.cells = append(r.cells, r.shade)
		}
		r.shade = 0
	case "cell", "nestcell":
		if w == "cell" {
			r.cell++
		}
		f := r.out()
		if len(f.rows) > 0 && f.rows[0].text {
			f.breaks = 0
		}
		f.tabs++
	case "row", "nestrow":
		if w == "row" {
			r.cell = 0
		}
		r.text.openRow()
		if r.state.to == toAside {
			r.asides.openRow()
		}
	}
}

// define notes what the tables at the beginning say of fonts and colours.
func (r *rtf) define(w string, n int) {
	part := float32(min(max(n, 0), 255)) / 255
	switch w {
	case "ansicpg":
		if e := codePage(n); e != nil {
			r.ansi = e
		}
	case "mac":
		r.ansi = charmap.Macintosh
	case "pc":
		r.ansi = charmap.CodePage437
	case "pca":
		r.ansi = charmap.CodePage850
	case "deff":
		r.standard, r.state.font = n, n
	case "fcharset", "cpg":
		if w == "fcharset" {
			n = fontCharsets[n]
		}
		if e := codePage(n); e != nil && r.state.to == toFonts && len(r.fonts) < maxFonts {
			r.fonts[r.defining] = e
		}
	case "red":
		r.mixing.r, r.mixing.alpha = part, 1
	case "green":
		r.mixing.g, r.mixing.alpha = part, 1
	case "blue":
		r.mixing.b, r.mixing.alpha = part, 1
	}
}
