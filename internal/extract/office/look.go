package office

import (
	"strconv"
	"strings"

	"github.com/accession/accession/internal/extract/page"
)

// colour is 0xRRGGBB, or one of:
type colour int32

const (
	unset colour = -1 // nothing is said: what lies below shows
	mixed colour = -2 // no one colour that is known: a picture, a pattern, a colour that adapts to its ground

	white colour = 0xFFFFFF
)

const (
	alike      = 5 // two colours whose channels differ by no more than this are one to the eye
	tinyPoints = 2 // text below this size is not read by anybody
)

func (c colour) like(other colour) bool {
	if c < 0 || other < 0 {
		return false
	}
	for shift := 0; shift <= 16; shift += 8 {
		if d := int(c>>shift&0xFF) - int(other>>shift&0xFF); d > alike || d < -alike {
			return false
		}
	}
	return true
}

// hex reads RRGGBB, #RRGGBB and AARRGGBB; all else is mixed.
func hex(s string) colour {
	s = strings.TrimPrefix(s, "#")
	if len(s) == 8 {
		s = s[2:]
	}
	if len(s) != 6 {
		return mixed
	}
	n, err := strconv.ParseUint(s, 16, 24)
	if err != nil {
		return mixed
	}
	return colour(n)
}

type flag int8 // unsaid, no or yes

const (
	unsaid flag = iota
	no
	yes
)

func flagged(is bool) flag {
	if is {
		return yes
	}
	return no
}

// look is what is said about how text looks, as far as it decides whether somebody sees it.
type look struct {
	hidden flag
	clear  flag    // the ink is transparent
	points float64 // size; 0: nothing is said
	ink    colour
	ground colour
}

var plain = look{ink: unset, ground: unset}

// over is what goes when l is said on top of base.
func (l look) over(base look) look {
	if l.hidden == unsaid {
		l.hidden = base.hidden
	}
	if l.points == 0 {
		l.points = base.points
	}
	if l.ink == unset {
		l.ink = base.ink
		if l.clear == unsaid {
			l.clear = base.clear
		}
	}
	if l.ground == unset {
		l.ground = base.ground
	}
	return l
}

// class is why nobody sees text of this look on that ground, or empty.
func (l look) class(ground colour) string {
	if l.ground != unset {
		ground = l.ground
	}
	if ground == unset {
		ground = white
	}
	switch {
	case l.hidden == yes:
		return page.HiddenInvisible
	case l.points > 0 && l.points < tinyPoints:
		return page.HiddenTiny
	case l.clear == yes, l.ink.like(ground):
		return page.HiddenColour
	}
	return ""
}

// decimal reads a number; what is none is 0.
func decimal(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != f || f > 1e15 || f < -1e15 {
		return 0
	}
	return f
}

// count reads a whole number, no less than low and no more than high.
func count(s string, low, high int) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return low
	}
	return min(max(n, low), high)
}
