package extract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/accession/accession/internal/extract/page"
)

// maxCount is the most pages that a worker may claim for a document.
const maxCount = 10_000_000

// collector gathers what a worker sends. It holds the worker to its limits: nothing that a worker says is believed
// unchecked.
type collector struct {
	extractor *Extractor
	progress  func(done, total int)
	ocr       *errgroup.Group
	ocrCtx    context.Context // ends with the first error of a page
	stopOCR   context.CancelFunc

	typed     bool
	counted   int // pages that the worker announced
	next      int // number of the next page
	total     int // pages that are to come
	pictures  int
	textBytes int64
	doc       Document

	mu    sync.Mutex // guards what OCR goroutines touch
	pages []Page     // index: number - 1
	done  int
	short bool // OCR text of a page was cut
}

func newCollector(ctx context.Context, e *Extractor, progress func(done, total int)) *collector {
	ctx, cancel := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	return &collector{extractor: e, progress: progress, next: 1, ocr: group, ocrCtx: ctx, stopOCR: cancel}
}

// errEnded is a worker's stream that ended before its last frame.
var errEnded = errors.New("extraction worker ended early")

// read takes frames until the last one. It returns nil after a proper end, a *Refusal, errNeedPDF, errFrame for a worker that
// breaks the rules, errEnded for one that ends too soon, errContent, or the error of a page in OCR.
func (c *collector) read(from *conversation) error {
	// JSON writes one byte as six at worst, and a character may take four; a worker sends at most the text limit and one more.
	limit := 6*4*(c.extractor.limits.TextBytes+8) + 4<<10
	for {
		kind, payload, err := from.next(limit)
		if err != nil {
			return err
		}
		last, err := c.take(kind, payload, from.in)
		if last || err != nil {
			return err
		}
	}
}

func (c *collector) take(kind byte, payload []byte, in io.Reader) (last bool, err error) {
	if !c.typed && kind != frameType && kind != frameRefusal && kind != frameNeed && kind != frameLegacy {
		return true, errFrame
	}
	switch kind {
	case frameNeed:
		return true, errNeedPDF
	case frameLegacy:
		var l legacyError
		if json.Unmarshal(payload, &l) != nil || c.typed || !declaredType.MatchString(l.Declared) {
			return true, errFrame
		}
		return true, &l
	case frameType:
		var f typeFrame
		if json.Unmarshal(payload, &f) != nil || c.typed || !mediaType.MatchString(f.Media) || !declaredType.MatchString(f.Declared) {
			return true, errFrame
		}
		c.typed, c.doc.MediaType, c.doc.DeclaredMediaType = true, f.Media, f.Declared
		return false, nil
	case frameCount:
		var f countFrame
		if json.Unmarshal(payload, &f) != nil || f.Pages < 1 || f.Pages > maxCount-c.counted {
			return true, errFrame
		}
		c.counted += f.Pages
		c.doc.PageCount, c.doc.Repaired = c.counted, c.doc.Repaired || f.Repaired
		c.setTotal(min(c.counted, c.extractor.limits.Pages))
		return false, nil
	case framePage:
		var f pageFrame
		if json.Unmarshal(payload, &f) != nil || !c.admit(f.Number) {
			return true, errFrame
		}
		p := plainPage(page.Page{Text: f.Text, Hidden: f.Hidden})
		c.add(Page{Number: f.Number, Text: p.Text, Hidden: p.Hidden, Source: SourceText})
		c.finished()
		return false, nil
	case framePicture:
		var f pictureFrame
		if json.Unmarshal(payload, &f) != nil || !c.admit(f.Number) || !c.admitPicture(f) {
			return true, errFrame
		}
		return false, c.recognise(f, in)
	case frameRefusal:
		return true, refusalOf(payload)
	case frameEnd:
		var f endFrame
		if json.Unmarshal(payload, &f) != nil || !f.Truncated && c.next <= c.counted || c.next == 1 && !f.Truncated ||
			f.Members < 0 || f.Members > maxCount || f.LeftOut < 0 || f.LeftOut > maxCount {
			return true, errFrame
		}
		c.doc.Truncated, c.doc.Members, c.doc.LeftOut = f.Truncated || c.next <= c.counted, f.Members, f.LeftOut
		return true, nil
	}
	return true, errFrame
}

const maxMediaType = 255 // characters of a declared one; RFC 6838, section 4.2, allows 127 for each half

