package extract

import (
	"errors"
	"math"

	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/requests"
)

const pdfDPI = 300 // what tesseract reads best

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
