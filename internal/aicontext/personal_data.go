package aicontext

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// findNumbers counts IBANs, payment cards, national identifiers and phone numbers, with their checksums verified where
// they have one.
func (r reading) findNumbers(found tally) {
	text := r.text
	ids := idFinder{text: text, last: make([]int, len(nationalIDs))}
	inner := 0 // up to here the text is a number of no class, whose groups can still begin an identifier
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= utf8.RuneSelf || !startsWord(text, i) {
			continue // inside a word or number
		}
		if isDigit(c) || c >= 'A' && c <= 'Z' {
			if class, n := ids.at(i); n > 0 {
				r.addPersonal(found, class, i, i+n)
				i += n - 1
				continue
			}
		}
		switch {
		case i < inner:
		case c >= 'A' && c <= 'Z':
			if n, valid := ibanAt(text[i:]); n > 0 {
				if valid {
					r.addPersonal(found, "iban", i, i+n)
				}
				i += n - 1 // a mistyped one is no card either
			}
		case c == '+' || c == '(' || isDigit(c):
			number := numberAt(text[i:])
			class := ""
			switch {
			case isPaymentCard(number):
				class = "payment_card"
			case isPhone(number, text[:i]):
				class = "phone"
			default:
				inner = i + len(number)
				continue
			}
			r.addPersonal(found, class, i, i+len(number))
			i += len(number) - 1
		}
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlphanumeric(c byte) bool {
	return isDigit(c) || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= utf8.RuneSelf
}

// domain is a host name with a dot and a top level of letters, to its end.
var domain = regexp.MustCompile(`^(?:[\pL\pN](?:[\pL\pN-]{0,61}[\pL\pN])?\.)+\pL{2,24}$`)

// findEmails takes what stands on both sides of each @: a local part up to 64 bytes, a domain up to 255 (RFC 5321).
func (r reading) findEmails(found tally) {
	text := r.text
	for at := 0; ; at++ {
		next := strings.IndexByte(text[at:], '@')
		if next < 0 {
			return
		}
		at += next
		local := 0
		for local < 64 && local < at && isAtomByte(text[at-1-local]) {
			local++
		}
		end := at + 1
		for end < len(text) && end-at <= 255 && (isAlphanumeric(text[end]) || text[end] == '.' || text[end] == '-') {
			end++
		}
		host := strings.TrimRight(text[at+1:end], ".-")
		if local > 0 && domain.MatchString(host) {
			r.addPersonal(found, "email", at-local, at+1+len(host))
		}
	}
}

// isAtomByte: what stands in a local part, without the marks that more often enclose an address.
func isAtomByte(c byte) bool {
	return isAlphanumeric(c) || strings.IndexByte(".!#$%&*+/=?^_{|}~-", c) >= 0
}

// ibanAt is the length of what s starts with if that has the form of an IBAN, single spaces allowed in it, or 0; and
// whether its check digits are right.
func ibanAt(s string) (n int, valid bool) {
	if len(s) < 4 || !isDigit(s[2]) || !isDigit(s[3]) {
		return 0, false
	}
	want, ok := ibanLengths[s[:2]]
	if !ok {
		return 0, false
	}
	compact := make([]byte, 0, want)
	i := 0
	for ; i < len(s) && len(compact) < want; i++ {
		switch c := s[i]; {
		case isDigit(c) || c >= 'A' && c <= 'Z':
			compact = append(compact, c)
		case c == ' ' && s[i-1] != ' ':
		default:
			return 0, false
		}
	}
	if len(compact) < want || !endsWord(s, i) {
		return 0, false
	}
	return i, mod97(append(compact[4:], compact[:4]...)) == 1
}

// mod97 is ISO 7064 MOD 97-10 over digits and letters (A is 10).
func mod97(s []byte) int {
	m := 0
	for _, c := range s {
		if isDigit(c) {
			m = (m*10 + int(c-'0')) % 97
		} else {
			m = (m*100 + int(c-'A') + 10) % 97
		}
	}
	return m
}

// numberAt is the run of digits and single separators that s starts with, ending in a digit.
func numberAt(s string) string {
	end := 0
	separators := 0
	for i := 0; i < len(s) && i < 64; i++ {
		switch c := s[i]; {
		case isDigit(c):
			end, separators = i+1, 0
		case strings.IndexByte(" -./()+", c) >= 0 && separators < 3 && (c != '+' || i == 0):
			separators++
		default:
			if end == i && !endsWord(s, i) {
				return "" // 12ab: part of a code
			}
			return s[:end]
		}
	}
	return s[:end]
}

func digitsOf(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s)
}

// cardForms are the groupings printed on cards, or none.
var cardForms = regexp.MustCompile(`^(?:\d{13,19}|(?:\d{4}[ -]){3}\d{4}(?:[ -]\d{3})?|\d{4}[ -]\d{6}[ -]\d{4,5})\b`)

// cardNumbers are the first digits and the lengths that card schemes give out (ISO/IEC 7812).
var cardNumbers = regexp.MustCompile(`^(?:4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|(?:5[0678]|6\d)\d{14,17}|` +
	`2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}|35\d{14})$`)

// isPaymentCard: starts with a number that a card scheme gives out, with Luhn's check digit.
func isPaymentCard(number string) bool {
	digits := digitsOf(cardForms.FindString(number))
	return cardNumbers.MatchString(digits) && luhn(digits) && !allSame(digits)
}

var nationalPhone = regexp.MustCompile(`^(?:\([2-9]\d{2}\) ?[2-9]\d{2}[-.]\d{4}|[2-9]\d{2}-[2-9]\d{2}-\d{4}|[2-9]\d{2}\.[2-9]\d{2}\.\d{4})$`)

// isPhone: international form, North American form, or six digits and more after a word that announces a number.
func isPhone(number, before string) bool {
	digits := len(digitsOf(number))
	switch {
	case digits < 6 || digits > 15:
		return false
	case number[0] == '+':
		return digits >= 8 && number[1] != '0'
	case nationalPhone.MatchString(number):
		return true
	}
	before = strings.TrimRight(before[max(0, len(before)-24):], " .:;()-/")
	words := strings.FieldsFunc(before, func(r rune) bool { return !unicode.IsLetter(r) })
	return len(words) > 0 && strings.HasSuffix(before, words[len(words)-1]) &&
		phoneCues[strings.ToLower(words[len(words)-1])]
}

// ibanLengths is the IBAN's length by country (ISO 13616 registry).
var ibanLengths = map[string]int{
	"AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28,
	"CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18,
	"FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22,
	"IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20,
	"LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18,
	"NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SC": 31, "SE": 24,
	"SI": 19, "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24,
	"XK": 20,
}

// phoneCues are the words before a number that make it a phone number where its form alone does not.
var phoneCues = set(`tel telephone phone ph mobile cell fax call whatsapp telefon telefonnummer mobil handy rufnummer
	ruf tél téléphone portable télécopie teléfono telefono móvil movil llame telefoon telefone telemóvel celular
	cellulare telefonu komórka тел телефон моб 电话 電話 手机 手機 携帯`)
