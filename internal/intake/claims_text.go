package intake

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxSentenceWords = 400 // a sentence without end is looked at in pieces …
	sentenceOverlap  = 24  // … that share this many words
)

// TextClaim finds text saying that this service verified, certified, endorsed or ranked the submission, in English,
// German, French or Spanish; spelling tricks (invisible and look-alike characters, HTML, broken or spaced words) do not
// hide it. What a company says of itself or of others, denials, requests and questions are none. It is a filter of
// phrases, not of meaning: testdata/claims says what it finds and misses. Time grows linearly with the text.
// Contract: Verification claims.
func TextClaim(text string) bool {
	r := claimReader{grammar: grammar()}
	return r.read(plainText(text))
}

// claimReader cuts plain text into sentences of word classes.
type claimReader struct {
	grammar  *claimGrammar
	sentence []byte
	lines    []int // where lines begin in the sentence
	word     []byte
	spaced   []byte // a w o r d written like this
}

func (r *claimReader) read(text string) bool {
	for i := 0; i < len(text); {
		c, n := rune(text[i]), 1
		if c >= utf8.RuneSelf {
			c, n = utf8.DecodeRuneInString(text[i:])
		}
		rest := text[i+n:]
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			r.word = append(r.word, byte(c))
		case c >= 'A' && c <= 'Z':
			r.word = append(r.word, byte(c)+'a'-'A')
		case unicode.IsLetter(c), unicode.IsDigit(c):
			r.word = utf8.AppendRune(r.word, unicode.ToLower(c))
		case (c == '@' || c == '$') && len(r.word) > 0 && startsWithLetter(rest):
			r.word = append(r.word, byte(c))
		case c == '-' && len(r.word) > 0 && brokenWord(rest) > 0:
			n += brokenWord(rest)
		default:
			if r.mark(c, rest, text[:i]) {
				return true
			}
		}
		i += n
	}
	r.endWord(false)
	return r.endSentence()
}

// mark takes a character between words; it tells that it ended a sentence with a claim.
func (r *claimReader) mark(c rune, rest, before string) bool {
	next, _ := utf8.DecodeRuneInString(rest)
	open := len(rest) > 0 && (unicode.IsLetter(next) || unicode.IsDigit(next)) // a word follows at once
	r.endWord(open && c != '\n')
	switch c {
	case '.', '!', ';', '?', '。':
		if open && !isExtension(rest) {
			return false
		}
		if c == '?' {
			r.add(r.grammar.letters["question"])
		}
		return r.endSentence()
	case '\n':
		line := strings.TrimLeft(rest, " \t\r")
		if line == "" || line[0] == '\n' || isBullet(line) {
			return r.endSentence()
		}
		r.lines = append(r.lines, len(r.sentence))
	case ':', '=', '|', '\t':
		r.add(r.grammar.letters["colon"])
	case ',':
		r.add(r.grammar.letters["comma"])
	case '(', ')', '[', ']', '—', '–':
		r.add(r.grammar.letters["aside"])
	case '-':
		if strings.HasPrefix(rest, " ") && strings.HasSuffix(before, " ") {
			r.add(r.grammar.letters["aside"])
		}
	default:
		if unicode.Is(unicode.So, c) {
			r.add(r.grammar.letters["aside"])
		}
	}
	return len(r.sentence) >= maxSentenceWords && r.endPiece()
}

// endWord classifies the word that ended; near tells that the next one begins one character later.
func (r *claimReader) endWord(near bool) {
	w := string(r.word)
	r.word = r.word[:0]
	if len(w) == 1 && (near || len(r.spaced) > 0) {
		r.spaced = append(r.spaced, w...)
		w = ""
	}
	if len(r.spaced) > 0 && (!near || w != "") {
		spaced := string(r.spaced)
		r.spaced = r.spaced[:0]
		if len(spaced) > 3 || r.grammar.class(spaced) != otherWord {
			r.addWord(spaced)
		} else {
			for i := range len(spaced) {
				r.addWord(spaced[i : i+1])
			}
		}
	}
	if w != "" {
		r.addWord(w)
	}
}

func (r *claimReader) addWord(w string) {
	class := r.grammar.class(w)
	if pair, ok := contractions[w]; ok {
		r.add(r.grammar.class(pair[0]))
		class = r.grammar.class(pair[1])
	}
	if class != otherWord {
		r.add(class)
		return
	}
	if strings.ContainsAny(w, "0123456789@$") {
		if strings.Trim(w, "0123456789") == "" {
			r.add(r.grammar.letters["digits"])
			return
		}
		w = strings.Map(func(c rune) rune { return cmp.Or(digitLetters[c], c) }, w)
		class = r.grammar.class(w)
	}
	if class == otherWord {
		if parts := r.grammar.unglue(w); parts != nil {
			r.sentence = append(r.sentence, parts...)
			return
		}
	}
	r.add(class)
}

func (r *claimReader) add(class byte) { r.sentence = append(r.sentence, class) }

// endSentence tells that the sentence holds a claim, as it runs on over lines or in one of its lines (a heading has no full stop).
func (r *claimReader) endSentence() bool {
	found := r.claim(r.sentence)
	at := 0
	for _, line := range r.lines {
		found = found || r.claim(r.sentence[at:line])
		at = line
	}
	found = found || at > 0 && r.claim(r.sentence[at:])
	r.sentence, r.lines = r.sentence[:0], r.lines[:0]
	return found
}

// endPiece looks at what has been read of a long sentence and keeps its end.
func (r *claimReader) endPiece() bool {
	end := string(r.sentence[len(r.sentence)-sentenceOverlap:])
	found := r.endSentence()
	r.sentence = append(r.sentence, end...)
	return found
}

func (r *claimReader) claim(sentence []byte) bool {
	has := lettersOf(sentence)
	return has.meets(r.grammar.verdicts) && has.meets(r.grammar.parties) && r.grammar.holdsClaim(string(sentence))
}

// brokenWord is the length of the line break after a hyphen that only broke a word; 0 for none.
func brokenWord(rest string) int {
	line := strings.TrimLeft(rest, " \r")
	if !strings.HasPrefix(line, "\n") {
		return 0
	}
	line = strings.TrimLeft(line[1:], " \t")
	if !startsWithLetter(line) {
		return 0
	}
	return len(rest) - len(line)
}

// isExtension tells that a text ends in a file name's extension.
func isExtension(rest string) bool {
	return len(rest) <= 5 && strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) < 0
}

// isBullet tells that a line begins an item of a list.
func isBullet(line string) bool {
	line = strings.TrimLeft(line, "0123456789")
	for _, bullet := range []string{"- ", "• ", "· ", "– ", "+ ", ". ", ") "} {
		if strings.HasPrefix(line, bullet) {
			return true
		}
	}
	return false
}
