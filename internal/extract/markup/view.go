package markup

import (
	"math/bits"
	"strconv"
	"strings"
)

// maxDepth is how deep elements nest. What is deeper comes to stand beside, as it does in browsers.
const maxDepth = 512

// element is an open one.
type element struct {
	tag   string
	kind  kind
	class string // why its text is not seen
	look  look
}

type list struct {
	ordered bool
	next    int
}

// view turns start tags, end tags and text into what is seen of them. It stands for the tree that a browser would
// build, and keeps of it only the path to the open element.
type view struct {
	flow
	sheets   []*sheet
	stack    []element
	open     map[string]int // how many of each are on the stack
	kinds    [kindCount]int // … and of each kind
	lists    []list
	literals int // open elements that keep white space
	fresh    bool
	skip     string // the element being left out
	depth    int    // how many of them are open, one in another
	html     int    // open elements inside an <svg> that hold HTML
}

func (v *view) top() look {
	if len(v.stack) == 0 {
		return plainLook
	}
	return v.stack[len(v.stack)-1].look
}

func (v *view) start(tag string, a attributes, closed bool) {
	if v.skip != "" && v.skipping(tag, closed) {
		return
	}
	fresh := v.fresh
	v.fresh = false
	switch tag {
	case "br":
		if v.literals > 0 {
			v.literal("\n", "")
		} else {
			v.lineBreak()
		}
	case "hr":
		v.closeInside(paragraphKind, scopeKind)
		v.paragraph()
	}
	if voidElements[tag] {
		v.fresh = fresh
		return
	}
	if leftOut[tag] {
		if !closed {
			v.skip, v.depth, v.html = tag, 1, 0
		}
		return
	}
	if closesParagraph[tag] {
		v.closeInside(paragraphKind, scopeKind)
	}
	k := kinds[tag]
	if ends, within := closedBy(k); ends != 0 {
		v.closeInside(ends, within)
	}
	if closed {
		v.enter(tag, a)
		v.leave(tag)
		return
	}
	if len(v.stack) == maxDepth {
		v.pop()
	}
	look := v.top().inner(tag, a, v.sheets)
	v.enter(tag, a)
	if v.open == nil {
		v.open = map[string]int{}
	}
	v.open[tag]++
	v.count(k, 1)
	v.stack = append(v.stack, element{tag: tag, kind: k, class: look.class(), look: look})
	if tag == "q" {
		v.text("“")
	}
}

// skipping tells whether the start tag is inside what is left out.
func (v *view) skipping(tag string, closed bool) bool {
	switch {
	case v.skip == "svg" && v.html == 0 && leavesSVG[tag], v.skip == "select" && (tag == "input" || tag == "textarea"):
		v.skip = ""
		return false
	case v.skip == "select" && tag == "select":
		v.skip = ""
	case closed:
	case tag == v.skip:
		v.depth++
	case v.skip == "svg" && htmlInSVG[tag]:
		v.html++
	}
	return true
}

// enter lays out what comes before an element's text.
func (v *view) enter(tag string, a attributes) {
	switch {
	case tag == "table":
		v.openTable()
	case tag == "tr":
		v.openRow()
	case tag == "td", tag == "th":
		v.openCell()
	case listElements[tag]:
		if len(v.lists) > 0 {
			v.line()
		} else {
			v.paragraph()
		}
		l := list{ordered: tag == "ol", next: 1}
		if n, err := strconv.Atoi(strings.Trim(a.start, space)); err == nil {
			l.next = n
		}
		v.lists = append(v.lists, l)
	case paragraphElements[tag]:
		v.paragraph()
	case lineElements[tag]:
		v.line()
	}
	if tag == "li" {
		v.item(a)
	}
	if literalElements[tag] {
		v.literals++
		v.fresh = true
	}
}

