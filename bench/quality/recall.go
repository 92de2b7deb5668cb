package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/sync/errgroup"
	"golang.org/x/text/unicode/norm"

	"github.com/accession/accession/bench/table"
	"github.com/accession/accession/internal/extract"
)

const (
	runLength     = 5  // characters that must stand together to be found
	fewestRecalls = 30 // documents, by the project's own measure
)

var hyphenated = regexp.MustCompile("(\\pL)[-\u2010\u00ad\u0002\ufffe][ \t\r]*\n\\s*(\\pL)")

// visible is the text as compared: words hyphenated at the end of a line made whole, NFKC, and neither spaces nor characters
// that nobody sees. lettersOnly leaves letters, marks and digits: a source is marked up in a way the PDF is not.
func visible(text string, lettersOnly bool) []rune {
	text = norm.NFKC.String(hyphenated.ReplaceAllString(text, "$1$2"))
	var out []rune
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Z, unicode.C):
		case lettersOnly && !unicode.In(r, unicode.L, unicode.M, unicode.N):
		default:
			out = append(out, r)
		}
	}
	return out
}

// recalled counts the characters of want that stand in got: those in a run of five that got has too. Each run of got
// answers for one of want. Order beyond the run does not matter: two readers of columns may differ and both be right.
func recalled(want, got []rune) int {
	if len(want) < runLength {
		if strings.Contains(string(got), string(want)) {
			return len(want)
		}
		return 0
	}
	have := map[[runLength]rune]int{}
	for i := range max(0, len(got)-runLength+1) {
		have[[runLength]rune(got[i:])]++
	}
	found, until := 0, 0 // characters before until are counted
	for i := range len(want) - runLength + 1 {
		run := [runLength]rune(want[i:])
		if have[run] == 0 {
			continue
		}
		have[run]--
		found += i + runLength - max(i, until)
		until = i + runLength
	}
	return found
}

// share is a part of characters.
type share struct{ found, of int }

func (s share) ratio() float64 { return float64(s.found) / float64(max(1, s.of)) }

func (s share) String() string { return fmt.Sprintf("%.4f", s.ratio()) }

func recall(want, got string, lettersOnly bool) share {
	w := visible(want, lettersOnly)
	return share{recalled(w, visible(got, lettersOnly)), len(w)}
}

// recalls are the measurements of one document.
type recalls struct {
	pages                        int
	oursOfTheirs, theirsOfOurs   share // beside pdftotext, every visible character
	oursOfSource, theirsOfSource share // beside the document's source, letters and digits
}

func (b *bench) recall(ctx context.Context) error {
	table := func(use string) ([]recalls, error) {
		var of []document
		for _, d := range b.documents {
			if d.use == use {
				of = append(of, d)
			}
		}
		out := make([]recalls, len(of))
		e := b.extractor()
		var group errgroup.Group
		group.SetLimit(runtime.NumCPU())
		for i, d := range of {
			group.Go(func() (err error) {
				if out[i], err = measureRecall(ctx, e, d); err != nil {
					return fmt.Errorf("%s: %w", d.name(), err)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
		fmt.Printf("\n| document | pages | characters | of pdftotext's | pdftotext of ours | of the source | pdftotext of the source |\n|---|---|---|---|---|---|---|\n")
		for i, r := range out {
			if use != "recall" && r.oursOfTheirs.ratio() >= 0.98 {
				continue // many, and much alike
			}
			fmt.Printf("| %s | %d | %d | %v | %v | %s | %s |\n", of[i].name(), r.pages, r.oursOfTheirs.of, r.oursOfTheirs, r.theirsOfOurs,
				orDash(r.oursOfSource), orDash(r.theirsOfSource))
		}
		column := func(pick func(recalls) share) (all share, each []float64) {
			for _, r := range out {
				s := pick(r)
				all.found, all.of = all.found+s.found, all.of+s.of
				each = append(each, s.ratio())
			}
			return all, each
		}
		var rows [3][]string
		for _, pick := range []func(recalls) share{
			func(r recalls) share { return r.oursOfTheirs }, func(r recalls) share { return r.theirsOfOurs },
			func(r recalls) share { return r.oursOfSource }, func(r recalls) share { return r.theirsOfSource },
		} {
			all, each := column(pick)
			if all.of == 0 {
				for i := range rows {
					rows[i] = append(rows[i], "–")
				}
				continue
			}
			rows[0] = append(rows[0], all.String())
			rows[1] = append(rows[1], fmt.Sprintf("%.4f", table.Median(each)))
			rows[2] = append(rows[2], fmt.Sprintf("%.4f", slices.Min(each)))
		}
		for i, name := range []string{"all characters", "median", "lowest"} {
			fmt.Printf("| **%s** | | | **%s** |\n", name, strings.Join(rows[i], "** | **"))
		}
		return out, nil
	}
	fmt.Printf("\n## Recall of characters\n")
	got, err := table("recall")
	if err != nil {
		return err
	}
	if len(got) < fewestRecalls {
		return fmt.Errorf("%d documents, at least %d are needed: %d could not be fetched", len(got), fewestRecalls, b.missing)
	}
	fmt.Printf("\n%d papers with formulas, figures and code, beside pdftotext alone; those below 0.98 and all together:\n", b.count("abstract"))
	if _, err = table("abstract"); err != nil {
		return err
	}
	return b.otherFormats(ctx)
}

// count is how many documents are there for a use.
func (b *bench) count(use string) (n int) {
	for _, d := range b.documents {
		if d.use == use {
			n++
		}
	}
	return n
}

func orDash(s share) string {
	if s.of == 0 {
		return "–"
	}
	return s.String()
}

func measureRecall(ctx context.Context, e *extract.Extractor, d document) (r recalls, err error) {
	theirs, err := output(ctx, "pdftotext", "-enc", "UTF-8", d.file, "-")
	if err != nil {
		return r, err
	}
	doc, err := extractFile(ctx, e, d.file, "application/pdf")
	if err != nil {
		return r, err
	}
	if doc.Truncated {
		return r, errors.New("truncated")
	}
	ours := textOf(doc)
	r.pages = doc.PageCount
	r.oursOfTheirs, r.theirsOfOurs = recall(theirs, ours, false), recall(ours, theirs, false)
	if d.reference == "-" {
		return r, nil
	}
	source, err := d.source()
	if err != nil {
		return r, err
	}
	r.oursOfSource, r.theirsOfSource = recall(source, ours, true), recall(source, theirs, true)
	return r, nil
}

func extractFile(ctx context.Context, e *extract.Extractor, file, declared string) (*extract.Document, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return e.Extract(ctx, f, info.Size(), declared, nil)
}

func textOf(doc *extract.Document) string {
	var all strings.Builder
	for _, p := range doc.Pages {
		all.WriteString(p.Text)
		all.WriteString("\n")
	}
	return all.String()
}
