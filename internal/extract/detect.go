package extract

import (
	"bytes"
	"io"
	"mime"
	"slices"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"github.com/accession/accession/internal/extract/archive"
	"github.com/accession/accession/internal/extract/charset"
	"github.com/accession/accession/internal/extract/mail"
	"github.com/accession/accession/internal/extract/office"
)

// Formats that a worker can read. A new one is a case in detect, one in tree.read, and its class below.
const (
	formatPDF      = "pdf"
	formatText     = "text"
	formatMarkdown = "markdown"
	formatHTML     = "html"
	formatRTF      = "rtf"
	formatPicture  = "picture"
	formatOffice   = "office"
	formatEPUB     = "epub"
	formatMail     = "mail"
	formatArchive  = "archive"
)

// textTypes are declarations that say "read this as text", whatever the text looks like.
var textTypes = map[string]bool{"text/plain": true, "text/markdown": true, "text/csv": true, "text/tab-separated-values": true}

var pictureTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/tiff": true, "image/webp": true}

var htmlTypes = map[string]bool{"text/html": true, "application/xhtml+xml": true}

const headBytes = 4096 // what the detection looks at; its library's own limit

type detected struct {
	format   string // empty: none
	media    string
	declared string // without parameters
	charset  string // declared
	archive  archive.Kind
}

