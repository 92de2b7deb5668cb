package extract

import (
	"math"

	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/structs"

	"github.com/accession/accession/internal/extract/page"
)

const (
	pdfTinyPoints = 2   // text smaller than this is not there to be read
	pdfWhite      = 240 // from this on, of 255, in all three colours, text on white paper is not seen
	pdfShapes     = 200 // shapes of a page that text can lie on, or under
	pdfShapeSide  = 4   // points; a smaller shape is a line or a dot
	pdfShapeParts = 20  // a shape of more parts is no rectangle, even one with round corners
)

// pdfText is a text object of a page.
type pdfText struct {
	object references.FPDF_PAGEOBJECT
	area   pdfArea
	class  string // why nobody sees it; empty: it is seen
	partly bool   // some of it lies off the page
	under  bool   // a picture that fills the page was drawn after it
}

// lookAtText notes where text lies, and why nobody sees it: drawn in invisible mode, tiny, white or transparent on no ground of
// another colour, or off the page.
func (p *pdfPage) lookAtText(object references.FPDF_PAGEOBJECT, within pdfMatrix) {
	mode, err := p.engine.FPDFTextObj_GetTextRenderMode(&requests.FPDFTextObj_GetTextRenderMode{PageObject: object})
	if err != nil {
		return
	}
	t := pdfText{object: object, area: p.area(object, within)}
	switch {
	case mode.TextRenderMode == enums.FPDF_TEXTRENDERMODE_INVISIBLE, mode.TextRenderMode == enums.FPDF_TEXTRENDERMODE_CLIP:
		t.class = page.HiddenInvisible
	case p.tiny(object, within):
		t.class = page.HiddenTiny
	case p.white(object, mode.TextRenderMode) && !p.onGround(t.area):
		t.class = page.HiddenColour
	case p.box.misses(t.area):
		t.class = page.HiddenOffPage
	default:
		t.partly = !p.box.holds(t.area)
	}
	p.texts = append(p.texts, t)
}

func (p *pdfPage) tiny(object references.FPDF_PAGEOBJECT, within pdfMatrix) bool {
	size, err := p.engine.FPDFTextObj_GetFontSize(&requests.FPDFTextObj_GetFontSize{PageObject: object})
	if err != nil {
		return false
	}
	m := p.matrix(object).then(within)
	return math.Abs(float64(size.FontSize))*math.Hypot(m.c, m.d) < pdfTinyPoints
}

// white tells whether ink of no visible colour is used, for the letters' outlines as well where they are drawn.
func (p *pdfPage) white(object references.FPDF_PAGEOBJECT, mode enums.FPDF_TEXT_RENDERMODE) bool {
	outline := mode == enums.FPDF_TEXTRENDERMODE_STROKE || mode == enums.FPDF_TEXTRENDERMODE_STROKE_CLIP
	both := mode == enums.FPDF_TEXTRENDERMODE_FILL_STROKE || mode == enums.FPDF_TEXTRENDERMODE_FILL_STROKE_CLIP
	if outline || both {
		stroke, err := p.engine.FPDFPageObj_GetStrokeColor(&requests.FPDFPageObj_GetStrokeColor{PageObject: object})
		if err != nil || !unseen(stroke.StrokeColor) {
			return false
		}
	}
	if outline {
		return true
	}
	fill, err := p.engine.FPDFPageObj_GetFillColor(&requests.FPDFPageObj_GetFillColor{PageObject: object})
	return err == nil && unseen(fill.FillColor)
}

func unseen(c structs.FPDF_COLOR) bool {
	return c.A == 0 || c.R >= pdfWhite && c.G >= pdfWhite && c.B >= pdfWhite
}

