package office

import "github.com/accession/accession/internal/extract/page"

const maxCopies = 1000 // cells or rows that one repeated cell or row is written as

type odfTable struct {
	sheet   bool // of a workbook: rows and cells are read into stories of their own, as they may repeat
	class   string
	columns int
	hidden  spans
	style   columnStyles
	column  int // of the open cell, from 1
	begun   bool
	row     string // class of the row
	rows    int    // times that the row stands there
	copies  int    // times that the cell stands there
	rowCell string // style of the row's cells
	cell    odfStyle
}

func (t *odfTable) hides() bool { return t.class != "" || t.row != "" }

func (r *odfReader) lastTable() *odfTable {
	if n := len(r.tables); n > 0 {
		return &r.tables[n-1]
	}
	return nil
}

func (r *odfReader) table(e *element) error {
	if e.name == "table" {
		return r.startTable(e)
	}
	t := r.lastTable()
	if t == nil {
		return nil
	}
	collapsed := e.attr("visibility") == "collapse" || e.attr("visibility") == "filter"
	switch e.name {
	case "table-column":
		from := t.columns + 1
		t.columns = min(t.columns+count(e.attr("number-columns-repeated"), 1, maxColumns), maxColumns)
		if collapsed {
			t.hidden.add(span{from, t.columns})
		}
		if name := e.attr("default-cell-style-name"); name != "" && len(t.style) < maxSpans {
			t.style = append(t.style, columnStyle{span{from, t.columns}, name})
		}
	case "table-row":
		t.row, t.column, t.copies = "", 0, 0
		if collapsed {
			t.row = page.HiddenCell
		}
		t.rows = count(e.attr("number-rows-repeated"), 1, 1<<20)
		t.rowCell = e.attr("default-cell-style-name")
		if t.sheet {
			if copy := *t; r.openStory("row") {
				r.tables = []odfTable{copy}
			}
			break
		}
		r.flow.line()
	case "table-cell", "covered-table-cell":
		r.startCell(t, e)
	}
	return nil
}

func (r *odfReader) startTable(e *element) error {
	style := r.styles.get("table", e.attr("style-name"))
	t := odfTable{sheet: r.body == "spreadsheet" && len(e.path) == 4, cell: odfStyle{look: plain, fill: unset, solid: unset}}
	if !t.sheet {
		if style.breakBefore == yes || r.breakNext {
			if err := r.breakPage(); err != nil {
				return err
			}
		}
		r.tables = append(r.tables, t)
		r.flow.line()
		return nil
	}
	if err := r.out.more(); err != nil {
		return err
	}
	r.begin()
	if style.sheetHidden == yes {
		t.class = page.HiddenCell
	}
	r.flow.write(inline(e.attr("name")), t.class)
	r.flow.line()
	r.tables = append(r.tables, t)
	return nil
}

func (r *odfReader) startCell(t *odfTable, e *element) {
	t.column = min(t.column+max(t.copies, 1), maxColumns)
	if t.copies == 0 {
		t.column = 1
	}
	t.copies, t.begun = count(e.attr("number-columns-repeated"), 1, maxColumns), false
	name := e.attr("style-name")
	if name == "" {
		name = t.rowCell
	}
	if name == "" {
		name = t.style.name(t.column)
	}
	t.cell = r.styles.get("table-cell", name)
	if !t.sheet {
		if t.column > 1 {
			r.flow.cell()
		}
		t.columns = max(t.columns, t.column)
		return
	}
	// The story has a table of its own for the cell's paragraphs to stand in.
	if cell := (odfTable{sheet: true, class: t.class, row: t.row, cell: t.cell}); r.openStory("cell") {
		r.tables = []odfTable{cell}
	}
}

func (r *odfReader) endTable(e *element) error {
	t := r.lastTable()
	if t == nil {
		return nil
	}
	switch {
	case e.name == "table" && t.sheet && r.what == "" && len(e.path) == 4:
		r.flow.apart(t.class, r.notes...)
		r.notes, r.held, r.tables = nil, 0, nil
		return r.out.put(r.page)
	case e.name == "table" && !t.sheet:
		r.tables = r.tables[:len(r.tables)-1]
		r.flow.line()
	case e.name == "table-row" && !t.sheet:
		r.flow.line()
	case e.name == "table" || !t.sheet:
	case r.deeper > 0:
		r.deeper--
	case e.name == "table-row" && r.what == "row":
		return r.endRow()
	case r.what == "cell":
		r.endCell()
	}
	return nil
}

