package office

import (
	"errors"
	"strings"

	"github.com/accession/accession/internal/extract/page"
)

const maxTabs = 64 // empty cells in a row that are shown

// errFull says that the limits are reached: what is read so far is what comes out.
var errFull = errors.New("limits are reached")

// pages hands out pages until the limits are reached.
type pages struct {
	limits    page.Limits
	emit      func(page.Page) error
	left      int64 // bytes of text
	count     int
	truncated bool
	ended     bool // the room for text is used up
}

func newPages(limits page.Limits, emit func(page.Page) error) *pages {
	return &pages{limits: limits, emit: emit, left: limits.TextBytes}
}

func (p *pages) flow() *flow { return &flow{w: page.NewWriter(p.left)} }

// more says whether another page may begin.
func (p *pages) more() error {
	if p.ended {
		return errFull
	}
	if p.count >= p.limits.Pages {
		p.truncated = true
		return errFull
	}
	return nil
}

func (p *pages) put(f *flow) error {
	if err := p.more(); err != nil {
		return err
	}
	done := f.w.Page()
	if f.w.Full() {
		p.truncated, p.ended = true, true
		if done.Text == "" {
			return errFull
		}
	}
	p.left -= int64(len(done.Text))
	p.count++
	if err := p.emit(done); err != nil {
		return err
	}
	if f.w.Full() {
		return errFull
	}
	return nil
}

// last hands out a page that has no room for all its text: there is none after it.
func (p *pages) last(f *flow) error {
	if p.ended {
		return nil
	}
	err := error(nil)
	if f.w.Len() > 0 {
		err = p.put(f)
	}
	p.truncated, p.ended = true, true
	return err
}

// flow lays text out in lines and cells. A separator is written only when text comes after it.
type flow struct {
	w       *page.Writer
	newline bool
	space   bool
	tabs    int
}

func (f *flow) write(text, class string) {
	if text == "" {
		return
	}
	switch {
	case f.newline && f.w.Len() > 0:
		f.w.Write("\n", "")
	case f.space && f.tabs == 0 && f.w.Len() > 0:
		f.w.Write(" ", "")
	}
	f.w.Write(strings.Repeat("\t", f.tabs), "")
	f.newline, f.space, f.tabs = false, false, 0
	f.w.Write(text, class)
}

// line makes what comes next begin a line.
func (f *flow) line() { f.newline, f.space, f.tabs = true, false, 0 }

// cell makes what comes next begin a cell.
func (f *flow) cell() { f.tabs, f.space = min(f.tabs+1, maxTabs), false }

// gap makes what comes next stand apart in the same line.
func (f *flow) gap() { f.space = true }

// add writes a finished story. class, unless empty, goes for all of it.
func (f *flow) add(story page.Page, class string) {
	at := 0
	for _, run := range story.Hidden {
		f.write(story.Text[at:run.Start], class)
		own := run.Class
		if class != "" {
			own = class
		}
		f.write(story.Text[run.Start:run.End], own)
		at = run.End
	}
	f.write(story.Text[at:], class)
}

// apart writes finished stories after a blank line, each on lines of its own.
func (f *flow) apart(class string, stories ...page.Page) {
	first := true
	for _, story := range stories {
		if strings.TrimSpace(story.Text) == "" {
			continue
		}
		if first {
			f.w.Paragraph()
			f.newline, f.space, f.tabs = false, false, 0
			first = false
		} else {
			f.line()
		}
		f.add(story, class)
	}
	f.line()
}

// inline makes line ends and tabs of stored text what they are shown as.
func inline(s string) string {
	if strings.ContainsAny(s, "\n\r\t") {
		return strings.Map(func(r rune) rune {
			if r == '\n' || r == '\r' || r == '\t' {
				return ' '
			}
			return r
		}, s)
	}
	return s
}
