package office

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/accession/accession/internal/extract/page"
)

func TestODFText(t *testing.T) {
	styled := `<style:style style:name="B" style:family="paragraph"><style:paragraph-properties fo:break-before="page"/></style:style>` +
		`<style:style style:name="A" style:family="paragraph"><style:paragraph-properties fo:break-after="page"/></style:style>` +
		`<style:style style:name="Gone" style:family="text"><style:text-properties text:display="none"/></style:style>` +
		`<style:style style:name="White" style:family="text"><style:text-properties fo:color="#ffffff"/></style:style>` +
		`<style:style style:name="Badge" style:family="text"><style:text-properties fo:color="#ffffff" fo:background-color="#102030"/></style:style>` +
		`<style:style style:name="Tiny" style:family="text"><style:text-properties fo:font-size="1pt"/></style:style>` +
		`<style:style style:name="Half" style:family="text"><style:text-properties fo:font-size="50%"/></style:style>` +
		`<style:style style:name="Kid" style:family="paragraph" style:parent-style-name="Ghost"/>` +
		`<style:style style:name="Loop" style:family="paragraph" style:parent-style-name="Loop"/>` +
		`<style:style style:name="DarkCell" style:family="table-cell"><style:table-cell-properties fo:background-color="#000000"/></style:style>`
	masters := `<office:document-styles` + odfNames + `><office:styles><style:style style:name="Ghost" style:family="paragraph"><style:text-properties text:display="none"/></style:style></office:styles>` +
		`<office:master-styles><style:master-page style:name="Standard"><style:header><text:p>HEAD</text:p></style:header><style:footer><text:p>FOOT</text:p></style:footer><style:header-left style:display="false"><text:p>no</text:p></style:header-left></style:master-page></office:master-styles></office:document-styles>`
	cases := []struct{ name, body, want string }{
		{"lines", `<text:h>Title</text:h> <text:p>a<text:s text:c="2"/>b<text:tab/>c<text:line-break/>d</text:p>`, "Title\na  b\tc\nd"},
		{"white space is drawn together", "<text:p>  a \n\t <text:span> b</text:span>  c </text:p>", "a b c "},
		{"lists and sections", `<text:section><text:list><text:list-item><text:p>a</text:p></text:list-item></text:list></text:section>`, "a"},
		{"pages", `<text:p>a</text:p><text:p text:style-name="B">b</text:p><text:p>c<text:soft-page-break/>d</text:p><text:p text:style-name="A">e</text:p><text:p>f</text:p>`, "a\fb\nc\fd\ne\ff"},
		{"the first page's own break", `<text:p text:style-name="B">b</text:p>`, "b"},
		{"a table", `<text:p>x</text:p><table:table><table:table-column table:number-columns-repeated="2"/><table:table-row><table:table-cell><text:p>a</text:p><text:p>b</text:p></table:table-cell><table:table-cell><text:p>c</text:p></table:table-cell></table:table-row>` +
			`<table:table-row><table:table-cell/><table:table-cell><text:p>d</text:p></table:table-cell></table:table-row></table:table><text:p>y</text:p>`, "x\na b\tc\n\td\ny"},
		{"deleted text is left out", `<text:tracked-changes><text:changed-region><text:deletion><text:p>gone</text:p></text:deletion></text:changed-region></text:tracked-changes><text:p>a</text:p>`, "a"},
		{"notes and comments", `<text:p>a<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>note</text:p></text:note-body></text:note>b<office:annotation><dc:creator>Me</dc:creator><dc:date>now</dc:date><text:p>remark</text:p></office:annotation>c</text:p>`, "abc\n\nnote\nremark"},
		{"a text box", `<text:p>be<draw:frame><draw:text-box><text:p>box</text:p></draw:text-box><svg:title>a cat</svg:title></draw:frame>fore</text:p><text:p>c</text:p>`, "before\nbox\nc"},
		{"a shape's text", `<text:p>a<draw:custom-shape><text:p>x</text:p><text:p>y</text:p></draw:custom-shape>b</text:p><text:p>c</text:p>`, "ab\nx\ny\nc"},
		{"an index' template", `<text:table-of-content><text:table-of-content-source><text:index-title-template>no</text:index-title-template></text:table-of-content-source><text:index-body><text:p>Chapter 1</text:p></text:index-body></text:table-of-content>`, "Chapter 1"},
		{"hidden by style", `<text:p>a<text:span text:style-name="Gone">b</text:span><text:span text:style-name="White">c</text:span><text:span text:style-name="Badge">d</text:span><text:span text:style-name="Tiny">e</text:span><text:span text:style-name="Half">f</text:span></text:p>`,
			"a{invisible:b}{white:c}d{tiny:e}f"},
		{"hidden by an ancestor", `<text:p text:style-name="Kid">a</text:p><text:p text:style-name="Loop">b</text:p>`, "{invisible:a}\nb"},
		{"a hidden section and a hidden text", `<text:section text:display="none"><text:p>a</text:p></text:section><text:p>b<text:hidden-text text:is-hidden="true" text:string-value="c"/></text:p>`, "{invisible:a}\nb{invisible:c}"},
		{"white in a dark cell", `<table:table><table:table-row><table:table-cell table:style-name="DarkCell"><text:p><text:span text:style-name="White">a</text:span></text:p></table:table-cell></table:table-row></table:table>`, "a"},
		{"a hidden row", `<table:table><table:table-row table:visibility="collapse"><table:table-cell><text:p>a</text:p></table:table-cell></table:table-row></table:table>`, "{hidden_cell:a}"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := "HEAD\n" + c.want + "\n\nFOOT"
			if first, rest, more := strings.Cut(c.want, "\f"); more {
				want = "HEAD\n" + first + "\n\nFOOT\f" + rest
			}
			wants(t, odt, odfFile(`<office:text>`+c.body+`</office:text>`, styled, "styles.xml", masters).zip(t), want)
		})
	}
}

