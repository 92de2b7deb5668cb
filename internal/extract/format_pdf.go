package extract

import (
	"bytes"
	"errors"
	"io"
	"math"
	"time"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/enums"
	pdferrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
)

const (
	pdfMemoryPages = (2 << 30) / (64 << 10) // 2 GiB for pdfium itself, in wasm pages: what its build declares
	pdfDPI         = 300                    // what tesseract reads best
	pdfFewWords    = 32                     // letters and digits below which a text layer does not speak for a page with pictures
	pdfStampWords  = 250                    // the same where a picture fills most of the page: a scan with a stamp or a running head
	pdfObjects     = 20_000                 // objects of a page that are looked at
	pdfNesting     = 4                      // depth of pictures within forms that is looked at
	pdfTinyPoints  = 2                      // text smaller than this is not there to be read
)

// openPDF compiles pdfium, or loads it compiled from cacheDir, and makes an instance that sees no file system.
func openPDF(cacheDir string) (reading, error) {
	cache, err := wazero.NewCompilationCacheWithDir(cacheDir)
	if err != nil {
		return nil, err
	}
	pool, err := webassembly.Init(webassembly.Config{
		MinIdle: 1, MaxIdle: 1, MaxTotal: 1,
		FSConfig: wazero.NewFSConfig(), // without it the library mounts the host's root
		// Memory is reserved once: growing it step by step would copy it each time.
		RuntimeConfig: wazero.NewRuntimeConfig().WithCompilationCache(cache).
			WithMemoryLimitPages(pdfMemoryPages).WithMemoryCapacityFromMax(true),
		Stdout: io.Discard, Stderr: io.Discard, // ours is the wire
	})
	if err != nil {
		return nil, err
	}
	engine, err := pool.GetInstance(time.Minute)
	if err != nil {
		return nil, err
	}
	return func(j job, content io.Reader, to *sink) error { return readPDF(engine, j, content, to) }, nil
}

func readPDF(engine pdfium.Pdfium, j job, content io.Reader, to *sink) error {
	raw := make([]byte, j.Size)
	if _, err := io.ReadFull(content, raw); err != nil {
		return err
	}
	opened, err := engine.FPDF_LoadCustomDocument(&requests.FPDF_LoadCustomDocument{Reader: bytes.NewReader(raw), Size: j.Size})
	switch {
	case errors.Is(err, pdferrors.ErrPassword), errors.Is(err, pdferrors.ErrSecurity):
		return refuse(CodeEncrypted)
	case err != nil:
		return refuse(CodeBroken)
	}
	count, err := engine.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: opened.Document})
	if err != nil || count.PageCount < 1 {
		return refuse(CodeBroken)
	}
	table, err := engine.FPDF_DocumentHasValidCrossReferenceTable(&requests.FPDF_DocumentHasValidCrossReferenceTable{Document: opened.Document})
	if err := to.count(count.PageCount, err != nil || !table.DocumentHasValidCrossReferenceTable); err != nil {
		return err
	}

	pages := min(count.PageCount, j.Pages)
	to.truncated = pages < count.PageCount
	unreadable := 0
	for number := 1; number <= pages; number++ {
		loaded, err := engine.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: opened.Document, Index: number - 1})
		if err != nil {
			unreadable++
			to.truncated = true
			if err := to.page(pageFrame{Number: number}); err != nil {
				return err
			}
			continue
		}
		page := pdfPage{engine: engine, page: loaded.Page, job: j}
		if err := page.send(number, to); err != nil {
			return err
		}
		if _, err := engine.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page}); err != nil {
			return refuse(CodeBroken)
		}
	}
	if unreadable == pages {
		return refuse(CodeBroken)
	}
	return nil
}

type pdfPage struct {
	engine pdfium.Pdfium
	page   references.FPDF_PAGE
	job    job

	objects  int
	pictures int
	filled   bool // a picture covers most of the page
	huge     bool // a picture has more pixels than allowed
	hidden   int
	unseen   int // characters in invisible mode; normal over a picture (a scan's own OCR layer)
}

func (p *pdfPage) ref() requests.Page { return requests.Page{ByReference: &p.page} }

