package office

import (
	"strings"

	"github.com/accession/accession/internal/extract/page"
)

const maxThemeColours = 64 // named colours of one theme; the format has twelve

// slides reads a PPTX.
type slides struct {
	c      *container
	out    *pages
	ids    []string // relationships of the slides, in the order in which they are shown
	size   box      // of a slide
	themes map[string]*slideTheme
}

func readSlides(c *container, out *pages) error {
	main, err := c.main()
	if err != nil {
		return err
	}
	rels, err := c.relationsOf(main)
	if err != nil {
		return err
	}
	s := &slides{c: c, out: out, themes: map[string]*slideTheme{}}
	if err := c.walk(main, "presentation", (*slideList)(s)); err != nil {
		return err
	}
	for _, id := range s.ids {
		if err := out.more(); err != nil {
			return err
		}
		if err := s.slide(rels.target(id)); err != nil {
			return err
		}
	}
	return nil
}

// slideList reads the presentation's own part.
type slideList slides

func (s *slideList) start(e *element) error {
	switch e.name {
	case "sldId":
		if len(s.ids) == maxEntries {
			return page.ErrTooLarge
		}
		s.ids = append(s.ids, e.relation("id"))
	case "sldSz":
		s.size = box{w: decimal(e.attr("cx")), h: decimal(e.attr("cy")), known: e.attr("cx") != ""}
	}
	return nil
}

func (s *slideList) end(*element) error          { return nil }
func (s *slideList) text(string, *element) error { return nil }

// slide emits one slide: its text, what its diagrams and charts say, its notes, its comments.
func (s *slides) slide(part string) error {
	rels, err := s.c.relationsOf(part)
	if err != nil {
		return err
	}
	theme, err := s.theme(rels)
	if err != nil {
		return err
	}
	f := s.out.flow()
	painted := theme.canvas.painted
	p := &slidePart{flow: f, theme: theme, run: plain, size: s.size,
		canvas: canvas{ground: theme.canvas.ground, painted: painted[:len(painted):len(painted)]}}
	if err := s.c.walk(part, "sld", p); err != nil && err != errFull {
		return err
	}
	s.out.truncated = s.out.truncated || p.lost
	class := ""
	if p.hidden {
		class = page.HiddenSlide
	}
	for _, kind := range []string{"diagramData", "chart", "notesSlide", "comments"} {
		for _, side := range rels.of(s.c, kind) {
			q := &slidePart{flow: s.out.flow(), theme: theme, run: plain, canvas: canvas{ground: white}, side: kind}
			if err := optional(s.c, side, "", q); err != nil {
				return err
			}
			s.out.truncated = s.out.truncated || q.lost || q.flow.w.Full()
			f.apart(class, q.flow.w.Page())
		}
	}
	return s.out.put(f)
}

// theme is what the slide's layout and master give it.
func (s *slides) theme(rels *relations) (*slideTheme, error) {
	t := &slideTheme{canvas: canvas{ground: unset}, colours: map[string]colour{}, mapped: map[string]string{}}
	for _, layout := range rels.of(s.c, "slideLayout") {
		if done := s.themes[layout]; done != nil {
			return done, nil
		}
		s.themes[layout] = t
		below, err := s.c.relationsOf(layout)
		if err != nil {
			return nil, err
		}
		parts := []string{layout}
		for _, master := range below.of(s.c, "slideMaster") {
			beside, err := s.c.relationsOf(master)
			if err != nil {
				return nil, err
			}
			for _, theme := range beside.of(s.c, "theme") {
				if err := optional(s.c, theme, "", t); err != nil {
					return nil, err
				}
			}
			if err := optional(s.c, master, "", t); err != nil { // its map of colours comes after its ground
				return nil, err
			}
			parts = []string{master, layout}
		}
		for _, part := range parts {
			p := &slidePart{theme: t, run: plain, canvas: t.canvas, below: true}
			if err := optional(s.c, part, "", p); err != nil {
				return nil, err
			}
			t.canvas = p.canvas
		}
	}
	return t, nil
}

// slideTheme is the ground of the slides of one layout, and the colours behind their names.
type slideTheme struct {
	canvas  canvas
	colours map[string]colour // by the theme's names
	mapped  map[string]string // the master's names to the theme's
}

func (t *slideTheme) start(e *element) error {
	if len(t.colours) > maxThemeColours || len(t.mapped) > maxThemeColours {
		return page.ErrTooLarge
	}
	switch {
	case e.grandparent() == "clrScheme" && e.name == "srgbClr":
		t.colours[e.parent()] = hex(e.attr("val"))
	case e.grandparent() == "clrScheme" && e.name == "sysClr":
		t.colours[e.parent()] = hex(e.attr("lastClr"))
	case e.name == "clrMap":
		for _, a := range e.attrs[:min(len(e.attrs), maxThemeColours)] {
			t.mapped[a.Name.Local] = a.Value
		}
	case e.name == "fmtScheme", e.name == "fontScheme":
		return errSkip
	}
	return nil
}

func (t *slideTheme) end(*element) error          { return nil }
func (t *slideTheme) text(string, *element) error { return nil }

// colour reads an element that names a colour.
func (t *slideTheme) colour(e *element) colour {
	value := e.attr("val")
	switch e.name {
	case "srgbClr":
		return hex(value)
	case "sysClr":
		return hex(e.attr("lastClr"))
	case "prstClr":
		switch value {
		case "white":
			return white
		case "black":
			return 0
		}
	case "schemeClr":
		name := value
		if to := t.mapped[name]; to != "" {
			name = to
		}
		if c, ok := t.colours[name]; ok {
			return c
		}
		switch strings.TrimSuffix(strings.TrimSuffix(name, "1"), "2") {
		case "bg", "lt":
			return white
		}
	}
	return mixed
}
