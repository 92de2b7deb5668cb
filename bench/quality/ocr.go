package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/text/unicode/norm"

	"github.com/accession/accession/bench/table"
	"github.com/accession/accession/internal/extract"
)

//go:embed pages.tsv
var pages string

const (
	ocrDPI      = 300
	fewestPages = 10
)

// scan is one page made a picture, and what is known to stand on it.
type scan struct {
	name, language string
	truth          string
	picture        *image.Gray
	file           string // the picture as PNG
}

func (b *bench) ocr(ctx context.Context) error {
	fmt.Printf("\n## OCR\n")
	scans, err := b.scans(ctx)
	if err != nil {
		return err
	}
	byLanguage := map[string][]scan{}
	for _, s := range scans {
		byLanguage[s.language] = append(byLanguage[s.language], s)
	}
	read := 0
	for _, language := range []string{"eng", "deu"} {
		of := byLanguage[language]
		if !slices.Contains(b.languages, language) {
			fmt.Printf("\n%d pages in %q are not measured: tesseract has no data for it here.\n", len(of), language)
			continue
		}
		read += len(of)
		if err := b.errors(ctx, language, of); err != nil {
			return err
		}
	}
	if read < fewestPages {
		return fmt.Errorf("%d pages, at least %d are needed", read, fewestPages)
	}
	return b.ocrSpeed(ctx, byLanguage["eng"])
}

