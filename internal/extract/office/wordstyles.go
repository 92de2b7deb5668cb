package office

import (
	"errors"
	"strings"

	"github.com/accession/accession/internal/extract/page"
)

const (
	maxStyles    = 50_000 // of one document
	maxAncestors = 32     // styles that a style builds on
)

// wordStyles are the styles of a DOCX as far as they hide text.
type wordStyles struct {
	byID     map[string]*wordStyle
	defaults look   // of the document
	normal   string // the paragraph style that goes where none is named
	now      *wordStyle
	made     map[string]look // finished looks, by id
}

type wordStyle struct {
	based  string
	look   look
	shades bool // a table style that colours cells
}

func readWordStyles(c *container, rels *relations) (*wordStyles, error) {
	s := &wordStyles{byID: map[string]*wordStyle{}, defaults: plain, made: map[string]look{}}
	for _, part := range rels.of(c, "styles") {
		if err := c.walk(part, "styles", s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *wordStyles) start(e *element) error {
	switch {
	case strings.HasSuffix(e.name, "Change"):
		return errSkip
	case e.name == "style":
		if len(s.byID) == maxStyles {
			return page.ErrTooLarge
		}
		id := e.attr("styleId")
		s.now = &wordStyle{look: plain}
		s.byID[id] = s.now
		if e.attr("type") == "paragraph" && on(e.attr("default")) {
			s.normal = id
		}
	case s.now == nil:
		if e.parent() == "rPr" && e.grandparent() == "rPrDefault" {
			wordRun(e, &s.defaults)
		}
	case e.name == "basedOn":
		s.now.based = e.attr("val")
	case e.name == "shd" && e.parent() != "rPr":
		fill := wordShade(e)
		s.now.shades = s.now.shades || fill != unset && !fill.like(white)
		if e.parent() == "pPr" && e.grandparent() == "style" {
			s.now.look.ground = fill
		}
	case e.parent() == "rPr" && e.grandparent() == "style":
		wordRun(e, &s.now.look)
	}
	return nil
}

func (s *wordStyles) end(e *element) error {
	if e.name == "style" {
		s.now = nil
	}
	return nil
}

func (s *wordStyles) text(string, *element) error { return nil }

// look is what a style and those that it builds on say.
func (s *wordStyles) look(id string) look {
	if l, ok := s.made[id]; ok {
		return l
	}
	l := plain
	for at, n := s.byID[id], 0; at != nil && n < maxAncestors; at, n = s.byID[at.based], n+1 {
		l = l.over(at.look)
		if at.based == "" {
			break
		}
	}
	if s.byID[id] != nil {
		s.made[id] = l
	}
	return l
}

// shades tells that a table style colours cells.
func (s *wordStyles) shades(id string) bool {
	for at, n := s.byID[id], 0; at != nil && n < maxAncestors; at, n = s.byID[at.based], n+1 {
		if at.shades {
			return true
		}
		if at.based == "" {
			break
		}
	}
	return false
}

// wordRun takes one child of w:rPr into l.
func wordRun(e *element, l *look) {
	value := e.attr("val")
	switch e.name {
	case "vanish":
		l.hidden = flagged(!off(value))
	case "sz":
		l.points = decimal(value) / 2
	case "color":
		l.ink, l.clear = wordColour(e), no
	case "shd":
		if fill := wordShade(e); fill != unset {
			l.ground = fill
		}
	case "highlight":
		switch value {
		case "none":
		case "white":
			l.ground = white
		case "black":
			l.ground = 0
		default:
			l.ground = mixed
		}
	}
}

func wordColour(e *element) colour {
	plainTheme := e.attr("themeShade") == "" && e.attr("themeTint") == ""
	switch theme := e.attr("themeColor"); {
	case plainTheme && (theme == "background1" || theme == "light1"):
		return white // the theme's own, whatever is given for readers without themes
	case theme != "" && theme != "none" && e.attr("val") == "":
		return mixed
	}
	return hex(e.attr("val"))
}

// wordShade is the colour that w:shd gives its ground.
func wordShade(e *element) colour {
	fill := e.attr("fill")
	switch pattern := e.attr("val"); pattern {
	case "", "clear", "nil":
		if pattern == "nil" || fill == "" || fill == "auto" {
			return unset
		}
		return hex(fill)
	case "solid":
		return hex(e.attr("color"))
	}
	return mixed
}

// optional shows v a part that need not be there.
func optional(c *container, name, root string, v visitor) error {
	if !c.has(name) {
		return nil
	}
	err := c.walk(name, root, v)
	if errors.Is(err, errFull) {
		return nil
	}
	return err
}
