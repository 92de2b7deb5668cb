package mail

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/textproto"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/accession/accession/internal/extract/archive"
	"github.com/accession/accession/internal/extract/charset"
)

const (
	headerBytes = 256 << 10 // the longest header that is read
	lineBytes   = 8 << 10   // of one field, decoded
)

// known are the fields of which a message has at least two.
var known = []string{"From", "To", "Cc", "Date", "Subject", "Message-Id", "Mime-Version", "Received", "Return-Path", "Reply-To", "Sender",
	"Delivered-To", "Dkim-Signature", "Content-Type"}

// Detect tells whether content that begins so is a message: a header whose lines are all fields, with two or more of the fields that
// messages have and text has not. 4 KiB of head are enough.
func Detect(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	head = head[mailboxLine(head):]
	found := map[string]bool{}
	for first := true; len(head) > 0; first = false {
		line, rest, whole := bytes.Cut(head, []byte("\n"))
		head = rest
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			break
		}
		if !first && (line[0] == ' ' || line[0] == '\t') {
			continue
		}
		name, _, ok := bytes.Cut(line, []byte(":"))
		if !whole && !ok {
			break // cut off
		}
		if !ok || len(name) == 0 || bytes.IndexFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
			return false
		}
		if key := textproto.CanonicalMIMEHeaderKey(string(name)); slices.Contains(known, key) {
			found[key] = true
		}
	}
	return len(found) >= 2
}

// mailboxLine is the length of the line that a mailbox file has before each message.
func mailboxLine(head []byte) int {
	if end := bytes.IndexByte(head, '\n'); end >= 0 && bytes.HasPrefix(head, []byte("From ")) {
		return end + 1
	}
	return 0
}

// header is the fields before a part.
type header textproto.MIMEHeader

// readHeader reads the fields at the start of a stretch of content, and tells where its body begins.
func readHeader(src *archive.Source, at stretch) (header, int64, error) {
	raw := make([]byte, min(at.end-at.start, headerBytes))
	if n, err := src.ReadAt(raw, at.start); n < len(raw) {
		return nil, 0, src.Fault(err, "a header ends too early")
	}
	skip := 0
	if at.start == 0 {
		skip = mailboxLine(raw)
	}
	end := skip
	for { // to the line that is empty
		next := bytes.IndexByte(raw[end:], '\n')
		if next < 0 {
			if int64(len(raw)) < at.end-at.start {
				return nil, 0, archive.ErrTooLarge
			}
			end = len(raw)
			break
		}
		line := raw[end : end+next+1]
		end += len(line)
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			break
		}
	}
	block := raw[skip:end]
	if lone := bytes.ReplaceAll(block, []byte("\r\n"), nil); bytes.ContainsAny(lone, "\r\x00") {
		return nil, 0, broken("a header has a carriage return or a zero in a line")
	}
	fields, err := textproto.NewReader(bufio.NewReader(io.MultiReader(bytes.NewReader(block), strings.NewReader("\r\n\r\n")))).ReadMIMEHeader()
	if err != nil {
		return nil, 0, broken("a header has a line that is no field")
	}
	h := header(fields)
	for _, name := range []string{"Content-Type", "Content-Transfer-Encoding", "Content-Disposition"} {
		if len(h[name]) > 1 {
			return nil, 0, broken("a header has " + name + " twice")
		}
	}
	return h, at.start + int64(end), nil
}

func (h header) get(name string) string { return textproto.MIMEHeader(h).Get(name) }

var words = mime.WordDecoder{CharsetReader: func(name string, in io.Reader) (io.Reader, error) {
	raw, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	text, ok := charset.Decode(raw, name)
	if !ok {
		return nil, fmt.Errorf("not in %q", name)
	}
	return strings.NewReader(text), nil
}}

// line is a field's text: encoded words decoded, all its values behind each other, no control characters.
func (h header) line(name string) string {
	return oneLine(decodeWords(strings.Join(h[textproto.CanonicalMIMEHeaderKey(name)], ", ")))
}

func decodeWords(raw string) string {
	if decoded, err := words.DecodeHeader(raw); err == nil {
		raw = decoded
	}
	if !utf8.ValidString(raw) {
		raw, _ = charset.Decode([]byte(raw), "")
	}
	return raw
}

func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if len(text) > lineBytes {
		text = strings.ToValidUTF8(text[:lineBytes], "")
	}
	return text
}

// broken says what is wrong with a message, without quoting it.
func broken(what string) error { return fmt.Errorf("%w: %s", archive.ErrBroken, what) }
