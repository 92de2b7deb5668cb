package extract

import (
	"bytes"

	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"

	"github.com/accession/accession/internal/extract/archive"
)

// attachments visits the files embedded in the document, then those pinned on some of its pages. pdfium unpacks them, so their
// size is known before they are handed out. A file that it cannot unpack is a refusal: nobody looked into it.
func (d *pdfDocument) attachments(pages []int, b *archive.Budget, visit archive.Visitor) error {
	count, err := d.engine.FPDFDoc_GetAttachmentCount(&requests.FPDFDoc_GetAttachmentCount{Document: d.ref})
	if err != nil {
		return refuse(CodeBroken)
	}
	for i := range count.AttachmentCount {
		got, err := d.engine.FPDFDoc_GetAttachment(&requests.FPDFDoc_GetAttachment{Document: d.ref, Index: i})
		if err != nil {
			return refuse(CodeBroken)
		}
		if err := d.attachment(got.Attachment, b, visit); err != nil {
			return err
		}
	}
	for _, i := range pages {
		if err := d.pinnedOn(i, b, visit); err != nil {
			return err
		}
	}
	return nil
}

// pinnedOn visits the files that are pinned on a page. A page that cannot be loaded shows none to anybody.
func (d *pdfDocument) pinnedOn(index int, b *archive.Budget, visit archive.Visitor) error {
	loaded, err := d.engine.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: d.ref, Index: index})
	if err != nil {
		return nil
	}
	on := requests.Page{ByReference: &loaded.Page}
	defer d.engine.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page})
	count, err := d.engine.FPDFPage_GetAnnotCount(&requests.FPDFPage_GetAnnotCount{Page: on})
	if err != nil {
		return nil
	}
	for i := range count.Count {
		got, err := d.engine.FPDFPage_GetAnnot(&requests.FPDFPage_GetAnnot{Page: on, Index: i})
		if err != nil {
			continue
		}
		kind, err := d.engine.FPDFAnnot_GetSubtype(&requests.FPDFAnnot_GetSubtype{Annotation: got.Annotation})
		if err == nil && kind.Subtype == enums.FPDF_ANNOT_SUBTYPE_FILEATTACHMENT {
			file, err := d.engine.FPDFAnnot_GetFileAttachment(&requests.FPDFAnnot_GetFileAttachment{Document: d.ref, Annotation: got.Annotation})
			if err != nil {
				continue // it names none
			}
			if err := d.attachment(file.Attachment, b, visit); err != nil {
				return err
			}
		}
		_, _ = d.engine.FPDFPage_CloseAnnot(&requests.FPDFPage_CloseAnnot{Annotation: got.Annotation})
	}
	return nil
}

func (d *pdfDocument) attachment(ref references.FPDF_ATTACHMENT, b *archive.Budget, visit archive.Visitor) error {
	// How large it is shows only when it is unpacked, in more memory than there may be.
	if err := d.to.send(frameUnpack, nil); err != nil {
		return err
	}
	file, err := d.engine.FPDFAttachment_GetFile(&requests.FPDFAttachment_GetFile{Attachment: ref})
	if err != nil {
		return refuse(CodeExpands)
	}
	if file.Contents == nil { // it names a file that the engine does not find, but another reader might
		return refuse(CodeBroken)
	}
	if len(file.Contents) == 0 {
		return nil
	}
	return b.Visit(archive.Member{Size: int64(len(file.Contents))}, bytes.NewReader(file.Contents), visit)
}

// allPages are the document's pages, as far as there can be any.
func (d *pdfDocument) allPages() (pages []int) {
	count, err := d.engine.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: d.ref})
	if err != nil {
		return nil
	}
	for i := range min(count.PageCount, maxCount) {
		pages = append(pages, i)
	}
	return pages
}
