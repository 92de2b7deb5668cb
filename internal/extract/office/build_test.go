package office

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/accession/accession/internal/extract/page"
)

var roomy = page.Limits{Pages: 1000, TextBytes: 1 << 20, ExpandedBytes: 64 << 20}

const (
	docx = ooxml + "wordprocessingml.document"
	pptx = ooxml + "presentationml.presentation"
	xlsx = ooxml + "spreadsheetml.sheet"
	odt  = odf + "text"
	ods  = odf + "spreadsheet"
	odp  = odf + "presentation"
)

// parts are names and contents, by turns.
type parts []string

func (p parts) zip(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(p); i += 2 {
		w, err := z.Create(p[i])
		if err == nil {
			_, err = w.Write([]byte(p[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// show writes pages as one text: a form feed between them, {class:…} around what nobody sees.
func show(pages []page.Page) string {
	var b strings.Builder
	for i, p := range pages {
		if i > 0 {
			b.WriteString("\f")
		}
		at := 0
		for _, run := range p.Hidden {
			fmt.Fprintf(&b, "%s{%s:%s}", p.Text[at:run.Start], run.Class, p.Text[run.Start:run.End])
			at = run.End
		}
		b.WriteString(p.Text[at:])
	}
	return b.String()
}

func readAll(media string, file []byte, limits page.Limits) (text string, truncated bool, err error) {
	var pages []page.Page
	truncated, err = Read(media, bytes.NewReader(file), int64(len(file)), limits, func(p page.Page) error {
		pages = append(pages, p)
		return nil
	})
	return show(pages), truncated, err
}

func wants(t *testing.T, media string, file []byte, want string) {
	t.Helper()
	got, truncated, err := readAll(media, file, roomy)
	if err != nil || truncated {
		t.Fatalf("truncated %t, error %v", truncated, err)
	}
	if got != want {
		t.Errorf("text\n%q\nwant\n%q", got, want)
	}
}

const (
	office12 = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	names    = ` xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"` +
		` xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"` +
		` xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"` +
		` xmlns:r="` + office12 + `" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"` +
		` xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"` +
		` xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml" xmlns:odd="urn:example:odd" xmlns:v="urn:schemas-microsoft-com:vml"` +
		` xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing"`
	odfNames = ` xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"` +
		` xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0"` +
		` xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"` +
		` xmlns:presentation="urn:oasis:names:tc:opendocument:xmlns:presentation:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/"` +
		` xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" xmlns:xlink="http://www.w3.org/1999/xlink"`
)

// rels is a part of relationships; each is "id kind target".
func rels(entries ...string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`)
	for _, entry := range entries {
		f := strings.Fields(entry)
		fmt.Fprintf(&b, `<Relationship Id="%s" Type="%s/%s" Target="%s"/>`, f[0], office12, f[1], f[2])
	}
	return b.String() + `</Relationships>`
}

// element writes a root element with all namespaces.
func root(name, body string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><` + name + names + `>` + body + `</` + name + `>`
}

// word makes a DOCX of a body and further parts: "kind content" by turns, each of the kind word/<kind>.xml.
func wordFile(body string, more ...string) parts {
	p := parts{"_rels/.rels", rels("r1 officeDocument word/document.xml"), "word/document.xml", root("w:document", "<w:body>"+body+"</w:body>")}
	var list []string
	for i := 0; i < len(more); i += 2 {
		list = append(list, fmt.Sprintf("r%d %s %s.xml", i, more[i], more[i]))
		p = append(p, "word/"+more[i]+".xml", more[i+1])
	}
	return append(p, "word/_rels/document.xml.rels", rels(list...))
}

// para is a paragraph with one run; properties are those of the run.
func para(text string, properties ...string) string {
	return "<w:p>" + run(text, properties...) + "</w:p>"
}

func run(text string, properties ...string) string {
	return "<w:r><w:rPr>" + strings.Join(properties, "") + `</w:rPr><w:t xml:space="preserve">` + text + "</w:t></w:r>"
}

// odfFile makes an ODF file; styles are automatic styles.
func odfFile(body, styles string, more ...string) parts {
	return append(parts{"mimetype", "application/vnd.oasis.opendocument.text", "content.xml",
		`<office:document-content` + odfNames + `><office:automatic-styles>` + styles + `</office:automatic-styles><office:body>` + body + `</office:body></office:document-content>`}, more...)
}
