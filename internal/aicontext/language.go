package aicontext

import (
	"strings"
	"unicode"

	"github.com/abadojack/whatlanggo"
)

const (
	languageSampleBytes = 16 << 10
	minLetters          = 24  // of an alphabet; fewer tell nothing
	minWideLetters      = 4   // of a script that nearly names its language
	minConfidence       = 0.8 // whatlanggo's own threshold for a reliable answer
)

// language is the ISO 639-1 code (639-3 where there is none) of the document's language, "und" when unsure.
// Contract: AI context, `language`.
func language(d *document) string {
	var b strings.Builder
	for pass := range 2 { // prose first; headings and rows only where there is none
		step := max(1, len(d.sentences)/200)
		for i := 0; i < len(d.sentences) && b.Len() < languageSampleBytes; i += step {
			if s := d.sentences[i]; pass == 1 || s.prose {
				b.WriteString(d.text(s))
				b.WriteByte('\n')
			}
		}
		if b.Len() > 0 {
			break
		}
	}
	return detectLanguage(b.String())
}

func detectLanguage(sample string) string {
	var letters, wide, kana int
	for _, r := range sample {
		if !unicode.IsLetter(r) {
			continue
		}
		letters++
		if isWide(r) {
			wide++
		}
		if unicode.In(r, unicode.Hiragana, unicode.Katakana) {
			kana++
		}
	}
	if letters < minLetters && wide < minWideLetters {
		return "und"
	}
	if kana*10 > letters {
		return "ja" // whatlanggo counts a text with more Han than kana as Chinese
	}
	info := whatlanggo.Detect(sample)
	if info.Lang < 0 || info.Confidence < minConfidence {
		return "und"
	}
	if code := info.Lang.Iso6391(); code != "" {
		return code
	}
	if code := info.Lang.Iso6393(); code != "" {
		return code
	}
	return "und"
}
