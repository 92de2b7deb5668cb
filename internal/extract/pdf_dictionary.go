package extract

import (
	"bytes"
	"regexp"
)

const (
	pdfDictionaryBytes = 8 << 10 // of a dictionary that are looked at
	pdfDictionaryDepth = 8
)

// pdfEndsWithoutObjects tells whether a dictionary, of which rest begins after a key, ends without saying that its stream
// holds objects. Only what every reader reads alike counts: neither comments nor strings in parentheses, and a value for each key.
func pdfEndsWithoutObjects(rest []byte) bool {
	rest = rest[:min(len(rest), pdfDictionaryBytes)]
	rest, ok := pdfValue(rest, 0)
	return ok && pdfPairs(rest, 0) != nil
}

// pdfPairs is what follows the end of a dictionary, of which in begins before a key; nil where there is no plain end.
func pdfPairs(in []byte, depth int) []byte {
	for {
		in = pdfSpace(in)
		if after, is := bytes.CutPrefix(in, []byte(">>")); is {
			return after
		}
		key := pdfPlainName.Find(in)
		if key == nil {
			return nil
		}
		var ok bool
		if in, ok = pdfValue(in[len(key):], depth); !ok {
			return nil
		}
	}
}

var (
	pdfPlainName = regexp.MustCompile(`^/[A-Za-z0-9]+`)
	pdfPlainAtom = regexp.MustCompile(`^(?:[0-9]{1,10}[\t\n\r ]+[0-9]{1,10}[\t\n\r ]+R\b|[+-]?[0-9]{1,10}(?:\.[0-9]{0,10})?|true\b|false\b|null\b|<[0-9A-Fa-f\t\n\r ]*>)`)
)

// pdfValue is what follows a value.
func pdfValue(in []byte, depth int) (after []byte, ok bool) {
	in = pdfSpace(in)
	if depth > pdfDictionaryDepth || len(in) < 2 {
		return nil, false
	}
	if in[0] == '[' {
		for in = pdfSpace(in[1:]); len(in) > 0; in = pdfSpace(in) {
			if in[0] == ']' {
				return in[1:], true
			}
			if in, ok = pdfValue(in, depth+1); !ok {
				return nil, false
			}
		}
		return nil, false
	}
	if in[0] == '<' && in[1] == '<' {
		after = pdfPairs(in[2:], depth+1)
		return after, after != nil
	}
	if name := pdfPlainName.Find(in); name != nil {
		_, objects := pdfNameBegins(name[1:], "ObjStm")
		return in[len(name):], !objects
	}
	atom := pdfPlainAtom.Find(in)
	return in[len(atom):], atom != nil
}

func pdfSpace(in []byte) []byte { return bytes.TrimLeft(in, "\t\n\r ") }