// send sends the page's text layer, or the page as a picture where the layer has almost no words and the page carries
// pictures. OCR reads stamps too, so nothing of the layer is lost.
func (p *pdfPage) send(number int, to *sink) error {
	text, err := p.text()
	if err != nil {
		return refuse(CodeBroken)
	}
	hidden := p.hidden
	if p.pictures == 0 {
		hidden += p.unseen
	}
	enough := pdfFewWords
	if p.filled {
		enough = pdfStampWords
	}
	if p.pictures == 0 || words(text) >= enough {
		return to.page(pageFrame{Number: number, Text: text, Hidden: hidden})
	}
	if p.huge || to.picturesLeft <= 0 {
		to.truncated = true
		return to.page(pageFrame{Number: number, Text: text, Hidden: hidden})
	}
	frame, pixels, err := p.render()
	if err != nil {
		to.truncated = true
		return to.page(pageFrame{Number: number, Text: text, Hidden: hidden})
	}
	frame.Number, frame.Text, frame.Hidden = number, text, hidden
	return to.picture(frame, pixels)
}

// text reads the text layer with one call, and looks over the page's objects: four times faster than a call per run of text.
func (p *pdfPage) text() (string, error) {
	layer, err := p.engine.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: p.ref()})
	if err != nil {
		return "", err
	}
	defer p.engine.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: layer.TextPage})
	chars, err := p.engine.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: layer.TextPage})
	if err != nil {
		return "", err
	}
	p.look(layer.TextPage)
	count := min(int64(max(chars.Count, 0)), p.job.TextBytes+1)
	if count == 0 {
		return "", nil
	}
	got, err := p.engine.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: layer.TextPage, Count: int(count)})
	if err != nil {
		return "", err
	}
	return got.Text, nil
}

func (p *pdfPage) look(layer references.FPDF_TEXTPAGE) {
	count, err := p.engine.FPDFPage_CountObjects(&requests.FPDFPage_CountObjects{Page: p.ref()})
	if err != nil {
		return
	}
	for i := 0; i < count.Count && p.objects < pdfObjects; i++ {
		if got, err := p.engine.FPDFPage_GetObject(&requests.FPDFPage_GetObject{Page: p.ref(), Index: i}); err == nil {
			p.lookAt(got.PageObject, layer, 0)
		}
	}
}

func (p *pdfPage) lookAt(object references.FPDF_PAGEOBJECT, layer references.FPDF_TEXTPAGE, depth int) {
	p.objects++
	kind, err := p.engine.FPDFPageObj_GetType(&requests.FPDFPageObj_GetType{PageObject: object})
	if err != nil {
		return
	}
	switch kind.Type {
	case enums.FPDF_PAGEOBJ_IMAGE:
		p.pictures++
		p.filled = p.filled || p.covers(object)
		size, err := p.engine.FPDFImageObj_GetImagePixelSize(&requests.FPDFImageObj_GetImagePixelSize{ImageObject: object})
		if err == nil && int64(size.Width)*int64(size.Height) > p.job.PagePixels {
			p.huge = true
		}
	case enums.FPDF_PAGEOBJ_TEXT:
		p.lookAtText(object, layer)
	case enums.FPDF_PAGEOBJ_FORM:
		count, err := p.engine.FPDFFormObj_CountObjects(&requests.FPDFFormObj_CountObjects{PageObject: object})
		if err != nil || depth >= pdfNesting {
			return
		}
		for i := 0; i < count.Count && p.objects < pdfObjects; i++ {
			if got, err := p.engine.FPDFFormObj_GetObject(&requests.FPDFFormObj_GetObject{PageObject: object, Index: uint64(i)}); err == nil {
				p.lookAt(got.PageObject, layer, depth+1)
			}
		}
	}
}

// lookAtText counts characters that nobody sees on the page: drawn in invisible mode, tiny, white or transparent. White text on a
// dark ground is counted too: it is a signal, not a verdict.
func (p *pdfPage) lookAtText(object references.FPDF_PAGEOBJECT, layer references.FPDF_TEXTPAGE) {
	mode, err := p.engine.FPDFTextObj_GetTextRenderMode(&requests.FPDFTextObj_GetTextRenderMode{PageObject: object})
	if err != nil {
		return
	}
	invisible := mode.TextRenderMode == enums.FPDF_TEXTRENDERMODE_INVISIBLE
	if !invisible && !p.tiny(object) && !p.white(object) {
		return
	}
	got, err := p.engine.FPDFTextObj_GetText(&requests.FPDFTextObj_GetText{PageObject: object, TextPage: layer})
	if err != nil {
		return
	}
	if invisible {
		p.unseen += words(got.Text)
	} else {
		p.hidden += words(got.Text)
	}
}

func (p *pdfPage) tiny(object references.FPDF_PAGEOBJECT) bool {
	size, err := p.engine.FPDFTextObj_GetFontSize(&requests.FPDFTextObj_GetFontSize{PageObject: object})
	if err != nil {
		return false
	}
	scale := 1.0
	if m, err := p.engine.FPDFPageObj_GetMatrix(&requests.FPDFPageObj_GetMatrix{PageObject: object}); err == nil {
		scale = math.Hypot(float64(m.Matrix.C), float64(m.Matrix.D))
	}
	return math.Abs(float64(size.FontSize))*scale < pdfTinyPoints
}

