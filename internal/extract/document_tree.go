package extract

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/accession/accession/internal/extract/archive"
	"github.com/accession/accession/internal/extract/mail"
	"github.com/accession/accession/internal/extract/markup"
	"github.com/accession/accession/internal/extract/office"
	"github.com/accession/accession/internal/extract/page"
)

// memberBytes is the longest member of a container that is read: a worker holds it in memory while it does.
const memberBytes = 128 << 20

// sendText is the purpose "text": what the document says, and what the documents inside it say.
func (w *worker) sendText() error {
	if err := w.misbehave(purposeText); err != nil {
		return err
	}
	d, err := detect(w.content, w.job.Size, w.job.Declared)
	if err != nil {
		return err
	}
	if _, legacy := legacyTypes[d.format]; legacy {
		return &legacyError{d.format, d.declared}
	}
	if w.pdf == nil && (d.format == formatPDF || d.format == formatArchive || d.format == formatMail) {
		return errNeedPDF // sooner than when the first PDF is met
	}
	if err := w.to.send(frameType, typeFrame{Media: d.media, Declared: d.declared}); err != nil {
		return err
	}
	t := tree{worker: w, budget: archive.NewBudget(archive.DefaultLimits(), w.job.Size)}
	if err := t.read(d, w.content, w.job.Size); err != nil {
		return err
	}
	if w.to.numbered == 0 && w.to.leftOut > 0 {
		return refuse(CodeUnsupported) // a container of nothing that can be read
	}
	if w.to.numbered == 0 {
		return w.to.emit(page.Page{})
	}
	return nil
}

// tree reads a document and what it contains.
type tree struct {
	*worker
	budget *archive.Budget
}

func (t tree) read(d detected, content io.ReaderAt, size int64) error {
	switch d.format {
	case formatPDF:
		return t.readPDF(content, size)
	case formatPicture:
		return t.readPicture(d.media, content, size)
	case formatText:
		return t.readText(d.charset, content, size)
	case formatMarkdown, formatHTML, formatRTF, formatEPUB:
		return t.readPages(markupReader(d), content, size)
	case formatOffice:
		return t.readOffice(d.media, content, size)
	case formatMail:
		return t.readMail(content, size)
	case formatArchive:
		return faultOf(archive.Walk(d.archive, content, size, t.budget, t.member))
	}
	return refuse(CodeUnsupported)
}

// reader is the shape of every reader in the packages below this one.
type reader func(content io.ReaderAt, size int64, limits page.Limits, emit func(page.Page) error) (truncated bool, err error)

func markupReader(d detected) reader {
	switch d.format {
	case formatMarkdown:
		return func(content io.ReaderAt, size int64, limits page.Limits, emit func(page.Page) error) (bool, error) {
			return markup.ReadMarkdown(content, size, d.charset, limits, emit)
		}
	case formatHTML:
		return func(content io.ReaderAt, size int64, limits page.Limits, emit func(page.Page) error) (bool, error) {
			return markup.ReadHTML(content, size, d.charset, limits, emit)
		}
	case formatRTF:
		return markup.ReadRTF
	}
	return markup.ReadEPUB
}

func (t tree) readPages(read reader, content io.ReaderAt, size int64) error {
	truncated, err := read(content, size, t.to.limits(t.job), t.to.emit)
	t.to.truncated = t.to.truncated || truncated
	return faultOf(err)
}

// readOffice reads the text, and the pictures where they are all there is: a scan pasted into a letter.
func (t tree) readOffice(media string, content io.ReaderAt, size int64) error {
	said := 0
	truncated, err := office.Read(media, content, size, t.to.limits(t.job), func(p page.Page) error {
		said += words(p.Text)
		return t.to.emit(p)
	})
	t.to.truncated = t.to.truncated || truncated
	if err != nil || said >= pdfFewWords {
		return faultOf(err)
	}
	return faultOf(office.Pictures(media, content, size, t.to.limits(t.job), func(_ string, r io.Reader) error {
		if t.to.picturesLeft <= 0 {
			t.to.truncated = true
			return errEnough
		}
		return t.document(r, "")
	}))
}

// readMail reads the head and body of a message as one page, then what is attached to it.
func (t tree) readMail(content io.ReaderAt, size int64) error {
	m, err := mail.Read(content, size, t.budget)
	if err != nil {
		return faultOf(err)
	}
	var shown page.Page // the HTML as it is seen
	if len(m.HTML) > 0 {
		_, err := markup.ReadHTML(bytes.NewReader(m.HTML), int64(len(m.HTML)), m.HTMLCharset, t.to.limits(t.job), func(p page.Page) error {
			shown = p
			return nil
		})
		if err != nil {
			return faultOf(err)
		}
	}
	text := page.NewWriter(max(t.to.textLeft, 1))
	text.Write(m.Head(), "")
	text.Paragraph()
	text.Write(m.Text, "")
	// A mail program shows one of two forms of the same words. Where the words are not the same, both are read.
	if !m.Alternative || m.Text == "" || layerDiffers(m.Text, shown.Text) || layerDiffers(shown.Text, m.Text) {
		text.Paragraph()
		text.WritePage(shown)
	}
	t.to.truncated = t.to.truncated || m.Truncated || text.Full()
	if err := t.to.emit(text.Page()); err != nil {
		return err
	}
	if err := t.budget.Enter(); err != nil {
		return faultOf(err)
	}
	defer t.budget.Leave()
	for _, a := range m.Attachments {
		if err := t.document(a.Open(), a.MediaType); err != nil {
			return err
		}
	}
	return nil
}

// member reads one member of an archive.
func (t tree) member(m archive.Member, content io.Reader) error {
	if m.Link {
		return nil
	}
	if m.Size > memberBytes {
		t.leaveOut()
		return nil
	}
	return t.document(content, m.Type)
}

// document reads a document inside another. One that cannot be read is left out, and counted; one that is encrypted is
// refused with its container: nobody looked into it.
func (t tree) document(from io.Reader, declared string) error {
	raw, err := io.ReadAll(io.LimitReader(from, memberBytes+1))
	if err != nil {
		return faultOf(err)
	}
	if len(raw) == 0 {
		return nil
	}
	if len(raw) > memberBytes {
		t.leaveOut()
		return nil
	}
	content, size := bytes.NewReader(raw), int64(len(raw))
	d, err := detect(content, size, declared)
	document := err == nil && d.format != formatArchive // an archive says nothing itself
	if document {
		t.to.members++
	}
	if err == nil {
		err = safely(func() error { return t.read(d, content, size) })
	}
	var refusal *Refusal
	if errors.As(err, &refusal) && refusal.Code != CodeEncrypted && refusal.Code != CodeExpands {
		if document {
			t.to.members--
		}
		t.leaveOut()
		return nil
	}
	return err
}

func (t tree) leaveOut() {
	t.to.leftOut++
	t.to.truncated = true
}

// faultOf makes refusals of the readers' errors.
func faultOf(err error) error {
	for _, f := range []struct {
		is   error
		code string
	}{
		{page.ErrEncrypted, CodeEncrypted}, {page.ErrBroken, CodeBroken}, {page.ErrTooLarge, CodeExpands}, {page.ErrUnsupported, CodeUnsupported},
		{archive.ErrTooDeep, CodeExpands}, {archive.ErrTooMany, CodeExpands}, {archive.ErrRatio, CodeExpands},
	} {
		if errors.Is(err, f.is) {
			return fmt.Errorf("%w: %w", refuse(f.code), err)
		}
	}
	return err
}
