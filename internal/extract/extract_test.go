package extract

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestTextPDF(t *testing.T) {
	t.Parallel()
	doc := extract(t, extractor(t), makePDF(textPage("The plant makes valves.", "It opened in 1987."), textPage("Second page.")), "application/pdf")
	if doc.MediaType != "application/pdf" || doc.PageCount != 2 || len(doc.Pages) != 2 || doc.OCRPages != 0 || doc.Truncated || doc.Repaired {
		t.Errorf("document: %+v", doc)
	}
	for i, want := range []string{"The plant makes valves.\nIt opened in 1987.", "Second page."} {
		if p := doc.Pages[i]; p.Number != i+1 || p.Source != SourceText || strings.TrimSpace(p.Text) != want {
			t.Errorf("page %d: %+v, want %q", i+1, p, want)
		}
	}
}

func TestScannedAndMixedPDF(t *testing.T) {
	t.Parallel()
	content := makePDF(
		textPage("A page with a text layer of its own, long enough."),
		picturePage(t, scan(t, "Deliveries of pressure valves", "rose by twelve percent.")),
		picturePage(t, turned(scan(t, "This scan lies on its side", "and is read all the same,", "because its orientation is found", "before the lines are read."))),
		picturePage(t, blank(600, 400)),
	)
	var seen []int
	doc, err := extractor(t).Extract(within(t), bytes.NewReader(content), int64(len(content)), "application/pdf", func(done, total int) {
		seen = append(seen, done, total)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ source, text string }{
		{SourceText, "A page with a text layer of its own, long enough."},
		{SourceOCR, "Deliveries of pressure valves\nrose by twelve percent."},
		{SourceOCR, "This scan lies on its side\nand is read all the same,\nbecause its orientation is found\nbefore the lines are read."},
		{SourceOCR, ""},
	} {
		if p := doc.Pages[i]; p.Source != want.source || strings.TrimSpace(p.Text) != want.text {
			t.Errorf("page %d: %+v, want %+v", i+1, p, want)
		}
	}
	if doc.OCRPages != 3 || doc.PageCount != 4 || doc.Truncated {
		t.Errorf("document: %+v", doc)
	}
	if len(seen) != 8 || seen[6] != 4 || seen[7] != 4 {
		t.Errorf("progress: %v", seen)
	}
}

func TestRefusedPDF(t *testing.T) {
	t.Parallel()
	whole := makePDF(textPage("One page."), textPage("And another."))
	encrypted, err := os.ReadFile("testdata/encrypted.pdf")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content []byte
		code    string
	}{
		"encrypted":         {encrypted, CodeEncrypted},
		"cut off":           {whole[:len(whole)/2], CodeBroken},
		"garbage":           {append([]byte("%PDF-1.7\n"), noise(100, 100).Pix...), CodeBroken},
		"header only":       {[]byte("%PDF-1.7\n"), CodeBroken},
		"no pages":          {makePDF(), CodeBroken},
		"empty":             {nil, CodeEmpty},
		"too many bytes":    {append(whole, make([]byte, 1<<20)...), CodeTooLarge},
		"a zip as well":     {append(whole, zipOf(t, "a.txt")...), CodeMismatch},
		"a picture as well": {append(asPNG(t, blank(1, 1))[:33], whole...), CodeMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := extractor(t, func(config *Config) { config.Limits.InputBytes = 1 << 20 })
			refused(t, e, c.content, "application/pdf", c.code)
		})
	}
}

// A scan whose text layer is only a stamp is read as the picture that it is. This picture hides its stamp, so OCR does not
// see it: both are kept.
func TestStampedScan(t *testing.T) {
	t.Parallel()
	page := picturePage(t, scan(t, "Deliveries of pressure valves", "rose by twelve percent."))
	page.operators = "BT /F1 4 Tf 20 4 Td (Received by the archive of the company on the second of May) Tj ET\n"
	doc := extract(t, extractor(t), makePDF(page), "application/pdf")
	if doc.OCRPages != 1 || !strings.HasSuffix(doc.Pages[0].Text, "\n\nDeliveries of pressure valves\nrose by twelve percent.") {
		t.Errorf("document: %+v", doc)
	}
}

func TestPDFLimits(t *testing.T) {
	t.Parallel()
	picture := picturePage(t, scan(t, "Only a picture."))
	content := makePDF(textPage("Text on page one, of more than a few words."), picture, picture, textPage("Page four."))
	for name, c := range map[string]struct {
		limits            Limits
		pages, recognised int
	}{
		"none reached": {Limits{}, 4, 2},
		"pages":        {Limits{Pages: 2}, 2, 1},
		"OCR pages":    {Limits{OCRPages: 1}, 4, 1},
		"pixels":       {Limits{PagePixels: 1000}, 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := extract(t, extractor(t, func(config *Config) { config.Limits = c.limits }), content, "application/pdf")
			if doc.PageCount != 4 || len(doc.Pages) != c.pages || doc.OCRPages != c.recognised || doc.Truncated != (c.limits != Limits{}) {
				t.Errorf("document: %+v", doc)
			}
		})
	}
}

