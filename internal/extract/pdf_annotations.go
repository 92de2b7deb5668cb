package extract

import (
	"strings"

	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"

	"github.com/accession/accession/internal/extract/page"
)

const pdfAnnotations = 2000 // annotations of a page that are looked at

// comment is what an annotation says and does not draw.
type comment struct{ text, class string }

// readAnnotations draws fields of forms, text boxes and stamps into the page, so that their text is the page's, in its place. It
// tells whether it did. What is pinned on the page and only shown when someone asks for it is kept as a comment.
func (p *pdfPage) readAnnotations() (drawn bool) {
	count, err := p.engine.FPDFPage_GetAnnotCount(&requests.FPDFPage_GetAnnotCount{Page: p.ref()})
	if err != nil {
		return false
	}
	for i := range min(count.Count, pdfAnnotations) {
		got, err := p.engine.FPDFPage_GetAnnot(&requests.FPDFPage_GetAnnot{Page: p.ref(), Index: i})
		if err != nil {
			continue
		}
		drawn = p.readAnnotation(got.Annotation) || drawn
		_, _ = p.engine.FPDFPage_CloseAnnot(&requests.FPDFPage_CloseAnnot{Annotation: got.Annotation})
	}
	if drawn {
		done, err := p.engine.FPDFPage_Flatten(&requests.FPDFPage_Flatten{Page: p.ref(), Usage: requests.FPDFPage_FlattenUsageNormalDisplay})
		drawn = err == nil && done != nil
	}
	return drawn
}

func (p *pdfPage) readAnnotation(a references.FPDF_ANNOTATION) (draws bool) {
	kind, err := p.engine.FPDFAnnot_GetSubtype(&requests.FPDFAnnot_GetSubtype{Annotation: a})
	if err != nil {
		return false
	}
	drawn, err := p.engine.FPDFAnnot_HasKey(&requests.FPDFAnnot_HasKey{Annotation: a, Key: "AP"})
	draws = err == nil && drawn.HasKey
	key := "Contents"
	switch kind.Subtype {
	case enums.FPDF_ANNOT_SUBTYPE_FILEATTACHMENT:
		p.hasFiles = true
	case enums.FPDF_ANNOT_SUBTYPE_LINK, enums.FPDF_ANNOT_SUBTYPE_POPUP: // a popup says what its parent does
		return false
	case enums.FPDF_ANNOT_SUBTYPE_WIDGET:
		key = "V"
	}
	if draws && (kind.Subtype == enums.FPDF_ANNOT_SUBTYPE_WIDGET || kind.Subtype == enums.FPDF_ANNOT_SUBTYPE_FREETEXT) {
		return true // it draws what it says
	}
	said, err := p.engine.FPDFAnnot_GetStringValue(&requests.FPDFAnnot_GetStringValue{Annotation: a, Key: key})
	if err != nil {
		return draws
	}
	text := strings.TrimSpace(said.Value)
	if text == "" || len(p.comments) >= pdfAnnotations {
		return draws
	}
	class := ""
	flags, err := p.engine.FPDFAnnot_GetFlags(&requests.FPDFAnnot_GetFlags{Annotation: a})
	if err == nil && flags.Flags&(enums.FPDF_ANNOT_FLAG_HIDDEN|enums.FPDF_ANNOT_FLAG_NOVIEW) != 0 {
		class = page.HiddenInvisible
	}
	p.comments = append(p.comments, comment{text, class})
	return draws
}
