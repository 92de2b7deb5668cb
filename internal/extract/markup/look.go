package markup

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/accession/accession/internal/extract/page"
)

const (
	defaultSize = 16   // pixels of a letter
	tinySize    = 2    // pixels below which nobody reads
	farOut      = -500 // pixels from which on nothing is on the page
	faint       = 0.05 // opacity up to which nothing is seen
)

// look is what decides whether the text of an element is seen.
type look struct {
	gone        bool // display:none
	invisible   bool // visibility:hidden
	transparent bool
	off         bool // far outside, or clipped to nothing
	picture     bool // on a picture: the colour of the ground is not known
	size        float32
	ink, ground colour
}

var plainLook = look{size: defaultSize, ink: black, ground: white}

func (l look) class() string {
	switch {
	case l.gone, l.invisible:
		return page.HiddenInvisible
	case l.off:
		return page.HiddenOffPage
	case l.transparent, !l.picture && l.ink.over(l.ground).near(l.ground), l.ink.alpha < faint:
		return page.HiddenColour
	case l.size < tinySize:
		return page.HiddenTiny
	}
	return ""
}

// attributes are those of an element that matter here.
type attributes struct {
	hidden, open, link                  bool
	style, class, id, color, background string
	start, value, rel, href             string
}

// inner is the look of an element inside.
func (in look) inner(tag string, a attributes, sheets []*sheet) look {
	var won [properties]declaration
	any := false
	lay := func(declared []declaration, base uint64) {
		for _, d := range declared {
			any = true
			d.weight += base
			if i, _ := propertyIndex(d.name); won[i].name == "" || d.weight >= won[i].weight {
				won[i] = d
			}
		}
	}
	lay(presentation(tag, a), 0)
	for i, s := range sheets {
		if len(s.rules) == 0 {
			continue
		}
		base := uint64(i+1) * weightSheet
		lay(s.rules["*"], base)
		lay(s.rules[tag], base)
		if a.id != "" {
			lay(s.rules["#"+strings.ToLower(a.id)], base)
		}
		for class := range strings.FieldsSeq(a.class) {
			class = "." + strings.ToLower(class)
			lay(s.rules[class], base)
			lay(s.rules[tag+class], base)
		}
	}
	if a.style != "" {
		lay(parseDeclarations(stripComments(a.style)), weightInline)
	}
	if !any {
		return in
	}
	return in.with(&won)
}

// presentation is what the element says without CSS.
func presentation(tag string, a attributes) []declaration {
	var d []declaration
	if a.hidden || tag == "dialog" && !a.open {
		d = append(d, declaration{name: "display", value: "none"})
	}
	switch {
	case a.color != "" && (tag == "font" || tag == "body"):
		d = append(d, declaration{name: "color", value: legacyColour(a.color)})
	case tag == "a" && a.link:
		d = append(d, declaration{name: "color", value: "blue"})
	case tag == "mark":
		d = append(d, declaration{name: "color", value: "black"}, declaration{name: "background-color", value: "yellow"})
	case tag == "button":
		d = append(d, declaration{name: "color", value: "black"}, declaration{name: "background-color", value: "#efefef"})
	}
	if a.background != "" {
		d = append(d, declaration{name: "background-color", value: legacyColour(a.background)})
	}
	return slices.DeleteFunc(d, func(d declaration) bool { return !validDeclaration(d.name, d.value) })
}

func legacyColour(s string) string {
	s = strings.ToLower(strings.Trim(s, space))
	if _, ok := parseColour(s); !ok {
		return "#" + s
	}
	return s
}

func (in look) with(won *[properties]declaration) look {
	out := in
	value := func(name string) string {
		i, _ := propertyIndex(name)
		return won[i].value
	}
	out.gone = in.gone || value("display") == "none"
	switch value("visibility") {
	case "hidden", "collapse":
		out.invisible = true
	case "visible":
		out.invisible = false
	}
	if v := value("opacity"); v != "" {
		opacity, _ := part(v, 1)
		out.transparent = in.transparent || opacity < faint
	}
	if size, ok := parseFontSize(value("font-size"), in.size); ok {
		out.size = size
	}
	if c, ok := parseColour(value("background-color")); ok && c.alpha > 0 {
		out.ground = c.over(in.ground)
		out.picture = in.picture && c.alpha < 1
	} else if v := value("background-image"); strings.Contains(v, "url(") || strings.Contains(v, "gradient(") {
		out.picture = true
	}
	if c, ok := parseColour(value("color")); ok {
		out.ink = c
	}
	out.off = in.off || out.outside(value)
	return out
}