func TestODFWorkbook(t *testing.T) {
	styled := `<style:style style:name="Off" style:family="table"><style:table-properties table:display="false"/></style:style>` +
		`<style:style style:name="White" style:family="table-cell"><style:text-properties fo:color="#ffffff"/></style:style>` +
		`<style:style style:name="Dark" style:family="table-cell"><style:table-cell-properties fo:background-color="#000000"/><style:text-properties fo:color="#ffffff"/></style:style>`
	row := func(cells string) string { return `<table:table-row>` + cells + `</table:table-row>` }
	cell := func(text string) string { return `<table:table-cell><text:p>` + text + `</text:p></table:table-cell>` }
	empty := `<table:table-cell table:number-columns-repeated="16384"/>`
	cases := []struct{ name, body, want string }{
		{"sheets and cells", `<table:table table:name="A">` + row(cell("1")+`<table:table-cell/>`+cell("2")) + row(cell("3")) + `</table:table><table:table table:name="B"/>`, "A\n1\t\t2\n3\fB"},
		{"a cell's lines", `<table:table table:name="A">` + row(`<table:table-cell><text:p>a</text:p><text:p>b</text:p></table:table-cell>`+cell("c")) + `</table:table>`, "A\na b\tc"},
		{"repeated cells and rows", `<table:table table:name="A"><table:table-row table:number-rows-repeated="2"><table:table-cell table:number-columns-repeated="3"><text:p>x</text:p></table:table-cell>` + cell("y") + `</table:table-row>` + row(cell("z")) + `</table:table>`, "A\nx\tx\tx\ty\nx\tx\tx\ty\nz"},
		{"empty cells and rows without end", `<table:table table:name="A"><table:table-row table:number-rows-repeated="1048576">` + empty + `</table:table-row>` + row(empty+cell("x")) + row(cell("y")+empty) + `</table:table>`, "A\n" + strings.Repeat("\t", maxTabs) + "x\ny"},
		{"a hidden sheet", `<table:table table:name="A" table:style-name="Off">` + row(cell("x")) + `</table:table>`, "{hidden_cell:A}\n{hidden_cell:x}"},
		{"hidden rows and columns", `<table:table table:name="A"><table:table-column/><table:table-column table:visibility="collapse" table:number-columns-repeated="2"/><table:table-column/>` + row(cell("a")+cell("b")+cell("c")+cell("d")) +
			`<table:table-row table:visibility="filter">` + cell("e") + `</table:table-row></table:table>`, "A\na\t{hidden_cell:b}\t{hidden_cell:c}\td\n{hidden_cell:e}"},
		{"white by cell, by row and by column", `<table:table table:name="A"><table:table-column table:default-cell-style-name="White"/><table:table-column/>` + row(cell("a")+cell("b")+`<table:table-cell table:style-name="Dark"><text:p>c</text:p></table:table-cell>`) +
			`<table:table-row table:default-cell-style-name="Dark">` + cell("d") + `</table:table-row></table:table>`, "A\n{white:a}\tb\tc\nd"},
		{"comments", `<table:table table:name="A">` + row(`<table:table-cell><office:annotation><dc:creator>Me</dc:creator><text:p>remark</text:p></office:annotation><text:p>x</text:p></table:table-cell>`) + `</table:table>`, "A\nx\n\nremark"},
		{"validation messages are left out", `<table:content-validations><table:content-validation><table:help-message><text:p>no</text:p></table:help-message></table:content-validation></table:content-validations><table:table table:name="A">` + row(cell("x")) + `</table:table>`, "A\nx"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			wants(t, ods, odfFile(`<office:spreadsheet>`+c.body+`</office:spreadsheet>`, styled).zip(t), c.want)
		})
	}
}

