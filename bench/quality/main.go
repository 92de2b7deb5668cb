// Command quality measures what the service makes of documents, each figure beside a named reference that ran in the same
// minute on the same machine: what it prints is the only source of figures in docs/quality.md. From the top of the repository:
//
//	go run ./bench/quality [-only recall,ocr,summary,pipeline,robust] [-rounds 3]
//
//	recall    characters of extraction, beside pdftotext and the document's own text or HTML
//	ocr       character errors and pages per minute, beside tesseract run by hand
//	summary   ROUGE-L against the author's abstract, beside the first three sentences
//	pipeline  100 documents through a real service, beside its engines' own time
//	robust    hostile documents through a real service: what became of them, and its memory
//
// Documents are files of Debian packages (corpus.tsv), fetched with apt-get into -cache once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/accession/accession/internal/extract"
)

// bench is what the measurements share.
type bench struct {
	cache     string // documents, kept between runs
	work      string // removed at the end
	binary    string // the service, built as a release is
	languages []string
	documents []document
	missing   int // documents that could not be fetched
	rounds    int // of what is timed
}

var parts = []struct {
	name string
	run  func(*bench, context.Context) error
}{
	{"recall", (*bench).recall},
	{"ocr", (*bench).ocr},
	{"summary", (*bench).summary},
	{"pipeline", (*bench).pipeline},
	{"robust", (*bench).robust},
}

// programs are what the references need, and the Debian package of each.
var programs = [][2]string{
	{"pdftotext", "poppler-utils"}, {"pdftoppm", "poppler-utils"}, {"tesseract", "tesseract-ocr"}, {"clamd", "clamav-daemon"},
	{"soffice", "libreoffice-writer-nogui"}, {"xargs", "findutils"}, {"apt-get", "apt"}, {"dpkg-deb", "dpkg"},
}

func main() {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	only := flag.String("only", strings.Join(names, ","), "what to measure, comma-separated")
	cache := flag.String("cache", filepath.Join(".cache", "quality"), "folder for the documents")
	rounds := flag.Int("rounds", 3, "rounds of what is timed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	wanted := strings.Split(*only, ",")
	for _, w := range wanted {
		if !slices.Contains(names, w) {
			fail(fmt.Errorf("-only %s: write some of %s", w, strings.Join(names, ",")))
		}
	}
	work, err := os.MkdirTemp("", "accession-quality-")
	fail(err)
	err = run(ctx, *cache, work, *rounds, wanted)
	fail(errors.Join(err, os.RemoveAll(work)))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "quality:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cache, work string, rounds int, wanted []string) error {
	for _, p := range programs {
		if _, err := exec.LookPath(p[0]); err != nil {
			return fmt.Errorf("%s is not installed: apt-get install %s", p[0], p[1])
		}
	}
	cache, err := filepath.Abs(cache)
	if err != nil {
		return err
	}
	b := &bench{cache: cache, work: work, binary: filepath.Join(work, "accession"), rounds: rounds}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.binary, "./cmd/accession")
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build ./cmd/accession (run this at the top of the repository): %w", err)
	}
	if err := b.learnGerman(ctx); err != nil {
		return err
	}
	if err := b.fetch(ctx); err != nil {
		return err
	}
	b.engines(ctx)
	for _, p := range parts {
		if !slices.Contains(wanted, p.name) {
			continue
		}
		if err := p.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// learnGerman installs what tesseract needs for the pages in German: English alone would say little of OCR in other languages.
// Without it they are named as not measured.
func (b *bench) learnGerman(ctx context.Context) error {
	for _, again := range []bool{true, false} {
		list, err := output(ctx, "tesseract", "--list-langs")
		if err != nil {
			return err
		}
		_, list, _ = strings.Cut(list, "\n") // after a heading
		b.languages = strings.Fields(list)
		if slices.Contains(b.languages, "deu") || !again {
			break
		}
		if _, err := output(ctx, "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120", "install", "-y", "--no-install-recommends", "tesseract-ocr-deu"); err != nil {
			fmt.Println("tesseract-ocr-deu is not installed:", err)
		}
	}
	return nil
}

// extractor reads as the service does, with its binary as the worker.
func (b *bench) extractor(languages ...string) *extract.Extractor {
	return extract.New(extract.Config{
		Executable: b.binary, CacheDir: filepath.Join(b.cache, "engines"), Languages: languages, Parallel: runtime.NumCPU(),
	})
}

// engines prints what the figures were made with.
func (b *bench) engines(ctx context.Context) {
	fmt.Printf("%d processors; %s; languages of tesseract: %s\n", runtime.NumCPU(), strings.Join([]string{
		version(ctx, "pdftotext", "-v"), version(ctx, "tesseract", "--version"), version(ctx, "clamd", "--version"),
	}, "; "), strings.Join(b.languages, ", "))
}

// version is the first line that a program says about itself.
func version(ctx context.Context, program string, args ...string) string {
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return program + " missing"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// output runs a program to its end and returns what it printed.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
