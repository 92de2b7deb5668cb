package main

import (
	"image"
	"image/color"
	"math"
	"testing"

	"github.com/accession/accession/internal/aicontext"
)

func TestRecallCountsCharactersInRunsOfFive(t *testing.T) {
	for name, c := range map[string]struct {
		want, got string
		letters   bool
		found, of int
	}{
		"the same but for spaces":        {"a document", "adoc ument\n", false, 9, 9},
		"one wrong character costs one":  {"abcdefghijk", "abcdeXghijk", false, 10, 11},
		"in another order":               {"first one, second one", "second one first one,", false, 18, 18},
		"a run answers once":             {"abcdeabcde", "abcde", false, 5, 10},
		"nothing":                        {"abcdef", "", false, 0, 6},
		"shorter than a run":             {"abc", "xabcx", false, 3, 3},
		"hyphenated on one side":         {"docu-\nment", "document", false, 8, 8},
		"ligatures are their letters":    {"e\ufb03cient", "efficient", false, 9, 9},
		"letters alone":                  {"*abc* -- def", "abcdef", true, 6, 6},
		"signs count unless told":        {"abcdef!!!!!", "abcdef", false, 6, 11},
		"what nobody sees does not":      {"ab\u200bcdef", "abcdef\u00ad", false, 6, 6},
		"more than asked for is no loss": {"abcdef", "abcdefghijkl", false, 6, 6},
	} {
		if got := recall(c.want, c.got, c.letters); got != (share{c.found, c.of}) {
			t.Errorf("%s: %d of %d, want %d of %d", name, got.found, got.of, c.found, c.of)
		}
	}
}

func TestErrorsInCountsEdits(t *testing.T) {
	for _, c := range []struct {
		truth, got string
		want       share
	}{
		{"kitten", "sitting", share{3, 6}},
		{"a  b\nc", "a b c", share{0, 5}},
		{"abc", "", share{3, 3}},
		{"", "abc", share{3, 0}},
	} {
		if got := errorsIn(c.truth, c.got); got != c.want {
			t.Errorf("%q read as %q: %+v, want %+v", c.truth, c.got, got, c.want)
		}
	}
}

func TestRougeL(t *testing.T) {
	// The example of Lin (2004): "police killed the gunman" beside "police kill the gunman".
	if r := rougeL("police killed the gunman", "Police kill the gunman."); math.Abs(r.f-0.75) > 1e-9 || r.recall != 0.75 {
		t.Errorf("%+v, want 0.75", r)
	}
	if r := rougeL("police killed the gunman", "the gunman kill police"); r.recall != 0.5 {
		t.Errorf("recall %v out of order, want 0.5", r.recall)
	}
	if r := rougeL("a b c d", "a b"); r.recall != 0.5 || r.precision != 1 || math.Abs(r.f-2.0/3) > 1e-9 {
		t.Errorf("%+v, want recall 0.5, precision 1, F 2/3", r)
	}
	if r := rougeL("", "a"); r != (rouge{}) {
		t.Errorf("%+v of nothing", r)
	}
}

func TestAbstractIsCutOut(t *testing.T) {
	sentence := "Forty words are needed, so this sentence of some ten words is said again and again. "
	long := sentence + sentence + sentence
	pages := []aicontext.Page{{Number: 1, Text: "A title\nAn author\nAbstract\n" + long + "\nKeywords: pump.\n1. Introduction\nIt begins."}}
	abstract, ok := cutAbstract(pages)
	if !ok || abstract != long+"\n" {
		t.Errorf("abstract %q, %t", abstract, ok)
	}
	if want := "A title\nAn author\nKeywords: pump.\n1. Introduction\nIt begins."; pages[0].Text != want {
		t.Errorf("left %q, want %q", pages[0].Text, want)
	}
	for name, text := range map[string]string{
		"no end": "Abstract\n" + long, "no abstract": long + "\nKeywords: a", "hardly any": "Abstract\nShort.\nKeywords: a",
	} {
		if got, ok := cutAbstract([]aicontext.Page{{Text: text}}); ok {
			t.Errorf("%s: cut out %q", name, got)
		}
	}
}

func TestLeadingSkipsHeadings(t *testing.T) {
	pages := []aicontext.Page{{Number: 1, Text: "A title\n\nSome Author\n\n1. Introduction\n\nThe first one is here. The second one follows it. The third one ends it. No more is asked."}}
	if got, want := leading(pages, 3), "The first one is here. The second one follows it. The third one ends it."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTurnIsClockwise(t *testing.T) {
	from := image.NewGray(image.Rect(0, 0, 3, 2))
	from.SetGray(0, 0, color.Gray{Y: 9}) // upper left
	for degrees, at := range map[int]image.Point{0: {0, 0}, 90: {1, 0}, 180: {2, 1}, 270: {0, 2}} {
		got := turn(from, degrees)
		if got.GrayAt(at.X, at.Y).Y != 9 {
			t.Errorf("turned %d°: %v in %v", degrees, got.Pix, got.Rect)
		}
	}
}

func TestHTMLText(t *testing.T) {
	got := htmlText([]byte("<title>T</title><style>p{}</style><p>Fish &amp; <b>chips</b><script>x()</script></p>"))
	if got != "Fish & chips" {
		t.Errorf("%q", got)
	}
}

func TestZipBombIsSmall(t *testing.T) {
	bomb, err := zipBomb(5, 16, 1<<24)
	if err != nil {
		t.Fatal(err)
	}
	if len(bomb) > 48<<10 {
		t.Errorf("%d bytes", len(bomb))
	}
}
