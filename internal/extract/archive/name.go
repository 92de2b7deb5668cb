package archive

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

const nameBytes = 255

// CleanName makes a name for display of what a container calls a member: valid UTF-8, forward slashes, no control, format or
// private characters (each becomes an underscore), no leading slash, no "." or ".." in it, at most 255 bytes, of which the end is
// kept. Two members may have one name. It is no path to write to.
func CleanName(raw string) string {
	if !utf8.ValidString(raw) {
		raw, _ = charmap.CodePage437.NewDecoder().String(raw) // what old zip writers mean; every byte has a character there
	}
	if len(raw) > 16*nameBytes {
		raw = raw[len(raw)-16*nameBytes:]
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case r == '\\':
			return '/'
		case r == utf8.RuneError, unicode.In(r, unicode.C, unicode.Zl, unicode.Zp):
			return '_'
		}
		return r
	}, raw)
	name = local(name)
	if len(name) > nameBytes {
		name = name[len(name)-nameBytes:]
		for !utf8.RuneStart(name[0]) {
			name = name[1:]
		}
		name = local(name) // the cut may have made a ".."
	}
	return name
}

func local(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }
