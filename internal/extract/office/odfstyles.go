package office

import (
	"strings"

	"github.com/accession/accession/internal/extract/page"
)

// odfStyles are the styles of one XML part of an ODF file, on top of those that all parts share.
type odfStyles struct {
	shared *odfStyles
	byKey  map[string]*odfStyle // by family and name
	made   map[string]odfStyle  // finished, by the same
	pages  map[string]*odfMaster
	sizes  map[string]box // of page layouts
	now    *odfStyle
	layout string
}

type odfStyle struct {
	parent      string
	look        look // of text
	breakBefore flag // a page begins with it
	breakAfter  flag
	fill        colour // behind it
	pattern     string // "solid", "none", …: of a shape or a slide
	solid       colour // of the pattern
	sheetHidden flag
	slideHidden flag
}

// odfMaster is a master page.
type odfMaster struct {
	layout, style string
	painted       []paint
}

func newODFStyles(shared *odfStyles) *odfStyles {
	return &odfStyles{shared: shared, byKey: map[string]*odfStyle{}, made: map[string]odfStyle{},
		pages: map[string]*odfMaster{}, sizes: map[string]box{}}
}

// start takes styles; it leaves all else alone.
func (s *odfStyles) start(e *element) error {
	if len(s.byKey) > maxStyles || len(s.pages) > maxStyles || len(s.sizes) > maxStyles {
		return page.ErrTooLarge
	}
	switch e.name {
	case "style", "default-style":
		s.now = &odfStyle{look: plain, fill: unset, solid: unset, parent: e.attr("parent-style-name")}
		family := e.attr("family")
		if e.name == "style" {
			s.byKey[family+" "+e.attr("name")] = s.now
		} else {
			s.byKey[family] = s.now
		}
		if family == "paragraph" && e.attr("master-page-name") != "" {
			s.now.breakBefore = yes
		}
	case "page-layout":
		s.layout = e.attr("name")
	case "page-layout-properties":
		s.sizes[s.layout] = box{w: length(e.attr("page-width")), h: length(e.attr("page-height")), known: length(e.attr("page-width")) > 0}
	}
	if s.now != nil && e.parent() == "style" || e.parent() == "default-style" {
		s.properties(e, s.now)
	}
	return nil
}

func (s *odfStyles) properties(e *element, to *odfStyle) {
	if to == nil {
		return
	}
	if c := e.attr("background-color"); c != "" && c != "transparent" {
		if e.name == "text-properties" || e.name == "paragraph-properties" {
			if to.look.ground == unset || e.name == "text-properties" {
				to.look.ground = hex(c)
			}
		} else {
			to.fill = hex(c)
		}
	}
	switch e.name {
	case "text-properties":
		odfText(e, &to.look)
	case "paragraph-properties", "table-properties":
		switch e.attr("break-before") {
		case "page":
			to.breakBefore = yes
		case "auto":
			to.breakBefore = no
		}
		switch e.attr("break-after") {
		case "page":
			to.breakAfter = yes
		case "auto":
			to.breakAfter = no
		}
		if d := e.attr("display"); d != "" && e.name == "table-properties" {
			to.sheetHidden = flagged(off(d))
		}
	case "graphic-properties", "drawing-page-properties":
		if p := e.attr("fill"); p != "" {
			to.pattern = p
		}
		if c := e.attr("fill-color"); c != "" {
			to.solid = hex(c)
		}
		if v := e.attr("visibility"); v != "" {
			to.slideHidden = flagged(v == "hidden")
		}
	}
}

func odfText(e *element, l *look) {
	switch e.attr("display") {
	case "none":
		l.hidden = yes
	case "true":
		l.hidden = no
	}
	if c := e.attr("color"); c != "" {
		l.ink, l.clear = hex(c), no
	}
	switch {
	case on(e.attr("use-window-font-color")): // LibreOffice writes an opacity of 0% beside it, which says nothing
		l.ink, l.clear = mixed, no
	case e.attr("opacity") == "0%":
		l.clear = yes
	}
	if size := e.attr("font-size"); size != "" && !strings.HasSuffix(size, "%") {
		l.points = max(length(size), 0.01)
	}
}

func (s *odfStyles) end(e *element) error {
	if e.name == "style" || e.name == "default-style" {
		s.now = nil
	}
	return nil
}

func (s *odfStyles) find(key string) *odfStyle {
	if found := s.byKey[key]; found != nil || s.shared == nil {
		return found
	}
	return s.shared.find(key)
}

// get is what a style, those that it builds on and the family's default say.
func (s *odfStyles) get(family, name string) odfStyle {
	key := family + " " + name
	if done, ok := s.made[key]; ok {
		return done
	}
	out := odfStyle{look: plain, fill: unset, solid: unset}
	at := s.find(key)
	known := at != nil
	for n := 0; at != nil && n < maxAncestors; n++ {
		out = out.over(*at)
		if at.parent == "" {
			break
		}
		at = s.find(family + " " + at.parent)
	}
	if base := s.find(family); base != nil {
		out = out.over(*base)
	}
	if known || name == "" {
		s.made[key] = out
	}
	return out
}

func (o odfStyle) over(base odfStyle) odfStyle {
	o.look = o.look.over(base.look)
	if o.fill == unset {
		o.fill = base.fill
	}
	if o.solid == unset {
		o.solid = base.solid
	}
	if o.pattern == "" {
		o.pattern = base.pattern
	}
	for _, f := range []struct {
		to   *flag
		from flag
	}{{&o.breakBefore, base.breakBefore}, {&o.breakAfter, base.breakAfter}, {&o.sheetHidden, base.sheetHidden}, {&o.slideHidden, base.slideHidden}} {
		if *f.to == unsaid {
			*f.to = f.from
		}
	}
	return o
}

// painted is the colour of a shape or slide.
func (o odfStyle) painted() colour {
	switch {
	case o.pattern == "" || o.pattern == "none":
		return o.fill
	case o.pattern == "solid" && o.solid != unset:
		return o.solid
	}
	return mixed
}

// length reads a length in points; a length in a unit that is not known is 0.
func length(s string) float64 {
	for unit, points := range map[string]float64{"pt": 1, "in": 72, "cm": 72 / 2.54, "mm": 72 / 25.4, "pc": 12, "px": 0.75} {
		if number, ok := strings.CutSuffix(s, unit); ok {
			return decimal(number) * points
		}
	}
	return 0
}
