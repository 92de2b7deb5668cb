package extract

import (
	"bytes"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/structs"
	"golang.org/x/text/unicode/norm"

	"github.com/accession/accession/internal/extract/page"
)

// pdfLayer is the text layer of a page.
type pdfLayer struct {
	*pdfPage
	text  references.FPDF_TEXTPAGE
	chars int
}

func (p *pdfPage) openText() (*pdfLayer, error) {
	opened, err := p.engine.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: p.ref()})
	if err != nil {
		return nil, err
	}
	l := &pdfLayer{pdfPage: p, text: opened.TextPage}
	counted, err := p.engine.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: l.text})
	if err != nil {
		l.close()
		return nil, err
	}
	l.chars = int(min(int64(max(counted.Count, 0)), p.job.TextBytes+1))
	return l, nil
}

func (l *pdfLayer) close() {
	_, _ = l.engine.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: l.text})
}

// bulk reads the text with one call.
func (l *pdfLayer) bulk() (page.Page, error) {
	start := 0
	for start < l.chars { // the library takes these at the beginning for a byte order mark
		first, err := l.engine.FPDFText_GetUnicode(&requests.FPDFText_GetUnicode{TextPage: l.text, Index: start})
		if err != nil {
			return page.Page{}, err
		}
		if c := first.Unicode; c != 0xfeff && c != 0xfffe && c != 0xbbef {
			break
		}
		start++
	}
	if start == l.chars {
		return page.Page{}, nil
	}
	got, err := l.engine.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: l.text, StartIndex: start, Count: l.chars - start})
	if err != nil {
		return page.Page{}, err
	}
	t := newTidy(len(got.Text))
	for _, r := range got.Text {
		t.write(r, "")
	}
	return t.page(), nil
}

// marked reads the text character by character, each with the class that mark gave its object. It is for the few pages that hide
// something: it takes a hundred times longer than bulk.
func (l *pdfLayer) marked() (page.Page, error) {
	t := newTidy(2 * l.chars)
	last, half := "", rune(0)
	for i := range l.chars {
		got, err := l.engine.FPDFText_GetUnicode(&requests.FPDFText_GetUnicode{TextPage: l.text, Index: i})
		if err != nil {
			return page.Page{}, err
		}
		r := rune(got.Unicode)
		if r == 0 {
			continue
		}
		if utf16.IsSurrogate(r) { // one character, given as two
			if half == 0 {
				half = r
				continue
			}
			r = utf16.DecodeRune(half, r)
		}
		half = 0
		if !unicode.IsSpace(r) { // spaces go with what is before them
			last = l.class(i)
		}
		t.write(r, last)
	}
	return t.page(), nil
}

func (l *pdfLayer) class(char int) string {
	ink, err := l.engine.FPDFText_GetFillColor(&requests.FPDFText_GetFillColor{TextPage: l.text, Index: char})
	if err != nil { // made by the engine: a hyphen, for one
		return ""
	}
	class := pdfInkClass(structs.FPDF_COLOR{R: ink.R, G: ink.G, B: ink.B, A: ink.A})
	if class != pdfPartly {
		return class
	}
	at, err := l.engine.FPDFText_GetCharBox(&requests.FPDFText_GetCharBox{TextPage: l.text, Index: char})
	if err == nil && l.box.misses(pdfArea{at.Left, at.Bottom, at.Right, at.Top}) {
		return page.HiddenOffPage
	}
	return ""
}

// garbled tells whether most of the layer is in a font that does not say which letters it draws.
func (l *pdfLayer) garbled(text string) bool {
	if l.chars < pdfFewWords {
		return false
	}
	good := 0
	for _, r := range text {
		if r != utf8.RuneError && !unicode.IsControl(r) && !unicode.Is(unicode.Co, r) || unicode.IsSpace(r) {
			good++
		}
	}
	return good*2 < l.chars
}

// tidy puts together what the engine takes apart: words divided at a line's end, and letters whose accent is drawn by itself.
type tidy struct {
	to      *page.Writer
	before  rune
	pending rune // held back until the next one is known; 0: none
	class   string
	run     []byte // what is written of one class
	runOf   string
}

func newTidy(bytes int) *tidy { return &tidy{to: page.NewWriter(int64(4*bytes) + 4)} }

// Accents that old fonts draw before their letter, and the combining character for each.
var accents = map[rune]rune{'\u00a8': '\u0308', '\u00b4': '\u0301', '\u02c6': '\u0302', '\u02dc': '\u0303', '\u02c7': '\u030c', '\u02d8': '\u0306', '\u02da': '\u030a', '\u02dd': '\u030b'}

func (t *tidy) write(r rune, class string) {
	switch held := t.pending; {
	case held == '-':
		t.pending = 0
		if !unicode.IsLetter(t.before) || !unicode.IsLower(r) {
			t.put('-', t.class)
		}
	case held != 0:
		t.pending = 0
		if letter, ok := accented(t.before, held, r); ok {
			r = letter
		} else {
			t.put(held, t.class)
		}
	}
	switch _, accent := accents[r]; {
	case r == '\x02', r == '\ufffe': // a hyphen at a line's end; the line's end itself is left out
		t.pending, t.class = '-', class
	case accent:
		t.pending, t.class = r, class
	default:
		t.put(r, class)
	}
}

func (t *tidy) put(r rune, class string) {
	if class != t.runOf {
		t.flush()
		t.runOf = class
	}
	t.run = utf8.AppendRune(t.run, r)
	t.before = r
}

func (t *tidy) flush() {
	text := bytes.TrimRightFunc(t.run, unicode.IsSpace)
	t.to.Write(string(text), t.runOf)
	t.to.Write(string(t.run[len(text):]), "")
	t.run = t.run[:0]
}

func (t *tidy) page() page.Page {
	if t.pending != 0 {
		t.put(t.pending, t.class)
	}
	t.flush()
	return t.to.Page()
}

// accented is the letter with the accent, where there is such a letter. A hat or a tilde after a letter that could bear it is a
// formula's.
func accented(before, accent, letter rune) (rune, bool) {
	mark := accents[accent]
	if (accent == '\u02c6' || accent == '\u02dc') && composed(before, mark) != 0 {
		return 0, false
	}
	if letter == 'ı' {
		letter = 'i'
	}
	c := composed(letter, mark)
	return c, c != 0
}

func composed(letter, mark rune) rune {
	if !unicode.IsLetter(letter) {
		return 0
	}
	s := norm.NFC.String(string([]rune{letter, mark}))
	if r, n := utf8.DecodeRuneInString(s); n == len(s) {
		return r
	}
	return 0
}
