package extract

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
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
