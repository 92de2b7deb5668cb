package aicontext

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/sentences"
)

const (
	maxTextBytes     = 16 << 20 // sanitized text read of one document; past it the document counts as truncated
	maxSentences     = 200_000  // sentences kept of one document; past it the document counts as truncated
	maxSentenceBytes = 1000     // a longer sentence is cut at a space or character
	maxLineBytes     = 8 << 10  // a longer line is segmented in pieces
	maxMarkRun       = 64       // a line is cut after so many brackets and the like (see pieceEnd)
)

// ErrPages reports pages that are not in document order with distinct, non-negative numbers.
var ErrPages = errors.New("pages must have distinct, increasing numbers, 0 only for a document without pages")

// Page is the extracted text of one page. Number counts from 1; 0 stands for a document without pages. Hidden are the
// stretches of Text that nobody sees who looks at the page; only Signals reads them.
type Page struct {
	Number int         `json:"number"`
	Text   string      `json:"text"`
	Hidden []HiddenRun `json:"hidden,omitempty"`
}

// PageText is the page text that every offset in a summary or an excerpt counts in, in bytes from 0: Sanitize(raw),
// with those line breaks that only wrap a line replaced by a space. The length stays that of Sanitize(raw).
func PageText(raw string) string {
	return string(unwrap([]byte(Sanitize(raw))))
}

// document is the page texts and their sentences, in order. Every character that is not a space is in one sentence.
type document struct {
	pages     []Page // Text is PageText
	sentences []span
	cut       bool // there was more than the bounds above let in
}

// span is one sentence, heading, list item or table row.
type span struct {
	page, start, end int32 // index into pages, byte offsets
	prose            bool
}

func (d *document) text(s span) string { return d.pages[s.page].Text[s.start:s.end] }

func readDocument(pages []Page) (*document, error) {
	pages, cut, err := bounded(pages)
	if err != nil {
		return nil, err
	}
	d := &document{cut: cut}
	for i, p := range pages {
		d.pages = append(d.pages, Page{Number: p.Number, Text: PageText(p.Text)})
		d.split(int32(i), d.pages[i].Text)
	}
	return d, nil
}

// bounded is as much of the pages as is read.
func bounded(pages []Page) (kept []Page, cut bool, err error) {
	room := maxTextBytes
	for i, p := range pages {
		if p.Number < 0 || i > 0 && p.Number <= pages[i-1].Number {
			return nil, false, fmt.Errorf("page %d at position %d: %w", p.Number, i, ErrPages)
		}
		if cut {
			continue // the numbers are still checked
		}
		if len(p.Text) > room {
			p.Text, cut = p.Text[:runeBoundary(p.Text, room)], true
		}
		room -= len(p.Text)
		kept = append(kept, p)
	}
	return kept, cut, nil
}

// split appends the sentences of one page.
func (d *document) split(page int32, text string) {
	start := 0
	for line := range strings.Lines(text) {
		for end := start + len(line); start < end; {
			stop := start + pieceEnd(text[start:end])
			d.splitPiece(page, text, start, stop)
			start = stop
		}
	}
}

// pieceEnd is how much of a line to segment at once. After a full stop the segmenter looks past brackets and quotes for
// the next letter, again for each one: a long run of them would take quadratic time.
func pieceEnd(line string) int {
	run := 0
	for i, r := range line {
		switch {
		case i >= maxLineBytes:
			return cutAt(line, maxLineBytes)
		case r >= 'a' && r <= 'z', r == '.', unicode.IsLetter(r), unicode.IsDigit(r):
			run = 0
		case run == maxMarkRun:
			return i
		default:
			run++
		}
	}
	return len(line)
}

func (d *document) splitPiece(page int32, text string, at, end int) {
	it := sentences.FromString(text[at:end])
	start := at
	for it.Next() {
		stop := at + it.End()
		if stop < end && stop-start < maxSentenceBytes && continues(text[start:stop], text[stop:end]) {
			continue
		}
		for start < stop {
			n := stop - start
			if n > maxSentenceBytes {
				n = cutAt(text[start:stop], maxSentenceBytes)
			}
			d.add(page, text, start, start+n)
			start += n
		}
	}
}

func (d *document) add(page int32, text string, start, end int) {
	s := text[start:end]
	end -= len(s) - len(strings.TrimRight(s, " \n"))
	start += len(s) - len(strings.TrimLeft(s, " \n"))
	if start >= end {
		return
	}
	if len(d.sentences) == maxSentences {
		d.cut = true
		return
	}
	d.sentences = append(d.sentences, span{page, int32(start), int32(end), isProse(text[start:end])})
}

// cutAt is where to cut s so that at most n bytes come before: after the last space in the second half, else
// between two characters, never before a combining mark. It is at least 1 for n of 4 or more.
func cutAt(s string, n int) int {
	if len(s) <= n {
		return len(s)
	}
	if i := strings.LastIndexByte(s[:n], ' '); i > n/2 {
		return i + 1
	}
	i := runeBoundary(s, n)
	for j := i; j > n/2; {
		r, _ := utf8.DecodeRuneInString(s[j:])
		if !unicode.Is(unicode.M, r) {
			return j
		}
		_, w := utf8.DecodeLastRuneInString(s[:j])
		j -= w
	}
	return i
}

// runeBoundary is the greatest i <= n at which a character of s starts (or s ends).
func runeBoundary(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	for i := n; i >= 0 && n-i < utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			return i
		}
	}
	return n
}

