package extract

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/klippa-app/go-pdfium"
	pdferrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"

	"github.com/accession/accession/internal/extract/page"
)

const (
	pdfMemoryPages = (2 << 30) / (64 << 10) // 2 GiB for pdfium itself, in wasm pages: what its build declares
	pdfHandles     = 2_000_000              // objects that one worker looks at: the engine's library keeps some 200 bytes for each, to the end
)

// loadPDF compiles pdfium, or loads it compiled from cacheDir, and makes an instance that sees no file system.
func loadPDF(cacheDir string) (pdfium.Pdfium, error) {
	cache, err := wazero.NewCompilationCacheWithDir(cacheDir)
	if err != nil {
		return nil, err
	}
	pool, err := webassembly.Init(webassembly.Config{
		MinIdle: 1, MaxIdle: 1, MaxTotal: 1,
		FSConfig: wazero.NewFSConfig(), // without it the library mounts the host's root
		// Memory is reserved once: growing it step by step would copy it each time.
		RuntimeConfig: wazero.NewRuntimeConfig().WithCompilationCache(cache).
			WithMemoryLimitPages(pdfMemoryPages).WithMemoryCapacityFromMax(true),
		Stdout: io.Discard, Stderr: io.Discard, // ours is the wire
	})
	if err != nil {
		return nil, err
	}
	return pool.GetInstance(time.Minute)
}

// pdfDocument is an opened PDF. Close gives its memory back: one worker may read many.
type pdfDocument struct {
	engine  pdfium.Pdfium
	to      *sink
	ref     references.FPDF_DOCUMENT
	handles *int  // looked at by this worker
	layers  int   // pages seen so far whose text layer lies on a picture of the page
	pinned  []int // pages seen so far that have files pinned on them
}

// wholePDF is the file, where it is not longer than may be read.
func (w *worker) wholePDF(content io.ReaderAt, size int64) ([]byte, error) {
	if size > w.job.InputBytes {
		return nil, refuse(CodeTooLarge)
	}
	return whole(content, size)
}

func (w *worker) openPDF(raw []byte) (*pdfDocument, error) {
	if w.pdf == nil {
		return nil, errNeedPDF
	}
	opened, err := w.pdf.FPDF_LoadCustomDocument(&requests.FPDF_LoadCustomDocument{Reader: bytes.NewReader(raw), Size: int64(len(raw))})
	switch {
	case errors.Is(err, pdferrors.ErrPassword), errors.Is(err, pdferrors.ErrSecurity):
		return nil, refuse(CodeEncrypted)
	case err != nil:
		return nil, refuse(CodeBroken)
	}
	return &pdfDocument{engine: w.pdf, to: w.to, ref: opened.Document, handles: &w.handles}, nil
}

func (d *pdfDocument) close() {
	_, _ = d.engine.FPDF_CloseDocument(&requests.FPDF_CloseDocument{Document: d.ref}) // the worker ends soon anyway
}

// readPDF sends the pages, then reads the files that are attached to the document.
func (t tree) readPDF(content io.ReaderAt, size int64) error {
	raw, err := t.wholePDF(content, size)
	if err != nil {
		return err
	}
	d, err := t.openPDF(raw)
	if err != nil {
		return err
	}
	defer d.close()
	if err := d.sendPages(t.job, t.to); err != nil {
		return err
	}
	files := d
	if len(d.pinned) > 0 { // what was drawn into the pages is no longer pinned on them
		if files, err = t.openPDF(raw); err != nil {
			return err
		}
		defer files.close()
	}
	if err := t.budget.Enter(); err != nil {
		return faultOf(err)
	}
	defer t.budget.Leave()
	return faultOf(files.attachments(d.pinned, t.budget, t.member))
}

func (d *pdfDocument) sendPages(j job, to *sink) error {
	count, err := d.engine.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: d.ref})
	if err != nil || count.PageCount < 1 {
		return refuse(CodeBroken)
	}
	table, err := d.engine.FPDF_DocumentHasValidCrossReferenceTable(&requests.FPDF_DocumentHasValidCrossReferenceTable{Document: d.ref})
	if err := to.count(count.PageCount, err != nil || !table.DocumentHasValidCrossReferenceTable); err != nil {
		return err
	}
	unreadable := 0
	for i := range count.PageCount {
		p, err := d.page(i, j)
		if err != nil {
			unreadable++
			to.truncated = true
			if err := to.page(page.Page{}); err != nil {
				return err
			}
			continue
		}
		if err := p.send(to); err != nil {
			return err
		}
		if err := p.close(); err != nil {
			return refuse(CodeBroken)
		}
	}
	if unreadable == count.PageCount {
		return refuse(CodeBroken)
	}
	return nil
}

// page loads a page, with what is pinned on it drawn into it.
func (d *pdfDocument) page(index int, j job) (*pdfPage, error) {
	p := &pdfPage{pdfDocument: d, job: j}
	if err := p.load(index); err != nil {
		return nil, err
	}
	drawn := p.readAnnotations()
	if p.hasFiles {
		d.pinned = append(d.pinned, index)
	}
	if drawn {
		// What was drawn in is seen when the page is loaded anew.
		if err := p.close(); err != nil {
			return nil, err
		}
		if err := p.load(index); err != nil {
			return nil, err
		}
	}
	return p, nil
}
