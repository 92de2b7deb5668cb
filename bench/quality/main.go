// Command quality measures what the service makes of documents, each figure beside a named reference that ran in the same
// minute on the same machine: what it prints is the only source of figures in docs/quality.md. From the top of the repository:
//
//	go run ./bench/quality [-only recall,ocr,summary,pipeline,robust] [-rounds 3] [-table FILE]
//
//	recall    characters of extraction, beside pdftotext and the document's own text or HTML
//	ocr       character errors and pages per minute, beside tesseract run by hand
//	summary   ROUGE-L against the author's abstract, beside the first three sentences
//	pipeline  100 documents through a real service, beside its engines' own time
//	robust    hostile documents through a real service: what became of them, and its memory
//
// Documents are files of Debian packages (corpus.tsv), fetched with apt-get into -cache once; programs of references that are missing
// are installed with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/accession/accession/bench/scratch"
	"github.com/accession/accession/bench/server"
	"github.com/accession/accession/bench/table"
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
	table     *table.Table
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

// programs are what references and documents need, the Debian package of each, and the one part that needs it; "" are all.
var programs = [][3]string{
	{"pdftotext", "poppler-utils", ""}, {"pdftoppm", "poppler-utils", ""}, {"soffice", "libreoffice-writer-nogui", "recall"},
	{"xargs", "findutils", ""}, {"dpkg-deb", "dpkg", ""},
}

func main() {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	only := flag.String("only", strings.Join(names, ","), "what to measure, comma-separated")
	cache := flag.String("cache", filepath.Join(".cache", "quality"), "folder for the documents")
	rounds := flag.Int("rounds", 3, "rounds of what is timed")
	dir := flag.String("dir", os.TempDir(), "where to write")
	path := flag.String("table", "", "a file that the row of the pipeline is added to as well")
	flag.Parse()
	if *rounds < 1 {
		fail(errors.New("-rounds is at least 1"))
	}
	wanted, err := table.Choose("only", *only, names)
	fail(err)
	b := &bench{rounds: *rounds}
	b.table, err = table.Open(*path)
	fail(err)
	b.cache, err = filepath.Abs(*cache)
	fail(err)
	fail(scratch.Run(*dir, "quality", 2<<30, func(ctx context.Context, folder string) error {
		b.work = folder
		return b.run(ctx, wanted)
	}))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "quality:", err)
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context, wanted []string) (err error) {
	if err := equip(ctx, wanted); err != nil {
		return err
	}
	if b.binary, err = server.Build(ctx, b.work); err != nil {
		return err
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

// equip installs the programs that are missing.
func equip(ctx context.Context, wanted []string) error {
	for _, engine := range []string{"clamd", "tesseract"} {
		if _, err := exec.LookPath(engine); err != nil {
			return fmt.Errorf("%s is not installed: run scripts/engines.sh", engine)
		}
	}
	var missing []string
	for _, p := range programs {
		if _, err := exec.LookPath(p[0]); err != nil && (p[2] == "" || slices.Contains(wanted, p[2])) && !slices.Contains(missing, p[1]) {
			missing = append(missing, p[1])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	fmt.Println("Installing with apt-get:", strings.Join(missing, " "))
	_, err := output(ctx, "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120", "update")
	if err == nil {
		err = install(ctx, missing...)
	}
	if err != nil {
		return fmt.Errorf("missing: %s; as root run: apt-get install --no-install-recommends %[1]s: %w", strings.Join(missing, " "), err)
	}
	return nil
}

func install(ctx context.Context, packages ...string) error {
	_, err := output(ctx, "apt-get", append([]string{"-qq", "-o", "DPkg::Lock::Timeout=120", "install", "-y", "--no-install-recommends"}, packages...)...)
	return err
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
		if err := install(ctx, "tesseract-ocr-deu"); err != nil {
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
