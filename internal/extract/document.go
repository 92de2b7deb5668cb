package extract

import (
	"fmt"

	"github.com/accession/accession/internal/extract/page"
)

// Sources of a page's text.
const (
	SourceText = "text" // the document's own text
	SourceOCR  = "ocr"  // recognised from a picture
)

// Page is the text of one page. Text is valid UTF-8; of the control characters only \n, \t and \f remain.
type Page struct {
	Number int        // 1-based
	Text   string     // may be empty: a blank page is no error
	Source string     // SourceText or SourceOCR
	Hidden []page.Run // what of Text nobody sees who looks at the page; ascending
}

// Document is what was extracted (contract decisions, gate 4).
type Document struct {
	MediaType         string // what the content is, as detected, e.g. "application/pdf"
	DeclaredMediaType string // what the submitter said it is, without parameters; may differ from MediaType
	Pages             []Page // in page order; fewer than PageCount when Truncated
	PageCount         int    // pages the document has
	OCRPages          int    // pages in Pages whose text comes from OCR
	Truncated         bool   // a limit on pages, OCR pages, pixels or text was reached: some content is not in Pages
	Repaired          bool   // the file was damaged and rebuilt by the reader; content may be missing
	Members           int    // documents packed into this one whose text is in Pages
	LeftOut           int    // and documents packed into it that could not be read; Truncated is set
}

// Codes of refusals, lower snake case; the message of each is in refusalMessages.
const (
	CodeEmpty       = "document_empty"
	CodeEncrypted   = "document_encrypted"
	CodeBroken      = "document_broken"
	CodeTooLarge    = "document_too_large"
	CodeUnsupported = "media_type_unsupported"
	CodeMismatch    = "media_type_mismatch"
	CodeExpands     = "document_expands_too_far"
)

// The messages live here, in the parent: a worker only names a code, so no byte of a document can reach a client
// as an error message.
var refusalMessages = map[string]string{
	CodeEmpty:       "The document has no bytes. Submit a file that is not empty.",
	CodeEncrypted:   "The document is encrypted. Remove the password and submit it again.",
	CodeBroken:      "The document is damaged and cannot be read. Open it, save it anew and submit it again.",
	CodeTooLarge:    "The document is too large to be read: too many bytes, or a picture with too many pixels. Split it or reduce its resolution.",
	CodeUnsupported: "Content of this media type cannot be read. Submit PDF, DOCX, PPTX, XLSX, ODT, ODS, ODP, RTF, HTML, EPUB, mail, plain text, Markdown, CSV, PNG, JPEG, TIFF, WebP, or a ZIP, TAR or GZIP of these.",
	CodeMismatch:    "The content is not what its media type says, or is of several types at once. Submit the file with its own media type.",
	CodeExpands:     "The document is packed too deeply, or would grow too large when unpacked. Submit the files in it one by one.",
}

// Refusal is the error for content that cannot be accepted however often it is tried: the gate rejects it.
// Code is one of the Code constants; Message is a sentence for the submitter and holds nothing of the content.
type Refusal struct{ Code, Message string }

func (r *Refusal) Error() string { return fmt.Sprintf("%s: %s", r.Code, r.Message) }

func refuse(code string) *Refusal { return &Refusal{Code: code, Message: refusalMessages[code]} }
