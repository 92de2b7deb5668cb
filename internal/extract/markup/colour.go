package markup

import (
	"math"
	"strconv"
	"strings"

	"golang.org/x/image/colornames"
)

// colour has parts between 0 and 1.
type colour struct{ r, g, b, alpha float32 }

var (
	white = colour{1, 1, 1, 1}
	black = colour{0, 0, 0, 1}
)

// over is the colour seen where it lies on ground.
func (c colour) over(ground colour) colour {
	mix := func(a, b float32) float32 { return a*c.alpha + b*(1-c.alpha) }
	return colour{mix(c.r, ground.r), mix(c.g, ground.g), mix(c.b, ground.b), 1}
}

// near tells that no eye tells the two apart: every part differs by less than one sixteenth.
func (c colour) near(d colour) bool {
	far := func(a, b float32) bool { return math.Abs(float64(a-b)) > 1.0/16 }
	return !far(c.r, d.r) && !far(c.g, d.g) && !far(c.b, d.b)
}

// parseColour reads a CSS colour in lower case: a name, #rgb, #rrggbb, either with alpha, rgb(), rgba(), hsl() or hsla().
func parseColour(s string) (colour, bool) {
	if s == "transparent" {
		return colour{}, true
	}
	if c, ok := colornames.Map[s]; ok {
		return colour{float32(c.R) / 255, float32(c.G) / 255, float32(c.B) / 255, 1}, true
	}
	if hex, ok := strings.CutPrefix(s, "#"); ok {
		return parseHex(hex)
	}
	name, args, ok := strings.Cut(strings.TrimSuffix(s, ")"), "(")
	if !ok {
		return colour{}, false
	}
	fields := strings.FieldsFunc(args, func(r rune) bool { return strings.ContainsRune(" ,/\t\n", r) })
	if len(fields) < 3 || len(fields) > 4 {
		return colour{}, false
	}
	c := colour{alpha: 1}
	if len(fields) == 4 {
		if c.alpha, ok = part(fields[3], 1); !ok {
			return colour{}, false
		}
	}
	switch name {
	case "rgb", "rgba":
		var okR, okG, okB bool
		c.r, okR = part(fields[0], 255)
		c.g, okG = part(fields[1], 255)
		c.b, okB = part(fields[2], 255)
		return c, okR && okG && okB
	case "hsl", "hsla":
		h, err := strconv.ParseFloat(strings.TrimSuffix(fields[0], "deg"), 32)
		s, okS := part(fields[1], 100)
		l, okL := part(fields[2], 100)
		if err != nil || math.IsNaN(h) || math.IsInf(h, 0) {
			return colour{}, false
		}
		// CSS Color 4, section 7.1.
		f := func(n float64) float32 {
			k := math.Mod(n+math.Mod(h, 360)/30+12, 12)
			return l - s*min(l, 1-l)*float32(max(-1, min(k-3, 9-k, 1)))
		}
		c.r, c.g, c.b = f(0), f(8), f(4)
		return c, okS && okL
	}
	return colour{}, false
}

func part(s string, whole float64) (float32, bool) {
	if t, ok := strings.CutSuffix(s, "%"); ok {
		s, whole = t, 100
	}
	v, err := strconv.ParseFloat(s, 32)
	if err != nil || math.IsNaN(v) {
		return 0, false
	}
	return float32(min(max(v/whole, 0), 1)), true
}

func parseHex(s string) (colour, bool) {
	if len(s) == 3 || len(s) == 4 {
		var long []byte
		for i := range len(s) {
			long = append(long, s[i], s[i])
		}
		s = string(long)
	}
	if len(s) == 6 {
		s += "ff"
	}
	v, err := strconv.ParseUint(s, 16, 32)
	if len(s) != 8 || err != nil {
		return colour{}, false
	}
	at := func(shift int) float32 { return float32(v>>shift&0xff) / 255 }
	return colour{at(24), at(16), at(8), at(0)}, true
}
