package office

import (
	"strings"

	"github.com/accession/accession/internal/extract/page"
)

// odfSlide is the slide that is read, or the master page.
type odfSlide struct {
	open   bool
	hidden bool
	size   box
	canvas canvas
}

var odfShapes = map[string]bool{
	"frame": true, "custom-shape": true, "rect": true, "ellipse": true, "circle": true, "polygon": true, "polyline": true,
	"path": true, "line": true, "connector": true, "caption": true, "regular-polygon": true, "measure": true,
}

// draw takes slides and shapes.
func (r *odfReader) draw(e *element) error {
	switch {
	case e.name == "page" && len(e.path) == 4 && r.body == "presentation":
		return r.startSlide(e)
	case e.name == "image" && r.onSlide():
		r.slide.canvas.paint(r.at, mixed)
	case odfShapes[e.name]:
		r.startShape(e)
	}
	return nil
}

func (r *odfReader) startSlide(e *element) error {
	if err := r.out.more(); err != nil {
		return err
	}
	r.begin()
	style := r.styles.get("drawing-page", e.attr("style-name"))
	r.slide = odfSlide{open: true, hidden: style.slideHidden == yes, canvas: canvas{ground: style.painted()}}
	if master := r.styles.shared.pages[e.attr("master-page-name")]; master != nil {
		if r.slide.canvas.ground == unset {
			r.slide.canvas.ground = r.styles.get("drawing-page", master.style).painted()
		}
		r.slide.canvas.painted = master.painted[:len(master.painted):len(master.painted)]
		r.slide.size = r.styles.shared.sizes[master.layout]
	}
	return nil
}

func (r *odfReader) startShape(e *element) {
	fill := unset
	for _, a := range e.attrs {
		if a.Name.Local == "style-name" {
			family := "graphic"
			if strings.Contains(a.Name.Space, "presentation") {
				family = "presentation"
			}
			fill = r.styles.get(family, a.Value).painted()
		}
	}
	r.shape, r.at = fill, box{}
	if w, h := e.attr("width"), e.attr("height"); e.attr("transform") == "" && w != "" && h != "" && e.attr("x") != "" {
		r.at = box{x: length(e.attr("x")), y: length(e.attr("y")), w: length(w), h: length(h), known: true}
	}
	if !r.onSlide() {
		return
	}
	if fill == unset {
		r.shape = r.slide.canvas.under(r.at)
	}
	r.slide.canvas.paint(r.at, fill)
}

// onSlide tells that shapes lie on the slide, or the master page, and not on its notes.
func (r *odfReader) onSlide() bool {
	if !r.slide.open || r.what == "notes" {
		return false
	}
	for _, place := range r.around {
		if place.what == "notes" {
			return false
		}
	}
	return true
}

func (r *odfReader) endDraw(e *element) error {
	switch {
	case odfShapes[e.name]:
		r.shape, r.at = unset, box{}
	case e.name == "page" && len(e.path) == 4 && r.slide.open && r.body == "presentation":
		r.flushStories()
		r.page.apart("", r.notes...)
		r.notes, r.held, r.slide = nil, 0, odfSlide{}
		return r.out.put(r.page)
	}
	return nil
}

// ground is what the text that comes next stands on.
func (r *odfReader) ground() colour {
	if r.shape == unset && r.onSlide() {
		return r.slide.canvas.ground
	}
	return r.shape
}

// outside is the class of text that lies wholly beside its slide.
func (r *odfReader) outside() string {
	if r.onSlide() && r.slide.size.known && r.at.known && !r.at.touches(r.slide.size) {
		return page.HiddenOffPage
	}
	return ""
}
