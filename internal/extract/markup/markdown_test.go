package markup

import (
	"errors"
	"strings"
	"testing"

	"github.com/accession/accession/internal/extract/page"
)

func markdownPage(t *testing.T, content string) page.Page {
	t.Helper()
	return one(t, func(emit func(page.Page) error) (bool, error) {
		return ReadMarkdown(strings.NewReader(content), int64(len(content)), "", roomy, emit)
	})
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"headings", "# A #\ntext\n\nB\n===\n### C", "A\n\ntext\n\nB\n\nC"},
		{"paragraphs", "one\ntwo  \nthree\\\nfour\n\nfive", "one two\nthree\nfour\n\nfive"},
		{"emphasis", "*a* **b** ~~c~~ _d_ `e  <b>f` snake_case 2*3*4", "a b c d e <b>f snake_case 234"},
		{"escapes", `\*a\* &lt;b&gt; \&amp; &copy; c\d`, `*a* <b> &amp; © c\d`},
		{"links", "[a *b*](http://x \"title\") [c][r] <http://y> <me@example.org> ![alt](z.png)d\n\n[r]: http://r", "a b c http://y me@example.org d"},
		{"lists", "- a\n- b\n  1. c\n  2. d\n- e\n\n3. f\n4. g", "- a\n- b\n  1. c\n  2. d\n- e\n\n3. f\n4. g"},
		{"loose list", "- a\n\n  b\n- c", "- a\n\nb\n\n- c"},
		{"quote", "> a\n> > b", "a\n\nb"},
		{"code", "```go\n\nif a < b {\n\t*c*\n}\n```\n\n    d\n     e", "\nif a < b {\n\t*c*\n}\n\nd\n e\n"},
		{"table", "| a | **b** |\n|---|:-:|\n| c | d\\|e |\n|   | f |", "a\tb\nc\td|e\n\tf"},
		{"rule", "a\n\n---\nb", "a\n\nb"},
		{"html", "a <b>c</b><!-- x --> <br>d\n\n<div title='<p>'>\n<p>e</p>\n</div>\n\n<script>\nf\n</script>\n\n<!-- g\n\nh -->\ni", "a c\nd\n\ne\n\ni"},
		{"inline program", "a <script>b *c*</script> d", "a d"},
		{"hidden", "a <span style='display:none'>b *c*</span> d", "a[invisible: b c] d"},
		{"hidden over blocks", "<div hidden>\n\n# a\n\nb\n\n</div>\n\nc", "[invisible:a]\n\n[invisible:b]\n\nc"},
		{"style rules", "<p class=x>a</p>\n\n<STYLE>\n.x{color:#fff}\n\n</STYLE>\n\nb", "[white:a]\n\nb"},
		{"dos lines", "a\r\nb\r\n\r\n- c\rd", "a b\n\n- c d"},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := marked(markdownPage(t, c.in)); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestMarkdownInPieces(t *testing.T) {
	t.Parallel()
	para := "Some *text* of a [link][far] and more.\n\n"
	fence := "```\n" + strings.Repeat("*code*\n\n", 2*pieceBytes/8) + "```\n\n"
	in := strings.Repeat(para, 2*pieceBytes/len(para)) + "# Heading\n\n" + strings.Repeat(para, pieceBytes/len(para)) + "[far]: http://x\n"
	n := 0
	for piece := range pieces(in) {
		if n++; len(piece) > maxPieceBytes {
			t.Errorf("piece of %d bytes", len(piece))
		}
	}
	if n < 3 {
		t.Errorf("%d pieces", n)
	}
	got := markdownPage(t, in).Text
	if strings.ContainsAny(got, "*[]#") || strings.Count(got, "Some text of a link and more.") != strings.Count(in, "Some") {
		t.Errorf("marks are left, or text is missing: %q", got[:200])
	}
	for piece := range pieces(in + fence + para) {
		if strings.Contains(piece, "*code*") && !strings.Contains(piece, fence) {
			t.Error("a fence is cut")
		}
	}
}

func TestMarkdownThatCostsTooMuchIsTakenLiterally(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][2]string{
		"brackets":   {strings.Repeat("[", 20_000) + "<b hidden>a</b>", strings.Repeat("[", 20_000) + "[invisible:a]"},
		"quotes":     {strings.Repeat(">", 1000) + "a", strings.Repeat(">", 1000) + "a"},
		"long block": {strings.Repeat("*a* b\n", maxPieceBytes/6+1), strings.Repeat("*a* b\n", maxPieceBytes/6+1)},
		"marks":      {strings.Repeat("*a* b\n", 2000), strings.Repeat("*a* b\n", 2000)},
		"table":      {"a|\n" + strings.Repeat("-|", 300) + "\n" + strings.Repeat("|\n", 300), "a|\n" + strings.Repeat("-|", 300) + "\n" + strings.Repeat("|\n", 300)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := marked(markdownPage(t, c[0])); got != c[1] {
				t.Errorf("got %q", got[:min(100, len(got))])
			}
		})
	}
}

func TestMarkdownCostIsBoundedOverTheDocument(t *testing.T) {
	t.Parallel()
	got := markdownPage(t, strings.Repeat(strings.Repeat("*a* b\n", 1500)+"\n", 30)).Text
	if !strings.HasPrefix(got, "a b a b") || !strings.HasSuffix(got, "*a* b\n\n") {
		t.Errorf("%q … %q", got[:20], got[len(got)-20:])
	}
}

func TestMarkdownLimits(t *testing.T) {
	t.Parallel()
	var p page.Page
	read := func(in string, room int64) (bool, error) {
		return ReadMarkdown(strings.NewReader(in), int64(len(in)), "", page.Limits{TextBytes: room}, func(q page.Page) error { p = q; return nil })
	}
	if truncated, err := read("*abc* def", 5); !truncated || err != nil || p.Text != "abc d" {
		t.Errorf("%q, truncated %t, %v", p.Text, truncated, err)
	}
	if truncated, err := read("*abc*"+strings.Repeat(" ", 100), 5); !truncated || err != nil || p.Text != "abc" {
		t.Errorf("%q, truncated %t, %v", p.Text, truncated, err)
	}
	if _, err := read("a\x00\x01\x02\x03", 100); !errors.Is(err, page.ErrBroken) {
		t.Errorf("not text: %v", err)
	}
}
