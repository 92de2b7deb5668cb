package intake

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const maxTagBytes = 128 // what is taken for an HTML tag

// plainText is what a person would read: entities decoded, tags dropped, compatibility forms, accents, invisible and
// look-alike characters folded. Case stays.
func plainText(s string) string {
	if strings.ContainsRune(s, '&') {
		s = html.UnescapeString(html.UnescapeString(s))
	}
	if strings.ContainsRune(s, '<') {
		s = withoutTags(s)
	}
	if isASCII(s) && !strings.ContainsAny(s, "*`~") {
		return s
	}
	return strings.Map(plainLetter, norm.NFKD.String(s))
}

// plainLetter folds one character; -1 drops it.
func plainLetter(r rune) rune {
	if r < utf8.RuneSelf {
		if r == '`' || r == '~' || r == '*' {
			return -1 // emphasis
		}
		return r
	}
	switch {
	case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r):
		return -1
	case r == '\u3164', r == '\u115f', r == '\u1160', r == '\u2800':
		return ' '
	case unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r), r == '\u0085':
		return '\n'
	}
	if l, ok := lookAlikes[r]; ok {
		return l
	}
	if l, ok := lookAlikes[unicode.ToLower(r)]; ok && unicode.IsUpper(r) {
		return unicode.ToUpper(l)
	}
	return r
}

// withoutTags drops HTML tags: <b>veri</b>fied is one word. Those that part words leave a line break.
func withoutTags(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "<")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		tag, _, closed := strings.Cut(after[:min(len(after), maxTagBytes)], ">")
		name := strings.TrimLeft(tag, "/!")
		if !closed || !startsWithLetter(name) && !strings.HasPrefix(name, "--") {
			b.WriteByte(' ')
			s = after
			continue
		}
		name, _, _ = strings.Cut(name, " ")
		if blockTags[strings.ToLower(strings.TrimRight(name, "/"))] {
			b.WriteByte('\n')
		}
		s = after[len(tag)+1:]
	}
}

func startsWithLetter(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}
