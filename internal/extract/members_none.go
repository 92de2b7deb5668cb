package extract

import (
	"bytes"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/accession/accession/internal/extract/archive"
	"github.com/accession/accession/internal/extract/mail"
)

// shortText is the longest text, in bytes, that needs no worker to find nothing packed into it; as long as a customer's.
const shortText = 1 << 20

// holdsNothing tells that nothing is packed into content, by the same tests that a worker begins with. They only compare bytes, and
// only of short text is it asked here: valid UTF-8 without the control characters that every container has. A worker costs some
// thousand times as much. Whatever is doubtful, or cannot be read, is a worker's.
func holdsNothing(content io.ReaderAt, size int64) bool {
	if size > shortText {
		return false
	}
	text, err := whole(content, size)
	if err != nil || !utf8.Valid(text) || bytes.ContainsFunc(text, control) || misbehaves(text) {
		return false
	}
	head := text[:min(len(text), headBytes)]
	_, packed := archive.Detect(bytes.NewReader(text), size)
	return !packed && pdfHeader(head) < 0 && !mail.Detect(head)
}

// control is a control character that no text needs.
func control(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' && r != '\f'
}
