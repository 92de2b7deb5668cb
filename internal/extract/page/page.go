// Package page holds what every reader of a format makes of a document: text, page by page, and where in that text lies
// what nobody sees who looks at the document.
//
// A reader is a function over content that it may not trust:
//
//	func ReadX(content io.ReaderAt, size int64, limits page.Limits, emit func(page.Page) error) (truncated bool, err error)
//
// It runs inside a caged worker: it may panic no more than it must, but if it does only its worker ends. It opens no file and
// starts nothing. It calls emit once per page, in reading order, and stops with emit's error. It returns truncated when it left
// something out because of a limit. Content that cannot be accepted is ErrEncrypted, ErrBroken, ErrTooLarge or ErrUnsupported;
// any other error is one of content's ReadAt.
//
// Source: contract decisions, gate 4 "extraction".
package page

import "errors"

// Page is the text of one page, slide, sheet or chapter. Text may be empty.
type Page struct {
	Text   string
	Hidden []Run // ascending, not overlapping
}

// Run is a stretch of a page's text that a person who looks at the document does not see. Start and End are byte offsets.
type Run struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Class string `json:"class"` // one of the Hidden constants
}

// Classes of hidden text.
const (
	HiddenInvisible = "invisible"     // said to be not shown: a hidden font attribute, display:none, render mode 3
	HiddenColour    = "white"         // in the colour of its ground, or transparent
	HiddenTiny      = "tiny"          // too small to be read
	HiddenOffPage   = "off_page"      // outside what is shown
	HiddenCell      = "hidden_cell"   // a hidden row, column or sheet
	HiddenSlide     = "hidden_slide"  // a hidden slide
	HiddenLayer     = "layer_differs" // a text layer that says something else than the picture it lies on
)

// Why content cannot be accepted.
var (
	ErrEncrypted   = errors.New("content is encrypted")
	ErrBroken      = errors.New("content is damaged")
	ErrTooLarge    = errors.New("content is larger than the limits allow")
	ErrUnsupported = errors.New("content is of a variant that is not read")
)

// Limits of one reading. All are above zero.
type Limits struct {
	Pages         int   // pages emitted
	TextBytes     int64 // bytes of text in all; what is beyond is left out
	ExpandedBytes int64 // bytes that compressed content may grow to, in all; beyond it is ErrTooLarge
}
