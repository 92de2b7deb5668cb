package extract

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/accession/accession/internal/extract/archive"
	"github.com/accession/accession/internal/extract/page"
)

// mutant is content with some bytes changed, some left out, or its end gone; always the same for a seed.
func mutant(content []byte, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	out := bytes.Clone(content)
	for range 1 + random.IntN(8) {
		at := random.IntN(len(out))
		switch random.IntN(4) {
		case 0:
			out[at] ^= 1 << random.IntN(8)
		case 1:
			out[at] = byte(random.IntN(256))
		case 2: // digits are what formats count with
			if digit := bytes.IndexAny(out[at:], "0123456789"); digit >= 0 {
				out[at+digit] = '0' + byte(random.IntN(10))
			}
		case 3:
			end := min(at+1+random.IntN(40), len(out))
			out = append(out[:at], out[end:]...)
		}
		if len(out) < 16 {
			return out
		}
	}
	if random.IntN(8) == 0 {
		out = out[:1+random.IntN(len(out))]
	}
	return out
}

func mutated(t testing.TB) map[string][]byte {
	return map[string][]byte{
		"pdf": makePDF(textPage("A page of text.", "And its second line."), textPage("Another page.")),
		"pdf of everything": withFiles(pagePDF("/Annots [<< /Type /Annot /Subtype /FreeText /Contents (Box) /Rect [200 200 300 220] /AP << /N 9 0 R >> >>]",
			"BT /F1 12 Tf 72 700 Td (Seen.) Tj 1 g (secret) Tj ET", "<< /Type /Filespec /F (a) /EF << /F 8 0 R >> >>", "<< /Type /Filespec /F (b) /EF << /F 8 0 R >> >>",
			stream("/Type /EmbeddedFile /Filter /FlateDecode", deflated([]byte("attached"))),
			stream("/Type /XObject /Subtype /Form /BBox [0 0 100 20] /Resources << /Font << /F1 5 0 R >> >>", []byte("BT /F1 12 Tf 2 5 Td (Text box.) Tj ET")))),
		"png":          testFile(t, "note-96dpi.png"),
		"jpeg":         testFile(t, "note-mirrored.jpeg"),
		"tiff":         asTIFF(noise(40, 40), noise(30, 30)),
		"fax":          testFile(t, "note-fax.tiff"),
		"jpeg in tiff": testFile(t, "note-jpeg.tiff"),
		"webp":         testFile(t, "note.webp"),
	}
}

// A worker that reads one mutant after the other, as if they came in an archive. It says how they end.
func init() {
	purposes["mutants"] = func(w *worker) error {
		content, err := whole(w.content, w.job.Size)
		if err != nil {
			return err
		}
		if err := w.to.send(frameType, typeFrame{Media: "text/plain"}); err != nil {
			return err
		}
		read, left, other := 0, 0, []string{}
		for seed := range uint64(400) {
			inner := *w
			inner.to = &sink{out: bufio.NewWriter(io.Discard), pagesLeft: w.job.Pages, textLeft: w.job.TextBytes, picturesLeft: w.job.OCRPages}
			m := mutant(content, seed)
			t := tree{worker: &inner, budget: archive.NewBudget(archive.DefaultLimits(), int64(len(m)))}
			err := t.document(bytes.NewReader(m), "")
			var refusal *Refusal
			switch {
			case err == nil && inner.to.leftOut == 0:
				read++
			case err == nil, errors.As(err, &refusal):
				left++
			default:
				other = append(other, fmt.Sprintf("%d: %v", seed, err))
			}
		}
		return w.to.emit(page.Page{Text: fmt.Sprintf("%d read, %d refused, others: %s", read, left, strings.Join(other, "; "))})
	}
}

// Every mutant ends in a document or a refusal.
func TestMutants(t *testing.T) {
	t.Parallel()
	for name, content := range mutated(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := extractor(t)
			if err := e.Warm(within(t)); err != nil {
				t.Fatal(err)
			}
			var doc *Document
			err := e.converseOnce(within(t), "mutants", true, "", bytes.NewReader(content), int64(len(content)), func(c *conversation) error {
				to := newCollector(c.ctx, e, nil)
				err := to.finish(to.read(c))
				doc = to.document()
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			var read, left int
			n, err := fmt.Sscanf(doc.Pages[0].Text, "%d read, %d refused, others:", &read, &left)
			if n != 2 || read+left != 400 || read == 0 || left == 0 {
				t.Errorf("%s (%v)", doc.Pages[0].Text, err)
			}
		})
	}
}

// The same with a worker for each, and with OCR, as a document comes in.
func TestMutantsFromOutside(t *testing.T) {
	t.Parallel()
	e := extractor(t, standIn(t, swallow))
	for name, content := range mutated(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(6) {
				m := mutant(content, seed)
				doc, err := e.Extract(within(t), bytes.NewReader(m), int64(len(m)), "", nil)
				var refusal *Refusal
				if doc == nil && !errors.As(err, &refusal) {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
		})
	}
}

// A file of some bytes that would be a picture of a gigabyte.
func TestHugePicture(t *testing.T) {
	t.Parallel()
	refused(t, extractor(t), pngHeader(30_000, 30_000), "image/png", CodeTooLarge)
}

// A PDF that names one page a hundred thousand times.
func TestPDFOfManyPages(t *testing.T) {
	t.Parallel()
	content := objectsPDF("<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids ["+strings.Repeat("3 0 R ", 100_000)+"] /Count 100000 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		stream("", []byte("BT /F1 12 Tf 72 700 Td (page) Tj ET")), helvetica)
	doc := extract(t, extractor(t, func(c *Config) { c.Limits.Pages = 500 }), content, "application/pdf")
	if !doc.Truncated || doc.PageCount != 100_000 || len(doc.Pages) != 500 || doc.Pages[499].Text != "page" {
		t.Errorf("truncated %t, %d pages of %d", doc.Truncated, len(doc.Pages), doc.PageCount)
	}
}

// What is attached to a PDF is unpacked before its size is known. What does not fit into the worker is refused, not tried again.
func TestPDFBombs(t *testing.T) {
	t.Parallel()
	bomb := func(size int) []byte {
		file := stream("/Type /EmbeddedFile /Filter /FlateDecode", deflated(make([]byte, size)))
		return withFiles(pagePDF("", "BT /F1 12 Tf 72 700 Td (x) Tj ET", "<< /Type /Filespec /F (a) /EF << /F 8 0 R >> >>", "<< /Type /Filespec /F (b) /EF << /F 8 0 R >> >>", file))
	}
	t.Run("out of proportion", func(t *testing.T) {
		t.Parallel()
		content := bomb(32 << 20)
		refused(t, extractor(t), content, "application/pdf", CodeExpands)
		err := extractor(t).Members(within(t), bytes.NewReader(content), int64(len(content)), func(r io.Reader) error {
			_, err := io.Copy(io.Discard, r)
			return err
		})
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Code != CodeExpands {
			t.Errorf("members: %v", err)
		}
	})
	t.Run("more than the worker's memory", func(t *testing.T) {
		t.Parallel()
		refused(t, extractor(t), bomb(600<<20), "application/pdf", CodeExpands)
	})
}
