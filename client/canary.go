package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// CanaryRecord is the record of the serving that carried a canary.
type CanaryRecord struct {
	RequestRecord
	Response Response `json:"-"`
}

// FindCanary reads the record of the one serving that carried a canary, of whichever organization; withdrawal does not remove it.
// It needs the admin token. 404: no serving carries it.
func (c *Client) FindCanary(ctx context.Context, canary string) (*CanaryRecord, error) {
	if canary == "" || canary == "." || canary == ".." {
		return nil, errors.New("no canary: give one that Canaries found")
	}
	var found CanaryRecord
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/admin/canaries/" + url.PathEscape(canary), admin: true, into: &found, response: &found.Response})
	if err != nil {
		return nil, err
	}
	return &found, nil
}

const (
	canaryStart   = "accession-canary-rec_"
	canaryLetters = "0123456789abcdefghjkmnpqrstvwxyz" // of an id
	canaryLength  = 26
)

var misread = strings.NewReplacer("i", "1", "l", "1", "o", "0")

// What stands for one character where text is carried in other text: HTML, a URL, JSON, quoted-printable mail.
var (
	escape = regexp.MustCompile(`&#?[0-9A-Za-z]{1,31};|%[0-9A-Fa-f]{2}|\\(?:u[0-9A-Fa-f]{4}|[bfnrt])|=[0-9A-F]{2}`)
	tag    = regexp.MustCompile(`</?[A-Za-z][^<>]*>`)
)

// Canaries are those that stand in a text, in order, each once, as FindCanary takes them. They are found however copying has
// treated them: wrapped, quoted, in capitals, broken by white space, soft hyphens, invisible characters, markup or escapes. Some
// may be of no serving: a canary that lost characters takes what follows for its own.
func Canaries(text string) (found []string) {
	plain := escape.ReplaceAllString(text, "")
	seen := map[string]bool{}
	for _, reading := range []string{text, plain, tag.ReplaceAllString(plain, "")} {
		for _, canary := range canariesOf(letters(reading)) {
			if !seen[canary] {
				seen[canary] = true
				found = append(found, canary)
			}
		}
	}
	return found
}

// letters are the ASCII letters and digits of a text, in small letters; full-width ones too.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '！' && r <= '～' {
			r -= '！' - '!'
		}
		if r = unicode.ToLower(r); r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, text)
}

func canariesOf(text string) (found []string) {
	start := letters(canaryStart)
	for {
		_, rest, ok := strings.Cut(text, start)
		if !ok || len(rest) < canaryLength {
			return found
		}
		id := misread.Replace(rest[:canaryLength])
		if strings.Trim(id, canaryLetters) == "" {
			found = append(found, canaryStart+id)
		}
		text = rest
	}
}
