package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/accession/accession/internal/extract/page"
)

// plain makes valid UTF-8 of what an engine sent: line ends become \n, the other control characters go, \t and \f stay.
func plain(text string) string {
	if strings.Contains(text, "\r") {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\f':
			return r
		case r == '\r':
			return '\n'
		case r == '\x02', r == '\ufffe': // pdfium's hyphen at a line's end
			return '-'
		case r == '\ufeff', r == '\uffff', unicode.IsControl(r):
			return -1
		}
		return r // invalid bytes arrive here as U+FFFD
	}, text)
}

// plainPage makes the page's text plain and moves its hidden runs along. Runs that are out of order or out of the text go: what
// a worker says of its text is not believed unchecked.
func plainPage(p page.Page) page.Page {
	if len(p.Hidden) == 0 {
		p.Text, p.Hidden = plain(p.Text), nil
		return p
	}
	var b strings.Builder
	var hidden []page.Run
	done := 0
	for _, run := range p.Hidden {
		if len(hidden) == hiddenRuns {
			break
		}
		if run.Start < done || run.End <= run.Start || run.End > len(p.Text) || !hiddenClasses[run.Class] {
			continue
		}
		b.WriteString(plain(p.Text[done:run.Start]))
		start := b.Len()
		b.WriteString(plain(p.Text[run.Start:run.End]))
		if b.Len() > start {
			hidden = append(hidden, page.Run{Start: start, End: b.Len(), Class: run.Class})
		}
		done = run.End
	}
	b.WriteString(plain(p.Text[done:]))
	return page.Page{Text: b.String(), Hidden: hidden}
}

// hiddenRuns is how many of a page's are kept: a text can alternate letter by letter.
const hiddenRuns = 10_000

var hiddenClasses = map[string]bool{
	page.HiddenInvisible: true, page.HiddenColour: true, page.HiddenTiny: true, page.HiddenOffPage: true, page.HiddenCell: true,
	page.HiddenSlide: true, page.HiddenLayer: true,
}

// clipRuns keeps what of the runs lies within the first length bytes.
func clipRuns(runs []page.Run, length int) (kept []page.Run) {
	for _, run := range runs {
		if run.End = min(run.End, length); run.Start < run.End {
			kept = append(kept, run)
		}
	}
	return kept
}

// cut shortens text to at most limit bytes, never inside a character.
func cut(text string, limit int64) string {
	if int64(len(text)) <= limit {
		return text
	}
	end := int(limit)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// words counts letters and digits: what makes a text layer worth keeping.
func words(text string) (n int) {
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}
