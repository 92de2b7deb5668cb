package aicontext

import "strings"

// stretch is a part of a machine-readable zone: the line, its first character and the one after its last.
type stretch struct{ line, from, to int }

// travelDocument is a form of the machine-readable zone: its lines, the letters that the document's type begins with, and what
// the digits behind its last stretches check.
type travelDocument struct {
	width, lines int
	first        string
	checked      [][]stretch
}

// travelDocuments: ICAO Doc 9303, parts 4 to 7.
var travelDocuments = []travelDocument{
	{44, 2, "P", [][]stretch{{{1, 0, 9}}, {{1, 13, 19}}, {{1, 21, 27}}, {{1, 0, 10}, {1, 13, 20}, {1, 21, 43}}}}, // passport
	{36, 2, "ACIP", [][]stretch{{{1, 0, 9}}, {{1, 13, 19}}, {{1, 21, 27}}, {{1, 0, 10}, {1, 13, 20}, {1, 21, 35}}}},
	{30, 3, "ACI", [][]stretch{{{0, 5, 14}}, {{1, 0, 6}}, {{1, 8, 14}}, {{0, 5, 30}, {1, 0, 7}, {1, 8, 15}, {1, 18, 29}}}},
	{44, 2, "V", [][]stretch{{{1, 0, 9}}, {{1, 13, 19}}, {{1, 21, 27}}}}, // visa
	{36, 2, "V", [][]stretch{{{1, 0, 9}}, {{1, 13, 19}}, {{1, 21, 27}}}},
}

// findTravelDocuments counts machine-readable zones, one line each or with spaces for line ends, whose check digits hold.
func (r reading) findTravelDocuments(found tally) {
	for i := 0; ; {
		next := strings.Index(r.text[i:], "<<")
		if next < 0 {
			return
		}
		// The names, which have a "<<", stand in the first line or in the third.
		line := i + next
		for line > i && isZoneByte(r.text[line-1]) && i+next-line < 44 {
			line--
		}
		end := 0
		for _, start := range []int{line, line - 62} {
			if start >= i && (start == 0 || !isZoneByte(r.text[start-1])) {
				if n := travelDocumentAt(r.text[start:]); n > 0 {
					r.addPersonal(found, "mrz", start, start+n)
					end = start + n
					break
				}
			}
		}
		for i += next + 2; i < end || i < len(r.text) && isZoneByte(r.text[i]); i++ {
		}
	}
}

func isZoneByte(c byte) bool { return c == '<' || isDigit(c) || c >= 'A' && c <= 'Z' }

// travelDocumentAt is the length of the zone that s starts with, or 0.
func travelDocumentAt(s string) int {
	for _, d := range travelDocuments {
		lines := make([]string, 0, 3)
		n := 0
		for len(lines) < d.lines && n+d.width <= len(s) && strings.IndexFunc(s[n:n+d.width], isNoZoneRune) < 0 {
			lines = append(lines, s[n:n+d.width])
			if n += d.width; len(lines) < d.lines && n < len(s) && (s[n] == '\n' || s[n] == ' ') {
				n++
			}
		}
		if len(lines) == d.lines && strings.IndexByte(d.first, s[0]) >= 0 && (n == len(s) || !isZoneByte(s[n])) && d.holds(lines) {
			return n
		}
	}
	return 0
}

func isNoZoneRune(r rune) bool { return r > 'Z' || !isZoneByte(byte(r)) }

// holds tells that every check digit is right: weights 7, 3, 1 modulo 10, A being 10 and < nothing.
func (d travelDocument) holds(lines []string) bool {
	for _, stretches := range d.checked {
		sum, i := 0, 0
		for _, part := range stretches {
			for _, c := range []byte(lines[part.line][part.from:part.to]) {
				value := 0
				if isDigit(c) {
					value = digit(c)
				} else if c != '<' {
					value = int(c-'A') + 10
				}
				sum += value * [3]int{7, 3, 1}[i%3]
				i++
			}
		}
		last := stretches[len(stretches)-1]
		if c := lines[last.line][last.to]; !isDigit(c) || digit(c) != sum%10 {
			return false
		}
	}
	return true
}
