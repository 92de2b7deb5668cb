package office

import (
	"strings"

	"github.com/accession/accession/internal/extract/page"
)

// odfReader reads an ODF file: a text document, a workbook or a slide show, which its body says.
type odfReader struct {
	c         *container
	out       *pages
	styles    *odfStyles
	body      string      // "text", "spreadsheet" or "presentation"
	page      *flow       // written now
	cut       bool        // text was left out
	fresh     bool        // nothing is on the page yet
	notes     []page.Page // of the page
	head      []page.Page // of the first page, as all text documents' masters have
	foot      []page.Page
	held      int64  // bytes of stories that wait
	deeper    int    // open stories beyond maxBoxes
	master    string // page whose header and footer, or shapes, are read
	hidden    []bool // of each open section
	slide     odfSlide
	breakNext bool // a page begins with the next paragraph
	odfPlace
	around []odfPlace
}

// odfPlace is where in a story the reader is.
type odfPlace struct {
	flow   *flow
	what   string // the element that opened the story
	inPara bool
	blank  bool // white space that comes next is dropped: there is some already
	para   look
	spans  []look
	tables []odfTable
	boxes  []page.Page
	depth  int    // of the open paragraph's element
	shape  colour // ground that a shape gives
	at     box    // of the shape
}

func readODF(c *container, out *pages) error {
	var sealed odfSeal
	if err := optional(c, "META-INF/manifest.xml", "manifest", &sealed); err != nil {
		return err
	}
	if sealed {
		return page.ErrEncrypted
	}
	r := &odfReader{c: c, out: out}
	shared := newODFStyles(nil)
	if c.has("styles.xml") {
		if err := r.masters(shared); err != nil {
			return err
		}
	}
	r.styles = newODFStyles(shared)
	r.master, r.slide, r.cut = "", odfSlide{}, false
	r.begin()
	if err := c.walk("content.xml", "document-content", r); err != nil && err != errFull {
		return err
	}
	switch {
	case r.body == "":
		return page.ErrUnsupported
	case r.cut || r.page.w.Full():
		r.flushStories()
		r.page.apart("", r.notes...)
		return r.out.last(r.page)
	case r.body == "text":
		return r.endPage()
	}
	return nil
}

// odfSeal tells that a manifest names an encrypted member.
type odfSeal bool

func (s *odfSeal) start(e *element) error {
	if e.name == "encryption-data" {
		*s = true
	}
	return nil
}
func (s *odfSeal) end(*element) error          { return nil }
func (s *odfSeal) text(string, *element) error { return nil }

// masters reads styles.xml: the styles that all share, and the headers and footers of master pages.
func (r *odfReader) masters(shared *odfStyles) error {
	r.styles = newODFStyles(shared)
	r.begin()
	if err := r.c.walk("styles.xml", "document-styles", r); err != nil && err != errFull {
		return err
	}
	shared.pages = r.styles.pages
	shared.sizes = r.styles.sizes
	for key, style := range r.styles.byKey { // the masters' own, which only slides' grounds need
		if strings.HasPrefix(key, "drawing-page ") && shared.byKey[key] == nil {
			shared.byKey[key] = style
		}
	}
	return nil
}

func (r *odfReader) begin() {
	r.page = r.out.flow()
	r.fresh = true
	r.odfPlace = odfPlace{flow: r.page, shape: unset}
	r.around, r.deeper, r.breakNext = nil, 0, false
}

// Elements that hold text which is not shown where it stands, or not at all.
var odfSkipped = map[string]bool{
	"tracked-changes": true, "forms": true, "content-validations": true, "dde-links": true, "scripts": true, "event-listeners": true,
	"note-citation": true, "binary-data": true, "font-face-decls": true, "meta": true, "settings": true, "named-expressions": true,
	"script": true, "scenario": true,
}

func (r *odfReader) start(e *element) error {
	if odfSkipped[e.name] || strings.HasSuffix(e.name, "-source") && strings.HasSuffix(e.space, ":text:1.0") {
		return errSkip
	}
	if e.parent() == "annotation" && (e.name == "creator" || e.name == "date" || e.name == "date-string" || e.name == "sender-initials") {
		return errSkip
	}
	if (e.name == "title" || e.name == "desc") && strings.Contains(e.space, "svg") {
		return errSkip
	}
	section := e.section()
	if content := e.path[0] == "document-content"; section == "body" && !content || content && (section == "styles" || section == "master-styles") {
		return errSkip // a section of the other part
	}
	switch section {
	case "styles":
		return r.styles.shared.start(e)
	case "automatic-styles":
		return r.styles.start(e)
	case "master-styles":
		return r.startMaster(e)
	case "body":
		if len(e.path) == 3 {
			r.body = e.name
			if r.body != "text" && r.body != "spreadsheet" && r.body != "presentation" {
				return page.ErrUnsupported
			}
			if r.body == "text" {
				for _, story := range r.head {
					r.flow.line()
					r.flow.add(story, "")
				}
				r.flow.line()
			} else {
				r.foot = nil
			}
			r.head, r.held = nil, 0
			return nil
		}
	default:
		return nil
	}
	return r.content(e)
}

// startMaster reads a master page: its header and footer, and what is painted on it.
func (r *odfReader) startMaster(e *element) error {
	switch e.name {
	case "master-page":
		r.master = e.attr("name")
		r.styles.pages[r.master] = &odfMaster{layout: e.attr("page-layout-name"), style: e.attr("style-name")}
		r.slide = odfSlide{open: true, canvas: canvas{ground: unset}}
		return nil
	case "header", "footer", "header-left", "footer-left", "header-first", "footer-first":
		if e.attr("display") == "false" || e.parent() != "master-page" {
			return errSkip
		}
		r.openStory(e.name)
		return nil
	case "notes", "handout-master":
		return errSkip
	}
	if len(r.around) == 0 {
		return r.draw(e)
	}
	return r.content(e)
}