// endCell writes the cell as often as it stands there.
func (r *odfReader) endCell() {
	text := r.takeStory()
	t := r.lastTable()
	if t == nil {
		return
	}
	copies := t.copies
	if text.Text == "" {
		copies = min(copies, maxTabs)
	} else if copies > maxCopies {
		copies, r.out.truncated = maxCopies, true
	}
	for i := range copies {
		if t.column+i > 1 {
			r.flow.cell()
		}
		class := ""
		if text.Text != "" && t.hidden.has(t.column+i) {
			class = page.HiddenCell
		}
		if r.flow.add(text, class); r.flow.w.Full() {
			return
		}
	}
}

// endRow writes the row as often as it stands there.
func (r *odfReader) endRow() error {
	text := r.takeStory()
	t := r.lastTable()
	if t == nil || text.Text == "" {
		return nil
	}
	copies := t.rows
	if copies > maxCopies {
		copies, r.out.truncated = maxCopies, true
	}
	for range copies {
		r.flow.line()
		if r.flow.add(text, ""); r.flow.w.Full() {
			r.cut = true
			return errFull
		}
	}
	return nil
}

// breakPage ends the page, unless it has only begun.
func (r *odfReader) breakPage() error {
	r.breakNext = false
	if r.body != "text" || len(r.around) > 0 || r.fresh || len(r.tables) > 0 && r.lastTable().column > 1 {
		return nil
	}
	if err := r.endPage(); err != nil {
		return err
	}
	if err := r.out.more(); err != nil {
		return err
	}
	r.page = r.out.flow()
	r.flow, r.fresh, r.blank = r.page, true, true
	return nil
}

func (r *odfReader) endPage() error {
	r.flushStories()
	r.page.apart("", r.notes...)
	r.page.apart("", r.foot...)
	r.notes, r.foot, r.held = nil, nil, 0
	return r.out.put(r.page)
}

// openStory begins text that comes out in another place than where it stands. Where too many are open it does not, and says so.
func (r *odfReader) openStory(what string) bool {
	if r.deeper > 0 || len(r.around) >= maxBoxes {
		r.deeper++
		return false
	}
	room := max(r.out.left-int64(r.page.w.Len())-r.held, 0)
	shape, at := r.shape, r.at
	r.around = append(r.around, r.odfPlace)
	r.odfPlace = odfPlace{flow: &flow{w: page.NewWriter(room)}, what: what, shape: shape, at: at}
	return true
}

// takeStory ends a story and goes back to where it interrupted.
func (r *odfReader) takeStory() page.Page {
	story := r.flow.w.Page()
	if r.flow.w.Full() {
		r.out.truncated = true
	}
	last := len(r.around) - 1
	r.odfPlace, r.around = r.around[last], r.around[:last]
	return story
}

// closeStory puts a story where it comes out.
func (r *odfReader) closeStory(what string) {
	if r.deeper > 0 {
		r.deeper--
		return
	}
	if len(r.around) == 0 || r.what != what {
		return
	}
	story := r.takeStory()
	switch what {
	case "text-box", "p":
		r.boxes = append(r.boxes, story)
		r.held += int64(len(story.Text))
		if !r.inPara {
			r.flushBoxes()
		}
		return
	case "header", "header-left", "header-first":
		r.head = append(r.head, story)
	case "footer", "footer-left", "footer-first":
		r.foot = append(r.foot, story)
	default:
		r.notes = append(r.notes, story)
	}
	r.held += int64(len(story.Text))
}

// flushStories closes what is still open when a page ends.
func (r *odfReader) flushStories() {
	for r.deeper = 0; len(r.around) > 0; {
		r.flushBoxes()
		switch r.what {
		case "cell":
			r.endCell()
		case "row":
			_ = r.endRow() // what has no room is left out anyway
		default:
			r.closeStory(r.what)
		}
	}
	r.flushBoxes()
}

func (r *odfReader) flushBoxes() {
	for _, story := range r.boxes {
		r.flow.line()
		r.flow.add(story, "")
		r.flow.line()
		r.held -= int64(len(story.Text))
	}
	r.boxes = nil
}
