package office

import "github.com/accession/accession/internal/extract/page"

// slidePart reads the shapes of a slide, a layout, a master or notes; or the text of a diagram, a chart or comments.
type slidePart struct {
	flow   *flow // nil in a layout or master
	theme  *slideTheme
	canvas canvas
	size   box    // of the slide, when known
	below  bool   // a layout or master: only what it paints counts
	side   string // kind of a part beside the slide, or empty
	hidden bool   // the slide is not shown
	lost   bool   // text was left out
	groups []group
	shape  slideShape
	run    look
	table  slideTable
}

type slideShape struct {
	open   bool
	box    box
	fill   colour
	filled bool // the shape says itself how it is filled
	hidden bool
	back   colour // what it lies on
	asked  bool   // back is known
}

// group maps the coordinates inside a group to those around it.
type group struct {
	hidden             bool
	x, y, w, h         float64
	inX, inY, inW, inH float64
}

type slideTable struct {
	open   bool
	plain  bool // its style colours nothing
	cell   int
	begun  bool
	fill   colour
	pieces []piece // of the open cell: how it is filled is said after its text
	held   int
}

type piece struct {
	text string
	look look
	sep  bool
}

// Table styles that colour nothing: "No Style, No Grid" and "No Style, Table Grid".
var plainTables = map[string]bool{"{2D5ABB26-0587-4C30-8999-92F81FD0307C}": true, "{5940675A-B579-460E-94D1-54222C63F5DA}": true}

func (p *slidePart) start(e *element) error {
	switch e.name {
	case "sld":
		p.hidden = off(e.attr("show"))
	case "grpSp":
		p.groups = append(p.groups, group{})
	case "sp", "pic", "graphicFrame", "cxnSp":
		p.shape = slideShape{open: true, fill: unset}
		if e.name == "pic" {
			p.shape.fill, p.shape.filled = mixed, true
		}
	case "cNvPr":
		if on(e.attr("hidden")) {
			if e.parent() == "nvGrpSpPr" && len(p.groups) > 0 {
				p.groups[len(p.groups)-1].hidden = true
			} else {
				p.shape.hidden = true
			}
		}
	case "txBody", "tbl":
		if p.shape.open && e.parent() != "tc" {
			p.paint()
		}
	case "fillRef", "bgRef":
		if p.shape.open && !p.shape.filled && e.name == "fillRef" && e.attr("idx") != "0" {
			p.shape.fill = mixed
		}
		if e.name == "bgRef" && e.attr("idx") != "1001" {
			p.canvas.ground = mixed
		}
	}
	p.frame(e)
	p.fill(e)
	if p.below {
		return nil
	}
	if e.name == "fld" && p.side == "notesSlide" && e.attr("type") == "slidenum" {
		return errSkip
	}
	p.layout(e)
	return nil
}

// frame takes the position of a shape or a group.
func (p *slidePart) frame(e *element) {
	if e.parent() != "xfrm" {
		return
	}
	x, y, cx, cy := decimal(e.attr("x")), decimal(e.attr("y")), decimal(e.attr("cx")), decimal(e.attr("cy"))
	if e.grandparent() == "grpSpPr" {
		if len(p.groups) == 0 {
			return
		}
		g := &p.groups[len(p.groups)-1]
		switch e.name {
		case "off":
			g.x, g.y = x, y
		case "ext":
			g.w, g.h = cx, cy
		case "chOff":
			g.inX, g.inY = x, y
		case "chExt":
			g.inW, g.inH = cx, cy
		}
		return
	}
	switch e.name {
	case "off":
		p.shape.box.x, p.shape.box.y = x, y
	case "ext":
		p.shape.box.w, p.shape.box.h, p.shape.box.known = cx, cy, true
	}
}

// place is the shape's rectangle on the slide.
func (p *slidePart) place() box {
	b := p.shape.box
	for i := len(p.groups) - 1; i >= 0 && b.known; i-- {
		g := p.groups[i]
		if g.inW <= 0 || g.inH <= 0 {
			continue
		}
		sx, sy := g.w/g.inW, g.h/g.inH
		b.x, b.y, b.w, b.h = g.x+(b.x-g.inX)*sx, g.y+(b.y-g.inY)*sy, b.w*sx, b.h*sy
	}
	return b
}

// paint puts the shape on the canvas, before its text.
func (p *slidePart) paint() {
	if p.shape.asked {
		return
	}
	p.shape.asked = true
	at := p.place()
	p.shape.back = p.canvas.under(at)
	if p.shape.fill != unset && !p.shape.hidden {
		p.canvas.paint(at, p.shape.fill)
		p.shape.back = p.shape.fill
	}
}

