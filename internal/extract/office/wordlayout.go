package office

import "github.com/accession/accession/internal/extract/page"

func (w *word) startParagraph() {
	if w.inPara { // a drawing's paragraph inside a paragraph
		w.flow.line()
		return
	}
	w.inPara, w.paragraph, w.run, w.known = true, w.styles.look(w.styles.normal), plain, false
	t := w.lastTable()
	switch {
	case t == nil || t.columns < 2:
		w.flow.line()
	case t.begun:
		w.flow.gap()
	}
	if t != nil {
		t.begun = true
	}
}

func (w *word) lastTable() *wordTable {
	if n := len(w.tables); n > 0 {
		return &w.tables[n-1]
	}
	return nil
}

func (w *word) table(e *element) {
	if e.name == "tbl" {
		w.tables = append(w.tables, wordTable{style: unset, fill: unset})
		w.flow.line()
		return
	}
	t := w.lastTable()
	if t == nil {
		return
	}
	switch e.name {
	case "gridCol":
		if e.parent() == "tblGrid" {
			t.columns++
		}
	case "tblStyle":
		if w.styles.shades(e.attr("val")) {
			t.style = mixed
		}
	case "tr":
		t.cell, t.rowHidden, t.broken = 0, false, false
		w.flow.line()
	case "tc":
		t.fill, t.begun = unset, false
		t.cell++
		t.columns = max(t.columns, t.cell) // a table without a grid shows how wide it is as it goes
		if t.cell > 1 {
			w.flow.cell()
		}
	case "hidden":
		if e.parent() == "trPr" {
			t.rowHidden = !off(e.attr("val"))
		}
	}
}

// breaks leaves out what is deleted or describes a control, and breaks lines and pages.
func (w *word) breaks(e *element) error {
	switch {
	case e.name == "br" && e.attr("type") == "page":
		return w.breakPage(true)
	case e.name == "br":
		return w.character(e)
	case e.name == "lastRenderedPageBreak":
		return w.breakPage(false)
	}
	return errSkip
}

// character writes what an empty element stands for.
func (w *word) character(e *element) error {
	if p := e.parent(); p != "r" && p != "Choice" && p != "Fallback" {
		return nil
	}
	switch e.name {
	case "tab", "ptab":
		if w.kind != "" && w.flow.w.Len() == 0 { // behind a note's number
			return nil
		}
		return w.write("\t")
	case "noBreakHyphen":
		return w.write("\u2011")
	}
	if t := w.lastTable(); t != nil && t.columns > 1 {
		return w.write(" ")
	}
	w.flow.line()
	return nil
}

func (w *word) field(what string) {
	last := len(w.fields) - 1
	switch {
	case what == "begin" && len(w.fields) < maxDepth:
		w.fields = append(w.fields, false)
	case last < 0:
	case what == "separate":
		w.fields[last] = true
	case what == "end":
		w.fields = w.fields[:last]
	}
	w.known = false
}

// refer notes that the page shows a note, once.
func (w *word) refer(key string) {
	note := w.notes[key]
	if note == nil || note.used || !w.paged {
		return
	}
	note.used = true
	if key[0] == 'e' {
		w.last = append(w.last, note.text)
		return
	}
	w.due = append(w.due, key)
}

// breakPage ends the page. A break that the program noted while it laid the document out says nothing new after one that
// the author set; in a row it says nothing new after the first one.
func (w *word) breakPage(set bool) error {
	if !w.paged || len(w.around) > 0 || !set && w.fresh {
		return nil
	}
	if t := w.lastTable(); t != nil {
		if t.broken {
			return nil
		}
		t.broken = true
		if t.cell > 1 {
			t.late = true
			return nil
		}
	}
	if err := w.endPage(nil); err != nil {
		return err
	}
	if err := w.out.more(); err != nil {
		return err
	}
	w.fresh = true
	w.page = w.out.flow()
	w.flow = w.page
	return nil
}

// endPage emits the page: its text, its notes, and what comes last.
func (w *word) endPage(last []page.Page) error {
	for w.deeper = 0; len(w.around) > 0; {
		w.closeBox()
	}
	w.flushBoxes()
	var notes []page.Page
	for _, key := range w.due {
		notes = append(notes, w.notes[key].text)
	}
	w.page.apart("", notes...)
	w.page.apart("", last...)
	w.page.apart("", w.foot...)
	w.due, w.foot = nil, nil
	if w.cut {
		return w.out.last(w.page)
	}
	return w.out.put(w.page)
}

// openBox begins a text box: its text comes after the paragraph that it is anchored in.
func (w *word) openBox() {
	if len(w.around) == maxBoxes {
		w.deeper++
		return
	}
	shape, room := w.shape, w.out.left-int64(w.page.w.Len())-w.held
	w.around = append(w.around, w.wordPlace)
	w.wordPlace = wordPlace{flow: &flow{w: page.NewWriter(max(room, 0))}, paragraph: plain, run: plain, shape: shape}
}

func (w *word) closeBox() {
	last := len(w.around) - 1
	if w.deeper > 0 || last < 0 {
		w.deeper = max(w.deeper-1, 0)
		return
	}
	w.flushBoxes()
	story := w.flow.w.Page()
	w.held += int64(len(story.Text))
	w.wordPlace, w.around = w.around[last], w.around[:last]
	w.boxes = append(w.boxes, story)
	w.known = false
	if !w.inPara {
		w.flushBoxes()
	}
}

func (w *word) flushBoxes() {
	for _, story := range w.boxes {
		w.flow.line()
		w.flow.add(story, "")
		w.flow.line()
		w.held -= int64(len(story.Text))
	}
	w.boxes = nil
}
