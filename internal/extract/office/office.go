// Package office reads text from office files: DOCX, PPTX, XLSX, ODT, ODS and ODP, with their macro and template variants.
//
// It streams the members of the zip and their XML, and bounds what they grow to, how deep elements lie in each other, how
// long one tag or stretch of text is, and what is remembered of strings, styles and notes. A document type, and with it any
// entity, is refused. A zip with two members of one name is refused.
//
// Not read: text drawn by embedded objects, charts and formulas of other programs, text that a field or a list would generate,
// alternative text of pictures, and XLSB.
//
// Source: contract decisions, gate 4 "extraction".
package office

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/accession/accession/internal/extract/page"
)

type kind int

const (
	textDocument kind = iota + 1
	slideShow
	workbook
	openDocument
)

const (
	ooxml = "application/vnd.openxmlformats-officedocument."
	odf   = "application/vnd.oasis.opendocument."
	ms    = "application/vnd.ms-"
)

var kinds = map[string]kind{
	ooxml + "wordprocessingml.document":            textDocument,
	ooxml + "wordprocessingml.template":            textDocument,
	ms + "word.document.macroenabled.12":           textDocument,
	ms + "word.template.macroenabled.12":           textDocument,
	ooxml + "presentationml.presentation":          slideShow,
	ooxml + "presentationml.slideshow":             slideShow,
	ooxml + "presentationml.template":              slideShow,
	ms + "powerpoint.presentation.macroenabled.12": slideShow,
	ms + "powerpoint.slideshow.macroenabled.12":    slideShow,
	ms + "powerpoint.template.macroenabled.12":     slideShow,
	ooxml + "spreadsheetml.sheet":                  workbook,
	ooxml + "spreadsheetml.template":               workbook,
	ms + "excel.sheet.macroenabled.12":             workbook,
	ms + "excel.template.macroenabled.12":          workbook,
	ms + "excel.addin.macroenabled.12":             workbook,
	odf + "text":                                   openDocument,
	odf + "text-template":                          openDocument,
	odf + "text-master":                            openDocument,
	odf + "text-web":                               openDocument,
	odf + "spreadsheet":                            openDocument,
	odf + "spreadsheet-template":                   openDocument,
	odf + "presentation":                           openDocument,
	odf + "presentation-template":                  openDocument,
}

// MediaTypes lists the media types that Read reads, in lower case, sorted.
func MediaTypes() []string { return slices.Sorted(maps.Keys(kinds)) }

// Read emits a text document page by page (where the file says that pages break, else as one page), a slide show slide by slide,
// and a workbook sheet by sheet. media is one of MediaTypes in any case of letters, else the error is page.ErrUnsupported.
func Read(media string, content io.ReaderAt, size int64, limits page.Limits, emit func(page.Page) error) (truncated bool, err error) {
	which := kinds[strings.ToLower(media)]
	if which == 0 {
		return false, page.ErrUnsupported
	}
	c, err := openContainer(content, size, limits)
	if err != nil {
		return false, err
	}
	out := newPages(limits, emit)
	switch which {
	case textDocument:
		err = readWord(c, out)
	case slideShow:
		err = readSlides(c, out)
	case workbook:
		err = readWorkbook(c, out)
	case openDocument:
		err = readODF(c, out)
	}
	if errors.Is(err, errFull) {
		err = nil
	}
	return out.truncated, err
}