func TestODFRepeatedTextIsBounded(t *testing.T) {
	for _, c := range []struct{ rows, columns, text int }{{1 << 20, 1, maxCopies}, {1, maxColumns, maxCopies}, {1 << 20, maxColumns, 500_000}} {
		body := fmt.Sprintf(`<office:spreadsheet><table:table table:name="A"><table:table-row table:number-rows-repeated="%d">`+
			`<table:table-cell table:number-columns-repeated="%d"><text:p>x</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>`, c.rows, c.columns)
		text, truncated, err := readAll(ods, odfFile(body, "").zip(t), roomy)
		if n := strings.Count(text, "x"); err != nil || !truncated || int64(len(text)) > roomy.TextBytes || n < c.text || n > c.text+100_000 {
			t.Errorf("%d rows of %d cells: %d cells, truncated %t, error %v", c.rows, c.columns, n, truncated, err)
		}
	}
}

func TestODFSlides(t *testing.T) {
	styled := `<style:style style:name="Hid" style:family="drawing-page"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>` +
		`<style:style style:name="Night" style:family="drawing-page"><style:drawing-page-properties draw:fill="solid" draw:fill-color="#000000"/></style:style>` +
		`<style:style style:name="White" style:family="text"><style:text-properties fo:color="#ffffff"/></style:style>` +
		`<style:style style:name="Dark" style:family="graphic"><style:graphic-properties draw:fill="solid" draw:fill-color="#102030"/></style:style>` +
		`<style:style style:name="Open" style:family="graphic" style:parent-style-name="Dark"><style:graphic-properties draw:fill="none"/></style:style>`
	masters := `<office:document-styles` + odfNames + `><office:automatic-styles><style:page-layout style:name="L"><style:page-layout-properties fo:page-width="28cm" fo:page-height="21cm"/></style:page-layout>` +
		`<style:style style:name="DarkMaster" style:family="drawing-page"><style:drawing-page-properties draw:fill="solid" draw:fill-color="#000000"/></style:style></office:automatic-styles>` +
		`<office:master-styles><style:master-page style:name="M" style:page-layout-name="L"><draw:frame><draw:text-box><text:p>Click to add</text:p></draw:text-box></draw:frame></style:master-page>` +
		`<style:master-page style:name="D" style:page-layout-name="L" draw:style-name="DarkMaster"/></office:master-styles></office:document-styles>`
	frame := func(attributes, text string) string {
		return `<draw:frame ` + attributes + `><draw:text-box><text:p>` + text + `</text:p></draw:text-box></draw:frame>`
	}
	white := `<text:span text:style-name="White">w</text:span>`
	inside, beside := `svg:x="2cm" svg:y="2cm" svg:width="3cm" svg:height="1cm"`, `svg:x="40cm" svg:y="2cm" svg:width="3cm" svg:height="1cm"`
	pg := func(attributes, body string) string {
		return `<draw:page draw:name="p" ` + attributes + `>` + body + `</draw:page>`
	}
	cases := []struct{ name, body, want string }{
		{"slides and notes", pg("", frame("", "one")+frame("", "more")+`<presentation:notes>`+frame("", "say")+`</presentation:notes>`) + pg("", `<draw:custom-shape><text:p>two</text:p></draw:custom-shape>`), "one\nmore\n\nsay\ftwo"},
		{"a hidden slide", pg(`draw:style-name="Hid"`, frame("", "x")+`<presentation:notes>`+frame("", "say")+`</presentation:notes>`), "{hidden_slide:x}\n\n{hidden_slide:say}"},
		{"white on white", pg("", frame(inside, white)), "{white:w}"},
		{"white on a dark slide", pg(`draw:style-name="Night"`, frame(inside, white)), "w"},
		{"white on a dark master", pg(`draw:master-page-name="D"`, frame(inside, white)), "w"},
		{"white in a dark shape, and in one without its parent's colour", pg("", frame(`draw:style-name="Dark" svg:x="9cm" svg:y="9cm" svg:width="1cm" svg:height="1cm"`, white)+frame(`draw:style-name="Open" `+inside, white)), "w\n{white:w}"},
		{"white over a picture", pg("", `<draw:frame svg:x="0cm" svg:y="0cm" svg:width="20cm" svg:height="20cm"><draw:image xlink:href="Pictures/a.png"/></draw:frame>`+frame(inside, white)), "w"},
		{"white in the notes of a dark slide", pg(`draw:style-name="Night"`, `<presentation:notes>`+frame(inside, white)+`</presentation:notes>`), "{white:w}"},
		{"beside the slide", pg(`draw:master-page-name="M"`, frame(inside, "x")+frame(beside, "y")), "x\n{off_page:y}"},
		{"a table", pg("", `<draw:frame><table:table><table:table-column table:number-columns-repeated="2"/><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table></draw:frame>`), "a\tb"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			wants(t, odp, odfFile(`<office:presentation>`+c.body+`</office:presentation>`, styled, "styles.xml", masters).zip(t), c.want)
		})
	}
}

