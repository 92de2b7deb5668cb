package aicontext

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// findPersonalData counts e-mail addresses, IBANs, payment cards and phone numbers in NFKC text. Checksums are
// verified where the class has one.
func findPersonalData(text string, found tally) {
	findEmails(text, found)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if i > 0 && isAlphanumeric(text[i-1]) {
			continue // inside a word or number
		}
		switch {
		case c >= 'A' && c <= 'Z':
			if n := ibanAt(text[i:]); n > 0 {
				found.add(SignalPersonalData, "iban")
				i += n - 1
			}
		case c == '+' || c == '(' || isDigit(c):
			number := numberAt(text[i:])
			switch {
			case isPaymentCard(number):
				found.add(SignalPersonalData, "payment_card")
			case isPhone(number, text[:i]):
				found.add(SignalPersonalData, "phone")
			}
			i += max(len(number), 1) - 1
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
func findEmails(text string, found tally) {
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
		if local > 0 && domain.MatchString(strings.TrimRight(text[at+1:end], ".-")) {
			found.add(SignalPersonalData, "email")
		}
	}
}

// isAtomByte: what stands in a local part, without the marks that more often enclose an address.
func isAtomByte(c byte) bool {
	return isAlphanumeric(c) || strings.IndexByte(".!#$%&*+/=?^_{|}~-", c) >= 0
}

// ibanAt is the length of the IBAN, single spaces allowed in it, that s starts with, or 0.
func ibanAt(s string) int {
	if len(s) < 4 || !isDigit(s[2]) || !isDigit(s[3]) {
		return 0
	}
	want, ok := ibanLengths[s[:2]]
	if !ok {
		return 0
	}
	compact := make([]byte, 0, want)
	i := 0
	for ; i < len(s) && len(compact) < want; i++ {
		switch c := s[i]; {
		case isDigit(c) || c >= 'A' && c <= 'Z':
			compact = append(compact, c)
		case c == ' ' && s[i-1] != ' ':
		default:
			return 0
		}
	}
	if len(compact) < want || i < len(s) && isAlphanumeric(s[i]) || mod97(append(compact[4:], compact[:4]...)) != 1 {
		return 0
	}
	return i
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
			if isAlphanumeric(c) && end == i {
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

// isPaymentCard: starts with 13 to 19 digits, the first that of a card scheme, with Luhn's check digit (ISO/IEC 7812).
func isPaymentCard(number string) bool {
	digits := digitsOf(cardForms.FindString(number))
	if digits == "" || digits[0] < '2' || digits[0] > '6' {
		return false
	}
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0 && strings.Count(digits, digits[:1]) < len(digits)
}

var nationalPhone = regexp.MustCompile(`^(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[-.])[2-9]\d{2}[-.]\d{4}$`)

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