// Abbreviations whose full stop does not end a sentence, without that stop; the second list only before a digit.
var (
	abbreviations = set(`dr mr mrs ms prof st jr sr vs al e.g i.e cf approx ca dept ed est gen col lt capt rev hon
		inc ltd co corp messrs mme mlle mm dra sra srta ud uds bzw ggf evtl inkl exkl zzgl gem lt vgl sog d.h z.b u.a
		i.d.r o.g p.ex ej p.ej hr fr ing dipl resp incl excl`)
	abbreviationsBeforeDigit = set(`no nr nos fig figs p pp art arts abs vol sec sect ch chap eq tab tel fax s n núm
		pág par para cl item jan feb mar apr jun jul aug sep sept oct nov dec`)
	germanMonths = set(`januar jänner februar märz april mai juni juli august september oktober november dezember`)
	listMarker   = regexp.MustCompile(`^(?:[-–—•*·▪◦‣○●►]|\(?[0-9]{1,3}(?:\.[0-9]{1,3}){0,3}[.)]|\(?\pL[.)])(?: |$)`)
	ordinal      = regexp.MustCompile(`(?:^| )[0-9]{1,2}\. ?$`)
)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// continues tells that the boundary the segmenter found between before and after is no end of a sentence.
func continues(before, after string) bool {
	before = strings.TrimRight(before, " ")
	if loc := listMarker.FindStringIndex(before); loc != nil && loc[1] == len(before) {
		return true
	}
	stem, ok := strings.CutSuffix(before, ".")
	if !ok {
		return false
	}
	word := strings.TrimLeft(stem[strings.LastIndexByte(stem, ' ')+1:], `(["'“„«`)
	if len(word) == 0 || len(word) > 16 {
		return false
	}
	if r, n := utf8.DecodeRuneInString(word); n == len(word) && unicode.Is(unicode.Latin, r) {
		return true // an initial
	}
	word = strings.ToLower(word)
	next, _, _ := strings.Cut(after, " ")
	switch {
	case abbreviations[word]:
		return true
	case abbreviationsBeforeDigit[word]:
		return next != "" && next[0] >= '0' && next[0] <= '9'
	}
	return germanMonths[strings.ToLower(strings.TrimRight(next, ".,;:"))] && ordinal.MatchString(before)
}

// isProse tells a sentence of running text from headings, table rows, and lists of figures.
func isProse(s string) bool {
	end := strings.TrimRight(s, ` "'”’»)]`)
	last, _ := utf8.DecodeLastRuneInString(end)
	if !strings.ContainsRune(".!?…。！？؟।։", last) {
		return false
	}
	var letters, wide, visible int
	for _, r := range s {
		switch {
		case r == ' ' || r == '\n':
			continue
		case isWide(r):
			wide++
			letters++
		case unicode.IsLetter(r) || unicode.Is(unicode.M, r):
			letters++
		}
		visible++
	}
	return letters*10 >= visible*6 && (wide >= 8 || strings.Count(s, " ") >= 3)
}

// isWide: scripts written without spaces, two columns to a character (Hangul has spaces but counts as wide here).
func isWide(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

const (
	minWrapWidth = 40 // columns; narrower pages are lists and tables
	maxWrapWidth = 300
)

// unwrap replaces, in place, the line breaks that only wrap: the next line's first word would not have fitted on the
// line, or the text plainly goes on in lower case. Rows of figures, list items and short lines stay apart.
func unwrap(text []byte) []byte {
	full := fullWidth(text)
	if full < minWrapWidth || full >= maxWrapWidth {
		return text
	}
	at, line := 0, ""
	for next := range strings.Lines(string(text)) {
		next = strings.TrimSuffix(next, "\n")
		if line != "" && next != "" && wraps(line, next, full) {
			text[at-1] = ' '
		}
		at += len(next) + 1
		line = next
	}
	return text
}

// fullWidth is the width that nine lines in ten stay within: that of a full line, but for a few overlong ones.
func fullWidth(text []byte) int {
	var count [maxWrapWidth + 1]int
	lines := 0
	for line := range bytes.Lines(text) {
		if w := width(string(bytes.TrimSuffix(line, []byte("\n")))); w > 0 {
			count[min(w, maxWrapWidth)]++
			lines++
		}
	}
	w := 0
	for within := 0; w < maxWrapWidth; w++ {
		if within += count[w]; within >= lines-lines/10 {
			break
		}
	}
	return w
}

func wraps(line, next string, full int) bool {
	if mostlyFigures(line) || mostlyFigures(next) || listMarker.MatchString(next) {
		return false
	}
	w := width(line)
	return (w+1+firstWordWidth(next))*10 > full*9 || w*2 >= full && goesOn(line, next)
}

func width(s string) (w int) {
	for _, r := range s {
		w++
		if isWide(r) {
			w++
		}
	}
	return w
}

func firstWordWidth(s string) int {
	if r, _ := utf8.DecodeRuneInString(s); isWide(r) {
		return 2
	}
	word, _, _ := strings.Cut(s, " ")
	return width(word)
}

func goesOn(line, next string) bool {
	r, _ := utf8.DecodeRuneInString(next)
	return unicode.IsLower(r) && !strings.ContainsRune(".:;!?", rune(line[len(line)-1]))
}

func mostlyFigures(s string) bool {
	var digits, visible int
	for _, r := range s {
		if r != ' ' {
			visible++
		}
		if r >= '0' && r <= '9' {
			digits++
		}
	}
	return digits*4 > visible
}
