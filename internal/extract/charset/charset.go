// Package charset turns text in whatever common encoding it comes into UTF-8.
package charset

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	wide "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

const sample = 4096 // bytes that Wide looks at

// Decode finds the encoding: byte order mark, UTF-16 by its zero bytes, UTF-8 where it is valid and more than ASCII, what
// was declared, then a guess by letter statistics. ok is false when the result is mostly not text.
func Decode(raw []byte, declared string) (text string, ok bool) {
	whole := raw[:len(raw)-halfRune(raw)]
	var from encoding.Encoding
	switch {
	case bytes.HasPrefix(raw, []byte{0xFF, 0xFE, 0, 0}), bytes.HasPrefix(raw, []byte{0, 0, 0xFE, 0xFF}):
		from = utf32.UTF32(utf32.BigEndian, utf32.UseBOM)
	case bytes.HasPrefix(raw, []byte{0xFF, 0xFE}), bytes.HasPrefix(raw, []byte{0xFE, 0xFF}):
		from = wide.UTF16(wide.BigEndian, wide.UseBOM)
	case bytes.HasPrefix(raw, []byte{0xEF, 0xBB, 0xBF}):
	case Wide(raw) != nil:
		from = Wide(raw)
	case utf8.Valid(whole) && !ascii(whole):
	default:
		if from, _ = htmlindex.Get(declared); from == nil && !utf8.Valid(whole) {
			from = guess(raw)
		}
	}
	if from == nil {
		text = string(whole)
	} else {
		decoded, err := from.NewDecoder().Bytes(raw)
		if err != nil {
			return "", false
		}
		text = string(decoded)
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	return text, legible(text)
}

// Wide recognises UTF-16 without a byte order mark: in its Latin letters, spaces and line ends one byte of two is
// zero, always the same one.
func Wide(raw []byte) encoding.Encoding {
	raw = raw[:min(len(raw), sample)&^1]
	var zero [2]int
	for i, b := range raw {
		if b == 0 {
			zero[i%2]++
		}
	}
	pairs := len(raw) / 2
	switch {
	case pairs == 0:
		return nil
	case zero[1] > 0 && zero[1] >= pairs/10 && zero[0] == 0:
		return wide.UTF16(wide.LittleEndian, wide.IgnoreBOM)
	case zero[0] > 0 && zero[0] >= pairs/10 && zero[1] == 0:
		return wide.UTF16(wide.BigEndian, wide.IgnoreBOM)
	}
	return nil
}

func guess(raw []byte) encoding.Encoding {
	best, err := chardet.NewTextDetector().DetectBest(raw[:min(len(raw), 64<<10)])
	if err == nil && best.Confidence >= 25 {
		name := best.Charset
		if name == "GB-18030" {
			name = "gb18030"
		}
		if from, err := htmlindex.Get(name); err == nil {
			return from
		}
	}
	return charmap.Windows1252
}

// legible refuses what is no text in any encoding: one character in ten is a control or could not be decoded.
func legible(text string) bool {
	total, bad := 0, 0
	for _, r := range text {
		total++
		if r == utf8.RuneError || unicode.IsControl(r) && !strings.ContainsRune("\n\r\t\f\x1a\x1b", r) {
			bad++
		}
	}
	return bad*10 <= total
}

func ascii(raw []byte) bool {
	for _, b := range raw {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// halfRune counts the bytes of a UTF-8 character that was cut off at the end.
func halfRune(raw []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(raw)); n++ {
		if b := raw[len(raw)-n]; utf8.RuneStart(b) {
			if !utf8.FullRune(raw[len(raw)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
