package extract

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/accession/accession/internal/extract/office"
)

// Formats of the office programs of before 2007. No reader of ours knows them: LibreOffice turns them into what one knows, where it is installed.
const (
	formatDOC = "doc"
	formatXLS = "xls"
	formatPPT = "ppt"
)

// legacyType is one of those formats, and what becomes of it.
type legacyType struct {
	media   string
	filter  string // LibreOffice's name of its reader: nothing else may have a try at the content
	becomes string // the ending of its result, and its name for LibreOffice
	result  string // the result's media type
}

var legacyTypes = map[string]legacyType{
	formatDOC: {"application/msword", "MS Word 97", "odt", "application/vnd.oasis.opendocument.text"},
	formatXLS: {"application/vnd.ms-excel", "MS Excel 97", "ods", "application/vnd.oasis.opendocument.spreadsheet"},
	formatPPT: {"application/vnd.ms-powerpoint", "MS PowerPoint 97", "odp", "application/vnd.oasis.opendocument.presentation"},
}

// legacyFormat tells the legacy formats apart by the streams of their compound file; empty for none of them. locked says that a
// password is needed.
func legacyFormat(content io.ReaderAt, size int64) (format string, locked bool) {
	office.OLEStreams(content, size, func(name string, begin func() []byte) bool {
		switch name {
		case "EncryptedPackage", "EncryptionInfo", "EncryptedSummary":
			locked = true
		case "WordDocument":
			head := begin()
			format = formatDOC
			locked = locked || len(head) > 11 && head[11]&1 != 0 // [MS-DOC] 2.5.2: fEncrypted
		case "Workbook", "Book":
			format = formatXLS
			locked = locked || lockedWorkbook(begin())
		case "PowerPoint Document":
			format = formatPPT
		}
		return !locked
	})
	return format, locked
}

// lockedWorkbook looks for the record FilePass, which comes among the first ones ([MS-XLS] 2.4.117).
func lockedWorkbook(records []byte) bool {
	const filePass = 0x2f
	for len(records) >= 4 {
		if binary.LittleEndian.Uint16(records) == filePass {
			return true
		}
		records = records[min(len(records), 4+int(binary.LittleEndian.Uint16(records[2:]))):]
	}
	return false
}

// legacyError is a worker's word that the content is of a legacy format.
type legacyError struct {
	Format   string `json:"format"`
	Declared string `json:"declared,omitempty"` // without parameters
}

func (e *legacyError) Error() string { return "the content is a legacy office document" }

// extractLegacy has LibreOffice turn the document into an OpenDocument, and reads that as any other document: what LibreOffice
// made of untrusted bytes is not trusted either.
func (e *Extractor) extractLegacy(ctx context.Context, l *legacyError, content io.ReaderAt, size int64, progress func(done, total int)) (*Document, error) {
	kind, known := legacyTypes[l.Format]
	if !known {
		return nil, errFrame
	}
	program := findLibreOffice(e.config.LibreOffice)
	if program == "" {
		return nil, refuse(CodeUnsupported)
	}
	if size > e.limits.InputBytes {
		return nil, refuse(CodeTooLarge)
	}
	select {
	case e.conversions <- struct{}{}:
		defer func() { <-e.conversions }()
	case <-ctx.Done():
		return nil, stopped(ctx)
	}
	r, err := newRoom()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := r.remove(); err != nil {
			e.config.Log.ErrorContext(ctx, "a converted document could not be removed from memory", "error", err)
		}
	}()
	if err := r.put("in."+l.Format, io.NewSectionReader(content, 0, size)); err != nil {
		return nil, err
	}
	if err := e.convert(ctx, program, r, "in."+l.Format, kind); err != nil {
		return nil, err
	}
	result, length, err := r.take("out/in."+kind.becomes, e.limits.ExpandedBytes)
	if err != nil {
		return nil, err
	}
	defer result.Close()
	doc, err := e.extract(ctx, purposeText, kind.result, result, length, progress)
	var refusal *Refusal
	var again *legacyError
	switch {
	case errors.As(err, &again), errors.As(err, &refusal) && refusal.Code != CodeExpands && refusal.Code != CodeTooLarge:
		return nil, fmt.Errorf("%w: of what was made of it: %w", refuse(CodeBroken), err)
	case err != nil:
		return nil, err
	}
	doc.MediaType, doc.DeclaredMediaType = kind.media, l.Declared
	return doc, nil
}
