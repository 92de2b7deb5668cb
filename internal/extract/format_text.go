package extract

import (
	"io"

	"github.com/accession/accession/internal/extract/charset"
)

// openText reads plain text, Markdown and CSV as one page, in whatever common encoding it comes. Of a long text only
// the beginning is read: twice the text limit, because UTF-16 takes two bytes for a Latin letter.
func openText(string) (reading, error) {
	return func(j job, content io.Reader, to *sink) error {
		raw, err := io.ReadAll(io.LimitReader(content, min(j.Size, 2*j.TextBytes)))
		if err != nil {
			return err
		}
		text, ok := charset.Decode(raw, j.Charset)
		if !ok {
			return refuse(CodeBroken)
		}
		if err := to.count(1, false); err != nil {
			return err
		}
		if int64(len(raw)) < j.Size {
			to.truncated = true
		}
		return to.page(pageFrame{Number: 1, Text: text})
	}, nil
}
