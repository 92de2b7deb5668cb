package extract

import (
	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"

	"github.com/accession/accession/internal/extract/page"
)

const (
	pdfFewWords   = 32     // letters and digits below which a text layer does not speak for a page with pictures
	pdfStampWords = 250    // the same where a picture fills most of the page: a scan with a stamp or a running head
	pdfObjects    = 20_000 // objects of a page that are looked at
	pdfNesting    = 4      // depth of objects within forms that is looked at
)

// pdfPage is a loaded page.
type pdfPage struct {
	*pdfDocument
	page     references.FPDF_PAGE
	job      job
	box      pdfArea   // what of the page is shown
	comments []comment // what is pinned on it and not drawn
	hasFiles bool      // that are pinned on it

	objects  int
	pictures int
	filled   bool      // a picture covers most of the page
	huge     bool      // a picture has more pixels than allowed
	texts    []pdfText // in the order in which they are drawn
	grounds  []pdfArea // dark shapes and pictures drawn so far
	covers   int       // opaque shapes drawn so far
}

func (p *pdfPage) ref() requests.Page { return requests.Page{ByReference: &p.page} }

func (p *pdfPage) load(index int) error {
	loaded, err := p.engine.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: p.pdfDocument.ref, Index: index})
	if err != nil {
		return err
	}
	p.page = loaded.Page
	box, err := p.engine.FPDF_GetPageBoundingBox(&requests.FPDF_GetPageBoundingBox{Page: p.ref()})
	if err != nil {
		return err
	}
	p.box = pdfArea{float64(box.Rect.Left), float64(box.Rect.Bottom), float64(box.Rect.Right), float64(box.Rect.Top)}
	return nil
}

func (p *pdfPage) close() error {
	_, err := p.engine.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: p.page})
	return err
}

// send sends the page's text layer, or the page as a picture where the layer has almost no words and the page carries
// pictures, or letters that no one can tell. OCR reads stamps too, so nothing of the layer is lost. Of the layers that lie on a
// picture of the page some go with the picture, to be compared.
func (p *pdfPage) send(to *sink) error {
	layer, err := p.openText()
	if err != nil {
		return refuse(CodeBroken)
	}
	defer layer.close()
	if !p.look() {
		to.truncated = true // whether this page must be recognised is not known
	}
	text, err := layer.bulk()
	if err != nil {
		return refuse(CodeBroken)
	}
	said := words(text.Text)
	enough := pdfFewWords
	if p.filled {
		enough = pdfStampWords
	}
	onPicture := p.onPicture()
	recognise := p.pictures > 0 && said < enough || layer.garbled(text.Text)
	check := !recognise && onPicture && p.checkNext()
	var frame pictureFrame
	var pixels []byte
	if recognise || check {
		switch {
		case p.huge, to.picturesLeft <= 0:
			to.truncated = to.truncated || recognise
			recognise, check = false, false
		default: // before anything about the page is changed
			if frame, pixels, err = p.render(); err != nil {
				to.truncated = true
				recognise, check = false, false
			}
		}
	}
	if p.mark(onPicture) {
		if text, err = layer.marked(); err != nil {
			return refuse(CodeBroken)
		}
	}
	if !recognise && !check {
		return to.page(p.withComments(text))
	}
	text = p.withComments(text)
	frame.Text, frame.Hidden, frame.Check = text.Text, text.Hidden, check
	return to.picture(frame, pixels)
}

// checkNext picks the pages whose layer is compared with their picture: the first three of a document, then every tenth.
func (p *pdfPage) checkNext() bool {
	p.layers++
	return p.layers <= 3 || p.layers%10 == 0
}

// look looks over the page's objects: four times faster than asking for every run of text. It tells whether it could look at all.
func (p *pdfPage) look() bool {
	count, err := p.engine.FPDFPage_CountObjects(&requests.FPDFPage_CountObjects{Page: p.ref()})
	if err != nil {
		return false
	}
	for i := 0; i < count.Count && p.objects < pdfObjects; i++ {
		if *p.handles >= pdfHandles {
			return false
		}
		if got, err := p.engine.FPDFPage_GetObject(&requests.FPDFPage_GetObject{Page: p.ref(), Index: i}); err == nil {
			p.lookAt(got.PageObject, pdfUpright, 0)
		}
	}
	return true
}

func (p *pdfPage) lookAt(object references.FPDF_PAGEOBJECT, within pdfMatrix, depth int) {
	p.objects++
	*p.handles++
	kind, err := p.engine.FPDFPageObj_GetType(&requests.FPDFPageObj_GetType{PageObject: object})
	if err != nil {
		return
	}
	switch kind.Type {
	case enums.FPDF_PAGEOBJ_IMAGE:
		p.lookAtPicture(object, within)
	case enums.FPDF_PAGEOBJ_TEXT:
		p.lookAtText(object, within)
	case enums.FPDF_PAGEOBJ_PATH:
		p.lookAtShape(object, within)
	case enums.FPDF_PAGEOBJ_SHADING:
		p.ground(p.area(object, within))
	case enums.FPDF_PAGEOBJ_FORM:
		count, err := p.engine.FPDFFormObj_CountObjects(&requests.FPDFFormObj_CountObjects{PageObject: object})
		if err != nil || depth >= pdfNesting {
			return
		}
		inner := p.matrix(object).then(within)
		for i := 0; i < count.Count && p.objects < pdfObjects && *p.handles < pdfHandles; i++ {
			if got, err := p.engine.FPDFFormObj_GetObject(&requests.FPDFFormObj_GetObject{PageObject: object, Index: uint64(i)}); err == nil {
				p.lookAt(got.PageObject, inner, depth+1)
			}
		}
	}
}

func (p *pdfPage) lookAtPicture(object references.FPDF_PAGEOBJECT, within pdfMatrix) {
	p.pictures++
	area := p.area(object, within)
	if area.size() > p.box.size()/2 {
		p.filled = true
		for i := range p.texts { // they were drawn before it
			p.texts[i].under = p.texts[i].under || area.holds(p.texts[i].area)
		}
	}
	p.ground(area)
	size, err := p.engine.FPDFImageObj_GetImagePixelSize(&requests.FPDFImageObj_GetImagePixelSize{ImageObject: object})
	if err == nil && int64(size.Width)*int64(size.Height) > p.job.PagePixels {
		p.huge = true
	}
}

// withComments is the page with what is pinned on it after its text.
func (p *pdfPage) withComments(text page.Page) page.Page {
	if len(p.comments) == 0 {
		return text
	}
	w := page.NewWriter(p.job.TextBytes + 1)
	w.WritePage(text)
	for _, c := range p.comments {
		w.Paragraph()
		w.Write(c.text, c.class)
	}
	return w.Page()
}