// detect says what the content is; the declared type decides only between readings of the same text. A known type
// under another name of its class is read as what it is, and both are recorded. It refuses content of no known type, content whose
// declared type would make another program read something else, and content that is two types at once: two readers would see two
// documents.
func detect(content io.ReaderAt, size int64, declared string) (detected, error) {
	if size == 0 {
		return detected{}, refuse(CodeEmpty)
	}
	head, err := whole(content, min(size, headBytes))
	if err != nil {
		return detected{}, err
	}
	var d detected
	if media, params, err := mime.ParseMediaType(declared); err == nil {
		d.declared, d.charset = media, params["charset"]
	}
	header := pdfHeader(head) // what comes before it may be junk; is it?
	start := head
	if header >= 0 {
		start = bytes.Clone(head)
		start[header] = ' '
	}
	found := mimetype.Detect(start)
	binary := found.Is("application/octet-stream")
	wide := binary && charset.Wide(head) != nil
	d.media, _, _ = strings.Cut(found.String(), ";")
	kind, packed := archive.Detect(content, size)

	switch {
	case packed && kind == archive.Zip && bytes.HasPrefix(head, []byte("PK")):
		d.media, d.format = zipped(content, size)
		d.archive = kind
	case packed && kind != archive.Zip: // also where the first file in it is a PDF
		d.media, d.format, d.archive = archiveTypes[kind], formatArchive, kind
	case header >= 0 && (header <= len("\xef\xbb\xbf") || binary || isText(found) && d.declared == "application/pdf"):
		d.media, d.format = "application/pdf", formatPDF
	case header >= 0 && !isText(found):
		return d, refuse(CodeMismatch)
	case pictureTypes[d.media]:
		d.format = formatPicture
	case bytes.HasPrefix(head, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")):
		var locked bool
		if d.format, locked = legacyFormat(content, size); locked {
			return d, refuse(CodeEncrypted)
		}
		if d.format == "" {
			return d, refuse(CodeUnsupported)
		}
		d.media = legacyTypes[d.format].media
	case bytes.HasPrefix(head, []byte(`{\rtf`)):
		d.media, d.format = "application/rtf", formatRTF
	case isText(found) || wide:
		d.asText(found, wide, head)
	}
	if packed && kind == archive.Zip && d.archive == "" {
		return d, refuse(CodeMismatch) // a zip behind something else
	}
	if d.format == "" && readable(d.declared) || d.format != "" && !sameClass(d.declared, d.format) {
		return d, refuse(CodeMismatch)
	}
	if d.format == "" {
		return d, refuse(CodeUnsupported)
	}
	return d, nil
}

// asText tells the kinds of text apart. Markup is markup whatever it is called: nobody is served tags.
func (d *detected) asText(found *mimetype.MIME, wide bool, head []byte) {
	switch {
	case d.declared == "message/rfc822" || !textTypes[d.declared] && !htmlTypes[d.declared] && mail.Detect(head):
		d.media, d.format = "message/rfc822", formatMail
	case d.declared == "text/markdown":
		d.media, d.format = d.declared, formatMarkdown
	case htmlTypes[d.declared]:
		d.media, d.format = d.declared, formatHTML
	case found.Is("text/html"):
		d.media, d.format = "text/html", formatHTML
	case textTypes[d.declared]:
		d.media, d.format = d.declared, formatText
	case textTypes[d.media]:
		d.format = formatText
	case found.Is("text/xml"), !strings.HasPrefix(d.media, "text/") && !wide:
	default:
		d.media, d.format = "text/plain", formatText
	}
}

var officeTypes = office.MediaTypes() // sorted

func isOffice(media string) bool {
	_, found := slices.BinarySearch(officeTypes, media)
	return found
}

// pdfHeader is where the header of a PDF stands, or below zero: readers of PDF look for it in the whole first KiB.
func pdfHeader(head []byte) int {
	return bytes.Index(head[:min(len(head), 1<<10)], []byte("%PDF-"))
}

func isText(m *mimetype.MIME) bool {
	for ; m != nil; m = m.Parent() {
		if m.Is("text/plain") {
			return true
		}
	}
	return false
}

// zipped tells the documents that are zip archives by themselves from an archive of documents.
func zipped(content io.ReaderAt, size int64) (media, format string) {
	media = archive.ZipMediaType(content, size)
	switch {
	case isOffice(media):
		return media, formatOffice
	case media == "application/epub+zip":
		return media, formatEPUB
	}
	return "application/zip", formatArchive
}

var archiveTypes = map[archive.Kind]string{
	archive.Zip: "application/zip", archive.Tar: "application/x-tar", archive.Gzip: "application/gzip", archive.Bzip2: "application/x-bzip2",
}

// classes are the formats that a declared media type may turn out to be. A type that is not listed says nothing: it is how
// programs call what they do not know.
var classes = map[string][]string{
	"application/pdf":           {formatPDF},
	"text/plain":                {formatText, formatMarkdown, formatHTML, formatMail},
	"text/markdown":             {formatText, formatMarkdown, formatHTML},
	"text/csv":                  {formatText},
	"text/tab-separated-values": {formatText},
	"text/html":                 {formatHTML, formatText},
	"application/xhtml+xml":     {formatHTML, formatText},
	"text/rtf":                  {formatRTF},
	"application/rtf":           {formatRTF},
	"message/rfc822":            {formatMail, formatText},
	"application/epub+zip":      {formatEPUB},
	// Called so by their file's ending: newer documents too, and what such a program opens as well.
	"application/msword":            {formatDOC, formatRTF, formatOffice},
	"application/vnd.ms-excel":      {formatXLS, formatOffice, formatText},
	"application/vnd.ms-powerpoint": {formatPPT, formatOffice},
	"image/png":                     {formatPicture},
	"image/jpeg":                    {formatPicture},
	"image/tiff":                    {formatPicture},
	"image/webp":                    {formatPicture},
	"application/zip":               {formatArchive, formatOffice, formatEPUB},
	"application/x-tar":             {formatArchive},
	"application/gzip":              {formatArchive},
	"application/x-gzip":            {formatArchive},
	"application/x-bzip2":           {formatArchive},
}

func readable(declared string) bool {
	_, listed := classes[declared]
	return listed || isOffice(declared)
}

// sameClass tells whether a program that goes by the declared type reads the same document.
func sameClass(declared, format string) bool {
	switch allowed, listed := classes[declared]; {
	case isOffice(declared):
		return format == formatOffice
	case !listed:
		return true
	default:
		for _, f := range allowed {
			if f == format {
				return true
			}
		}
		return false
	}
}
