package extract

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"github.com/accession/accession/internal/extract/charset"
)

// Formats that a worker can read. A new one is a row in formats (worker.go), a case in detect and a file of its own.
const (
	formatPDF     = "pdf"
	formatText    = "text"
	formatPicture = "picture"
)

// textTypes are declarations that say "read this as text", whatever the text looks like.
var textTypes = map[string]bool{"text/plain": true, "text/markdown": true, "text/csv": true, "text/tab-separated-values": true}

var pictureTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/tiff": true}

const headBytes = 4096 // what the detection looks at; its library's own limit

type detected struct {
	format   string // empty: none
	media    string
	declared string // without parameters
	charset  string // declared
}

// detect says what the content is; the declared type decides only between readings of the same text. A known type
// under a wrong name is read as what it is, and both are recorded. It refuses content of no known type, and content
// that is two types at once: two readers would see two documents.
func detect(content io.ReaderAt, size int64, declared string) (detected, error) {
	head := make([]byte, min(size, headBytes))
	if err := readAt(content, head, 0); err != nil {
		return detected{}, err
	}
	var d detected
	if media, params, err := mime.ParseMediaType(declared); err == nil {
		d.declared, d.charset = media, params["charset"]
	}
	// Readers of PDF look for its header in the whole first KiB, so junk may come before it. Is it junk?
	header := bytes.Index(head[:min(len(head), 1024)], []byte("%PDF-"))
	start := head
	if header >= 0 {
		start = bytes.Clone(head)
		start[header] = ' '
	}
	found := mimetype.Detect(start)
	binary := found.Is("application/octet-stream")
	wide := binary && charset.Wide(head) != nil
	d.media, _, _ = strings.Cut(found.String(), ";")

	switch {
	case header >= 0 && (header <= len("\xef\xbb\xbf") || binary || isText(found) && d.declared == "application/pdf"):
		d.media, d.format = "application/pdf", formatPDF
	case header >= 0 && !isText(found):
		return d, refuse(CodeMismatch)
	case pictureTypes[d.media]:
		d.format = formatPicture
	case found.Is("text/rtf"):
	case isText(found) || wide:
		switch {
		case textTypes[d.declared]:
			d.media, d.format = d.declared, formatText
		case textTypes[d.media]:
			d.format = formatText
		case found.Is("text/html"), found.Is("text/xml"), !strings.HasPrefix(d.media, "text/") && !wide:
		default:
			d.media, d.format = "text/plain", formatText
		}
	}
	if d.format == formatPDF {
		zip, err := endsAsZip(content, size)
		if err != nil {
			return d, err
		}
		if zip {
			return d, refuse(CodeMismatch)
		}
	}
	if d.format == "" {
		if d.declared == "application/pdf" || pictureTypes[d.declared] || textTypes[d.declared] {
			return d, refuse(CodeMismatch)
		}
		return d, refuse(CodeUnsupported)
	}
	return d, nil
}

func isText(m *mimetype.MIME) bool {
	for ; m != nil; m = m.Parent() {
		if m.Is("text/plain") {
			return true
		}
	}
	return false
}

// endsAsZip finds a zip's end record that reaches exactly to the end of the content. An attachment inside a PDF
// does not: there, the PDF's own trailer follows.
func endsAsZip(content io.ReaderAt, size int64) (bool, error) {
	const record = 22
	tail := make([]byte, min(size, record+65535))
	if err := readAt(content, tail, size-int64(len(tail))); err != nil {
		return false, err
	}
	for at := len(tail) - record; at >= 0; at-- {
		if bytes.HasPrefix(tail[at:], []byte("PK\x05\x06")) &&
			at+record+int(binary.LittleEndian.Uint16(tail[at+20:])) == len(tail) {
			return true, nil
		}
	}
	return false, nil
}

// readAt fills p: content that ends before its size says so is an error of the store.
func readAt(content io.ReaderAt, p []byte, at int64) error {
	n, err := content.ReadAt(p, at)
	switch {
	case n == len(p):
		return nil
	case err == nil, errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read content: %w", err)
}
