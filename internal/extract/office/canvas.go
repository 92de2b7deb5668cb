package office

const maxPainted = 500 // painted shapes of one slide that are looked at

// box is a rectangle on a slide; without known it may be anywhere.
type box struct {
	x, y, w, h float64
	known      bool
}

func (b box) touches(o box) bool {
	return !b.known || !o.known || b.x < o.x+o.w && o.x < b.x+b.w && b.y < o.y+o.h && o.y < b.y+b.h
}

func (b box) holds(o box) bool {
	return b.known && o.known && b.x <= o.x && b.y <= o.y && b.x+b.w >= o.x+o.w && b.y+b.h >= o.y+o.h
}

type paint struct {
	box    box
	colour colour
}

// canvas is what is painted on a slide so far, so that text has a ground.
type canvas struct {
	ground  colour // of the whole slide
	painted []paint
}

func (c *canvas) paint(b box, with colour) {
	if with != unset && len(c.painted) < maxPainted {
		c.painted = append(c.painted, paint{b, with})
	}
}

// under is the ground that a box lies on, or mixed where it lies on more than one.
func (c *canvas) under(b box) colour {
	for i := len(c.painted) - 1; i >= 0; i-- {
		p := c.painted[i]
		if p.box.holds(b) {
			return p.colour
		}
		if p.box.touches(b) {
			return mixed
		}
	}
	return c.ground
}
