package extract

import (
	"io"

	"github.com/accession/accession/internal/extract/charset"
	"github.com/accession/accession/internal/extract/page"
)

// readText reads plain text and CSV as one page, in whatever common encoding it comes. Of a long text only the beginning is
// read: twice the text limit, because UTF-16 takes two bytes for a Latin letter.
func (w *worker) readText(declaredCharset string, content io.ReaderAt, size int64) error {
	raw, err := whole(content, min(size, 2*w.job.TextBytes))
	if err != nil {
		return err
	}
	text, ok := charset.Decode(raw, declaredCharset)
	if !ok {
		return refuse(CodeBroken)
	}
	w.to.truncated = w.to.truncated || int64(len(raw)) < size
	return w.to.emit(page.Page{Text: text})
}

// whole reads the first size bytes of content: all of a small one.
func whole(content io.ReaderAt, size int64) ([]byte, error) {
	raw := make([]byte, size)
	if err := readAt(content, raw, 0); err != nil {
		return nil, err
	}
	return raw, nil
}
