package extract

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// ocrWorker locks this process in and becomes tesseract: picture on standard input, text on standard output.
func ocrWorker(args []string) error {
	flags, walls := cageFlags("ocr")
	program := flags.String("tesseract", "", "")
	languages := flags.String("languages", "", "")
	dpi := flags.Int("dpi", 0, "")
	if err := flags.Parse(args); err != nil {
		return setupError{err}
	}
	stderr, err := walls.lockIn(engineCage(*program))
	if err != nil {
		return err
	}
	// Page segmentation 1 finds the page's orientation first: a scan that lies on its side is read as well as an upright one.
	command := []string{*program, "stdin", "stdout", "-l", *languages, "--psm", "1"}
	if *dpi > 0 {
		command = append(command, "--dpi", strconv.Itoa(*dpi))
	}
	err = syscall.Exec(*program, command, []string{"OMP_THREAD_LIMIT=1", "LC_ALL=C.UTF-8"})
	speak(stderr)
	return setupError{fmt.Errorf("run tesseract: %w", err)}
}

// recognition is one page in OCR.
type recognition struct {
	*process
	frame pictureFrame
}

func (e *Extractor) startOCR(ctx context.Context, f pictureFrame) (*recognition, error) {
	program, err := e.tesseract.find(ctx, e.config.Tesseract, e.config.Languages)
	if err != nil {
		return nil, err
	}
	w := walls{memory: e.limits.OCRMemory, cpu: e.limits.OCRCPU, allowMissing: e.config.AllowMissingWalls}
	p, err := e.start(ctx, "tesseract", append(w.args("ocr"),
		"-tesseract="+program, "-languages="+strings.Join(e.config.Languages, "+"), "-dpi="+strconv.Itoa(f.DPI)))
	if err != nil {
		return nil, err
	}
	return &recognition{process: p, frame: f}, nil
}

// send streams the pixels to tesseract, as a bare TIFF picture, which it takes in faster than any other. It takes the whole
// picture in before it works on it.
func (r *recognition) send(from io.Reader, pixels int64) error {
	source := &source{ctx: r.ctx, r: io.LimitReader(from, pixels), left: pixels}
	_, err := r.stdin.Write(tiffHead(r.frame.Width, r.frame.Height))
	if err == nil {
		_, err = io.Copy(struct{ io.Writer }{r.stdin}, source)
	}
	if closeErr := r.stdin.Close(); err == nil {
		err = closeErr
	}
	switch {
	case source.err != nil:
		r.kill()
		r.wait()
		return fmt.Errorf("%w: %w", errEnded, source.err)
	case err != nil: // tesseract went away; how it ended says why
		if ended := r.wait(); ended != nil {
			return ended
		}
		return fmt.Errorf("tesseract did not take the page: %w", err)
	}
	return nil
}

// tiffHead is all of a TIFF file but its pixels: one strip of eight-bit gray, black is 0. (TIFF 6.0, sections 2 and 4.)
func tiffHead(width, height int) []byte {
	const (
		short, long = 3, 4
		fields      = 9
		pixelsAt    = 8 + 2 + fields*12 + 4
	)
	order := binary.LittleEndian
	head := append([]byte("II*\x00"), 8, 0, 0, 0, fields, 0)
	for _, f := range [fields]struct {
		tag, kind uint16
		value     int
	}{
		{256, long, width}, {257, long, height}, {258, short, 8}, {259, short, 1}, {262, short, 1},
		{273, long, pixelsAt}, {277, short, 1}, {278, long, height}, {279, long, width * height},
	} {
		head = order.AppendUint16(head, f.tag)
		head = order.AppendUint16(head, f.kind)
		head = order.AppendUint32(head, 1)
		head = order.AppendUint32(head, uint32(f.value))
	}
	return append(head, 0, 0, 0, 0)
}

// text waits for the recognised text; short says that it was cut at ocrPageTextBytes.
func (r *recognition) text() (text string, short bool, err error) {
	raw, readErr := io.ReadAll(io.LimitReader(r.stdout, ocrPageTextBytes+1))
	if len(raw) > ocrPageTextBytes {
		r.kill()
		r.wait()
		return cut(plain(string(raw)), ocrPageTextBytes), true, nil
	}
	if err := r.wait(); err != nil {
		return "", false, err
	}
	if readErr != nil {
		return "", false, fmt.Errorf("read from tesseract: %w", readErr)
	}
	return strings.TrimRight(plain(string(raw)), "\f\n "), false, nil
}

// engine remembers where tesseract is, once it was found with all it needs.
type engine struct {
	mu    sync.Mutex
	found string
}

func (e *engine) find(ctx context.Context, name string, languages []string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.found != "" {
		return e.found, nil
	}
	program, err := findTesseract(name)
	if err != nil {
		return "", err
	}
	have, err := tesseractLanguages(ctx, program)
	if err != nil {
		return "", err
	}
	for _, language := range append([]string{"osd"}, languages...) {
		if !slices.Contains(have, language) {
			return "", fmt.Errorf("%w: tesseract has no data for %q: install it with: apt-get install tesseract-ocr-%s",
				ErrEngineMissing, language, strings.ReplaceAll(language, "_", "-"))
		}
	}
	e.found = program
	return program, nil
}

func findTesseract(name string) (string, error) {
	program, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w: tesseract is not installed, pages that are pictures cannot be read: apt-get install tesseract-ocr", ErrEngineMissing)
	}
	return filepath.Abs(program)
}

func tesseractLanguages(ctx context.Context, program string) ([]string, error) {
	out, err := run(ctx, program, "--list-langs")
	if err != nil {
		return nil, err
	}
	_, list, _ := strings.Cut(out, "\n") // after a heading
	return strings.Fields(list), nil
}

// run asks the installed tesseract about itself; no document is involved.
func run(ctx context.Context, program string, arg string) (string, error) {
	cmd := exec.CommandContext(ctx, program, arg)
	cmd.Env = []string{"LC_ALL=C.UTF-8"}
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", stopped(ctx)
	}
	var missing *exec.Error
	if errors.As(err, &missing) || errors.Is(err, os.ErrNotExist) || err != nil {
		return "", fmt.Errorf("%w: tesseract does not run: apt-get install --reinstall tesseract-ocr", ErrEngineMissing)
	}
	return string(out), nil
}
