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

// ErrCageOpen marks errors of workers that cannot be locked in on this machine, and so read nothing; the text says which wall is missing.
var ErrCageOpen = errors.New("the cage cannot be closed")

// ErrStopped marks errors of workers that were ended because they used more than they may, or did what no worker does.
var ErrStopped = errors.New("extraction worker stopped")

// Config of an Extractor. Every field may be left zero.
type Config struct {
	Executable string   // binary whose "worker" commands call Worker (/proc/self/exe)
	CacheDir   string   // folder for compiled pdfium, owned by this service; made with mode 0700 (in the user's cache folder)
	Languages  []string // tesseract languages, most likely first ("eng")
	Tesseract  string   // program name or path ("tesseract")

	// LibreOffice is its program's name or path ("soffice"). Where it is not there, DOC, XLS and PPT are refused.
	LibreOffice string
	Parallel    int // pages in OCR at once; twice as many documents may be in work (one per processor)
	Limits      Limits
	Log         *slog.Logger // never gets content (discarded)

	// AllowMissingWalls lets workers run on a kernel without Landlock or seccomp. Without it, extraction fails there.
	AllowMissingWalls bool
}

// Extractor extracts text with caged workers. It is safe for use by several goroutines.
type Extractor struct {
	config   Config
	limits   Limits
	workers  map[string]chan struct{} // by purpose: a token per worker
	ocrPages chan struct{}            // a token per page in OCR: two on one processor cost each other more than their time

	conversions chan struct{} // a token per LibreOffice at work

	linger time.Duration // how long a worker may live after its last word

	warm      sync.Mutex // held while the cache is filled, so that two workers do not compile the same
	isWarm    bool
	tesseract engine
}

// New returns an Extractor. It starts nothing and touches no file.
func New(config Config) *Extractor {
	config.Executable = cmp.Or(config.Executable, "/proc/self/exe")
	config.Tesseract = cmp.Or(config.Tesseract, "tesseract")
	config.LibreOffice = cmp.Or(config.LibreOffice, "soffice")
	if len(config.Languages) == 0 {
		config.Languages = []string{"eng"}
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	config.Parallel = or(config.Parallel, runtime.GOMAXPROCS(0))
	return &Extractor{
		config: config,
		limits: shortened(config.Limits.withDefaults()),
		// Twice as many as work at full speed: a request with a short text must not wait for two long scans to end. Walking a
		// container mostly waits for whoever takes its members.
		workers:     map[string]chan struct{}{purposeText: make(chan struct{}, 2*config.Parallel), purposeMembers: make(chan struct{}, 4*config.Parallel)},
		ocrPages:    make(chan struct{}, config.Parallel),
		conversions: make(chan struct{}, config.Parallel),
		linger:      10 * time.Second,
	}
}

// Warm removes what a service that was killed has left in memory, and compiles pdfium into the cache when it is not there yet (about 4 s of CPU time), so that workers start in a tenth
// of a second. Extract calls it when needed; a service calls it when it starts. An error may be tried again.
func (e *Extractor) Warm(ctx context.Context) error {
	e.warm.Lock()
	defer e.warm.Unlock()
	if e.isWarm {
		return nil
	}
	if err := sweepRooms(); err != nil { // of a service that was killed
		e.config.Log.WarnContext(ctx, "converted documents are left in memory", "error", err)
	}
	dir, err := e.cacheDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("extraction cache: %w", err)
	}
	w, err := e.start(ctx, "extraction worker", e.readerArgs(purposeWarm, true, dir))
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

func (e *Extractor) readerArgs(purpose string, pdf bool, cacheDir string) []string {
	w := walls{memory: e.limits.WorkerMemory, cpu: e.limits.WorkerCPU, allowMissing: e.config.AllowMissingWalls}
	return append(w.args("extract"), "-purpose="+purpose, fmt.Sprintf("-pdf=%t", pdf), "-cache="+cacheDir)
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
	doc, err := e.extract(ctx, purposeText, declared, content, size, progress)
	var legacy *legacyError
	if errors.As(err, &legacy) {
		return e.extractLegacy(ctx, legacy, content, size, progress)
	}
	return doc, err
}

func (e *Extractor) extract(ctx context.Context, purpose, declared string, content io.ReaderAt, size int64, progress func(done, total int)) (*Document, error) {
	var c *collector
	err := e.converse(ctx, purpose, declared, content, size, func(with *conversation) error {
		c = newCollector(with.ctx, e, progress)
		return c.finish(c.read(with))
	})
	if err != nil {
		return nil, err
	}
	return c.document(), nil
}

// converse starts a worker and lets talk hear what it says; once more, with the PDF engine loaded, where it turns out to be
// needed. When it returns, the worker has ended.
func (e *Extractor) converse(ctx context.Context, purpose, declared string, content io.ReaderAt, size int64, talk func(*conversation) error) error {
	if tokens := e.workers[purpose]; tokens != nil {
		select {
		case tokens <- struct{}{}:
			defer func() { <-tokens }()
		case <-ctx.Done():
			return stopped(ctx)
		}
	}
	// A glance at the beginning saves a start; what the content really is the worker finds out. What is packed into a PDF it mostly
	// knows without the engine.
	glance, err := whole(content, min(size, headBytes))
	if err != nil {
		return err
	}
	pdf := pdfHeader(glance) >= 0 && purpose != purposeMembers
	err = e.converseOnce(ctx, purpose, pdf, declared, content, size, talk)
	if errors.Is(err, errNeedPDF) && !pdf {
		err = e.converseOnce(ctx, purpose, true, declared, content, size, talk)
	}
	if errors.Is(err, errNeedPDF) {
		return errFrame
	}
	return err
}

func (e *Extractor) converseOnce(ctx context.Context, purpose string, pdf bool, declared string, content io.ReaderAt, size int64, talk func(*conversation) error) error {
	var cacheDir string
	if pdf {
		if err := e.Warm(ctx); err != nil {
			return err
		}
		cacheDir, _ = e.cacheDir()
	}
	w, err := e.start(ctx, "extraction worker", e.readerArgs(purpose, pdf, cacheDir))
	if err != nil {
		return err
	}
	_ = writeFrame(w.stdin, frameJob, job{ // a worker that does not take it says why by the way it ends
		Size: size, Declared: declared, InputBytes: e.limits.InputBytes, Pages: e.limits.Pages, OCRPages: e.limits.OCRPages,
		PagePixels: e.limits.PagePixels, TextBytes: e.limits.TextBytes, ExpandedBytes: e.limits.ExpandedBytes,
	})
	conversation := newConversation(ctx, w.stdout, w.stdin, content, size)
	talkErr := talk(conversation)
	w.stdin.Close()
	if talkErr != nil && !errors.Is(talkErr, errEnded) {
		w.kill() // nothing more is wanted from it
	}
	waitErr := w.end(e.linger)
	var refusal *Refusal
	switch {
	case errors.As(talkErr, &refusal), errors.Is(talkErr, errNeedPDF), errors.Is(talkErr, errContent):
		return talkErr
	case ctx.Err() != nil:
		return stopped(ctx)
	case talkErr != nil && !errors.Is(talkErr, errEnded):
		return talkErr
	case errors.Is(waitErr, errBrokeDown) && conversation.unpacking: // it would do so each time
		return refuse(CodeExpands)
	case waitErr != nil: // says more than the end of the stream does
		return waitErr
	}
	return talkErr
}

func stopped(ctx context.Context) error {
	return fmt.Errorf("extraction stopped before it was done: %w", context.Cause(ctx))
}
