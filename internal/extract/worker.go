package extract

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// Exit codes of a worker. Only exitSetup comes with a reason on standard error: until then no untrusted byte was read.
const (
	exitDone  = 0
	exitCrash = 2  // of the Go runtime: out of memory, most often
	exitSetup = 70 // the engine could not be loaded or the cage could not be closed
	exitWork  = 71 // the work could not be finished
)

// reading turns the content into frames. It runs inside the cage. A *Refusal refuses the content.
type reading func(j job, content io.Reader, to *sink) error

// formats is the list of what a worker can read. Each opens its engine before the cage closes; it may read the cache
// folder then, and nothing later.
var formats = map[string]func(cacheDir string) (reading, error){
	formatPDF:     openPDF,
	formatText:    openText,
	formatPicture: openPicture,
}

// warmUp, in place of a format, only fills the cache.
const warmUp = "warm"

// Worker is the body of the hidden commands "worker extract" and "worker ocr"; args are what follows them on the
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
	default:
		err = setupError{fmt.Errorf("unknown worker %q", name)}
	}
	var setup setupError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &setup):
		fmt.Fprintln(os.Stderr, err)
		return exitSetup
	}
	return exitWork
}

// setupError happened before any untrusted byte was read, so its text may be shown to an operator.
type setupError struct{ error }

func (e setupError) Unwrap() error { return e.error }

func extractWorker(args []string, in io.Reader, out io.Writer) error {
	flags, walls := cageFlags("extract")
	cacheDir := flags.String("cache", "", "")
	format := flags.String("format", "", "")
	if err := flags.Parse(args); err != nil {
		return setupError{err}
	}
	open := formats[*format]
	if *format == warmUp {
		open = openPDF
	}
	if open == nil {
		return setupError{fmt.Errorf("unknown format %q", *format)}
	}
	read, err := open(*cacheDir)
	if err != nil {
		return setupError{fmt.Errorf("load the engine: %w", err)}
	}
	if err := walls.close(readerCage); err != nil {
		return setupError{fmt.Errorf("close the cage: %w", err)}
	}
	if *format == warmUp {
		return nil
	}
	return work(read, in, out)
}

// work reads the job and answers it. It is the first code that touches bytes of a document.
func work(read reading, in io.Reader, out io.Writer) (err error) {
	kind, payload, err := readFrame(in, 64<<10)
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(payload, &j); err != nil || kind != frameJob {
		return errFrame
	}
	to := &sink{out: bufio.NewWriterSize(out, 64<<10), pagesLeft: j.Pages, picturesLeft: j.OCRPages}
	err = safely(func() error { return read(j, in, to) })
	var refusal *Refusal
	if errors.As(err, &refusal) {
		err = writeFrame(to.out, frameRefusal, refusalFrame{refusal.Code})
	} else if err == nil {
		err = writeFrame(to.out, frameEnd, endFrame{Truncated: to.truncated})
	}
	if err != nil {
		return err
	}
	return to.out.Flush()
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

// sink is where a format puts its pages.
type sink struct {
	out          *bufio.Writer
	pagesLeft    int
	picturesLeft int
	truncated    bool
}

func (s *sink) count(pages int, repaired bool) error {
	if err := writeFrame(s.out, frameCount, countFrame{Pages: pages, Repaired: repaired}); err != nil {
		return err
	}
	return s.out.Flush()
}

func (s *sink) page(p pageFrame) error {
	if err := writeFrame(s.out, framePage, p); err != nil {
		return err
	}
	return s.out.Flush()
}

// picture sends a page to be recognised: pixels holds width × height bytes of gray, row by row.
func (s *sink) picture(p pictureFrame, pixels []byte) error {
	s.picturesLeft--
	if err := writeFrame(s.out, framePicture, p); err != nil {
		return err
	}
	if _, err := s.out.Write(pixels); err != nil {
		return err
	}
	return s.out.Flush()
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