// lookAtShape notes shapes that white text is seen on, and what text an opaque one covers. Shapes are taken for the rectangles
// around them: one with many parts may be anything, so it covers nothing.
func (p *pdfPage) lookAtShape(object references.FPDF_PAGEOBJECT, within pdfMatrix) {
	area := p.area(object, within)
	if area.right-area.left < pdfShapeSide || area.top-area.bottom < pdfShapeSide || len(p.grounds) >= pdfShapes && p.covers >= pdfShapes {
		return
	}
	how, err := p.engine.FPDFPath_GetDrawMode(&requests.FPDFPath_GetDrawMode{PageObject: object})
	if err != nil || how.FillMode == enums.FPDF_FILLMODE_NONE {
		return
	}
	parts, err := p.engine.FPDFPath_CountSegments(&requests.FPDFPath_CountSegments{PageObject: object})
	if err != nil || parts.Count > pdfShapeParts {
		return
	}
	fill, err := p.engine.FPDFPageObj_GetFillColor(&requests.FPDFPageObj_GetFillColor{PageObject: object})
	if err != nil || !unseen(fill.FillColor) { // a pattern has no colour
		p.ground(area)
	}
	if err == nil && fill.FillColor.A == math.MaxUint8 && p.covers < pdfShapes {
		p.cover(object, area)
	}
}

// cover hides the texts that were drawn before the shape and lie within it.
func (p *pdfPage) cover(object references.FPDF_PAGEOBJECT, area pdfArea) {
	p.covers++
	opaque := false
	for i := range p.texts {
		t := &p.texts[i]
		if t.class != "" || t.area.size() == 0 || !area.holds(t.area) {
			continue
		}
		if !opaque && !p.opaque(object) {
			return
		}
		opaque = true
		t.class = page.HiddenInvisible
	}
}

// opaque tells whether a shape hides what is below it: it is not blended with it, nor clipped to another form.
func (p *pdfPage) opaque(object references.FPDF_PAGEOBJECT) bool {
	blended, err := p.engine.FPDFPageObj_HasTransparency(&requests.FPDFPageObj_HasTransparency{PageObject: object})
	if err != nil || blended.HasTransparency {
		return false
	}
	clip, err := p.engine.FPDFPageObj_GetClipPath(&requests.FPDFPageObj_GetClipPath{PageObject: object})
	if err != nil {
		return true // there is none
	}
	paths, err := p.engine.FPDFClipPath_CountPaths(&requests.FPDFClipPath_CountPaths{ClipPath: clip.ClipPath})
	return err != nil || paths.Count <= 0
}

func (p *pdfPage) ground(area pdfArea) {
	if len(p.grounds) < pdfShapes {
		p.grounds = append(p.grounds, area)
	}
}

func (p *pdfPage) onGround(area pdfArea) bool {
	for _, g := range p.grounds {
		if g.holdsMiddleOf(area) {
			return true
		}
	}
	return false
}

// onPicture tells whether most of the text is invisible and lies on a picture that fills the page, or under it, as a scanner's
// software puts it there.
func (p *pdfPage) onPicture() bool {
	if !p.filled {
		return false
	}
	hidden := 0
	for _, t := range p.texts {
		if t.under || t.class == page.HiddenInvisible {
			hidden++
		}
	}
	return hidden > 0 && hidden*2 >= len(p.texts)
}

// Inks that mark the text objects of a class, once nothing is drawn any more: the engine tells a character's ink.
var pdfInks = []string{page.HiddenInvisible, page.HiddenTiny, page.HiddenColour, page.HiddenOffPage, pdfPartly}

const pdfPartly = "partly"

func pdfInk(class string) structs.FPDF_COLOR {
	for i, c := range pdfInks {
		if c == class {
			return structs.FPDF_COLOR{R: 251, G: 3, B: uint(i), A: 7}
		}
	}
	return structs.FPDF_COLOR{}
}

func pdfInkClass(c structs.FPDF_COLOR) string {
	if c.R == 251 && c.G == 3 && c.A == 7 && c.B < uint(len(pdfInks)) {
		return pdfInks[c.B]
	}
	return ""
}

// mark gives hidden text its class's ink, and tells whether there is any. A layer on a picture of the page is no hidden text: the
// picture shows what it says, which is compared elsewhere.
func (p *pdfPage) mark(onPicture bool) (any bool) {
	for _, t := range p.texts {
		class := t.class
		switch {
		case onPicture && class == page.HiddenInvisible:
			continue
		case class == "" && t.partly:
			class = pdfPartly
		case class == "":
			continue
		}
		_, err := p.engine.FPDFPageObj_SetFillColor(&requests.FPDFPageObj_SetFillColor{PageObject: t.object, FillColor: pdfInk(class)})
		any = any || err == nil
	}
	return any
}
