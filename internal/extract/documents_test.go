package extract

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// The documents that the tests extract are made here, so that every byte of them is known.

// scan draws lines of text as a scanner would see them on a quarter of a page: black on white at 300 dpi.
func scan(t testing.TB, lines ...string) *image.Gray {
	t.Helper()
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		t.Fatal(err)
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: 14, DPI: 300})
	if err != nil {
		t.Fatal(err)
	}
	page := image.NewGray(image.Rect(0, 0, 1500, 200+90*len(lines)))
	draw.Draw(page, page.Rect, image.White, image.Point{}, draw.Src)
	for i, line := range lines {
		d := font.Drawer{Dst: page, Src: image.Black, Face: face, Dot: fixed.P(120, 150+90*i)}
		d.DrawString(line)
	}
	return page
}

// turned is the picture on its side, as from a scanner whose paper lay crosswise.
func turned(from *image.Gray) *image.Gray {
	size := from.Rect.Size()
	to := image.NewGray(image.Rect(0, 0, size.Y, size.X))
	for y := range size.Y {
		for x := range size.X {
			to.SetGray(size.Y-1-y, x, from.GrayAt(x, y))
		}
	}
	return to
}

func asPNG(t testing.TB, picture image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func asJPEG(t testing.TB, picture image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := jpeg.Encode(&out, picture, &jpeg.Options{Quality: 90}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// pdfPageSource is one page of a PDF: either drawing operators or a picture that fills it.
type pdfPageSource struct {
	operators string
	picture   []byte // JPEG, gray
	size      image.Point
}

func textPage(lines ...string) pdfPageSource {
	var ops strings.Builder
	ops.WriteString("BT /F1 12 Tf 14 TL 72 720 Td\n")
	for _, line := range lines {
		fmt.Fprintf(&ops, "(%s) Tj T*\n", strings.NewReplacer("(", `\(`, ")", `\)`, `\`, `\\`).Replace(line))
	}
	ops.WriteString("ET\n")
	return pdfPageSource{operators: ops.String()}
}

func picturePage(t testing.TB, picture *image.Gray) pdfPageSource {
	return pdfPageSource{picture: asJPEG(t, picture), size: picture.Rect.Size()}
}

// makePDF writes a PDF with a correct cross-reference table.
func makePDF(pages ...pdfPageSource) []byte {
	var out bytes.Buffer
	var offsets []int
	object := func(format string, args ...any) int {
		offsets = append(offsets, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n", len(offsets))
		fmt.Fprintf(&out, format, args...)
		out.WriteString("\nendobj\n")
		return len(offsets)
	}
	out.WriteString("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
	font := object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
	tree := 2 + 3*len(pages) // written after the pages, which name it
	var kids []string
	for _, page := range pages {
		picture := page.picture
		size := page.size
		operators := page.operators
		mediaBox := "0 0 612 792"
		if picture == nil {
			picture, size = []byte{0}, image.Pt(1, 1)
		} else {
			w, h := float64(size.X)*72/300, float64(size.Y)*72/300
			mediaBox = fmt.Sprintf("0 0 %.2f %.2f", w, h)
			operators += fmt.Sprintf("q %.2f 0 0 %.2f 0 0 cm /P1 Do Q\n", w, h)
		}
		filter := " /Filter /DCTDecode"
		if page.picture == nil {
			filter = ""
		}
		image := object("<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8%s /Length %d >>\nstream\n%s\nendstream", size.X, size.Y, filter, len(picture), picture)
		content := object("<< /Length %d >>\nstream\n%s\nendstream", len(operators), operators)
		kid := object("<< /Type /Page /Parent %d 0 R /MediaBox [%s] /Contents %d 0 R /Resources << /Font << /F1 %d 0 R >> /XObject << /P1 %d 0 R >> >> >>", tree, mediaBox, content, font, image)
		kids = append(kids, fmt.Sprintf("%d 0 R", kid))
	}
	object("<< /Type /Pages /Count %d /Kids [%s] >>", len(kids), strings.Join(kids, " "))
	catalog := object("<< /Type /Catalog /Pages %d 0 R >>", tree)
	start := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer << /Size %d /Root %d 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, catalog, start)
	return out.Bytes()
}

func noise(width, height int) *image.Gray {
	page := image.NewGray(image.Rect(0, 0, width, height))
	for i := range page.Pix {
		page.Pix[i] = uint8(i * 7919 >> 3)
	}
	return page
}

func blank(width, height int) *image.Gray {
	page := image.NewGray(image.Rect(0, 0, width, height))
	draw.Draw(page, page.Rect, image.NewUniform(color.White), image.Point{}, draw.Src)
	return page
}
