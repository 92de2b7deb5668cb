package markup

import (
	"strconv"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
)

// The code pages of \fcharsetN (RTF 1.9.1, "Font Table"). 0, 1 and 2 are left to the document; symbols have no code page.
var fontCharsets = map[int]int{
	77: 10000, 128: 932, 129: 949, 130: 949, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255, 178: 1256,
	186: 1257, 204: 1251, 222: 874, 238: 1250, 254: 437, 255: 850,
}

// codePage is nil for a number that is not known.
func codePage(n int) encoding.Encoding {
	switch n {
	case 437:
		return charmap.CodePage437
	case 850:
		return charmap.CodePage850
	case 852:
		return charmap.CodePage852
	case 855:
		return charmap.CodePage855
	case 858:
		return charmap.CodePage858
	case 860:
		return charmap.CodePage860
	case 862:
		return charmap.CodePage862
	case 863:
		return charmap.CodePage863
	case 865:
		return charmap.CodePage865
	case 866:
		return charmap.CodePage866
	case 10000:
		return charmap.Macintosh
	case 10007:
		return charmap.MacintoshCyrillic
	case 65001:
		return unicode.UTF8
	}
	name := map[int]string{932: "shift_jis", 936: "gbk", 949: "euc-kr", 950: "big5"}[n]
	if name == "" {
		name = "windows-" + strconv.Itoa(n)
	}
	e, err := htmlindex.Get(name)
	if err != nil {
		return nil
	}
	return e
}

func decodeBytes(raw []byte, from encoding.Encoding) string {
	ascii := true
	for _, b := range raw {
		ascii = ascii && b < 0x80
	}
	if ascii {
		return string(raw)
	}
	if from == nil {
		from = charmap.Windows1252
	}
	text, _ := from.NewDecoder().Bytes(raw)
	return strings.ToValidUTF8(string(text), "\uFFFD")
}
