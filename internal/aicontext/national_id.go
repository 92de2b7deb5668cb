package aicontext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// nationalID is one way in which a state numbers people. In pattern, 9 is a digit, A a capital letter, X either, _ one
// optional separator (space, dot, hyphen, slash), any other character itself; there may be further digits or letters on
// neither side. check gets the digits and letters alone. cues are words of which one must stand near by, "*" at the end
// for any ending; none where form and checksum are enough.
type nationalID struct {
	country string // ISO 3166, lower case
	pattern string
	check   func(string) bool
	cues    string // separated by commas
}

// nationalIDs, the surest first. Sources: the issuers' published rules.
var nationalIDs = []nationalID{
	{"cn", "99999999999999999X", isChineseID, ""}, // resident identity card, GB 11643
	{"it", "AAAAAAXXAXXAXXXA", isItalianID, ""},   // codice fiscale
	{"it", "AAA AAA XXAXX AXXXA", isItalianID, ""},
	{"fr", "9_99_99_9X_999_999_99", isFrenchID, ""}, // numéro d'inscription au répertoire (NIR)
	{"ch", "999.9999.9999.99", isSwissID, ""},       // AHV number
	{"ch", "9999999999999", isSwissID, ""},
	{"be", "99.99.99-999.99", isBelgianID, ""}, // national register number
	{"be", "99_99_99_999_99", isBelgianID, "national,nationaal,rijksregister*,registre,numero national,nn,rrn,insz,niss"},
	{"de", "99_999999_A_999", isGermanPensionID, ""}, // Rentenversicherungsnummer
	{"de", "99_999_999_999", isGermanTaxID, "steuer*,identifikationsnummer,idnr,id-nr,tin,tax id*,tax number,steueridentifikationsnummer,steuerliche"},
	{"fi", "999999-999X", isFinnishID, ""}, // henkilötunnus
	{"fi", "999999A999X", isFinnishID, ""},
	{"br", "999.999.999-99", isBrazilianID, ""}, // CPF
	{"br", "99999999999", isBrazilianID, "cpf,cadastro,pessoa fisica"},
	{"ru", "999-999-999 99", isRussianID, ""}, // SNILS
	{"ru", "99999999999", isRussianID, "снилс,snils,страховой номер"},
	{"es", "A_9999999_A", isSpanishID, ""}, // NIE
	{"es", "99999999_A", isSpanishID, "dni,d.n.i,nif,n.i.f,documento,identidad,identificacion,titular"},
	{"es", "99.999.999_A", isSpanishID, "dni,d.n.i,nif,n.i.f,documento,identidad,identificacion,titular"},
	{"gb", "AA 99 99 99 A", isBritishInsuranceID, ""}, // National Insurance number
	{"gb", "AA999999A", isBritishInsuranceID, "national insurance,ni number,ni no,nino,insurance number,insurance no"},
	{"gb", "999_999_9999", isNHSNumber, "nhs,health service,h&c,chi number,patient"},
	{"us", "999-99-9999", isSocialSecurityNumber, "ssn,social security,soc. sec,social-security,taxpayer,tin"},
	{"us", "999 99 9999", isSocialSecurityNumber, "ssn,social security,soc. sec,social-security"},
	{"us", "999999999", isSocialSecurityNumber, "ssn,social security,social-security"},
	{"nl", "9999_99_999", isDutchID, "bsn,burgerservicenummer,burger service nummer,sofinummer,sofi-nummer,persoonsnummer,citizen service"},
	{"nl", "999_999_999", isDutchID, "bsn,burgerservicenummer,burger service nummer,sofinummer,sofi-nummer,persoonsnummer,citizen service"},
	{"pl", "99999999999", isPolishID, "pesel"},
	{"se", "999999-9999", isSwedishID, "personnummer,personnr,pers.nr,pnr,personal identity,personal number,fodd,samordningsnummer,swedish"},
	{"se", "99999999-9999", isSwedishID, "personnummer,personnr,pers.nr,pnr,personal identity,personal number,fodd,samordningsnummer,swedish"},
	{"se", "999999999999", isSwedishID, "personnummer,personnr,pers.nr,pnr,personal identity,personal number,samordningsnummer"},
	{"no", "999999_99999", isNorwegianID, "fødselsnummer,fodselsnummer,fnr,personnummer,d-nummer,national identity"},
	{"dk", "999999-9999", isDanishID, "cpr,cpr-nr,cpr-nummer,personnummer,civil registration"},
	{"at", "9999_999999", isAustrianID, "sozialversicherung*,svnr,sv-nr,sv-nummer,versicherungsnummer,social insurance,social security"},
	{"in", "9999_9999_9999", isIndianID, "aadhaar,aadhar,uidai,uid,आधार"},
	{"pt", "999_999_999", isPortugueseID, "nif,n.i.f,contribuinte,identificacao fiscal,numero fiscal"},
	{"jp", "9999_9999_9999", isJapaneseID, "マイナンバー,個人番号,my number,individual number"},
}