// fill takes the colours of shapes, grounds, cells and text.
func (p *slidePart) fill(e *element) {
	switch e.name {
	case "solidFill", "gradFill", "blipFill", "pattFill", "grpFill", "noFill":
		with := mixed
		if e.name == "noFill" {
			with = unset
		}
		switch e.parent() {
		case "spPr":
			if p.shape.open && p.shape.fill != mixed || e.name != "noFill" {
				p.shape.fill, p.shape.filled = with, true
			}
		case "bgPr":
			p.canvas.ground = with
		case "tcPr":
			p.table.fill = with
			if e.name == "noFill" {
				p.table.fill, p.table.plain = unset, true
			}
		case "rPr", "defRPr", "endParaRPr":
			if e.parent() == "rPr" {
				p.run.ink, p.run.clear = mixed, flagged(e.name == "noFill")
			}
		}
	case "srgbClr", "schemeClr", "sysClr", "prstClr":
		p.colour(e.parent(), e.grandparent(), p.theme.colour(e))
	case "lumMod", "lumOff", "shade", "tint", "satMod", "hueMod", "alpha":
		if e.name == "alpha" && e.above(3) == "rPr" && e.grandparent() == "solidFill" {
			if decimal(e.attr("val")) < 5000 {
				p.run.clear = yes
			}
			return
		}
		p.colour(e.grandparent(), e.above(3), mixed)
	}
}

// colour gives a colour to what the fill around it belongs to.
func (p *slidePart) colour(fill, owner string, c colour) {
	if fill == "bgRef" {
		if p.canvas.ground = c; c == unset {
			p.canvas.ground = mixed
		}
		return
	}
	if fill == "highlight" && owner == "rPr" {
		p.run.ground = c
		return
	}
	if fill != "solidFill" {
		return
	}
	switch owner {
	case "spPr":
		p.shape.fill = c
	case "bgPr":
		p.canvas.ground = c
	case "tcPr":
		p.table.fill = c
	case "rPr":
		p.run.ink = c
	}
}

// layout takes runs, lines and cells.
func (p *slidePart) layout(e *element) {
	switch e.name {
	case "r", "fld":
		p.run = plain
	case "rPr":
		if size := e.attr("sz"); size != "" {
			p.run.points = max(decimal(size)/100, 0.01)
		}
	case "p":
		if p.table.open && p.table.cell > 0 {
			if p.table.begun {
				p.piece(piece{sep: true})
			}
			p.table.begun = true
			return
		}
		p.flow.line()
	case "br":
		if p.table.open {
			p.piece(piece{sep: true})
			return
		}
		p.flow.line()
	case "pt", "cm": // of a diagram or chart, a comment
		p.flow.line()
	case "tbl":
		p.table = slideTable{open: true, fill: unset, plain: true}
	case "tr":
		p.table.cell = 0
		p.flow.line()
	case "tc":
		p.table.cell++
		p.table.begun, p.table.fill = false, unset
		if p.table.cell > 1 {
			p.flow.cell()
		}
	}
}

func (p *slidePart) end(e *element) error {
	switch e.name {
	case "grpSp":
		if n := len(p.groups); n > 0 {
			p.groups = p.groups[:n-1]
		}
	case "sp", "pic", "graphicFrame", "cxnSp":
		if p.shape.open {
			p.paint()
		}
		p.shape = slideShape{fill: unset}
	case "tc":
		return p.endCell()
	case "tbl":
		p.table = slideTable{}
		if p.flow != nil {
			p.flow.line()
		}
	}
	return nil
}

func (p *slidePart) text(s string, e *element) error {
	switch {
	case p.below:
		return nil
	case e.name == "tableStyleId":
		p.table.plain = plainTables[s]
	case e.name == "t" && (e.parent() == "r" || e.parent() == "fld"), p.side == "comments" && e.name == "text", p.side == "chart" && e.name == "v" && e.grandparent() == "strCache":
		if p.table.open && p.table.cell > 0 {
			p.piece(piece{text: inline(s), look: p.run})
			return nil
		}
		return p.write(inline(s), p.run, unset)
	}
	return nil
}

// piece keeps text until its cell is read.
func (p *slidePart) piece(one piece) {
	if p.table.held += len(one.text) + 64; p.table.held > cellBytes {
		p.lost = true
		return
	}
	p.table.pieces = append(p.table.pieces, one)
}

func (p *slidePart) endCell() error {
	pieces := p.table.pieces
	p.table.pieces, p.table.held = nil, 0
	ground := p.table.fill
	if ground == unset && !p.table.plain {
		ground = mixed
	}
	for _, one := range pieces {
		if one.sep {
			p.flow.gap()
		} else if err := p.write(one.text, one.look, ground); err != nil {
			return err
		}
	}
	return nil
}

func (p *slidePart) write(s string, l look, ground colour) error {
	if ground == unset {
		ground = p.shape.back
	}
	if !p.shape.open {
		ground = white
	}
	class := l.class(ground)
	at := p.place()
	switch {
	case p.hidden:
		class = page.HiddenSlide
	case p.shape.hidden || p.inHiddenGroup():
		class = page.HiddenInvisible
	case class == "" && p.size.known && at.known && p.shape.open && !at.touches(p.size):
		class = page.HiddenOffPage
	}
	p.flow.write(s, class)
	if p.flow.w.Full() {
		return errFull
	}
	return nil
}

func (p *slidePart) inHiddenGroup() bool {
	for _, g := range p.groups {
		if g.hidden {
			return true
		}
	}
	return false
}
