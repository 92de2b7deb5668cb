package aicontext

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// pageTextAt is PageText(raw), and makes the ascending byte offsets of raw in at, starts and ends by turns, offsets of the
// result. A stretch of which nothing is left becomes the empty one at the place where it stood; any other
// begins and ends with a character that was in it.
func pageTextAt(raw string, at []int) string {
	text := string(unwrap([]byte(sanitizeAt(raw, at))))
	for i := 0; i < len(at); i += 2 {
		for at[i] < at[i+1] && (text[at[i]] == ' ' || text[at[i]] == '\n') {
			at[i]++
		}
	}
	return text
}

// validAt replaces each run of invalid bytes by one U+FFFD.
func validAt(s string, at []int) string {
	if len(at) == 0 || utf8.ValidString(s) {
		return strings.ToValidUTF8(s, string(utf8.RuneError))
	}
	var b strings.Builder
	next, invalid := 0, false
	for i := 0; i < len(s); {
		for ; next < len(at) && at[next] <= i; next++ {
			at[next] = b.Len()
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if wrong := r == utf8.RuneError && n == 1; !wrong || !invalid {
			b.WriteRune(r)
			invalid = wrong
		}
		i += n
	}
	for ; next < len(at); next++ {
		at[next] = b.Len()
	}
	return b.String()
}

// composedAt is NFC.
func composedAt(s string, at []int) string {
	if len(at) == 0 {
		return norm.NFC.String(s)
	}
	var b strings.Builder
	var it norm.Iter
	it.InitString(norm.NFC, s)
	next := 0
	for !it.Done() {
		from, to := it.Pos(), b.Len()
		b.Write(it.Next())
		for ; next < len(at) && (at[next] < it.Pos() || it.Done()); next++ {
			if at[next] == from || at[next] < it.Pos() && next%2 == 0 {
				at[next] = to
			} else {
				at[next] = b.Len()
			}
		}
	}
	return b.String()
}

// folded is a page text with those characters that are only a form of an ASCII character replaced by it: full-width,
// mathematical and circled letters, full-width digits, hyphens and dashes.
type folded struct {
	text   string
	shifts []shift
}

// shift: from this offset on, the page text's offset is so much greater.
type shift struct{ from, by int32 }

func fold(text string) folded {
	var f folded
	var b []byte
	kept := 0 // what of text is in b
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if c := foldRune(r); c != 0 {
			b = append(append(b, text[kept:i]...), c)
			kept = i + n
			f.shifts = append(f.shifts, shift{int32(len(b)), int32(kept - len(b))})
		}
		i += n
	}
	if f.text = text; kept > 0 {
		f.text = string(append(b, text[kept:]...))
	}
	return f
}

// foldRune is the ASCII character that r is a form of, or 0.
func foldRune(r rune) byte {
	switch {
	case r < 0x2010:
		return 0
	case r <= 0x2015, r == 0x2212, r == 0xFE63:
		return '-'
	case r >= 0xFF01 && r <= 0xFF5E:
		return byte(r - 0xFF01 + '!')
	case r >= 0x24B6 && r <= 0x24E9, r >= 0x2100 && r <= 0x214F, r >= 0x1D400 && r <= 0x1D7FF, r >= 0x1F130 && r <= 0x1F149:
		if s := norm.NFKC.String(string(r)); len(s) == 1 {
			return s[0]
		}
	}
	return 0
}

// original is the page text's offset of an offset of the folded text.
func (f folded) original(offset int) int {
	i, exact := slices.BinarySearchFunc(f.shifts, offset, func(s shift, at int) int { return int(s.from) - at })
	if exact {
		i++
	}
	if i == 0 {
		return offset
	}
	return offset + int(f.shifts[i-1].by)
}
