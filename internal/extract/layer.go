package extract

import (
	"strings"
	"unicode"

	"github.com/accession/accession/internal/extract/page"
)

// layerMinimum is how many words a text layer must have before it can be said to differ from its picture.
const layerMinimum = 8

// layerStretch is how many words in a row make a passage, of which OCR must find more than layerStray.
const (
	layerStretch = 12
	layerStray   = 3
)

// layerDiffers tells whether fewer than half of the layer's words are found in what OCR reads of the page, or almost none of a
// whole passage. OCR errs in a word of ten on a poor scan; a text that is not in the picture shares but the commonest words with
// it. A layer in a script that OCR does not read, for want of the language, cannot be compared.
func layerDiffers(layer, seen string) bool {
	words := contentWords(layer)
	if len(words) < layerMinimum || otherScript(layer, seen) {
		return false
	}
	shown := wordSet(seen)
	found, lately := 0, 0
	for i, w := range words {
		if shown[w] {
			found++
			lately++
		}
		if i >= layerStretch && shown[words[i-layerStretch]] {
			lately--
		}
		if i >= layerStretch-1 && lately <= layerStray {
			return true
		}
	}
	return found*2 < len(words)
}

// layerTells tells whether the layer says all that OCR reads, but for what OCR misreads.
func layerTells(layer, seen string) bool {
	told := wordSet(layer)
	words := contentWords(seen)
	found := 0
	for _, w := range words {
		if told[w] {
			found++
		}
	}
	return len(words) > 0 && found*5 >= len(words)*4
}

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range contentWords(text) {
		set[w] = true
	}
	return set
}

// otherScript tells whether most letters of the layer are none that OCR reads: Latin ones are what it makes of all others.
func otherScript(layer, seen string) bool {
	return 2*latin(layer) < words(layer) && 4*latin(seen) > 3*words(seen)
}

func latin(text string) (n int) {
	for _, r := range text {
		if r <= unicode.MaxLatin1 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || unicode.Is(unicode.Latin, r) {
			n++
		}
	}
	return n
}

// contentWords are the words of four letters and more, in lower case: the short ones are in every text.
func contentWords(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	kept := words[:0]
	for _, w := range words {
		if len([]rune(w)) >= 4 {
			kept = append(kept, w)
		}
	}
	return kept
}

// withLayer is a page of what OCR reads, with the layer that says something else after it, marked as what nobody sees.
func withLayer(seen string, layer Page) Page {
	w := page.NewWriter(int64(len(seen) + len(layer.Text) + 2))
	w.Write(seen, "")
	w.Paragraph()
	w.Write(layer.Text, page.HiddenLayer)
	p := w.Page()
	return Page{Number: layer.Number, Text: p.Text, Hidden: p.Hidden, Source: SourceOCR}
}
