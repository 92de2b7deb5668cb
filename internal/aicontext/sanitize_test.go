package aicontext

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestSanitize(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "Two words.", "Two words."},
		{"line ends", "a\r\nb\rc\u2028d\ve\u0085f", "a\nb\nc\nd\ne\nf"},
		{"blank lines", "a\n\n \n\nb", "a\n\nb"},
		{"spaces", "  a \t b\u00a0\u3000c  \n  d  ", "a b c\nd"},
		{"controls", "a\x00b\x1b[31mc\x7fd\u0090e", "ab[31mcde"},
		{"bidi", "pay \u202eevil\u202c \u2066x\u2069 \u200fy", "pay evil x y"},
		{"zero width", "p\u200ba\u200cs\u200ds\ufeffw\u2060ord", "password"},
		{"tags", "hi\U000e0069\U000e0067\U000e006e", "hi"},
		{"variation selectors", "a\ufe0fb\U000e0101", "ab"},
		{"fillers", "a\u3164b\u115fc\u034fd", "abcd"},
		{"private use and non-characters", "a\ue000b\uffffc\U0010ffffd", "abcd"},
		{"object placeholder", "a\ufffcb", "ab"},
		{"composed", "Cafe\u0301 \u212b", "Café Å"},
		{"invalid bytes", "a\xff\xfeb", "a\ufffdb"},
		{"a surrogate in bytes", "a\xed\xa0\x80b", "a\ufffdb"},
		{"Arabic number sign stays", "\u0600\u0661", "\u0600\u0661"},
		{"broken word", "inspec\u00ad\ntion, maint\x02\r\nenance, \ufffe\nend", "inspection, maintenance, end"},
		{"soft hyphen before a blank line", "end\u00ad\n\nNext", "end\n\nNext"},
		{"stacked marks", "a" + strings.Repeat("\u0301", 100), "á" + strings.Repeat("\u0301", 7)},
		{"marks hidden apart", "a" + strings.Repeat("\u0316\u200b", 100), "a" + strings.Repeat("\u0316", 8)},
		{"only spaces", " \n\t ", ""},
	} {
		if got := Sanitize(c.in); got != c.want {
			t.Errorf("%s: Sanitize(%q) = %q, want %q", c.name, c.in, got, c.want)
		}
	}
}

// checkClean fails when s holds anything that must never be served.
func checkClean(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) || !norm.NFC.IsNormalString(s) {
		t.Errorf("not valid NFC: %q", s)
	}
	for _, r := range s {
		if r != '\n' && unicode.IsControl(r) ||
			unicode.In(r, unicode.Bidi_Control, unicode.Variation_Selector, unicode.Co, unicode.Other_Default_Ignorable_Code_Point,
				unicode.Noncharacter_Code_Point) ||
			unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r) ||
			r >= 0xE0000 && r <= 0xE0FFF {
			t.Errorf("%U in %q", r, s)
		}
	}
}

func FuzzSanitize(f *testing.F) {
	for _, s := range []string{"", "a\u0344\u0344\u0344\u0344\u0344\u0344\u0344\u0344\u0344", "\u1100\u1161\u11a8", "a\u00ad\n\u0301b", "\xed\xa0\x80\n\n x",
		"\u0300 \u0327\u0301", "e\u034f\u0301\u200d\u0323", "\x02 \r\nx", "\U0001D15E\u0301"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := Sanitize(s)
		checkClean(t, once)
		if twice := Sanitize(once); twice != once {
			t.Errorf("not idempotent: %q, then %q", once, twice)
		}
		if page := PageText(s); len(page) != len(once) || strings.ReplaceAll(once, "\n", " ") != strings.ReplaceAll(page, "\n", " ") {
			t.Errorf("PageText %q changes more than line breaks of %q", page, once)
		}
	})
}
