package extract

import (
	"bytes"
	"image"
	"math"
	"testing"
)

// No picture's own words on its size, density and orientation lead out of it, and what goes to OCR is never larger than allowed.
func FuzzPicture(f *testing.F) {
	for _, name := range []string{"note-fax.tiff", "note-jpeg.tiff", "note-g4.tiff", "note-96dpi.png", "note-1bit.png", "note-mirrored.jpeg", "note.webp"} {
		f.Add(testFile(f, name))
	}
	f.Add(asTIFF(noise(20, 20), noise(17, 30)))
	f.Add(tiffHeader(40, 40, tiffCompressGroup3))
	f.Add(tiffHeader(40, 40, tiffCompressJPEG))
	f.Fuzz(func(t *testing.T, raw []byte) {
		const limit = 1 << 20
		for _, s := range []scanned{pngScanned(raw), jpegScanned(raw)} {
			sane(t, s)
		}
		if d, ok := firstDirectory(raw); ok {
			sane(t, d.scanned())
		}
		pages := tiffPictures(raw, 3)
		if len(pages) > 3 {
			t.Fatalf("%d pages", len(pages))
		}
		for _, p := range pages {
			sane(t, p.scanned)
			width, height, err := p.measure()
			if err != nil || width < 1 || height < 1 || int64(width) > limit/int64(height) {
				continue
			}
			decoded, err := p.decode()
			if err != nil {
				continue
			}
			if size := decoded.Bounds().Size(); size != image.Pt(width, height) {
				t.Errorf("measured %dx%d, decoded %v", width, height, size)
			}
			pixels, dpi := fitForOCR(turn(gray(decoded), p.scanned.turned), p.scanned, limit)
			if size := pixels.Rect.Size(); size.X < 1 || size.Y < 1 || size.X*size.Y > limit || len(pixels.Pix) != size.X*size.Y || dpi < 0 || dpi > 10_000 {
				t.Errorf("%v with %d bytes at %d dpi", size, len(pixels.Pix), dpi)
			}
		}
	})
}

func sane(t *testing.T, s scanned) {
	t.Helper()
	for _, v := range []float64{s.across, s.down} {
		if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("%+v", s)
		}
	}
}

// A fax is cut at its lines' ends, whatever its bits are; the lines are no longer than what they were cut from.
func FuzzFaxLines(f *testing.F) {
	f.Add([]byte{0, 1, 0x35, 0, 1, 0x35, 0, 1}, false)
	f.Add([]byte{0, 0x80, 0xff, 0, 0x80}, true)
	f.Add(bytes.Repeat([]byte{0}, 64), false)
	f.Fuzz(func(t *testing.T, raw []byte, lowBitFirst bool) {
		total := 0
		if err := faxLines(raw, lowBitFirst, func(line []byte) error {
			if len(line) < 2 || line[0] != 0 || line[1]>>4 != 1 {
				t.Errorf("a line begins with % x", line[:min(len(line), 2)])
			}
			total += len(line)
			return nil
		}); err != nil {
			t.Error(err)
		}
		if total > 3*len(raw)+4 { // 12 bits go before a line, which has 13 or more
			t.Errorf("%d bytes of lines in %d", total, len(raw))
		}
	})
}

// Compound files of office programs name their streams; whatever they say, the walk ends and stays in the file.
func FuzzLegacyFormat(f *testing.F) {
	for _, ending := range []string{"doc", "xls", "ppt"} {
		if note := legacyNote(f, ending); len(note) < 64<<10 {
			f.Add(note)
		}
	}
	f.Add(append([]byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"), make([]byte, 1024)...))
	f.Fuzz(func(t *testing.T, raw []byte) {
		format, _ := legacyFormat(bytes.NewReader(raw), int64(len(raw)))
		if _, known := legacyTypes[format]; format != "" && !known {
			t.Errorf("format %q", format)
		}
		lockedWorkbook(raw)
	})
}
