package main

import (
	"bytes"
	"compress/zlib"
	"fmt"
)

// pdfWriter puts a PDF together, object by object. Object 1 is the catalogue, 2 the page tree.
type pdfWriter struct {
	bytes.Buffer
	offsets []int
}

func newPDF() *pdfWriter {
	w := &pdfWriter{}
	w.WriteString("%PDF-1.5\n")
	w.object("<< /Type /Catalog /Pages 2 0 R >>")
	return w
}

// object appends one and returns its number.
func (w *pdfWriter) object(body string) int {
	w.offsets = append(w.offsets, w.Len())
	fmt.Fprintf(w, "%d 0 obj\n%s\nendobj\n", len(w.offsets), body)
	return len(w.offsets)
}

func (w *pdfWriter) stream(dictionary string, content []byte) int {
	return w.object(fmt.Sprintf("<< %s /Length %d >>\nstream\n%s\nendstream", dictionary, len(content), content))
}

// end writes the table of offsets.
func (w *pdfWriter) end() []byte {
	start := w.Len()
	fmt.Fprintf(w, "xref\n0 %d\n0000000000 65535 f \n", len(w.offsets)+1)
	for _, at := range w.offsets {
		fmt.Fprintf(w, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(w, "trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(w.offsets)+1, start)
	return w.Bytes()
}

// pageTree writes object 2 for the pages that follow: each takes perPage objects, the page itself last.
func (w *pdfWriter) pageTree(pages, perPage int) {
	var kids bytes.Buffer
	for i := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", 2+(i+1)*perPage)
	}
	w.object(fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", pages, kids.String()))
}

// picturePDF is what a scanner makes: a page per picture, no text.
func picturePDF(scans []scan) []byte {
	w := newPDF()
	w.pageTree(len(scans), 3)
	for _, s := range scans {
		size := s.picture.Rect.Size()
		var packed bytes.Buffer
		z := zlib.NewWriter(&packed)
		_, _ = z.Write(s.picture.Pix) // into memory
		_ = z.Close()
		picture := w.stream(fmt.Sprintf("/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray "+
			"/BitsPerComponent 8 /Filter /FlateDecode", size.X, size.Y), packed.Bytes())
		width, height := float64(size.X)*72/ocrDPI, float64(size.Y)*72/ocrDPI
		content := w.stream("", fmt.Appendf(nil, "%.2f 0 0 %.2f 0 0 cm /P Do", width, height))
		w.object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %.2f %.2f] /Contents %d 0 R "+
			"/Resources << /XObject << /P %d 0 R >> >> >>", width, height, content, picture))
	}
	return w.end()
}