func TestODFStoriesInEachOtherAreBounded(t *testing.T) {
	body := ""
	for range 2 * maxBoxes {
		body = `<text:p>a<draw:frame><draw:text-box>` + body + `</draw:text-box></draw:frame><draw:rect><text:p>c</text:p></draw:rect>b</text:p>`
	}
	text, _, err := readAll(odt, odfFile(`<office:text>`+body+`<text:p>end</text:p></office:text>`, "").zip(t), roomy)
	if err != nil || strings.Count(text, "a") != 2*maxBoxes || strings.Count(text, "b") != 2*maxBoxes || strings.Count(text, "c") != 2*maxBoxes || !strings.HasSuffix(text, "\nend") {
		t.Errorf("text %q, error %v", text, err)
	}
}

func TestODFSectionsOfTheOtherPart(t *testing.T) {
	styles := `<office:document-styles` + odfNames + `><office:body><office:text><text:p>no</text:p></office:text></office:body></office:document-styles>`
	wants(t, odt, odfFile(`<office:text><text:p>x</text:p></office:text>`, "", "styles.xml", styles).zip(t), "x")
}

func TestODFManifestOfOldFiles(t *testing.T) {
	manifest := func(inside string) string {
		return `<!DOCTYPE manifest PUBLIC "-//OpenOffice.org//DTD Manifest 1.0//EN" "Manifest.dtd"` + inside + `><manifest/>`
	}
	file := func(inside string) []byte {
		return odfFile(`<office:text><text:p>x</text:p></office:text>`, "", "META-INF/manifest.xml", manifest(inside)).zip(t)
	}
	wants(t, odt, file(""), "x")
	if _, _, err := readAll(odt, file(` [<!ENTITY a "b">]`), roomy); !errors.Is(err, page.ErrBroken) {
		t.Errorf("with entities: error %v", err)
	}
}

func TestODFEncrypted(t *testing.T) {
	file := odfFile(`<office:text/>`, "", "META-INF/manifest.xml", `<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>`).zip(t)
	if _, _, err := readAll(odt, file, roomy); !errors.Is(err, page.ErrEncrypted) {
		t.Errorf("error %v", err)
	}
}
