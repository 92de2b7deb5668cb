package main

import (
	"strings"
	"unicode"
)

// rouge is ROUGE-L (Lin, 2004): how much of a reference's words stand in a text in the same order, gaps allowed.
type rouge struct{ recall, precision, f float64 }

// rougeL compares words of letters and digits, in lower case, unstemmed; f weighs recall and precision alike.
func rougeL(reference, text string) rouge {
	want, got := wordsOf(reference), wordsOf(text)
	if len(want) == 0 || len(got) == 0 {
		return rouge{}
	}
	common := float64(longestCommon(want, got))
	r := rouge{recall: common / float64(len(want)), precision: common / float64(len(got))}
	if common > 0 {
		r.f = 2 * r.recall * r.precision / (r.recall + r.precision)
	}
	return r
}

func wordsOf(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.N) })
}

// longestCommon is the length of the longest common subsequence.
func longestCommon(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			next := max(row[j+1], row[j])
			if x == y {
				next = diagonal + 1
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
