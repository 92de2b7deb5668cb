package markup

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/accession/accession/internal/extract/page"
)

type reader func(content io.ReaderAt, size int64, limits page.Limits, emit func(page.Page) error) (bool, error)

var readers = map[string]reader{
	"rtf":  ReadRTF,
	"epub": ReadEPUB,
	"html": func(c io.ReaderAt, n int64, l page.Limits, emit func(page.Page) error) (bool, error) {
		return ReadHTML(c, n, "", l, emit)
	},
	"md": func(c io.ReaderAt, n int64, l page.Limits, emit func(page.Page) error) (bool, error) {
		return ReadMarkdown(c, n, "", l, emit)
	},
}

func sample(t testing.TB, format string) []byte {
	t.Helper()
	content, err := os.ReadFile("testdata/sample." + format)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestSamplesOfLibreOffice(t *testing.T) {
	t.Parallel()
	const intro = "The works in Köln inspects “pressure valves” every month – 中文, עברית, 😀 included."
	for format, want := range map[string][]string{
		"rtf": {"Valve maintenance\n" + intro + "\nSeen and bold[white: white words][invisible: hidden words][tiny: tiny words] again.\n" +
			"1.\tClose the inlet\n2.\tOpen the drain\nPart\tTorque\nBolt M8\t25 Nm\nSee the manual.\n\nA note at the foot.",
			"Second chapter\nThe last page."},
		"html": {"Valve maintenance\n\nValve maintenance\n\n" + intro + "\n\nSeen and bold[white: white words][invisible: hidden words][tiny: tiny words] again.1\n\n" +
			"1. Close the inlet\n\n2. Open the drain\n\nPart\tTorque\nBolt M8\t25 Nm\n\nSee the manual.\n\nSecond chapter\n\nThe last page.\n\n1A note at the foot."},
		"epub": {"Valve maintenance\n\n" + intro + "\n\nSeen and bold[white: white words][invisible: hidden words][tiny: tiny words] again.1\n\n" +
			"Close the inlet\n\nOpen the drain\n\nPart\tTorque\nBolt M8\t25 Nm\n\nSee the manual.\n\n1A note at the foot.",
			"Second chapter\n\nThe last page."},
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			content := sample(t, format)
			var pages []string
			truncated, err := readers[format](bytes.NewReader(content), int64(len(content)), roomy, func(p page.Page) error {
				pages = append(pages, marked(p))
				return nil
			})
			if !reflect.DeepEqual(pages, want) || truncated || err != nil {
				t.Errorf("truncated %t, %v\ngot  %q\nwant %q", truncated, err, pages, want)
			}
		})
	}
}

func TestReadErrorsAreReturned(t *testing.T) {
	t.Parallel()
	fault := errors.New("no such disk")
	for format, content := range map[string]string{
		"html": "<p>" + strings.Repeat("a ", sampleBytes) + "</p>",
		"md":   strings.Repeat("a ", sampleBytes),
		"rtf":  `{\rtf1 ` + strings.Repeat("a ", sampleBytes) + "}",
	} {
		for _, good := range []int{0, 1} {
			content := &failing{strings.NewReader(content), good, fault}
			if _, err := readers[format](content, 2*sampleBytes, roomy, func(page.Page) error { return nil }); !errors.Is(err, fault) {
				t.Errorf("%s after %d reads: %v", format, good, err)
			}
		}
	}
}

// check reads content with small limits, and looks at what comes out.
func check(t testing.TB, read reader, content []byte) {
	t.Helper()
	limits := page.Limits{Pages: 5, TextBytes: 20_000, ExpandedBytes: 1 << 20}
	var pages int
	var text int64
	_, err := read(bytes.NewReader(content), int64(len(content)), limits, func(p page.Page) error {
		pages++
		text += int64(len(p.Text))
		if p.Text != strings.ToValidUTF8(p.Text, "") {
			t.Errorf("text is no UTF-8: %q", p.Text)
		}
		at := 0
		for _, h := range p.Hidden {
			if h.Start < at || h.End <= h.Start || h.End > len(p.Text) || h.Class == "" {
				t.Errorf("runs %v of %d bytes", p.Hidden, len(p.Text))
			}
			at = h.End
		}
		return nil
	})
	if pages > limits.Pages || text > limits.TextBytes {
		t.Errorf("%d pages, %d bytes", pages, text)
	}
	for _, known := range []error{nil, page.ErrBroken, page.ErrEncrypted, page.ErrTooLarge, page.ErrUnsupported} {
		if errors.Is(err, known) {
			return
		}
	}
	t.Errorf("unexpected error %v", err)
}

const sampleMarkdown = "# Valves\n\nSome *text* with a [link](http://x), `code` and <b hidden>HTML</b>.\n\n- a\n  1. b\n\n> quote\n\n" +
	"| a | b |\n|---|---|\n| c | d |\n\n```\nfence\n```\n\n<div style=\"color:white\">\n\n~~gone~~\n\n</div>\n\n[r]: http://r\n"

func TestMutations(t *testing.T) {
	t.Parallel()
	samples := map[string][]byte{"rtf": sample(t, "rtf"), "html": sample(t, "html"), "epub": sample(t, "epub"), "md": []byte(sampleMarkdown)}
	for format, content := range samples {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(7, 11))
			marks := []string{"<", ">", "{", "}", "\\", "[", "]", "*", "`", "&", "\"", "<!--", "</", "\x00", "\xff", "\n\n", "\\'", "\\u", "|", "-1", "99999999999"}
			for range 400 {
				mutant := bytes.Clone(content)
				for range 1 + random.IntN(8) {
					if len(mutant) == 0 {
						break
					}
					at := random.IntN(len(mutant))
					until := min(len(mutant), at+random.IntN(64))
					switch random.IntN(5) {
					case 0:
						mutant[at] ^= 1 << random.IntN(8)
					case 1:
						mutant = append(mutant[:at:at], mutant[until:]...)
					case 2:
						mutant = append(mutant[:until:until], mutant[at:]...)
					case 3:
						mutant = append(append(mutant[:at:at], marks[random.IntN(len(marks))]...), mutant[at:]...)
					case 4:
						if random.IntN(4) == 0 {
							mutant = mutant[:at]
						}
					}
				}
				check(t, readers[format], mutant)
			}
		})
	}
}

func fuzz(f *testing.F, format string, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) { check(t, readers[format], content) })
}

func FuzzHTML(f *testing.F) {
	fuzz(f, "html", string(sample(f, "html")), `<?xml version="1.0"?><p hidden/><svg><p><style>p,.a{color:#fff;left:-9em}</style><table><td><ul><li><pre>`,
		`<div style="position:absolute;clip:rect(0,0,0,0);background:url(x);font:1px/2 a"><q><b><p></b><a href=x></q><select><input>`)
}

func FuzzMarkdown(f *testing.F) {
	fuzz(f, "md", sampleMarkdown, "<pre>\n*a*\n</pre>\n\\&amp;<!-- \n\n -->")
}

func FuzzRTF(f *testing.F) {
	fuzz(f, "rtf", string(sample(f, "rtf")), `{\rtf1\ansi{\colortbl;\red255\green255\blue255;}\cf1 a\u-10179?\u-8704?\'e4\page{\footnote b\cell\row}\sect c\bin3 }}}{\*\shpinst{\shptxt d}}`)
}

func FuzzEPUB(f *testing.F) {
	fuzz(f, "epub", string(sample(f, "epub")), string(zipped(f, wholeBook(), nil)))
}
