package extract

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"
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

	counted   bool
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

// read takes frames until the last one. It returns nil after a proper end and when the text limit is reached, a
// *Refusal, errFrame for a worker that breaks the rules, errEnded for one that ends too soon, or the error of a page in OCR.
func (c *collector) read(from io.Reader) error {
	in := bufio.NewReaderSize(from, 64<<10)
	// JSON writes one byte as six at worst; a worker sends at most the text limit and one character more.
	limit := 6*(c.extractor.limits.TextBytes+8) + 4<<10
	for !c.full() {
		kind, payload, err := readFrame(in, limit)
		if err != nil {
			if errors.Is(err, errFrame) {
				return err
			}
			return fmt.Errorf("%w: %w", errEnded, err)
		}
		last, err := c.take(kind, payload, in)
		if last || err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) take(kind byte, payload []byte, in io.Reader) (last bool, err error) {
	if !c.counted && kind != frameCount && kind != frameRefusal {
		return true, errFrame
	}
	switch kind {
	case frameCount:
		var f countFrame
		if json.Unmarshal(payload, &f) != nil || c.counted || f.Pages < 1 || f.Pages > maxCount {
			return true, errFrame
		}
		c.counted, c.doc.PageCount, c.doc.Repaired = true, f.Pages, f.Repaired
		c.total = min(f.Pages, c.extractor.limits.Pages)
		c.doc.Truncated = c.total < f.Pages
		c.pages = make([]Page, 0, min(c.total, 64))
		return false, nil
	case framePage:
		var f pageFrame
		if json.Unmarshal(payload, &f) != nil || !c.admit(f.Number, f.Hidden) {
			return true, errFrame
		}
		c.add(Page{Number: f.Number, Text: plain(f.Text), Source: SourceText})
		c.finished()
		return false, nil
	case framePicture:
		var f pictureFrame
		if json.Unmarshal(payload, &f) != nil || !c.admit(f.Number, f.Hidden) || !c.admitPicture(f) {
			return true, errFrame
		}
		return false, c.recognise(f, in)
	case frameRefusal:
		var f refusalFrame
		if json.Unmarshal(payload, &f) != nil || refusalMessages[f.Code] == "" {
			return true, errFrame
		}
		return true, refuse(f.Code)
	case frameEnd:
		var f endFrame
		if json.Unmarshal(payload, &f) != nil || !f.Truncated && c.next <= c.total {
			return true, errFrame
		}
		c.doc.Truncated = c.doc.Truncated || f.Truncated
		return true, nil
	}
	return true, errFrame
}

// admit holds pages to their order and number.
func (c *collector) admit(number, hidden int) bool {
	if number != c.next || number > c.total || hidden < 0 || hidden > maxCount {
		return false
	}
	c.next++
	c.doc.HiddenCharacters += hidden
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

// full says that the text layers alone fill the text limit.
func (c *collector) full() bool { return c.textBytes > c.extractor.limits.TextBytes }

// recognise streams a picture from the worker into tesseract, and leaves the recognition to a goroutine.
func (c *collector) recognise(f pictureFrame, in io.Reader) error {
	c.add(Page{Number: f.Number, Text: plain(f.Text), Source: SourceText})
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
		c.recognised(f.Number, text, short)
		return nil
	})
	return nil
}

func (c *collector) recognised(number int, text string, short bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	page := &c.pages[number-1]
	switch {
	case words(text) >= words(page.Text): // the picture shows the text layer too
		page.Text, page.Source = text, SourceOCR
	case words(text) > 0: // a layer that the picture hides
		page.Text, page.Source = page.Text+"\n\n"+text, SourceOCR
	}
	c.short = c.short || short
	c.finishedLocked()
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

// finish waits for the pages in OCR and returns the first of their errors. After an error of read they are stopped: what
// they find is not wanted.
func (c *collector) finish(readErr error) error {
	if readErr != nil {
		c.stopOCR()
	}
	err := c.ocr.Wait()
	c.stopOCR()
	if readErr != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// document is called when no page is in OCR any more. The text limit is applied in page order, so that the same document
// always gives the same text.
func (c *collector) document() *Document {
	doc := c.doc
	doc.Truncated = doc.Truncated || c.short
	room := c.extractor.limits.TextBytes
	for _, p := range c.pages {
		whole := len(p.Text)
		p.Text = cut(p.Text, room)
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