const (
	cueBefore = 64  // bytes before an identifier in which its cue may stand
	cueAfter  = 32  // bytes after it
	cueChain  = 160 // bytes from one identifier to the next of its kind under the same cue: a list
)

// idFinder finds identifiers in text, which it is asked about from its start to its end.
type idFinder struct {
	text string
	last []int // by row of nationalIDs: the end of the last one found
}

// at is the class and length of the identifier that stands at i, where a word or number starts; 0 if none does.
func (f *idFinder) at(i int) (class string, n int) {
	text := f.text
	if i >= 2 && strings.IndexByte(".-/", text[i-1]) >= 0 && isDigit(text[i-2]) {
		return "", 0 // goes on with a longer number
	}
	first := 'A'
	if isDigit(text[i]) {
		first = '9'
	}
	var compact [32]byte
	for row, id := range nationalIDs {
		if p := rune(id.pattern[0]); p != first && p != 'X' {
			continue
		}
		length, kept := matchPattern(id.pattern, text[i:], compact[:0])
		if length == 0 || !endsNumber(text, i+length) || !id.check(string(kept)) {
			continue
		}
		if id.cues == "" || f.last[row] > 0 && i-f.last[row] <= cueChain || hasCue(cuesOf[row], text, i, i+length) {
			f.last[row] = i + length
			return "national_id_" + id.country, length
		}
	}
	return "", 0
}

// matchPattern is the length of what s starts with by the pattern, 0 if it does not, and its digits and letters.
func matchPattern(pattern, s string, kept []byte) (int, []byte) {
	i := 0
	for _, p := range []byte(pattern) {
		if i >= len(s) {
			return 0, nil
		}
		c := s[i]
		letter := c >= 'A' && c <= 'Z'
		switch p {
		case '_':
			if strings.IndexByte(" .-/", c) >= 0 {
				i++
			}
			continue
		case '9', 'A', 'X':
			if p != 'A' && isDigit(c) || p != '9' && letter {
				kept = append(kept, c)
				break
			}
			return 0, nil
		default:
			if c != p {
				return 0, nil
			}
		}
		i++
	}
	return i, kept
}

// endsNumber tells that a word or number ends before i: neither goes on there, nor after a hyphen, dot or slash.
func endsNumber(text string, i int) bool {
	if i < len(text) && strings.IndexByte(".-/", text[i]) >= 0 {
		return i+1 == len(text) || !isDigit(text[i+1])
	}
	return endsWord(text, i)
}

// cue is a word, or some, that stands near an identifier; open if it may have any ending.
type cue struct {
	words string
	open  bool
}

// cuesOf is nationalIDs' cues by row.
var cuesOf = func() [][]cue {
	all := make([][]cue, len(nationalIDs))
	for row, id := range nationalIDs {
		for words := range strings.SplitSeq(id.cues, ",") {
			words, open := strings.CutSuffix(words, "*")
			if words = plainText(words); words != "" {
				all[row] = append(all[row], cue{words, open})
			}
		}
	}
	return all
}()

// hasCue looks around text[start:end] for one of the cues as whole words.
func hasCue(cues []cue, text string, start, end int) bool {
	around := plainText(text[runeBoundary(text, max(0, start-cueBefore)):start]) + " | " +
		plainText(text[end:runeBoundary(text, end+cueAfter)])
	for _, c := range cues {
		for at := 0; ; at++ {
			next := strings.Index(around[at:], c.words)
			if next < 0 {
				break
			}
			at += next
			if startsWord(around, at) && (c.open || endsWord(around, at+len(c.words))) {
				return true
			}
		}
	}
	return false
}

// plainText is s in lower case without accents, white space made single spaces.
func plainText(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFD.String(s))), " ")
}

// startsWord tells that no word or number of a script with spaces goes on at i.
func startsWord(s string, i int) bool {
	r, _ := utf8.DecodeLastRuneInString(s[:i])
	return i == 0 || !unicode.IsLetter(r) && !unicode.IsDigit(r) || isWide(r)
}

// endsWord tells the same of what comes at i.
func endsWord(s string, i int) bool {
	r, _ := utf8.DecodeRuneInString(s[i:])
	return i >= len(s) || !unicode.IsLetter(r) && !unicode.IsDigit(r) || isWide(r)
}
