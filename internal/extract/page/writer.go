package page

import (
	"strings"
	"unicode/utf8"
)

// Writer gathers the text of one page, no more than it has room for.
type Writer struct {
	text   strings.Builder
	hidden []Run
	room   int64
	full   bool
}

// NewWriter makes a writer with room for that many bytes.
func NewWriter(room int64) *Writer { return &Writer{room: room} }

// Write appends text. class says why nobody sees it; empty: it is seen. What has no room is left out, whole characters at a
// time, and so is everything after it.
func (w *Writer) Write(text, class string) {
	if w.full || text == "" {
		return
	}
	if int64(len(text)) > w.room {
		end := int(w.room)
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text, w.full = text[:end], true
	}
	start := w.text.Len()
	w.text.WriteString(text)
	w.room -= int64(len(text))
	if class == "" || strings.TrimSpace(text) == "" {
		return
	}
	if last := len(w.hidden) - 1; last >= 0 && w.hidden[last].End == start && w.hidden[last].Class == class {
		w.hidden[last].End = w.text.Len()
		return
	}
	w.hidden = append(w.hidden, Run{Start: start, End: w.text.Len(), Class: class})
}

// Break ends the line, unless nothing is written or it has ended already.
func (w *Writer) Break() {
	if s := w.text.String(); s != "" && !strings.HasSuffix(s, "\n") {
		w.Write("\n", "")
	}
}

// Paragraph makes sure that a blank line comes before what is written next.
func (w *Writer) Paragraph() {
	w.Break()
	if s := w.text.String(); s != "" && !strings.HasSuffix(s, "\n\n") {
		w.Write("\n", "")
	}
}

// WritePage appends a page with its hidden runs.
func (w *Writer) WritePage(p Page) {
	done := 0
	for _, run := range p.Hidden {
		w.Write(p.Text[done:run.Start], "")
		w.Write(p.Text[run.Start:run.End], run.Class)
		done = run.End
	}
	w.Write(p.Text[done:], "")
}

// Len is the bytes written.
func (w *Writer) Len() int { return w.text.Len() }

// Full tells that something was left out for want of room.
func (w *Writer) Full() bool { return w.full }

// Page is what was written.
func (w *Writer) Page() Page { return Page{Text: w.text.String(), Hidden: w.hidden} }