func (v *view) item(a attributes) {
	n := len(v.lists)
	if n == 0 {
		v.marker = "- "
		return
	}
	l := &v.lists[n-1]
	v.marker = strings.Repeat("  ", min(n-1, 8))
	if !l.ordered {
		v.marker += "- "
		return
	}
	if n, err := strconv.Atoi(strings.Trim(a.value, space)); err == nil {
		l.next = n
	}
	v.marker += strconv.Itoa(l.next) + ". "
	l.next++
}

func (v *view) text(s string) {
	if v.skip != "" || s == "" {
		return
	}
	class := ""
	if n := len(v.stack); n > 0 {
		class = v.stack[n-1].class
	}
	if v.literals == 0 {
		v.words(s, class)
		return
	}
	if v.fresh { // the line end right after <pre> is not shown
		s = strings.TrimPrefix(strings.TrimPrefix(s, "\r"), "\n")
		v.fresh = false
	}
	v.literal(s, class)
}

func (v *view) end(tag string) {
	if v.skip != "" {
		switch {
		case tag == v.skip:
			if v.depth--; v.depth == 0 {
				v.skip = ""
			}
		case v.skip == "svg" && htmlInSVG[tag]:
			v.html = max(v.html-1, 0)
		}
		return
	}
	switch {
	case tag == "p" && v.open["p"] == 0:
		v.paragraph()
		return
	case tag == "br":
		v.lineBreak()
		return
	case v.open[tag] == 0, tag == "body", tag == "html": // what follows belongs to the body all the same
		return
	}
	k, within := kinds[tag], scopeKind
	if k&(cellKind|rowKind|rowsKind) != 0 || tag == "table" {
		within = tableScopeKind
	}
	for i := len(v.stack) - 1; i >= 0; i-- {
		here := &v.stack[i]
		switch {
		case here.tag == tag:
			if tag == "q" {
				v.text("”")
			}
			v.popTo(i)
			return
		case k&blockKind != 0 && here.kind&within != 0:
			return
		case k&blockKind == 0 && here.kind&blockKind != 0:
			if formattingElements[tag] {
				v.forget(tag, i)
			}
			return
		}
	}
}

// forget takes a formatting element off the stack whose end tag came inside of a block that goes on.
func (v *view) forget(tag string, below int) {
	for i := below; i >= 0 && v.stack[i].kind&scopeKind == 0; i-- {
		if v.stack[i].tag == tag {
			v.stack = append(v.stack[:i], v.stack[i+1:]...)
			v.uncount(tag)
			return
		}
	}
}

// closeInside ends the innermost element of a kind, unless one of within lies before it.
func (v *view) closeInside(ends, within kind) {
	if v.kinds[bits.TrailingZeros16(uint16(ends))] == 0 {
		return
	}
	for i := len(v.stack) - 1; i >= 0; i-- {
		if here := v.stack[i].kind; here&ends != 0 {
			v.popTo(i)
			return
		} else if here&within != 0 {
			return
		}
	}
}

func (v *view) popTo(i int) {
	for len(v.stack) > i {
		v.pop()
	}
}

func (v *view) pop() {
	tag := v.stack[len(v.stack)-1].tag
	v.stack = v.stack[:len(v.stack)-1]
	v.uncount(tag)
	v.leave(tag)
}

func (v *view) uncount(tag string) {
	if v.open[tag]--; v.open[tag] == 0 {
		delete(v.open, tag)
	}
	v.count(kinds[tag], -1)
}

func (v *view) count(k kind, by int) {
	for ; k != 0; k &= k - 1 {
		v.kinds[bits.TrailingZeros16(uint16(k))] += by
	}
}

// leave lays out what comes after an element's text.
func (v *view) leave(tag string) {
	switch {
	case tag == "table":
		v.closeTable()
	case listElements[tag]:
		v.lists = v.lists[:len(v.lists)-1]
		if len(v.lists) > 0 {
			v.line()
		} else {
			v.paragraph()
		}
	case paragraphElements[tag]:
		v.paragraph()
	case lineElements[tag]:
		v.line()
	}
	if tag == "li" {
		v.marker = ""
	}
	if literalElements[tag] {
		v.literals--
	}
}