var (
	mediaType    = regexp.MustCompile(`^[a-z]{1,63}/[a-z0-9.+-]{1,127}$`)
	declaredType = regexp.MustCompile(fmt.Sprintf(`^[!-~]{0,%d}$`, maxMediaType)) // what a declared one may be made of: nothing that a log or a page takes for a command
)

// admit holds pages to their order, their number, and the text limit.
func (c *collector) admit(number int) bool {
	if number != c.next || number > c.total || c.textBytes > c.extractor.limits.TextBytes {
		return false
	}
	c.next++
	return true
}

func (c *collector) admitPicture(f pictureFrame) bool {
	c.pictures++
	return c.pictures <= c.extractor.limits.OCRPages &&
		f.Width > 0 && f.Height > 0 && f.Width <= 1<<20 && f.Height <= 1<<20 &&
		int64(f.Width)*int64(f.Height) <= c.extractor.limits.PagePixels &&
		f.DPI >= 0 && f.DPI <= 10_000 && len(f.Text) <= ocrPageTextBytes
}

func (c *collector) add(p Page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.textBytes += int64(len(p.Text))
	c.pages = append(c.pages, p)
}

// recognise streams a picture from the worker into tesseract, and leaves the recognition to a goroutine.
func (c *collector) recognise(f pictureFrame, in io.Reader) error {
	layer := plainPage(page.Page{Text: f.Text, Hidden: f.Hidden})
	c.add(Page{Number: f.Number, Text: layer.Text, Hidden: layer.Hidden, Source: SourceText})
	select {
	case c.extractor.ocrPages <- struct{}{}:
	case <-c.ocrCtx.Done():
		return stopped(c.ocrCtx)
	}
	r, err := c.extractor.startOCR(c.ocrCtx, f)
	if err == nil {
		err = r.send(in, int64(f.Width)*int64(f.Height))
	}
	if err != nil {
		<-c.extractor.ocrPages
		return err
	}
	c.ocr.Go(func() error {
		text, short, err := r.text()
		<-c.extractor.ocrPages
		if err != nil {
			return fmt.Errorf("page %d: %w", f.Number, err)
		}
		c.recognised(f, text, short)
		return nil
	})
	return nil
}

func (c *collector) recognised(f pictureFrame, text string, short bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.pages[f.Number-1]
	differs := layerDiffers(p.Text, text)
	switch {
	case f.Check && !differs: // the layer says what the picture shows
	case f.Check, differs && words(text) > 0:
		*p = withLayer(text, *p)
	case layerTells(p.Text, text): // and better than OCR does
	case words(text) >= words(p.Text): // the picture shows the text layer too
		p.Text, p.Hidden, p.Source = text, nil, SourceOCR
	case words(text) > 0: // a layer that the picture hides
		p.Text, p.Source = p.Text+"\n\n"+text, SourceOCR
	}
	c.short = c.short || short
	c.finishedLocked()
}

func (c *collector) setTotal(total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total = total
}

func (c *collector) finished() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finishedLocked()
}

func (c *collector) finishedLocked() {
	c.done++
	if c.progress != nil {
		c.progress(c.done, c.total)
	}
}

// finish waits for the pages in OCR. The error is read's, if it has one: the pages are stopped then, what they find is not
// wanted. Else it is the first of theirs.
func (c *collector) finish(readErr error) error {
	if readErr != nil {
		c.stopOCR()
	}
	err := c.ocr.Wait()
	c.stopOCR()
	if err != nil && (readErr == nil || !errors.Is(err, context.Canceled)) {
		var refusal *Refusal
		if !errors.As(readErr, &refusal) {
			return err
		}
	}
	return readErr
}

// document is called when no page is in OCR any more. The text limit is applied in page order, so that the same document
// always gives the same text.
func (c *collector) document() *Document {
	doc := c.doc
	doc.Truncated = doc.Truncated || c.short
	doc.PageCount = max(doc.PageCount, 1)
	room := c.extractor.limits.TextBytes
	for _, p := range c.pages {
		whole := len(p.Text)
		p.Text = cut(p.Text, room)
		p.Hidden = clipRuns(p.Hidden, len(p.Text))
		room -= int64(len(p.Text))
		if p.Source == SourceOCR {
			doc.OCRPages++
		}
		doc.Pages = append(doc.Pages, p)
		if len(p.Text) < whole {
			doc.Truncated = true
			break
		}
	}
	return &doc
}
