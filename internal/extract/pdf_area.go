package extract

import (
	"math"

	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// pdfArea is a rectangle on a page, in points.
type pdfArea struct{ left, bottom, right, top float64 }

func (a pdfArea) size() float64 { return max(a.right-a.left, 0) * max(a.top-a.bottom, 0) }

// holds tells whether b lies within a, give or take a point.
func (a pdfArea) holds(b pdfArea) bool {
	return b.left >= a.left-1 && b.right <= a.right+1 && b.bottom >= a.bottom-1 && b.top <= a.top+1
}

// misses tells whether nothing of b lies within a.
func (a pdfArea) misses(b pdfArea) bool {
	return b.right <= a.left || b.left >= a.right || b.top <= a.bottom || b.bottom >= a.top
}

func (a pdfArea) holdsMiddleOf(b pdfArea) bool {
	x, y := (b.left+b.right)/2, (b.bottom+b.top)/2
	return x >= a.left && x <= a.right && y >= a.bottom && y <= a.top
}

// pdfMatrix maps the coordinates of a form's objects to those of what the form lies on.
type pdfMatrix struct{ a, b, c, d, e, f float64 }

var pdfUpright = pdfMatrix{a: 1, d: 1}

// then is m first, n after it.
func (m pdfMatrix) then(n pdfMatrix) pdfMatrix {
	return pdfMatrix{
		m.a*n.a + m.b*n.c, m.a*n.b + m.b*n.d,
		m.c*n.a + m.d*n.c, m.c*n.b + m.d*n.d,
		m.e*n.a + m.f*n.c + n.e, m.e*n.b + m.f*n.d + n.f,
	}
}

func (m pdfMatrix) area(r pdfArea) pdfArea {
	if m == pdfUpright {
		return r
	}
	out := pdfArea{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, corner := range [][2]float64{{r.left, r.bottom}, {r.left, r.top}, {r.right, r.bottom}, {r.right, r.top}} {
		x, y := corner[0]*m.a+corner[1]*m.c+m.e, corner[0]*m.b+corner[1]*m.d+m.f
		out = pdfArea{min(out.left, x), min(out.bottom, y), max(out.right, x), max(out.top, y)}
	}
	return out
}

// matrix is upright where the engine has none.
func (p *pdfPage) matrix(object references.FPDF_PAGEOBJECT) pdfMatrix {
	got, err := p.engine.FPDFPageObj_GetMatrix(&requests.FPDFPageObj_GetMatrix{PageObject: object})
	if err != nil {
		return pdfUpright
	}
	m := got.Matrix
	return pdfMatrix{float64(m.A), float64(m.B), float64(m.C), float64(m.D), float64(m.E), float64(m.F)}
}

// area is where the object lies on the page; empty where the engine does not know.
func (p *pdfPage) area(object references.FPDF_PAGEOBJECT, within pdfMatrix) pdfArea {
	got, err := p.engine.FPDFPageObj_GetBounds(&requests.FPDFPageObj_GetBounds{PageObject: object})
	if err != nil {
		return pdfArea{}
	}
	return within.area(pdfArea{float64(got.Left), float64(got.Bottom), float64(got.Right), float64(got.Top)})
}
