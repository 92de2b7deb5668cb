package extract

import (
	"bytes"
	"compress/zlib"
	"io"
	"regexp"
)

// pdfUnpackBytes bounds what the object streams of one PDF may grow to while names are sought in them.
const pdfUnpackBytes = 64 << 20

// Names that a PDF must hold, if only as a key, where it has files attached to it or pinned on a page, or where it says that
// its strings and streams are encrypted.
var pdfFileNames = []string{"FileAttachment", "EmbeddedFile", "Encrypt"}

// Names of what changes the bytes of a stream in another way than by inflating it. None of them may be in a PDF whose objects
// lie in streams: it is not always plain which dictionary the engine takes for a stream's.
var pdfCodingNames = []string{"ASCIIHexDecode", "AHx", "ASCII85Decode", "A85", "LZWDecode", "LZW", "RunLengthDecode", "RL", "Crypt"}

// Keys that say what an object is.
var pdfKindNames = []string{"Subtype", "Type"}

// mayHoldFiles tells whether files may be packed into a PDF. False is a proof that the engine finds none, which takes a
// hundredth of its time; anything unusual is true.
//
// It is no parser, so a PDF that leads two parsers to different places does not fool it: it looks at every name in the file, at
// whatever place, in strings and pictures too. A name counts by how it begins once #-escapes are decoded. An annotation's kind
// must be given as a name in its place, not as a string nor by reference, or it counts as that of a file. Objects that lie in
// streams are looked for in the same way: every name ObjStm must be followed, with nothing in between that could be read in two
// ways, by a stream that inflates to its end and that no other coding can hide anything in.
func mayHoldFiles(raw []byte) bool {
	streams, clean := pdfNames(raw)
	if !clean {
		return true
	}
	if len(streams) == 0 {
		return false
	}
	if pdfCoded(raw) {
		return true
	}
	room := int64(pdfUnpackBytes)
	for _, at := range streams {
		objects, ok := pdfInflate(raw[at:], room)
		if !ok {
			return true
		}
		room -= int64(len(objects))
		more, clean := pdfNames(objects)
		if !clean || len(more) > 0 || pdfCoded(objects) {
			return true
		}
	}
	return false
}

// pdfNames looks at every name. It returns where the data of object streams begin, and false where a name says that there may be
// files, or where it cannot tell.
func pdfNames(raw []byte) (objectStreams []int, clean bool) {
	for name := range pdfEachName(raw) {
		for _, n := range pdfFileNames {
			if _, is := pdfNameBegins(name, n); is {
				return nil, false
			}
		}
		for _, n := range pdfKindNames {
			if rest, is := pdfNameBegins(name, n); is && !pdfNameFollows(rest) {
				return nil, false
			}
		}
		if rest, is := pdfNameBegins(name, "ObjStm"); is {
			end := pdfToStream.FindIndex(rest[:min(len(rest), headBytes)])
			if end == nil {
				return nil, false
			}
			objectStreams = append(objectStreams, len(raw)-len(rest)+end[1])
		}
	}
	return objectStreams, true
}

// pdfToStream is what may stand between the name ObjStm and the data of its stream.
var pdfToStream = regexp.MustCompile(`^(?:[\t\n\r ]*/(?:N|First|Length)[\t\n\r ]+[0-9]{1,10}|[\t\n\r ]*/(?:Length|Extends)[\t\n\r ]+[0-9]{1,10}[\t\n\r ]+[0-9]{1,10}[\t\n\r ]+R|` +
	`[\t\n\r ]*/Filter[\t\n\r ]*(?:/FlateDecode|\[[\t\n\r ]*/FlateDecode[\t\n\r ]*\]))*[\t\n\r ]*>>[\t\n\r ]*stream\r?\n`)

// pdfNameFollows tells whether what follows a key is a name, or the key is another one that goes on: Type1.
func pdfNameFollows(rest []byte) bool {
	if len(rest) > 0 && pdfGoesOn(rest[0]) {
		return true
	}
	rest = bytes.TrimLeft(rest, "\x00\t\n\f\r ")
	return len(rest) > 0 && rest[0] == '/'
}

// pdfCoded tells whether a stream may be coded in another way than by deflating it once.
func pdfCoded(raw []byte) bool {
	for name := range pdfEachName(raw) {
		for _, n := range pdfCodingNames {
			if rest, is := pdfNameBegins(name, n); is && (len(rest) == 0 || pdfEndsName(rest[0])) {
				return true
			}
		}
		if rest, is := pdfNameBegins(name, "DecodeParms"); is && !pdfEndsWithoutObjects(rest) {
			return true
		}
	}
	return false
}

// pdfEndsName tells whether a name may end before c: white space, a delimiter, or what the engine takes for white space. Only
// names that random bytes would begin with too often are asked that of.
func pdfEndsName(c byte) bool {
	return bytes.IndexByte([]byte("\x00\t\n\f\r \x80\xff()<>[]{}/%#"), c) >= 0
}

// pdfGoesOn tells whether c belongs to a name for every reader.
func pdfGoesOn(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_' || c == '-'
}

// pdfEachName calls yield with what follows every slash, to the end.
func pdfEachName(raw []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for {
			at := bytes.IndexByte(raw, '/')
			if at < 0 {
				return
			}
			raw = raw[at+1:]
			if !yield(raw) {
				return
			}
		}
	}
}

// pdfNameBegins tells whether a name begins with what is wanted, and what follows that. Two characters after # that are no
// hexadecimal digits may mean anything: readers differ.
func pdfNameBegins(name []byte, wanted string) (rest []byte, is bool) {
	for i := range len(wanted) {
		switch {
		case len(name) == 0:
			return nil, false
		case name[0] != '#':
			if name[0] != wanted[i] {
				return nil, false
			}
			name = name[1:]
		case len(name) < 3:
			return nil, false
		default:
			high, low := hexDigit(name[1]), hexDigit(name[2])
			if high >= 0 && low >= 0 && byte(high<<4|low) != wanted[i] {
				return nil, false
			}
			name = name[3:]
		}
	}
	return name, true
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

// pdfInflate is what a stream holds; false where it is not one deflated stream, is longer than room, or is deflated twice.
func pdfInflate(data []byte, room int64) ([]byte, bool) {
	r, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, false
	}
	var out bytes.Buffer
	if n, err := io.Copy(&out, io.LimitReader(r, room+1)); err != nil || n > room {
		return nil, false
	}
	if _, err := zlib.NewReader(bytes.NewReader(out.Bytes())); err == nil {
		return nil, false
	}
	return out.Bytes(), true
}