// A page drawn larger than allowed is drawn coarser, not left out.
func TestLargePageIsDrawnCoarser(t *testing.T) {
	t.Parallel()
	page := picturePage(t, scan(t, "LARGE PAPER"))
	poster := bytes.Replace(makePDF(page), []byte("/MediaBox [0 0 360.00 69.60]"), []byte("/MediaBox [0 0 3600 3600.00]"), 1)
	doc := extract(t, extractor(t, func(config *Config) { config.Limits.PagePixels = 1_000_000 }), poster, "application/pdf")
	if doc.OCRPages != 1 || doc.Truncated {
		t.Errorf("document: %+v", doc)
	}
}

func TestHiddenText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		operators string
		want      int
	}{
		"visible":   {"BT /F1 12 Tf 72 720 Td (words) Tj ET", 0},
		"invisible": {"BT /F1 12 Tf 3 Tr 72 720 Td (words) Tj ET", 5},
		"white":     {"BT /F1 12 Tf 1 1 1 rg 72 720 Td (words) Tj ET", 5},
		"tiny":      {"BT /F1 1 Tf 72 720 Td (words) Tj ET", 5},
		"shrunk":    {"q .05 0 0 .05 0 0 cm BT /F1 12 Tf 72 720 Td (words) Tj ET Q", 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := extract(t, extractor(t), makePDF(pdfPageSource{operators: c.operators}), "application/pdf")
			if hidden := hiddenText(doc.Pages[0]); len(hidden) != c.want || strings.TrimSpace(doc.Pages[0].Text) != "words" {
				t.Errorf("document: %+v, want %d hidden", doc, c.want)
			}
		})
	}
}

// hiddenText is what of a page's text nobody sees.
func hiddenText(p Page) (text string) {
	for _, run := range p.Hidden {
		text += p.Text[run.Start:run.End]
	}
	return text
}

// failing is content whose store breaks down after some bytes.
type failing struct {
	content []byte
	at      int64
}

var errStore = errors.New("store is gone")

func (f failing) ReadAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > f.at {
		return 0, errStore
	}
	return bytes.NewReader(f.content).ReadAt(p, at)
}

func TestContentThatCannotBeRead(t *testing.T) {
	t.Parallel()
	content := append(makePDF(textPage("One page.")), bytes.Repeat([]byte("\n"), 1<<20)...)
	for _, at := range []int64{0, 100_000, 800_000} {
		doc, err := extractor(t).Extract(within(t), failing{content, at}, int64(len(content)), "application/pdf", nil)
		if !errors.Is(err, errStore) {
			t.Errorf("broken at %d: want %v, got document %v, error %v", at, errStore, doc, err)
		}
	}
	_, err := extractor(t).Extract(within(t), bytes.NewReader(content), int64(len(content))+1, "application/pdf", nil)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("shorter than its size: %v", err)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	content := makePDF(textPage("One page."))
	if _, err := extractor(t).Extract(ctx, bytes.NewReader(content), int64(len(content)), "", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want %v, got %v", context.DeadlineExceeded, err)
	}
}

// Not parallel: it counts what the whole process allocates.
func TestParentHoldsNoContent(t *testing.T) {
	content := append(makePDF(picturePage(t, noise(2000, 2000))), bytes.Repeat([]byte("\n"), 64<<20)...)
	e := extractor(t, standIn(t, swallow))
	extract(t, e, makePDF(textPage("Warm.")), "application/pdf")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	extract(t, e, content, "application/pdf")
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 4<<20 {
		t.Errorf("%d bytes allocated for a document of %d", allocated, len(content))
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	for _, f := range extractor(t).Inspect(within(t)) {
		if !f.OK || f.Detail == "" || f.Remedy != "" {
			t.Errorf("%+v", f)
		}
	}
	missing := extractor(t, func(config *Config) { config.Tesseract = "tesseract-is-not-here" }).Inspect(within(t))
	for _, f := range missing[:2] {
		if f.OK || f.Remedy != "apt-get install tesseract-ocr" {
			t.Errorf("%+v", f)
		}
	}
	language := extractor(t, func(config *Config) { config.Languages = []string{"xxx"} }).Inspect(within(t))[1]
	if language.OK || language.Remedy != "apt-get install tesseract-ocr-xxx" {
		t.Errorf("%+v", language)
	}
	cache := extractor(t, func(config *Config) { config.CacheDir = "/proc/no-folder" }).Inspect(within(t))
	if last := cache[len(cache)-1]; last.OK || last.Remedy == "" {
		t.Errorf("%+v", last)
	}
}
