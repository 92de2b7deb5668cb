package extract

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPictures(t *testing.T) {
	t.Parallel()
	page := scan(t, "Deliveries of pressure valves", "rose by twelve percent.")
	const want = "Deliveries of pressure valves\nrose by twelve percent."
	color := image.NewNRGBA(page.Rect) // transparent, with ink where the page has it
	for i, value := range page.Pix {
		color.Pix[4*i+3] = 255 - value
	}
	for _, c := range []struct {
		name, media string
		content     []byte
		pages       []string
	}{
		{"png", "image/png", asPNG(t, page), []string{want}},
		{"png with a transparent ground", "image/png", asPNG(t, color), []string{want}},
		{"jpeg", "image/jpeg", asJPEG(t, page), []string{want}},
		{"tiff of two pages", "image/tiff", asTIFF(page, scan(t, "The second page of the fax.")), []string{want, "The second page of the fax."}},
		{"blank", "image/png", asPNG(t, blank(600, 400)), []string{""}},
		{"a dot", "image/png", asPNG(t, blank(3, 3)), []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			doc := extract(t, extractor(t), c.content, c.media)
			if doc.MediaType != c.media || doc.PageCount != len(c.pages) || len(doc.Pages) != len(c.pages) || doc.Truncated {
				t.Fatalf("document: %+v", doc)
			}
			for i, text := range c.pages {
				if doc.Pages[i].Text != text {
					t.Errorf("page %d: %+v, want %q", i+1, doc.Pages[i], text)
				}
			}
		})
	}
}

// Pictures as real programs write them.
func TestPictureVariants(t *testing.T) {
	t.Parallel()
	const want = "The north quay needs new fenders\nbefore the winter, since three ferries\nwere damaged there during storms."
	for _, name := range []string{
		"note.png", "note-16bit.png", "note-1bit.png", "note-96dpi.png", "note-cmyk.jpeg", "note-mirrored.jpeg",
		"note-g4.tiff", "note-fax.tiff", "note-jpeg.tiff", "note.webp",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := extract(t, extractor(t), testFile(t, name), "")
			if len(doc.Pages) != 1 || doc.Pages[0].Text != want || doc.OCRPages != 1 {
				t.Errorf("document: %+v", doc)
			}
		})
	}
	t.Run("animated WebP", func(t *testing.T) {
		t.Parallel()
		refused(t, extractor(t), testFile(t, "note-animated.webp"), "", CodeUnsupported)
	})
}

func testFile(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestFitForOCR(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		width, height int
		scanned       scanned
		want          image.Point
		dpi           int
	}{
		"scan":                  {2480, 3508, scanned{across: 300, down: 300}, image.Pt(2480, 3508), 300},
		"scan of no density":    {2480, 3508, scanned{}, image.Pt(2480, 3508), 0},
		"small scan":            {600, 400, scanned{across: 300, down: 300}, image.Pt(600, 400), 300},
		"screen":                {800, 600, scanned{across: 96, down: 96}, image.Pt(1600, 1200), 0},
		"screen of no density":  {800, 600, scanned{}, image.Pt(1600, 1200), 0},
		"camera":                {4000, 3000, scanned{across: 72, down: 72}, image.Pt(4000, 3000), 0},
		"fax":                   {1000, 500, scanned{across: 200, down: 100}, image.Pt(1500, 1500), 300},
		"fax on its side":       {500, 1000, scanned{across: 200, down: 100, turned: 6}, image.Pt(1500, 1500), 300},
		"absurdly dense":        {2480, 3508, scanned{across: 1e6, down: 1e6}, image.Pt(2480, 3508), 0},
		"absurdly stretched":    {2480, 3508, scanned{across: 60, down: 2000}, image.Pt(2480, 3508), 0},
		"no room to be larger":  {1500, 1500, scanned{}, image.Pt(1500, 1500), 0},
		"density of one pixel":  {2480, 3508, scanned{across: 1, down: 1}, image.Pt(2480, 3508), 0},
		"more one way than not": {2480, 3508, scanned{across: 300, down: 310}, image.Pt(2480, 3508), 310},
	} {
		got, dpi := fitForOCR(image.NewGray(image.Rect(0, 0, c.width, c.height)), c.scanned, 9_000_000-1)
		if got.Rect.Size() != c.want || dpi != c.dpi {
			t.Errorf("%s: %v at %d dpi, want %v at %d", name, got.Rect.Size(), dpi, c.want, c.dpi)
		}
	}
}

// A picture turned by every orientation, and set upright again, is itself.
func TestTurn(t *testing.T) {
	t.Parallel()
	upright := noise(5, 3)
	for orientation, at := range map[int]func(x, y int) (int, int){
		1: func(x, y int) (int, int) { return x, y }, 2: func(x, y int) (int, int) { return 4 - x, y },
		3: func(x, y int) (int, int) { return 4 - x, 2 - y }, 4: func(x, y int) (int, int) { return x, 2 - y },
		5: func(x, y int) (int, int) { return y, x }, 6: func(x, y int) (int, int) { return y, 4 - x },
		7: func(x, y int) (int, int) { return 2 - y, 4 - x }, 8: func(x, y int) (int, int) { return 2 - y, x },
	} {
		stored := image.NewGray(image.Rect(0, 0, 5, 3))
		if orientation >= 5 {
			stored = image.NewGray(image.Rect(0, 0, 3, 5))
		}
		for y := range 3 {
			for x := range 5 {
				sx, sy := at(x, y)
				stored.SetGray(sx, sy, upright.GrayAt(x, y))
			}
		}
		if got := turn(stored, orientation); got.Rect != upright.Rect || !bytes.Equal(got.Pix, upright.Pix) {
			t.Errorf("orientation %d: %v", orientation, got)
		}
	}
}