func (r *odfReader) content(e *element) error {
	switch e.name {
	case "p", "h":
		return r.startParagraph(e)
	case "span", "a":
		l := r.styles.get("text", e.attr("style-name")).look
		if e.attr("style-name") == "" {
			l = plain
		}
		r.spans = append(r.spans, l.over(r.span()))
	case "s":
		return r.write(strings.Repeat(" ", count(e.attr("c"), 1, maxTabs)), false)
	case "tab":
		return r.write("\t", false)
	case "line-break":
		if t := r.lastTable(); t != nil && (t.columns > 1 || t.sheet) {
			return r.write(" ", false)
		}
		r.flow.line()
		r.blank = true
	case "hidden-text":
		if on(e.attr("is-hidden")) {
			r.flow.write(e.attr("string-value"), page.HiddenInvisible)
			return errSkip
		}
	case "soft-page-break":
		return r.breakPage()
	case "section":
		r.hidden = append(r.hidden, e.attr("display") == "none" || e.attr("display") == "condition" && on(e.attr("is-hidden")))
	case "note-body", "annotation", "text-box", "notes":
		r.openStory(e.name)
	case "table", "table-column", "table-row", "table-cell", "covered-table-cell":
		return r.table(e)
	}
	return r.draw(e)
}

func (r *odfReader) end(e *element) error {
	switch e.section() {
	case "styles":
		return r.styles.shared.end(e)
	case "automatic-styles":
		return r.styles.end(e)
	case "master-styles":
		if e.name == "master-page" {
			if master := r.styles.pages[r.master]; master != nil {
				master.painted = r.slide.canvas.painted
			}
			r.master, r.slide = "", odfSlide{}
			return nil
		}
	}
	switch e.name {
	case "p", "h":
		r.endParagraph(e)
		return nil
	case "span", "a":
		if n := len(r.spans); n > 0 {
			r.spans = r.spans[:n-1]
		}
	case "section":
		if n := len(r.hidden); n > 0 {
			r.hidden = r.hidden[:n-1]
		}
	case "note-body", "annotation", "text-box", "notes", "header", "footer", "header-left", "footer-left", "header-first", "footer-first":
		r.closeStory(e.name)
	case "table", "table-row", "table-cell", "covered-table-cell":
		return r.endTable(e)
	}
	return r.endDraw(e)
}

func (r *odfReader) startParagraph(e *element) error {
	style := r.styles.get("paragraph", e.attr("style-name"))
	if r.inPara && !r.openStory("p") { // of a shape inside a paragraph
		r.flow.line()
		r.blank = true
		return nil
	}
	if style.breakBefore == yes || r.breakNext {
		if err := r.breakPage(); err != nil {
			return err
		}
	}
	r.inPara, r.blank, r.para, r.spans, r.depth = true, true, style.look, nil, len(e.path)
	r.breakNext = style.breakAfter == yes && len(r.around) == 0
	t := r.lastTable()
	if t != nil && t.sheet && e.attr("style-name") == "" {
		r.para = plain // the cell's style says how it looks
	}
	switch {
	case t == nil || t.columns < 2 && !t.sheet:
		r.flow.line()
	case t.begun:
		r.flow.gap()
	}
	if t != nil {
		t.begun = true
	}
	r.fresh = r.fresh && len(r.around) > 0
	return nil
}

func (r *odfReader) endParagraph(e *element) {
	switch {
	case !r.inPara:
	case r.depth == len(e.path):
		r.inPara = false
		r.flushBoxes()
		if r.what == "p" {
			r.closeStory("p")
		}
	case r.deeper > 0:
		r.deeper--
	}
}

func (r *odfReader) span() look {
	if n := len(r.spans); n > 0 {
		return r.spans[n-1]
	}
	return plain
}

func (r *odfReader) text(s string, e *element) error {
	if !r.inPara {
		return nil
	}
	return r.write(s, true)
}

// write appends text of the open paragraph. loose text has its white space drawn together, as the format says.
func (r *odfReader) write(s string, loose bool) error {
	if !r.inPara {
		return nil
	}
	if loose {
		s, r.blank = collapse(s, r.blank)
	} else {
		r.blank = false
	}
	r.flow.write(s, r.class())
	if r.flow.w.Full() {
		r.cut = true
		return errFull
	}
	return nil
}

// collapse makes each stretch of white space one space, or none after white space.
func collapse(s string, blank bool) (string, bool) {
	if !blank && !strings.ContainsAny(s, " \n\r\t") {
		return s, s == "" && blank
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, c := range s {
		space := c == ' ' || c == '\n' || c == '\r' || c == '\t'
		if space && !blank {
			b.WriteByte(' ')
		} else if !space {
			b.WriteRune(c)
		}
		blank = space
	}
	return b.String(), blank
}

// class is why nobody sees the text that comes next.
func (r *odfReader) class() string {
	if r.slide.open && r.slide.hidden {
		return page.HiddenSlide
	}
	for _, hidden := range r.hidden {
		if hidden {
			return page.HiddenInvisible
		}
	}
	ground, base := r.ground(), plain
	for i := range r.tables {
		t := &r.tables[i]
		if t.hides() {
			return page.HiddenCell
		}
		if t.cell.fill != unset {
			ground = t.cell.fill
		}
		base = t.cell.look
	}
	if class := r.span().over(r.para).over(base).class(ground); class != "" {
		return class
	}
	return r.outside()
}