// outside knows the usual ways to move text away or clip it to nothing.
func (l look) outside(value func(string) string) bool {
	far := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			px, ok := pixels(value(name), l.size)
			return ok && px <= farOut
		})
	}
	position := value("position")
	placed := position == "absolute" || position == "fixed"
	if far("text-indent", "margin-left") || (placed || position == "relative") && far("left", "top", "right", "bottom") {
		return true
	}
	if clip := value("clip"); placed && strings.HasPrefix(clip, "rect(") {
		first, same := "", true
		for f := range strings.FieldsFuncSeq(clip[len("rect("):], func(r rune) bool { return strings.ContainsRune(" ,)", r) }) {
			f = strings.TrimSuffix(f, "px")
			if first == "" {
				first = f
			}
			same = same && f == first
		}
		if same && (first == "0" || first == "1") {
			return true
		}
	}
	if clip := value("clip-path"); strings.HasPrefix(clip, "inset(50%") || strings.HasPrefix(clip, "inset(100%") || clip == "circle(0)" {
		return true
	}
	if v := value("overflow"); v == "hidden" || v == "clip" {
		return slices.ContainsFunc([]string{"width", "height", "max-width", "max-height"}, func(name string) bool {
			px, ok := pixels(value(name), l.size)
			return ok && px <= 1
		})
	}
	return false
}

// The properties that can hide text.
var propertyNames = [...]string{
	"background-color", "background-image", "bottom", "clip", "clip-path", "color", "display", "font-size", "height",
	"left", "margin-left", "max-height", "max-width", "opacity", "overflow", "position", "right", "text-indent",
	"top", "visibility", "width",
}

const properties = len(propertyNames)

func propertyIndex(name string) (int, bool) { return slices.BinarySearch(propertyNames[:], name) }

func validDeclaration(name, value string) bool {
	var ok bool
	switch name {
	case "color", "background-color":
		_, ok = parseColour(value)
	case "display":
		keyword, _, _ := strings.Cut(value, " ")
		switch ok = true; keyword {
		case "none", "block", "inline", "inline-block", "flex", "inline-flex", "grid", "inline-grid", "flow", "flow-root",
			"contents", "list-item", "initial", "unset", "revert", "ruby":
		default:
			ok = strings.HasPrefix(keyword, "table") || strings.HasPrefix(keyword, "inline-table")
		}
	case "visibility":
		ok = value == "hidden" || value == "visible" || value == "collapse"
	case "opacity":
		_, ok = part(value, 1)
	case "font-size":
		_, ok = parseFontSize(value, defaultSize)
	case "position":
		ok = slices.Contains([]string{"static", "relative", "absolute", "fixed", "sticky"}, value)
	case "left", "top", "right", "bottom", "text-indent", "margin-left", "width", "height", "max-width", "max-height":
		_, ok = pixels(value, defaultSize)
		ok = ok || value == "auto" || value == "none"
	case "background-image", "clip", "clip-path", "overflow":
		ok = value != ""
	}
	return ok
}

func parseFontSize(s string, parent float32) (float32, bool) {
	switch s {
	case "":
		return 0, false
	case "xx-small", "x-small", "small", "medium", "large", "x-large", "xx-large", "xxx-large", "initial":
		return defaultSize, true // none of them is tiny
	case "smaller":
		return parent / 1.2, true
	case "larger":
		return parent * 1.2, true
	}
	if t, ok := strings.CutSuffix(s, "%"); ok {
		v, err := strconv.ParseFloat(t, 32)
		return parent * float32(v/100), err == nil && v >= 0
	}
	v, ok := pixels(s, parent)
	return v, ok && v >= 0
}

// pixels reads a CSS length. A hundredth of the window is taken for ten pixels.
func pixels(s string, em float32) (float32, bool) {
	end := len(s)
	for end > 0 && (s[end-1] == '%' || s[end-1] >= 'a' && s[end-1] <= 'z') {
		end--
	}
	v, err := strconv.ParseFloat(s[:end], 32)
	if err != nil || math.IsNaN(v) {
		return 0, false
	}
	var unit float32
	switch s[end:] {
	case "px":
		unit = 1
	case "":
		return 0, v == 0
	case "pt":
		unit = 96.0 / 72
	case "pc":
		unit = 16
	case "in":
		unit = 96
	case "cm":
		unit = 96 / 2.54
	case "mm":
		unit = 96 / 25.4
	case "em":
		unit = em
	case "ex", "ch":
		unit = em / 2
	case "rem":
		unit = defaultSize
	case "%", "vw", "vh", "vmin", "vmax":
		unit = 10
	default:
		return 0, false
	}
	return float32(v) * unit, true
}
