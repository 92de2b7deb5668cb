package office

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// dateKind is what of a day number a format shows.
type dateKind int

const (
	notDate dateKind = iota
	dayOnly
	timeOnly
	dayAndTime
	elapsed // hours beyond a day
)

// builtinDate knows the formats that have a number instead of a text.
func builtinDate(id int) dateKind {
	switch {
	case id >= 14 && id <= 17, id >= 27 && id <= 31, id == 36, id >= 50 && id <= 54, id == 57, id == 58:
		return dayOnly
	case id >= 18 && id <= 21, id >= 32 && id <= 35, id == 45, id == 47, id == 55, id == 56:
		return timeOnly
	case id == 22:
		return dayAndTime
	case id == 46:
		return elapsed
	}
	return notDate
}

// dateFormat reads a format's first section. Texts, colours and conditions in it say nothing.
func dateFormat(code string) dateKind {
	var day, hour, month, over bool
	code = strings.ToLower(code)
	for i := 0; i < len(code); i++ {
		switch code[i] {
		case ';':
			i = len(code)
		case '\\', '_', '*':
			i++
		case '"':
			end := strings.IndexByte(code[i+1:], '"')
			if end < 0 {
				return notDate
			}
			i += end + 1
		case '[':
			end := strings.IndexByte(code[i:], ']')
			if end < 0 {
				return notDate
			}
			switch inside := code[i+1 : i+end]; strings.Trim(inside, inside[:min(1, len(inside))]) {
			case "":
				over = over || inside != "" && strings.Contains("hms", inside[:1])
			}
			i += end
		case 'd', 'y', 'e':
			if code[i] == 'e' && i+1 < len(code) && (code[i+1] == '+' || code[i+1] == '-') {
				return notDate // an exponent
			}
			day = true
		case 'm':
			month = true
		case 'h', 's':
			hour = true
		case 'g': // General, or an era
			if strings.HasPrefix(code[i:], "general") {
				return notDate
			}
		}
	}
	switch {
	case over:
		return elapsed
	case day && hour:
		return dayAndTime
	case day, month && !hour:
		return dayOnly
	case hour:
		return timeOnly
	}
	return notDate
}

const lastDay = 2_958_465 // 9999-12-31

// formatDate writes a day number as a date and time of ISO 8601. What is none comes back as it is.
func formatDate(value string, kind dateKind, from1904 bool) string {
	serial := decimal(value)
	if value == "" || serial == 0 && strings.Trim(value, "0.-") != "" || serial < 0 || serial > lastDay+1 {
		return value
	}
	seconds := int64(math.Round(serial * 86400))
	if kind == elapsed {
		return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	}
	days, rest := seconds/86400, time.Duration(seconds%86400)*time.Second
	clock := time.Time{}.Add(rest).Format("15:04:05")
	epoch := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case from1904:
		epoch = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case days < 60:
		epoch = epoch.AddDate(0, 0, 1) // the format holds 1900 for a leap year
	}
	day := epoch.AddDate(0, 0, int(days)).Format(time.DateOnly)
	if days == 60 && !from1904 {
		day = "1900-02-29"
	}
	switch {
	case kind == timeOnly, kind == dayAndTime && days == 0:
		return clock
	case kind == dayAndTime && rest != 0:
		return day + " " + clock
	}
	return day
}
