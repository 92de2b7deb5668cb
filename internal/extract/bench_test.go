package extract

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkExtract(b *testing.B) {
	var pages []pdfPageSource
	for range 100 {
		var lines []string
		for i := range 40 {
			lines = append(lines, fmt.Sprintf("Line %d of a page of ordinary length, with ordinary words in it.", i))
		}
		pages = append(pages, textPage(lines...))
	}
	picture := picturePage(b, scan(b, strings.Split(strings.Repeat("Deliveries of pressure valves rose by twelve percent.\n", 20), "\n")...))
	e := extractor(b)
	if err := e.Warm(within(b)); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name, media string
		content     []byte
	}{
		{"plain text", "text/plain", []byte("words")},
		{"PDF of 1 text page", "application/pdf", makePDF(pages[:1]...)},
		{"PDF of 100 text pages", "application/pdf", makePDF(pages...)},
		{"PDF of 4 scanned pages", "application/pdf", makePDF(picture, picture, picture, picture)},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				extract(b, e, c.content, c.media)
			}
		})
	}
}

// BenchmarkMembers is the search for packed files in a PDF of a hundred pages: without the engine where there are none, with it
// where a page has one.
func BenchmarkMembers(b *testing.B) {
	e := extractor(b)
	if err := e.Warm(within(b)); err != nil {
		b.Fatal(err)
	}
	plain := make([]pdfPageSource, 100)
	for i := range plain {
		plain[i] = textPage("A line of a page.")
	}
	for name, content := range map[string][]byte{"none": makePDF(plain...), "pinned": pinnedPDF(plainAnnotation)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := members(b, e, content); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
