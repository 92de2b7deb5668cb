package main

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/sentences"
	"golang.org/x/sync/errgroup"

	"github.com/accession/accession/internal/aicontext"
)

const fewestAbstracts = 25

var (
	abstractBegins = regexp.MustCompile(`(?m)^[ \t]*(?:Abstract|ABSTRACT)[ \t]*[.:–—-]?\s+`)
	abstractEnds   = regexp.MustCompile(`(?mi)^[ \t]*(?:key ?words\b|contents[ \t]*$|version:|(?:1|i)?\.?[ \t]*(?:introduction|overview|motivation|background)\b|1\.?[ \t]*$|1\.?[ \t]+\pL)`)
)

// paper is a document without its abstract, and the abstract.
type paper struct {
	name     string
	abstract string
	pages    []aicontext.Page
}

// cutAbstract takes the abstract out of the first two pages. It reports false where it is not plain where one begins and ends.
func cutAbstract(pages []aicontext.Page) (string, bool) {
	for i := range pages[:min(2, len(pages))] {
		text := pages[i].Text
		begin := abstractBegins.FindStringIndex(text)
		if begin == nil {
			continue
		}
		end := abstractEnds.FindStringIndex(text[begin[1]:])
		if end == nil {
			return "", false
		}
		abstract := text[begin[1] : begin[1]+end[0]]
		if n := len(wordsOf(abstract)); n < 40 || n > 400 {
			return "", false
		}
		pages[i].Text = text[:begin[0]] + text[begin[1]+end[0]:]
		return hyphenated.ReplaceAllString(abstract, "$1$2"), true
	}
	return "", false
}

// papers extracts the documents with abstracts.
func (b *bench) papers(ctx context.Context) ([]paper, error) {
	var of []document
	for _, d := range b.documents {
		if d.use == "abstract" {
			of = append(of, d)
		}
	}
	e := b.extractor()
	found := make([]paper, len(of))
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for i, d := range of {
		group.Go(func() error {
			doc, err := extractFile(ctx, e, d.file, "application/pdf")
			if err != nil {
				return fmt.Errorf("%s: %w", d.name(), err)
			}
			p := paper{name: d.name()}
			for _, page := range doc.Pages {
				p.pages = append(p.pages, aicontext.Page{Number: page.Number, Text: page.Text})
			}
			var ok bool
			if p.abstract, ok = cutAbstract(p.pages); ok {
				found[i] = p
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []paper
	var without []string
	for i, p := range found {
		if p.abstract == "" {
			without = append(without, of[i].name())
			continue
		}
		out = append(out, p)
	}
	if len(without) > 0 {
		fmt.Printf("\nLeft out, no plain beginning or end of an abstract: %s.\n", strings.Join(without, ", "))
	}
	return out, nil
}

// leading are the first n sentences of running text: headings, names and addresses before them do not count against them.
func leading(pages []aicontext.Page, n int) string {
	var out []string
	for _, p := range pages {
		for line := range strings.Lines(aicontext.PageText(p.Text)) {
			it := sentences.FromString(strings.TrimSpace(line))
			for it.Next() {
				s := strings.TrimSpace(it.Value())
				last, _ := utf8.DecodeLastRuneInString(s)
				if len(strings.Fields(s)) < 4 || !strings.ContainsRune(".!?", last) {
					continue
				}
				if out = append(out, s); len(out) == n {
					return strings.Join(out, " ")
				}
			}
		}
	}
	return strings.Join(out, " ")
}

func (b *bench) summary(ctx context.Context) error {
	fmt.Printf("\n## Summary\n")
	papers, err := b.papers(ctx)
	if err != nil {
		return err
	}
	if len(papers) < fewestAbstracts {
		return fmt.Errorf("%d documents with an abstract, at least %d are needed: %d could not be fetched", len(papers), fewestAbstracts, b.missing)
	}
	ways := []string{"summary", "first three sentences", "first five sentences"}
	fmt.Printf("\n| document | words of the abstract |")
	for _, w := range ways {
		fmt.Printf(" %s: recall | F |", w)
	}
	fmt.Printf("\n|---|---|---|---|---|---|---|---|\n")
	means := make([]rouge, len(ways))
	var better, betterF int
	for _, p := range papers {
		s, err := aicontext.Summarize(p.pages, aicontext.Limits{})
		if err != nil {
			return err
		}
		row := []rouge{rougeL(p.abstract, s.Text), rougeL(p.abstract, leading(p.pages, 3)), rougeL(p.abstract, leading(p.pages, 5))}
		fmt.Printf("| %s | %d |", p.name, len(wordsOf(p.abstract)))
		for i, r := range row {
			fmt.Printf(" %.3f | %.3f |", r.recall, r.f)
			means[i].recall += r.recall / float64(len(papers))
			means[i].precision += r.precision / float64(len(papers))
			means[i].f += r.f / float64(len(papers))
		}
		fmt.Println()
		if row[0].recall > row[1].recall {
			better++
		}
		if row[0].f > row[1].f {
			betterF++
		}
	}
	fmt.Printf("| **mean of %d** | |", len(papers))
	for _, m := range means {
		fmt.Printf(" **%.3f** | **%.3f** |", m.recall, m.f)
	}
	fmt.Printf("\n\nThe summary is above the first three sentences in recall for %d, in F for %d of %d documents.\n", better, betterF, len(papers))
	return nil
}
