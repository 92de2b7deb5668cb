package extract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// ErrEngineMissing marks errors for a machine that lacks a program or its data; the text says what to install.
var ErrEngineMissing = errors.New("extraction engine missing")

// Config of an Extractor. Every field may be left zero.
type Config struct {
	Executable string   // binary whose "worker" commands call Worker (/proc/self/exe)
	CacheDir   string   // folder for compiled pdfium, owned by this service; made with mode 0700 (in the user's cache folder)
	Languages  []string // tesseract languages, most likely first ("eng")
	Tesseract  string   // program name or path ("tesseract")
	Parallel   int      // documents, and pages in OCR, that are worked on at once (one per processor)
	Limits     Limits
	Log        *slog.Logger // never gets content (discarded)

	// AllowMissingWalls lets workers run on a kernel without Landlock or seccomp. Without it, extraction fails there.
	AllowMissingWalls bool
}

// Extractor extracts text with caged workers. It is safe for use by several goroutines.
type Extractor struct {
	config    Config
	limits    Limits
	documents chan struct{} // a token per document in work
	ocrPages  chan struct{} // a token per page in OCR: two on one processor cost each other more than their time

	linger time.Duration // how long a worker may live after its last word

	warm      sync.Mutex // held while the cache is filled, so that two workers do not compile the same
	isWarm    bool
	tesseract engine
}

// New returns an Extractor. It starts nothing and touches no file.
func New(config Config) *Extractor {
	config.Executable = cmp.Or(config.Executable, "/proc/self/exe")
	config.Tesseract = cmp.Or(config.Tesseract, "tesseract")
	if len(config.Languages) == 0 {
		config.Languages = []string{"eng"}
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	config.Parallel = or(config.Parallel, runtime.GOMAXPROCS(0))
	return &Extractor{
		config:    config,
		limits:    config.Limits.withDefaults(),
		documents: make(chan struct{}, config.Parallel),
		ocrPages:  make(chan struct{}, config.Parallel),
		linger:    10 * time.Second,
	}
}

// Warm compiles pdfium into the cache when it is not there yet (about 4 s of CPU time), so that workers start in a tenth
// of a second. Extract calls it when needed; a service calls it when it starts. An error may be tried again.
func (e *Extractor) Warm(ctx context.Context) error {
	e.warm.Lock()
	defer e.warm.Unlock()
	if e.isWarm {
		return nil
	}
	dir, err := e.cacheDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("extraction cache: %w", err)
	}
	w, err := e.start(ctx, "extraction worker", e.readerArgs(warmUp, dir))
	if err != nil {
		return err
	}
	w.stdin.Close()
	if err := w.wait(); err != nil {
		return err
	}
	e.isWarm = true
	return nil
}

func (e *Extractor) cacheDir() (string, error) {
	if e.config.CacheDir != "" {
		return e.config.CacheDir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("extraction cache: %w", err)
	}
	return filepath.Join(dir, "accession", "pdfium"), nil
}

func (e *Extractor) readerArgs(format, cacheDir string) []string {
	w := walls{memory: e.limits.WorkerMemory, cpu: e.limits.WorkerCPU, allowMissing: e.config.AllowMissingWalls}
	return append(w.args("extract"), "-format="+format, "-cache="+cacheDir)
}

// Extract reads the document in content, size bytes long, and returns its text. declared is the media type that the
// submitter gave, and may be empty. progress, when not nil, is called one call at a time with pages done and pages to do.
//
// The error is a *Refusal when the content cannot be accepted; it wraps ErrEngineMissing when something must be
// installed, and ctx's error when ctx ended. Every error but a Refusal means that extraction could not finish. When Extract
// returns, no worker of it runs any more.
func (e *Extractor) Extract(ctx context.Context, content io.ReaderAt, size int64, declared string, progress func(done, total int)) (*Document, error) {
	if size <= 0 {
		return nil, refuse(CodeEmpty)
	}
	d, err := detect(content, size, declared)
	if err != nil {
		return nil, err
	}
	if d.format != formatText && size > e.limits.InputBytes {
		return nil, refuse(CodeTooLarge)
	}
	return e.extract(ctx, d, content, size, progress)
}

func (e *Extractor) extract(ctx context.Context, d detected, content io.ReaderAt, size int64, progress func(done, total int)) (*Document, error) {
	select {
	case e.documents <- struct{}{}:
		defer func() { <-e.documents }()
	case <-ctx.Done():
		return nil, stopped(ctx)
	}
	var cacheDir string
	if d.format == formatPDF {
		if err := e.Warm(ctx); err != nil {
			return nil, err
		}
		cacheDir, _ = e.cacheDir()
	}
	w, err := e.start(ctx, "extraction worker", e.readerArgs(d.format, cacheDir))
	if err != nil {
		return nil, err
	}
	fed := make(chan error, 1)
	go func() {
		fed <- w.feed(job{
			Size: size, Charset: d.charset, Media: d.media,
			Pages: e.limits.Pages, OCRPages: e.limits.OCRPages, PagePixels: e.limits.PagePixels, TextBytes: e.limits.TextBytes,
		}, content, size)
	}()
	c := newCollector(ctx, e, progress)
	readErr := c.read(w.stdout)
	if c.full() || readErr != nil && !errors.Is(readErr, errEnded) {
		w.kill() // nothing more is wanted from it
	}
	waitErr := w.end(e.linger)
	ocrErr := c.finish(readErr)
	feedErr := <-fed

	var refusal *Refusal
	switch {
	case errors.As(readErr, &refusal):
		return nil, refusal
	case ctx.Err() != nil:
		return nil, stopped(ctx)
	case ocrErr != nil:
		return nil, ocrErr
	case feedErr != nil:
		return nil, feedErr
	case readErr != nil && !errors.Is(readErr, errEnded):
		return nil, readErr
	case c.full():
	case waitErr != nil: // says more than the end of the stream does
		return nil, waitErr
	case readErr != nil:
		return nil, readErr
	}
	doc := c.document()
	doc.MediaType, doc.DeclaredMediaType = d.media, d.declared
	return doc, nil
}

func stopped(ctx context.Context) error {
	return fmt.Errorf("extraction stopped before it was done: %w", context.Cause(ctx))
}
