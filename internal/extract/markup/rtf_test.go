package markup

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/accession/accession/internal/extract/page"
)

func rtfPages(t *testing.T, content string) []string {
	t.Helper()
	var pages []string
	truncated, err := ReadRTF(strings.NewReader(content), int64(len(content)), roomy, func(p page.Page) error {
		pages = append(pages, marked(p))
		return nil
	})
	if err != nil || truncated {
		t.Fatalf("truncated %t, %v", truncated, err)
	}
	return pages
}

func TestRTF(t *testing.T) {
	t.Parallel()
	const colours = `{\colortbl;\red255\green255\blue255;\red0\green0\blue0;\red18\green52\blue86;}`
	for _, c := range []struct{ name, in, want string }{
		{"plain", `a b\par c\line d\tab e`, "a b\nc\nd\te"},
		{"empty paragraphs", `a\par\par\par b\par`, "a\n\nb"},
		{"line ends mean nothing", "a\r\nb\\\nc", "ab\nc"},
		{"escapes", `\{a\\\} \~\_\-b`, "{a\\} \u00a0-b"},
		{"words", `a\emdash b\endash\bullet\lquote\rquote\ldblquote\rdblquote\unknown12 c`, "a—b–•‘’“”c"},
		{"ansi", `gr\'f6\'dfer \'80`, "größer €"},
		{"upper case and broken hex", `\'C4\'zz\'`, "Ä"},
		{"code page", `\ansicpg1251 \'c7\'e0\'e2\'ee\'e4`, "Завод"},
		{"mac", `\mac \'8a`, "ä"},
		{"fonts", `{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Cyr;}{\f2\fcharset128 Mincho;}{\f3\cpg1253 Greek;}}\'e4{\f1\'e4}\f2\'93\'fa\'96{\'7b}\f3\'e4`,
			"äд日\uFFFD{δ"},
		{"second byte as a letter", `{\fonttbl{\f2\fcharset128 M;}}\f2\'83A\'83\\`, "アソ"},
		{"unicode", `\u8364?\u-3913?\uc0\u8364\uc2\u8364\'80\'80b{\uc1\u8364?}c{\uc1\u8364 \emdash d}`, "€•€€b€c€d"},
		{"surrogates", `\u55357?\u56832?x\uc0\u55357\u56832 y\u55357 z\u128512`, "😀x😀yz😀"},
		{"unicode and ansi", `{\upr{a}{\*\ud{b}}}c`, "bc"},
		{"left out", `{\stylesheet{\s0 Normal;}}{\info{\title T}}{\*\generator G;}{\pict\pngblip 8950}{\object{\*\objdata 00}{\result r}}` +
			`{\*\unknown{\b x}}{\*\themedata 00}{\xe{x}}a`, "a"},
		{"bin", `{\pict\bin5 }}}{{}a\bin2 {{b`, "ab"},
		{"fields", `{\field{\*\fldinst HYPERLINK "http://x"}{\fldrslt\ul here}} a {\field{\fldinst PAGE}{\fldrslt 1}}`, "here a 1"},
		{"deleted", `a{\deleted b}c\deleted d\deleted0 e\deleted f\plain g`, "aceg"},
		{"list", `{\listtext\pard\plain 1.\tab}a\par{\listtext\pard\plain \tab}b`, "1.\ta\nb"},
		{"table", `a\par\trowd\cellx1\cellx2\intbl\cell b\cell\row\trowd\cellx1 c\par d\cell\cell\row\pard e`, "a\n\tb\nc\nd\ne"},
		{"nested table", `\trowd\cellx1 a\nestcell b\nestcell{\*\nesttableprops\nestrow}c\cell\row d`, "a\tb\nc\nd"},
		{"notes", `{\header H\par}{\footer\v F}a{\footnote\pard b\par c}d{\*\annotation e}\par f`, "ad\nf\n\nH\n\n[invisible:F]\n\nb\nc\n\ne"},
		{"text box", `a{\shp{\*\shpinst{\sp{\sn n}{\sv v}}{\shptxt b\par}}{\shprslt b}}c`, "a\n\nb\n\nc"},
		{"math and braces", `{a{b}c}d}e`, "abcd"},

		{"invisible", `a{\v b}c\v d\v0 e\v f\plain g`, "a[invisible:b]c[invisible:d]e[invisible:f]g"},
		{"white", colours + `a{\cf1 b}{\cf2 c}{\cf9 d}{\cf0 e}`, "a[white:b]cde"},
		{"on its ground", colours + `{\cf1\highlight2 a}{\cf2\highlight2 b}{\cf3\chcbpat3 c}\pard\cbpat2\cf1 d\cf2 e\pard\cf1 f`, "a[white:bc]d[white:ef]"},
		{"in a shaded cell", colours + `\trowd\clcbpat2\cellx1\cellx2\intbl\cf1 a\cell b\cell\row`, "a\t[white:b]"},
		{"tiny", `a{\fs3 b}{\fs4 c}{\fs d}`, "a[tiny:b]cd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := rtfPages(t, `{\rtf1\ansi `+c.in+"}"); !reflect.DeepEqual(got, []string{c.want}) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestRTFPages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"page", `a\page b{\footnote c}\page\page d\page`, []string{"a", "b\n\nc", "", "d"}},
		{"break before", `\pagebb a\par\pard b\par\pagebb c`, []string{"a\nb", "c"}},
		{"sections", `\sectd\sbknone a\sect\sectd\sbknone b\sect\sectd c\sect`, []string{"a\n\nb", "c"}},
		{"not in a header", `{\header a\page b}c`, []string{"c\n\na\n\nb"}},
		{"nothing", ``, []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := rtfPages(t, `{\rtf1 `+c.in+"}"); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestRTFLimitsAndDamage(t *testing.T) {
	t.Parallel()
	read := func(in string, limits page.Limits) (text string, truncated bool, err error) {
		truncated, err = ReadRTF(strings.NewReader(in), int64(len(in)), limits, func(p page.Page) error { text += p.Text + "|"; return nil })
		return
	}
	for _, c := range []struct {
		name, in  string
		limits    page.Limits
		text      string
		truncated bool
		err       error
	}{
		{"room", `{\rtf1 abc\page def}`, page.Limits{Pages: 9, TextBytes: 5}, "abc|de|", true, nil},
		{"room used up", `{\rtf1 abc\page def}`, page.Limits{Pages: 9, TextBytes: 3}, "abc|", true, nil},
		{"room enough", `{\rtf1 abc\page def}`, page.Limits{Pages: 9, TextBytes: 6}, "abc|def|", false, nil},
		{"pages", `{\rtf1 a\page b\page c}`, page.Limits{Pages: 2, TextBytes: 9}, "a|b|", true, nil},
		{"pages enough", `{\rtf1 a\page b\page}`, page.Limits{Pages: 2, TextBytes: 9}, "a|b|", false, nil},
		{"no last brace", `{\rtf1 a`, roomy, "a|", false, nil},
		{"cut inside", `{\rtf1 a{\b b`, roomy, "", false, page.ErrBroken},
		{"no rtf", `rtf1 a`, roomy, "", false, page.ErrBroken},
		{"empty", ``, roomy, "", false, page.ErrBroken},
		{"too deep", `{\rtf1` + strings.Repeat("{", maxGroups) + strings.Repeat("}", maxGroups+1), roomy, "", false, page.ErrBroken},
		{"deep enough", `{\rtf1` + strings.Repeat("{", maxGroups-1) + "a" + strings.Repeat("}", maxGroups), roomy, "a|", false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, truncated, err := read(c.in, c.limits)
			if text != c.text || truncated != c.truncated || !errors.Is(err, c.err) {
				t.Errorf("%q, truncated %t, %v", text, truncated, err)
			}
		})
	}
	stop := errors.New("stop")
	for _, in := range []string{`{\rtf1 a}`, `{\rtf1 a\page b}`, `{\rtf1 a\sect b}`} {
		if _, err := ReadRTF(strings.NewReader(in), int64(len(in)), roomy, func(page.Page) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("%s: emit's error: %v", in, err)
		}
	}
}
