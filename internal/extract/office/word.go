package office

import (
	"strings"

	"github.com/accession/accession/internal/extract/page"
)

const (
	maxBoxes = 16      // text boxes inside each other; the text of deeper ones stands where they are
	maxNotes = 100_000 // footnotes, endnotes and comments of one document
)

// word reads the parts of a DOCX that hold text.
type word struct {
	c      *container
	out    *pages
	styles *wordStyles
	ground colour               // of the page
	page   *flow                // written now: the page, or a note
	notes  map[string]*wordNote // by kind and id
	order  []string
	due    []string    // notes that the page refers to
	last   []page.Page // endnotes that are referred to
	foot   []page.Page // footers, for the end of the first page
	cut    bool        // text was left out
	paged  bool        // this is the document itself: it has pages
	fresh  bool        // nothing is on the page yet
	room   int64       // bytes that notes may still take
	held   int64       // bytes of text boxes that wait for their paragraph's end
	deeper int         // open text boxes beyond maxBoxes
	key    string      // of the note that is read
	kind   string      // of the notes that are read
	wordPlace
	around []wordPlace // what the text box now read interrupts
}

type wordNote struct {
	text page.Page
	used bool
}

// wordPlace is where in a story the reader is.
type wordPlace struct {
	flow      *flow
	inPara    bool
	paragraph look
	run       look
	class     string
	known     bool // class is the run's
	webHidden bool
	tables    []wordTable
	fields    []bool // of each open field: its result is read, not its instruction
	boxes     []page.Page
	shape     colour // ground that a shape gives
	filled    bool   // the shape said so itself
}

type wordTable struct {
	columns, cell int
	begun         bool // the cell has a paragraph
	broken        bool // a page broke in this row
	late          bool // a page breaks after this row
	rowHidden     bool
	style, fill   colour
}

func readWord(c *container, out *pages) error {
	main, err := c.main()
	if err != nil {
		return err
	}
	rels, err := c.relationsOf(main)
	if err != nil {
		return err
	}
	w := &word{c: c, out: out, ground: unset, notes: map[string]*wordNote{}, room: out.left}
	if w.styles, err = readWordStyles(c, rels); err != nil {
		return err
	}
	var head []page.Page
	for _, kind := range []string{"header", "footer", "footnotes", "endnotes", "comments"} {
		for _, part := range rels.of(c, kind) {
			w.kind = strings.TrimSuffix(kind, "s")
			story, err := w.story(part)
			if err != nil {
				return err
			}
			switch kind {
			case "header":
				head = append(head, story)
			case "footer":
				w.foot = append(w.foot, story)
			}
		}
	}
	w.kind, w.paged, w.fresh, w.cut = "", true, true, false
	w.begin(out.flow())
	for i, story := range head {
		if i == 0 || story.Text != head[i-1].Text {
			w.flow.line()
			w.flow.add(story, "")
		}
	}
	w.flow.line()
	if err := c.walk(main, "document", w); err != nil && err != errFull {
		return err
	}
	for _, kind := range []string{"diagramData", "chart"} {
		for _, part := range rels.of(c, kind) {
			q := &slidePart{flow: &flow{w: page.NewWriter(w.room)}, theme: &slideTheme{}, run: plain, canvas: canvas{ground: white}, side: kind}
			if err := optional(c, part, "", q); err != nil {
				return err
			}
			w.room -= int64(q.flow.w.Len())
			out.truncated = out.truncated || q.flow.w.Full()
			w.last = append(w.last, q.flow.w.Page())
		}
	}
	for _, key := range w.order { // what nothing refers to is not shown
		if note := w.notes[key]; !note.used {
			w.last = append(w.last, covered(note.text))
		}
	}
	return w.endPage(w.last)
}

// covered is a story that nobody sees.
func covered(story page.Page) page.Page {
	if strings.TrimSpace(story.Text) == "" {
		return page.Page{}
	}
	return page.Page{Text: story.Text, Hidden: []page.Run{{Start: 0, End: len(story.Text), Class: page.HiddenInvisible}}}
}

func (w *word) begin(f *flow) {
	w.page = f
	w.wordPlace = wordPlace{flow: f, paragraph: plain, run: plain, shape: unset}
	w.around = nil
}

// story reads a header or footer, or a part with notes, which go to w.notes.
func (w *word) story(part string) (page.Page, error) {
	w.begin(&flow{w: page.NewWriter(w.room)})
	err := optional(w.c, part, "", w)
	if w.page.w.Full() || w.cut {
		w.out.truncated = true
	}
	w.room -= int64(w.page.w.Len())
	return w.page.w.Page(), err
}