func (p *pdfPage) white(object references.FPDF_PAGEOBJECT) bool {
	fill, err := p.engine.FPDFPageObj_GetFillColor(&requests.FPDFPageObj_GetFillColor{PageObject: object})
	if err != nil {
		return false
	}
	c := fill.FillColor
	return c.A == 0 || c.R > 250 && c.G > 250 && c.B > 250
}

// size is the page's width and height in points.
func (p *pdfPage) size() (width, height float64, err error) {
	w, err := p.engine.FPDF_GetPageWidthF(&requests.FPDF_GetPageWidthF{Page: p.ref()})
	if err != nil {
		return 0, 0, err
	}
	h, err := p.engine.FPDF_GetPageHeightF(&requests.FPDF_GetPageHeightF{Page: p.ref()})
	if err != nil {
		return 0, 0, err
	}
	return float64(w.PageWidth), float64(h.PageHeight), nil
}

// covers says whether the picture takes more than half of the page.
func (p *pdfPage) covers(picture references.FPDF_PAGEOBJECT) bool {
	width, height, err := p.size()
	if err != nil {
		return false
	}
	at, err := p.engine.FPDFPageObj_GetBounds(&requests.FPDFPageObj_GetBounds{PageObject: picture})
	if err != nil {
		return false
	}
	return float64(at.Right-at.Left)*float64(at.Top-at.Bottom) > width*height/2
}

// render draws the page in gray at pdfDPI, or at less where it would have more pixels than allowed.
func (p *pdfPage) render() (pictureFrame, []byte, error) {
	w, h, err := p.size()
	if err != nil {
		return pictureFrame{}, nil, err
	}
	scale := pdfDPI / 72.0
	if pixels := w * h * scale * scale; pixels > float64(p.job.PagePixels) {
		scale *= math.Sqrt(float64(p.job.PagePixels) / pixels)
	}
	frame := pictureFrame{Width: int(w * scale), Height: int(h * scale), DPI: int(scale * 72)}
	if frame.Width < 1 || frame.Height < 1 || int64(frame.Width)*int64(frame.Height) > p.job.PagePixels {
		return pictureFrame{}, nil, errors.New("page has no size")
	}
	bitmap, err := p.engine.FPDFBitmap_CreateEx(&requests.FPDFBitmap_CreateEx{Width: frame.Width, Height: frame.Height, Format: enums.FPDF_BITMAP_FORMAT_GRAY, Pointer: uint64(0)})
	if err != nil {
		return pictureFrame{}, nil, err
	}
	defer p.engine.FPDFBitmap_Destroy(&requests.FPDFBitmap_Destroy{Bitmap: bitmap.Bitmap})
	if _, err := p.engine.FPDFBitmap_FillRect(&requests.FPDFBitmap_FillRect{Bitmap: bitmap.Bitmap, Width: frame.Width, Height: frame.Height, Color: 0xFFFFFFFF}); err != nil {
		return pictureFrame{}, nil, err
	}
	if _, err := p.engine.FPDF_RenderPageBitmap(&requests.FPDF_RenderPageBitmap{
		Bitmap: bitmap.Bitmap, Page: p.ref(), SizeX: frame.Width, SizeY: frame.Height,
		Flags: enums.FPDF_RENDER_FLAG_ANNOT | enums.FPDF_RENDER_FLAG_GRAYSCALE | enums.FPDF_RENDER_FLAG_RENDER_LIMITEDIMAGECACHE,
	}); err != nil {
		return pictureFrame{}, nil, err
	}
	stride, err := p.engine.FPDFBitmap_GetStride(&requests.FPDFBitmap_GetStride{Bitmap: bitmap.Bitmap})
	if err != nil {
		return pictureFrame{}, nil, err
	}
	if stride.Stride < frame.Width { // no memory for the bitmap
		return pictureFrame{}, nil, errors.New("page could not be drawn")
	}
	drawn, err := p.engine.FPDFBitmap_GetBuffer(&requests.FPDFBitmap_GetBuffer{Bitmap: bitmap.Bitmap})
	if err != nil {
		return pictureFrame{}, nil, err
	}
	pixels := make([]byte, 0, frame.Width*frame.Height)
	for y := range frame.Height {
		pixels = append(pixels, drawn.Buffer[y*stride.Stride:][:frame.Width]...)
	}
	return frame, pixels, nil
}
