package aicontext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxMarks bounds the combining marks kept on one base character. Real scripts need fewer; stacks of them
// deface a page, and past 30 normalisation would insert an invisible joiner.
const maxMarks = 8

// Sanitize makes untrusted text safe to show and to serve: valid UTF-8 in NFC, one space between words, no space at a
// line's ends, at most one blank line, and no control (but the line feed), format, bidirectional, zero-width,
// tag, variation-selector, private-use or non-character code points. A word that a PDF broke at a line's end with
// a soft hyphen is put together again. Invalid bytes become U+FFFD. It never fails and is idempotent; the result
// may be longer than s in bytes (normalisation), by at most a factor of three.
// Contract: AI context, "no control characters".
func Sanitize(s string) string { return sanitizeAt(s, nil) }

// sanitizeAt is Sanitize and makes the ascending byte offsets of s in at offsets of the result. At even indexes are starts,
// at odd ones ends: of a character that is composed, a start becomes its start, an end its end.
func sanitizeAt(s string, at []int) string {
	out := clean(validAt(s, at), at)
	if norm.NFC.IsNormalString(out) {
		return out
	}
	return clean(composedAt(out, at), at)
}

// clean drops what must not be served, bounds combining marks and settles white space, in one pass over valid UTF-8.
// An offset in at becomes the end of what was kept before it.
func clean(s string, at []int) string {
	var b strings.Builder
	b.Grow(len(s))
	var space bool
	var breaks, marks int
	next := 0 // of at
	for i := 0; i < len(s); {
		for ; next < len(at) && at[next] <= i; next++ {
			at[next] = b.Len()
		}
		if c := s[i]; c == ' ' { // most characters by far are ASCII
			space = true
			i++
			continue
		} else if c > ' ' && c < 0x7F && !space && breaks == 0 {
			b.WriteByte(c)
			marks = 0
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		if isBrokenWordMark(r) {
			if rest := lineBreak(s[i:]); rest > 0 && startsWithLetter(s[i+rest:]) {
				i += rest
			}
			continue
		}
		switch {
		case isLineBreak(r):
			if r == '\r' && i < len(s) && s[i] == '\n' {
				i++
			}
			breaks++
			continue
		case r == '\t' || unicode.Is(unicode.Zs, r):
			space = true
			continue
		case isDropped(r):
			continue
		}
		if r > unicode.MaxLatin1 && unicode.Is(unicode.M, r) {
			if marks++; marks > maxMarks {
				continue
			}
		} else {
			marks = 0
		}
		if b.Len() > 0 {
			if breaks > 0 {
				b.WriteString("\n\n"[:min(breaks, 2)])
				marks = 0
			} else if space {
				b.WriteByte(' ')
				marks = 0
			}
		}
		space, breaks = false, 0
		b.WriteRune(r)
	}
	for ; next < len(at); next++ {
		at[next] = b.Len()
	}
	return b.String()
}

// isBrokenWordMark: what PDF text writes where a hyphen only broke a word (soft hyphen; PDFium's U+0002 and U+FFFE).
func isBrokenWordMark(r rune) bool { return r == 0x02 || r == 0xAD || r == 0xFFFE }

func isLineBreak(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

// lineBreak is the length of the one line break (spaces around it included) that s starts with, or 0.
func lineBreak(s string) int {
	rest := strings.TrimLeft(s, " \t")
	after := strings.TrimPrefix(rest, "\r\n")
	if len(after) == len(rest) {
		after = strings.TrimPrefix(rest, "\n")
	}
	if len(after) == len(rest) {
		return 0
	}
	return len(s) - len(strings.TrimLeft(after, " \t"))
}

func startsWithLetter(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r)
}

func isDropped(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7F && r <= 0x9F:
		return true
	case r <= unicode.MaxLatin1:
		return r == 0xAD
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false // visible number signs of Arabic and Syriac, although of category Cf
	}
	return r == 0xFFFC || // a picture's place holder
		r >= 0xFFF0 && r <= 0xFFF8 || r >= 0xE0000 && r <= 0xE0FFF || // ignorable, tags included
		unicode.In(r, unicode.Cf, unicode.Co, unicode.Variation_Selector,
			unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point)
}
