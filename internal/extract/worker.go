package extract

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/klippa-app/go-pdfium"
)

// Exit codes of a worker. exitSetup and exitCage come with a reason on standard error: until then no untrusted byte was read.
// Afterwards a worker has no standard error any more.
const (
	exitDone  = 0
	exitCrash = 2  // of the Go runtime: out of memory, most often
	exitSetup = 70 // the engine could not be loaded
	exitWork  = 71 // the work could not be finished
	exitCage  = 72 // as exitSetup: the kernel lacks a wall, or something else keeps the cage open
)

// worker is what runs inside the cage: one document, one purpose.
type worker struct {
	job     job
	pdf     pdfium.Pdfium // nil: not loaded
	handles int           // objects of PDF pages that were looked at
	content *remote
	to      *sink
}

// purposes are what a worker can be started for. A *Refusal refuses the content; errNeedPDF asks for another start.
var purposes = map[string]func(w *worker) error{
	purposeText:    (*worker).sendText,
	purposeMembers: (*worker).sendMembers,
}

const (
	purposeText    = "text"
	purposeMembers = "members"
	purposeWarm    = "warm" // only fills the cache
)

// errNeedPDF: there is a PDF in the content, and the engine for it was not loaded before the cage closed.
var errNeedPDF = errors.New("the PDF engine is needed")

// Worker is the body of the hidden commands "worker extract", "worker ocr" and "worker convert"; args are what follows them on the
// command line. in and out are the process's standard input and output; "worker ocr" hands them on to tesseract. It
// locks the whole process down, so it must be the last thing that the process does; the result is its exit code.
// Source: architecture, "Engines": extraction worker.
func Worker(name string, args []string, in io.Reader, out io.Writer) int {
	var err error
	switch name {
	case "extract":
		err = extractWorker(args, in, out)
	case "ocr":
		err = ocrWorker(args)
	case "convert":
		err = convertWorker(args)
	default:
		err = setupError{fmt.Errorf("unknown worker %q", name)}
	}
	var setup setupError
	var open cageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &open):
		fmt.Fprintln(os.Stderr, err)
		return exitCage
	case errors.As(err, &setup):
		fmt.Fprintln(os.Stderr, err)
		return exitSetup
	}
	return exitWork
}

// setupError happened before any untrusted byte was read, so its text may be shown to an operator.
type setupError struct{ error }

func (e setupError) Unwrap() error { return e.error }

// cageError is the setup error of a cage that cannot be closed.
type cageError struct{ error }

func (e cageError) Unwrap() error { return e.error }

func extractWorker(args []string, in io.Reader, out io.Writer) error {
	flags, walls := cageFlags("extract")
	cacheDir := flags.String("cache", "", "")
	name := flags.String("purpose", "", "")
	withPDF := flags.Bool("pdf", false, "")
	if err := flags.Parse(args); err != nil {
		return setupError{err}
	}
	purpose := purposes[*name]
	if purpose == nil && *name != purposeWarm {
		return setupError{fmt.Errorf("unknown purpose %q", *name)}
	}
	// pdfium's reserved memory counts as live heap; at the default, garbage of the same size could pile up beside it. In the
	// environment it would have the start of every worker collect garbage that there is not.
	debug.SetGCPercent(10)
	var engine pdfium.Pdfium
	if *withPDF {
		var err error
		if engine, err = loadPDF(*cacheDir); err != nil {
			return setupError{fmt.Errorf("load the engine: %w", err)}
		}
	}
	stderr, err := walls.lockIn(readerCage)
	if err != nil {
		return err
	}
	if err := stderr.Close(); err != nil { // the last that it had to say
		return setupError{err}
	}
	if *name == purposeWarm {
		return nil
	}
	return work(purpose, engine, in, out)
}

// work reads the job and answers it. It is the first code that touches bytes of a document.
func work(purpose func(*worker) error, engine pdfium.Pdfium, in io.Reader, out io.Writer) (err error) {
	kind, payload, err := takeFrame(in, 64<<10)
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(payload, &j); err != nil || kind != frameJob {
		return errFrame
	}
	to := &sink{out: bufio.NewWriterSize(out, 64<<10), pagesLeft: j.Pages, textLeft: j.TextBytes, picturesLeft: j.OCRPages}
	w := &worker{job: j, pdf: engine, content: newRemote(in, to, j.Size), to: to}
	err = safely(func() error { return purpose(w) })
	var refusal *Refusal
	var legacy *legacyError
	switch {
	case errors.As(err, &legacy):
		return to.send(frameLegacy, legacy)
	case errors.As(err, &refusal):
		return to.send(frameRefusal, refusalFrame{refusal.Code})
	case errors.Is(err, errNeedPDF):
		return to.send(frameNeed, nil)
	case err == nil, errors.Is(err, errEnough):
		return to.send(frameEnd, endFrame{Truncated: to.truncated, Members: to.members, LeftOut: to.leftOut})
	}
	return err
}

// safely takes a panic of a decoder for what it is: content that the decoder was not made for.
func safely(read func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = refuse(CodeBroken)
		}
	}()
	return read()
}

// walls are the settings of a cage as they come on a worker's command line.
type walls struct {
	memory       int64
	cpu          time.Duration
	allowMissing bool
}

func cageFlags(name string) (*flag.FlagSet, *walls) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	w := new(walls)
	flags.Int64Var(&w.memory, "memory", 0, "")
	flags.DurationVar(&w.cpu, "cpu", 0, "")
	flags.BoolVar(&w.allowMissing, "allow-missing-walls", false, "")
	return flags, w
}

func (w walls) args(command string) []string {
	return []string{
		"worker", command,
		fmt.Sprintf("-memory=%d", w.memory),
		fmt.Sprintf("-cpu=%s", w.cpu),
		fmt.Sprintf("-allow-missing-walls=%t", w.allowMissing),
	}
}
