package aicontext

import "strings"

// Each check gets the digits and capital letters of an identifier that has its pattern.

func digit(c byte) int { return int(c - '0') }

// weigh is the sum of the first digits of s, each with its weight.
func weigh(s string, weights ...int) (sum int) {
	for i, w := range weights {
		sum += w * digit(s[i])
	}
	return sum
}

// number is the value of a row of digits.
func number(s string) (n int) {
	for i := range len(s) {
		n = n*10 + digit(s[i])
	}
	return n
}

// isDate holds for two digits of a day and of a month that are in the calendar.
func isDate(day, month string) bool {
	d, m := number(day), number(month)
	return d >= 1 && d <= 31 && m >= 1 && m <= 12
}

// allSame: a row of one digit satisfies many checksums and numbers nobody.
func allSame(s string) bool { return strings.Count(s, s[:1]) == len(s) }

// luhn is the check of ISO/IEC 7812 over all digits.
func luhn(s string) bool {
	sum := 0
	for i := range len(s) {
		d := digit(s[len(s)-1-i])
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// isGermanTaxID: ISO 7064 MOD 11,10; of the first ten digits exactly one comes twice or thrice, the others once at most, and three
// never in a row.
func isGermanTaxID(s string) bool {
	if s[0] == '0' {
		return false
	}
	var seen [10]int
	product, repeated := 10, 0
	for i := range 10 {
		d := digit(s[i])
		if seen[d]++; seen[d] == 2 {
			repeated++
		}
		if seen[d] > 3 || i >= 2 && s[i] == s[i-1] && s[i] == s[i-2] {
			return false
		}
		sum := (d + product) % 10
		if sum == 0 {
			sum = 10
		}
		product = sum * 2 % 11
	}
	return repeated == 1 && (11-product)%10 == digit(s[10])
}

// isGermanPensionID: area, birth date, initial, serial number, and a sum of digit sums.
func isGermanPensionID(s string) bool {
	letter := int(s[8]-'A') + 1
	row := s[:8] + string([]byte{byte('0' + letter/10), byte('0' + letter%10)}) + s[9:11]
	sum := 0
	for i, w := range []int{2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1} {
		product := digit(row[i]) * w
		sum += product/10 + product%10
	}
	return isDate(s[2:4], s[4:6]) && number(s[:2]) >= 2 && sum%10 == digit(s[11])
}

// isSocialSecurityNumber: no checksum; areas 000, 666 and from 900, group 00 and serial 0000 are never issued.
func isSocialSecurityNumber(s string) bool {
	area := number(s[:3])
	return area > 0 && area != 666 && area < 900 && s[3:5] != "00" && s[5:] != "0000" && !allSame(s)
}

// isBritishInsuranceID: no checksum; letters that are not given out.
func isBritishInsuranceID(s string) bool {
	return strings.IndexByte("DFIQUV", s[0]) < 0 && strings.IndexByte("DFIOQUV", s[1]) < 0 && s[8] <= 'D' &&
		!strings.Contains("BG GB KN NK NT TN ZZ", s[:2])
}

// isNHSNumber: modulus 11.
func isNHSNumber(s string) bool {
	check := 11 - weigh(s, 10, 9, 8, 7, 6, 5, 4, 3, 2)%11
	return check%11 == digit(s[9]) && check != 10 && !allSame(s)
}

// isFrenchID: sex, year, month (20 and more where unknown), department (2A and 2B are Corsica), key modulo 97.
func isFrenchID(s string) bool {
	n := s[:13]
	switch s[5:7] {
	case "2A":
		n = s[:5] + "19" + s[7:13]
	case "2B":
		n = s[:5] + "18" + s[7:13]
	}
	for i := range len(n) {
		if !isDigit(n[i]) {
			return false
		}
	}
	month := number(s[3:5])
	return strings.IndexByte("123478", s[0]) >= 0 && (month >= 1 && month <= 12 || month >= 20 && month <= 42 || month >= 50) &&
		number(n[5:7]) > 0 && 97-number(n)%97 == number(s[13:])
}

// isSpanishID: DNI and NIE, a letter for the number modulo 23.
func isSpanishID(s string) bool {
	n := s[:len(s)-1]
	if !isDigit(n[0]) {
		first := strings.IndexByte("XYZ", n[0])
		if first < 0 {
			return false
		}
		n = string(rune('0'+first)) + n[1:]
	}
	return "TRWAGMYFPDXBNJZSQVHLCKE"[number(n)%23] == s[len(s)-1] && !allSame(n)
}

// isItalianID: codice fiscale: letters for digits where two people share one, month letter, day (women 40 more), check letter.
func isItalianID(s string) bool {
	const instead = "LMNPQRSTUV"
	odd := [...]int{1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23}
	plain := []byte(s)
	for _, i := range []int{6, 7, 9, 10, 12, 13, 14} {
		if !isDigit(plain[i]) {
			d := strings.IndexByte(instead, plain[i])
			if d < 0 {
				return false
			}
			plain[i] = byte('0' + d)
		}
	}
	sum := 0
	for i := range 15 {
		value := int(s[i]) - 'A'
		if isDigit(s[i]) {
			value = digit(s[i])
		}
		if i%2 == 0 {
			value = odd[value]
		}
		sum += value
	}
	day := number(string(plain[9:11]))
	return strings.IndexByte("ABCDEHLMPRST", s[8]) >= 0 && (day >= 1 && day <= 31 || day >= 41 && day <= 71) && byte('A'+sum%26) == s[15]
}

// isDutchID: the test of eleven.
func isDutchID(s string) bool {
	return weigh(s, 9, 8, 7, 6, 5, 4, 3, 2, -1)%11 == 0 && !allSame(s) && s[:2] != "00"
}

// isPolishID: PESEL: month with the century in it, weights 1 3 7 9.
func isPolishID(s string) bool {
	month := number(s[2:4]) % 20
	return month >= 1 && month <= 12 && number(s[4:6]) >= 1 && number(s[4:6]) <= 31 &&
		(10-weigh(s, 1, 3, 7, 9, 1, 3, 7, 9, 1, 3)%10)%10 == digit(s[10])
}

// isSwedishID: personnummer with or without century: date (coordination numbers: day 60 more), Luhn over ten digits.
func isSwedishID(s string) bool {
	if len(s) == 12 && (s[:2] < "18" || s[:2] > "20") {
		return false
	}
	s = s[len(s)-10:]
	day, month := number(s[4:6]), number(s[2:4])
	return month >= 1 && month <= 12 && (day >= 1 && day <= 31 || day >= 61 && day <= 91) && luhn(s)
}

// isBelgianID: birth date (its parts 00 where unknown), 97 less the number modulo 97, with a 2 before it for births from 2000.
func isBelgianID(s string) bool {
	month, n, check := number(s[2:4])%20, number(s[:9]), number(s[9:])
	return month <= 12 && number(s[4:6]) <= 31 && number(s[6:9]) > 0 && (97-n%97 == check || 97-(2_000_000_000+n)%97 == check)
}

// isSwissID: an EAN-13 of Switzerland's country code 756.
func isSwissID(s string) bool {
	return s[:3] == "756" && (10-weigh(s, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3)%10)%10 == digit(s[12])
}

// isAustrianID: Sozialversicherungsnummer: the fourth digit checks the others, then the birth date (month 13 to 15 where they ran out).
func isAustrianID(s string) bool {
	month := number(s[6:8])
	return s[0] != '0' && number(s[4:6]) >= 1 && number(s[4:6]) <= 31 && month >= 1 && month <= 15 &&
		weigh(s, 3, 7, 9, 0, 5, 8, 4, 2, 1, 6)%11 == digit(s[3])
}

// isBrazilianID: CPF: two check digits modulo 11.
func isBrazilianID(s string) bool {
	first := weigh(s, 10, 9, 8, 7, 6, 5, 4, 3, 2) * 10 % 11 % 10
	second := weigh(s, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2) * 10 % 11 % 10
	return first == digit(s[9]) && second == digit(s[10]) && !allSame(s)
}

// isIndianID: Aadhaar: Verhoeff's check in the dihedral group of order ten; begins with 2 or more.
func isIndianID(s string) bool {
	turn := [8][10]int{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 5, 7, 6, 2, 8, 3, 0, 9, 4}}
	for i := 2; i < 8; i++ {
		for j := range 10 {
			turn[i][j] = turn[i-1][turn[1][j]]
		}
	}
	c := 0
	for i := range len(s) {
		c = dihedral(c, turn[i%8][digit(s[len(s)-1-i])])
	}
	return c == 0 && s[0] >= '2' && !allSame(s)
}

// dihedral multiplies two symmetries of the pentagon: 0 to 4 turn it, 5 to 9 turn it over.
func dihedral(a, b int) int {
	switch {
	case a < 5 && b < 5:
		return (a + b) % 5
	case a < 5:
		return (a+b-5)%5 + 5
	case b < 5:
		return (a-5-b+5)%5 + 5
	default:
		return (a - b + 5) % 5
	}
}

// isPortugueseID: NIF of a person (begins with 1, 2, 3 or 45), modulus 11.
func isPortugueseID(s string) bool {
	check := 11 - weigh(s, 9, 8, 7, 6, 5, 4, 3, 2)%11
	if check >= 10 {
		check = 0
	}
	return (s[0] >= '1' && s[0] <= '3' || s[:2] == "45") && check == digit(s[8])
}

// isFinnishID: henkilötunnus: date, a sign of the century, a check character modulo 31.
func isFinnishID(s string) bool {
	if len(s) == 11 {
		if strings.IndexByte("ABCDEFYXWVU", s[6]) < 0 {
			return false
		}
		s = s[:6] + s[7:]
	}
	return isDate(s[:2], s[2:4]) && number(s[6:9]) >= 2 && "0123456789ABCDEFHJKLMNPRSTUVWXY"[number(s[:9])%31] == s[9]
}

// isNorwegianID: fødselsnummer (D-numbers: day 40 more): date, two check digits modulo 11.
func isNorwegianID(s string) bool {
	day, month := number(s[:2])%40, number(s[2:4])
	return day >= 1 && day <= 31 && month >= 1 && month <= 12 &&
		weigh(s, 3, 7, 6, 1, 8, 9, 4, 5, 2, 1)%11 == 0 && weigh(s, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)%11 == 0
}

// isDanishID: CPR number: a date; its checksum is not kept since 2007.
func isDanishID(s string) bool { return isDate(s[:2], s[2:4]) }

// isChineseID: region, birth date, check character of ISO 7064 MOD 11-2.
func isChineseID(s string) bool {
	for i := range 17 {
		if !isDigit(s[i]) {
			return false
		}
	}
	sum := weigh(s, 7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
	return s[0] >= '1' && s[0] <= '8' && (s[6:8] == "19" || s[6:8] == "20") && isDate(s[12:14], s[10:12]) && "10X98765432"[sum%11] == s[17]
}

// isRussianID: SNILS: weights from nine down to one, modulo 101.
func isRussianID(s string) bool {
	return weigh(s, 9, 8, 7, 6, 5, 4, 3, 2, 1)%101%100 == number(s[9:]) && number(s[:9]) > 1_001_998
}

// isJapaneseID: My Number: modulus 11 over the first eleven digits.
func isJapaneseID(s string) bool {
	rest := weigh(s, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2) % 11
	check := 0
	if rest > 1 {
		check = 11 - rest
	}
	return check == digit(s[11]) && !allSame(s)
}