// scans draws the pages of pages.tsv with pdftoppm.
func (b *bench) scans(ctx context.Context) ([]scan, error) {
	var out []scan
	for line := range strings.Lines(pages) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 4 || strings.HasPrefix(line, "#") {
			continue
		}
		at := slices.IndexFunc(b.documents, func(d document) bool { return d.name() == f[0] })
		if at < 0 {
			fmt.Printf("missing: page %s of %s\n", f[1], f[0])
			continue
		}
		s := scan{name: fmt.Sprintf("%s p. %s", f[0], f[1]), language: f[3], file: filepath.Join(b.work, fmt.Sprintf("scan-%02d.png", len(out)))}
		if f[2] != "0" {
			s.name += ", turned " + f[2] + "°"
		}
		turned, err := strconv.Atoi(f[2])
		if err != nil {
			return nil, err
		}
		if s.truth, err = output(ctx, "pdftotext", "-enc", "UTF-8", "-f", f[1], "-l", f[1], b.documents[at].file, "-"); err != nil {
			return nil, err
		}
		drawn, err := output(ctx, "pdftoppm", "-r", strconv.Itoa(ocrDPI), "-gray", "-png", "-f", f[1], "-l", f[1], b.documents[at].file)
		if err != nil {
			return nil, err
		}
		picture, err := png.Decode(strings.NewReader(drawn))
		if err != nil {
			return nil, err
		}
		s.picture = turn(picture, turned)
		var encoded bytes.Buffer
		if err := png.Encode(&encoded, s.picture); err != nil {
			return nil, err
		}
		if err := os.WriteFile(s.file, encoded.Bytes(), 0o600); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// turn makes a gray copy turned clockwise by a multiple of 90 degrees.
func turn(from image.Image, degrees int) *image.Gray {
	size := from.Bounds().Size()
	upright := image.NewGray(image.Rectangle{Max: size})
	draw.Draw(upright, upright.Rect, from, from.Bounds().Min, draw.Src)
	for range degrees / 90 {
		turned := image.NewGray(image.Rect(0, 0, upright.Rect.Dy(), upright.Rect.Dx()))
		for y := range upright.Rect.Dy() {
			for x := range upright.Rect.Dx() {
				turned.Pix[x*turned.Stride+upright.Rect.Dy()-1-y] = upright.Pix[y*upright.Stride+x]
			}
		}
		upright = turned
	}
	return upright
}

// errors prints the character error rate of each page: ours out of a PDF of pictures and out of the PNG, tesseract's by hand.
func (b *bench) errors(ctx context.Context, language string, scans []scan) error {
	pdf := filepath.Join(b.work, language+".pdf")
	if err := os.WriteFile(pdf, picturePDF(scans), 0o600); err != nil {
		return err
	}
	e := b.extractor(language)
	doc, err := extractFile(ctx, e, pdf, "application/pdf")
	if err != nil {
		return err
	}
	if len(doc.Pages) != len(scans) || doc.OCRPages != len(scans) {
		return fmt.Errorf("%d pages, %d of them by OCR, of %d pictures", len(doc.Pages), doc.OCRPages, len(scans))
	}
	const ways = 4
	var rows [][ways]share = make([][ways]share, len(scans))
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for i, s := range scans {
		group.Go(func() error {
			single, err := extractFile(ctx, e, s.file, "image/png")
			if err != nil {
				return err
			}
			got := [ways]string{doc.Pages[i].Text, textOf(single)}
			for j, mode := range []string{"1", "3"} {
				if got[2+j], err = byHand(ctx, s.file, language, mode); err != nil {
					return err
				}
			}
			for j, text := range got {
				rows[i][j] = errorsIn(s.truth, text)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	fmt.Printf("\n| page (%s) | characters | PDF of pictures | PNG | tesseract --psm 1 | tesseract (--psm 3) |\n|---|---|---|---|---|---|\n", language)
	var all [ways]share
	for i, row := range rows {
		fmt.Printf("| %s | %d | %.4f | %.4f | %.4f | %.4f |\n", scans[i].name, row[0].of, row[0].ratio(), row[1].ratio(), row[2].ratio(), row[3].ratio())
		for j, s := range row {
			all[j].found, all[j].of = all[j].found+s.found, all[j].of+s.of
		}
	}
	fmt.Printf("| **all** | %d | **%.4f** | **%.4f** | **%.4f** | **%.4f** |\n", all[0].of, all[0].ratio(), all[1].ratio(), all[2].ratio(), all[3].ratio())
	fmt.Printf("\nRatio to tesseract --psm 1: PDF of pictures %.2f, PNG %.2f (wished: at most 1.1)\n",
		all[0].ratio()/all[2].ratio(), all[1].ratio()/all[2].ratio())
	return nil
}

func byHand(ctx context.Context, file, language, mode string) (string, error) {
	cmd := exec.CommandContext(ctx, "tesseract", file, "stdout", "-l", language, "--dpi", strconv.Itoa(ocrDPI), "--psm", mode)
	cmd.Env = append(os.Environ(), "OMP_THREAD_LIMIT=1")
	out, err := cmd.Output()
	return string(out), err
}

// errorsIn counts insertions, deletions and substitutions of characters (Levenshtein), any white space being one space.
func errorsIn(truth, got string) share {
	plain := func(s string) []rune { return []rune(strings.Join(strings.Fields(norm.NFKC.String(s)), " ")) }
	t, g := plain(truth), plain(got)
	row := make([]int, len(g)+1)
	for j := range row {
		row[j] = j
	}
	for i, r := range t {
		diagonal := row[0]
		row[0] = i + 1
		for j, c := range g {
			cost := 1
			if r == c {
				cost = 0
			}
			next := min(row[j+1]+1, row[j]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return share{row[len(g)], len(t)}
}

// ocrSpeed reads the same pictures in turn: ours as one PDF, tesseract's by hand with one process per processor.
func (b *bench) ocrSpeed(ctx context.Context, scans []scan) error {
	pdf := filepath.Join(b.work, "speed.pdf")
	if err := os.WriteFile(pdf, picturePDF(scans), 0o600); err != nil {
		return err
	}
	var list bytes.Buffer
	for _, s := range scans {
		fmt.Fprintln(&list, s.file)
	}
	e := b.extractor("eng")
	if err := e.Warm(ctx); err != nil {
		return err
	}
	ways := []struct {
		name string
		run  func() error
	}{
		{"accession, PDF of pictures", func() error { _, err := extractFile(ctx, e, pdf, "application/pdf"); return err }},
		{"xargs tesseract --psm 1", func() error { return xargs(ctx, list.Bytes(), "1") }},
		{"xargs pdftoppm, tesseract --psm 1, from the PDF", func() error { return xargsFromPDF(ctx, pdf, len(scans)) }},
		{"accession, the PNG one by one", func() error { return b.eachPicture(ctx, e, scans) }},
		{"xargs tesseract (--psm 3)", func() error { return xargs(ctx, list.Bytes(), "3") }},
	}
	rates, seconds := make([][]float64, len(ways)), make([][]float64, len(ways)) // processor time per page
	for range b.rounds {
		for i, w := range ways {
			began, used := time.Now(), processorTime()
			if err := w.run(); err != nil {
				return errors.Join(fmt.Errorf("%s failed", w.name), err)
			}
			rates[i] = append(rates[i], float64(len(scans))/time.Since(began).Minutes())
			seconds[i] = append(seconds[i], (processorTime()-used).Seconds()/float64(len(scans)))
		}
	}
	fmt.Printf("\n| %d pages, %d rounds in turn | pages per minute: median (lowest–highest) | processor time per page, s |\n|---|---|---|\n", len(scans), b.rounds)
	for i, w := range ways {
		fmt.Printf("| %s | %s | %s |\n", w.name, table.Spread(rates[i], "%.1f"), table.Spread(seconds[i], "%.2f"))
	}
	fmt.Printf("\n| round by round | pages per minute (wished: at least 0.9) | processor time |\n|---|---|---|\n")
	for _, pair := range [][2]int{{0, 1}, {0, 2}, {3, 1}} {
		fmt.Printf("| %s / %s | %s | %s |\n", ways[pair[0]].name, ways[pair[1]].name,
			table.Spread(ratios(rates[pair[0]], rates[pair[1]]), "%.2f"), table.Spread(ratios(seconds[pair[0]], seconds[pair[1]]), "%.2f"))
	}
	return nil
}

func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

// eachPicture reads the pictures as documents of one page each, as many at once as there are processors.
func (b *bench) eachPicture(ctx context.Context, e *extract.Extractor, scans []scan) error {
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for _, s := range scans {
		group.Go(func() error {
			_, err := extractFile(ctx, e, s.file, "image/png")
			return err
		})
	}
	return group.Wait()
}

// xargsFromPDF begins with the PDF, as we do: each page is drawn, then read.
func xargsFromPDF(ctx context.Context, pdf string, pages int) error {
	var list bytes.Buffer
	for i := range pages {
		fmt.Fprintln(&list, i+1)
	}
	cmd := exec.CommandContext(ctx, "xargs", "-P", strconv.Itoa(runtime.NumCPU()), "-I{}", "sh", "-c", fmt.Sprintf(
		"pdftoppm -gray -r %d -f {} -l {} %s | tesseract stdin stdout -l eng --dpi %d --psm 1 >%s.{}.txt", ocrDPI, pdf, ocrDPI, pdf))
	cmd.Env = append(os.Environ(), "OMP_THREAD_LIMIT=1")
	cmd.Stdin = &list
	return cmd.Run()
}

func xargs(ctx context.Context, list []byte, mode string) error {
	cmd := exec.CommandContext(ctx, "xargs", "-P", strconv.Itoa(runtime.NumCPU()), "-I{}",
		"tesseract", "{}", "{}.out", "-l", "eng", "--dpi", strconv.Itoa(ocrDPI), "--psm", mode)
	cmd.Env = append(os.Environ(), "OMP_THREAD_LIMIT=1")
	cmd.Stdin = bytes.NewReader(list)
	return cmd.Run()
}
