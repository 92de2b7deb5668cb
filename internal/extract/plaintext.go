package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain makes valid UTF-8 of what an engine sent: line ends become \n, the other control characters go, \t and \f stay.
func plain(text string) string {
	if strings.Contains(text, "\r") {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\f':
			return r
		case r == '\r':
			return '\n'
		case r == '\x02', r == '\ufffe': // pdfium's hyphen at a line's end
			return '-'
		case r == '\ufeff', r == '\uffff', unicode.IsControl(r):
			return -1
		}
		return r // invalid bytes arrive here as U+FFFD
	}, text)
}

// cut shortens text to at most limit bytes, never inside a character.
func cut(text string, limit int64) string {
	if int64(len(text)) <= limit {
		return text
	}
	end := int(limit)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// words counts letters and digits: what makes a text layer worth keeping.
func words(text string) (n int) {
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}