func TestRefusedPictures(t *testing.T) {
	t.Parallel()
	// Only the header: a decoder that went on to the pixels would call it broken.
	huge := pngHeader(60_000, 60_000)
	whole := asPNG(t, noise(200, 200))
	circle := asTIFF(blank(20, 20))
	binary.LittleEndian.PutUint32(circle[len(circle)-4:], binary.LittleEndian.Uint32(circle[4:]))
	for name, c := range map[string]struct {
		content []byte
		code    string
	}{
		"too many pixels":                {huge, CodeTooLarge},
		"too many pixels in page 2":      {asTIFF(blank(20, 20), blank(3000, 3000)), CodeTooLarge},
		"cut off":                        {whole[:len(whole)/2], CodeBroken},
		"cut off in the header":          {whole[:20], CodeBroken},
		"tiff of 2^64 pixels":            {tiffHeader(1<<32-1, 1<<32-1, tiffCompressJPEG), CodeTooLarge},
		"fax without lines":              {tiffHeader(1000, 1000, tiffCompressGroup3), CodeBroken},
		"jpeg in tiff without jpeg":      {tiffHeader(1000, 1000, tiffCompressJPEG), CodeBroken},
		"tiff that points beyond itself": {[]byte("II*\x00\xff\xff\xff\x00"), CodeBroken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := extractor(t, func(config *Config) { config.Limits.PagePixels = 4_000_000 })
			refused(t, e, c.content, "", c.code)
		})
	}
	t.Run("tiff in a circle ends", func(t *testing.T) {
		t.Parallel()
		if doc := extract(t, extractor(t), circle, "image/tiff"); doc.PageCount != 1 {
			t.Errorf("document: %+v", doc)
		}
	})
}

func tiffHeader(width, height, compression uint32) []byte {
	out := []byte("II*\x00\x08\x00\x00\x00\x03\x00")
	for _, e := range [][2]uint32{{tiffWidth, width}, {tiffHeight, height}, {tiffCompression, compression}} {
		out = binary.LittleEndian.AppendUint16(out, uint16(e[0]))
		out = binary.LittleEndian.AppendUint16(out, tiffTypeLong)
		out = binary.LittleEndian.AppendUint32(out, 1)
		out = binary.LittleEndian.AppendUint32(out, e[1])
	}
	return append(out, 0, 0, 0, 0)
}

func pngHeader(width, height uint32) []byte {
	chunk := []byte("IHDR")
	chunk = binary.BigEndian.AppendUint32(chunk, width)
	chunk = binary.BigEndian.AppendUint32(chunk, height)
	chunk = append(chunk, 8, 0, 0, 0, 0)
	out := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
	out = append(out, chunk...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(chunk))
}

// asTIFF writes an uncompressed TIFF with a directory per page, its chain link being the last thing of each.
func asTIFF(pages ...*image.Gray) []byte {
	var out bytes.Buffer
	out.WriteString("II*\x00")
	at := 8
	for i, page := range pages {
		size := page.Rect.Size()
		pixels := at
		directory := pixels + len(page.Pix)
		if i == 0 {
			out.Write(binary.LittleEndian.AppendUint32(nil, uint32(directory)))
		}
		out.Write(page.Pix)
		entries := [][2]uint32{{256, uint32(size.X)}, {257, uint32(size.Y)}, {258, 8}, {259, 1}, {262, 1}, {273, uint32(pixels)}, {277, 1}, {278, uint32(size.Y)}, {279, uint32(len(page.Pix))}}
		out.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(entries))))
		for _, e := range entries {
			entry := binary.LittleEndian.AppendUint16(nil, uint16(e[0]))
			entry = binary.LittleEndian.AppendUint16(entry, 4) // long
			entry = binary.LittleEndian.AppendUint32(entry, 1)
			out.Write(binary.LittleEndian.AppendUint32(entry, e[1]))
		}
		at = directory + 2 + 12*len(entries) + 4
		next := uint32(0)
		if i+1 < len(pages) {
			next = uint32(at + len(pages[i+1].Pix))
		}
		out.Write(binary.LittleEndian.AppendUint32(nil, next))
	}
	return out.Bytes()
}

func TestPicturePageLimits(t *testing.T) {
	t.Parallel()
	three := asTIFF(scan(t, "First page of three."), scan(t, "Second page of three."), scan(t, "Third page of three."))
	for name, limits := range map[string]Limits{"pages": {Pages: 2}, "OCR pages": {OCRPages: 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := extract(t, extractor(t, func(config *Config) { config.Limits = limits }), three, "image/tiff")
			if !doc.Truncated || len(doc.Pages) != 2 || !strings.HasPrefix(doc.Pages[1].Text, "Second") || doc.PageCount != 3 && limits.Pages == 0 {
				t.Errorf("document: %+v", doc)
			}
		})
	}
}