func (w *word) start(e *element) error {
	switch e.name {
	case "del", "moveFrom", "sdtPr", "sdtEndPr", "lastRenderedPageBreak", "br":
		return w.breaks(e)
	case "p":
		w.startParagraph()
	case "r":
		w.run, w.known, w.webHidden = plain, false, false
	case "tab", "ptab", "cr", "noBreakHyphen":
		return w.character(e)
	case "fldChar":
		w.field(e.attr("fldCharType"))
	case "tbl", "tr", "tc", "gridCol", "tblStyle", "hidden":
		w.table(e)
	case "footnoteReference", "endnoteReference", "commentReference":
		w.refer(strings.TrimSuffix(e.name, "Reference") + " " + e.attr("id"))
	case "footnote", "endnote", "comment":
		if e.name == w.kind {
			w.key = w.kind + " " + e.attr("id")
			w.begin(&flow{w: page.NewWriter(w.room)})
		}
	case "background":
		if e.parent() == "document" {
			w.ground = hex(e.attr("color"))
		}
	case "drawing", "pict", "object":
		w.fresh = false
	case "txbxContent":
		w.openBox()
	}
	if strings.HasSuffix(e.name, "Change") {
		return errSkip
	}
	w.properties(e)
	w.shapes(e)
	return nil
}

// properties takes what is said about how text looks.
func (w *word) properties(e *element) {
	switch e.parent() {
	case "rPr":
		if e.grandparent() != "r" {
			return
		}
		switch e.name {
		case "rStyle":
			w.run = w.run.over(w.styles.look(e.attr("val")))
		case "webHidden":
			w.webHidden = !off(e.attr("val"))
		default:
			wordRun(e, &w.run)
		}
	case "pPr":
		switch e.name {
		case "pStyle":
			w.paragraph = w.styles.look(e.attr("val"))
		case "shd":
			if fill := wordShade(e); fill != unset {
				w.paragraph.ground = fill
			}
		}
	case "tcPr":
		if t := w.lastTable(); t != nil && e.name == "shd" {
			if fill := wordShade(e); fill != unset {
				t.fill = fill
			}
		}
	case "textFill":
		if e.name == "noFill" && e.above(3) == "r" {
			w.run.clear = yes
		}
	}
}

// shapes takes the ground that a shape gives the text in it.
func (w *word) shapes(e *element) {
	switch e.name {
	case "wsp":
		w.shape, w.filled = unset, false
	case "solidFill", "gradFill", "blipFill", "pattFill", "noFill":
		if e.parent() == "spPr" {
			w.shape, w.filled = mixed, true
			if e.name == "noFill" {
				w.shape = unset
			}
		}
	case "srgbClr":
		if e.parent() == "solidFill" && e.grandparent() == "spPr" {
			w.shape = hex(e.attr("val"))
		}
	case "fillRef":
		if !w.filled && e.attr("idx") != "0" {
			w.shape = mixed
		}
	case "shape", "rect", "roundrect", "oval": // VML
		w.shape, w.filled = unset, false
		if fill := e.attr("fillcolor"); fill != "" && !off(e.attr("filled")) && e.attr("filled") != "f" {
			if w.shape = mixed; fill == "white" || strings.HasPrefix(fill, "#fff") {
				w.shape = white
			}
		}
	}
}

func (w *word) end(e *element) error {
	switch e.name {
	case "p":
		w.inPara = false
		w.flushBoxes()
	case "tbl":
		if n := len(w.tables); n > 0 {
			w.tables = w.tables[:n-1]
		}
		w.flow.line()
	case "tr":
		w.flow.line()
		if t := w.lastTable(); t != nil && t.late {
			t.late, t.cell = false, 0
			return w.breakPage(false)
		}
	case "txbxContent":
		w.closeBox()
	case "footnote", "endnote", "comment":
		if e.name == w.kind && w.notes[w.key] == nil {
			if len(w.notes) == maxNotes {
				w.out.truncated = true
				return errFull
			}
			w.notes[w.key] = &wordNote{text: w.page.w.Page()}
			w.order = append(w.order, w.key)
			w.room -= int64(w.page.w.Len())
			w.begin(&flow{w: page.NewWriter(0)})
		}
	}
	return nil
}

func (w *word) text(s string, e *element) error {
	if e.name != "t" {
		return nil
	}
	return w.write(inline(s))
}

func (w *word) write(s string) error {
	if !w.known {
		w.class, w.known = w.looks(), true
	}
	class := w.class
	for _, result := range w.fields {
		if !result && class == "" {
			class = page.HiddenInvisible
		}
	}
	w.flow.write(s, class)
	w.fresh = w.fresh && strings.TrimSpace(s) == ""
	if w.page.w.Full() || w.flow.w.Full() {
		w.cut = true
		return errFull
	}
	return nil
}

// looks is the class of the run's text.
func (w *word) looks() string {
	ground := w.ground
	if w.shape != unset {
		ground = w.shape
	}
	for _, t := range w.tables {
		if t.rowHidden {
			return page.HiddenCell
		}
		if t.fill != unset {
			ground = t.fill
		} else if t.style != unset {
			ground = t.style
		}
	}
	if w.webHidden && len(w.fields) == 0 { // in a field it is the page number of a contents' line: print shows it
		return page.HiddenInvisible
	}
	return w.run.over(w.paragraph).over(w.styles.defaults).class(ground)
}
