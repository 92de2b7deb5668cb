package office

import (
	"strings"
	"testing"
)

func TestWord(t *testing.T) {
	box := func(content string) string {
		return `<w:drawing><wps:wsp><wps:spPr/><wps:txbx><w:txbxContent>` + content + `</w:txbxContent></wps:txbx></wps:wsp></w:drawing>`
	}
	cell := func(content string) string { return "<w:tc><w:tcPr/>" + content + "</w:tc>" }
	grid := `<w:tblPr/><w:tblGrid><w:gridCol w:w="1"/><w:gridCol w:w="1"/><w:gridCol w:w="1"/></w:tblGrid>`
	field := func(what string) string { return `<w:r><w:fldChar w:fldCharType="` + what + `"/></w:r>` }
	cases := []struct {
		name string
		body string
		more []string
		want string
	}{
		{"paragraphs are lines", para("one") + para("two"), nil, "one\ntwo"},
		{"headings keep their text", `<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr>` + run("Title") + `</w:p>` + para("text"), nil, "Title\ntext"},
		{"runs join", `<w:p>` + run("wo") + run("rd") + `</w:p>`, nil, "word"},
		{"tabs and breaks", `<w:p><w:pPr><w:tabs><w:tab w:val="left"/></w:tabs></w:pPr><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t></w:r></w:p>`, nil, "a\tb\nc"},
		{"a page break", para("one") + `<w:p><w:r><w:br w:type="page"/></w:r></w:p>` + para("two"), nil, "one\ftwo"},
		{"a page break that the program noted", para("one") + `<w:p><w:r><w:lastRenderedPageBreak/><w:t>two</w:t></w:r></w:p>`, nil, "one\ftwo"},
		{"one page break that is noted too", para("one") + `<w:p><w:r><w:br w:type="page"/></w:r></w:p><w:p><w:r><w:lastRenderedPageBreak/><w:t>two</w:t></w:r></w:p>`, nil, "one\ftwo"},
		{"two page breaks are an empty page", para("one") + `<w:p><w:r><w:br w:type="page"/></w:r><w:r><w:br w:type="page"/></w:r></w:p>` + para("three"), nil, "one\f\fthree"},
		{"a table row is a line", para("x") + `<w:tbl>` + grid + `<w:tr>` + cell(para("a")) + cell(para("")) + cell(para("c")+para("d")) + `</w:tr><w:tr>` +
			cell(para("e")) + cell(para("f")) + cell(para("")) + `</w:tr></w:tbl>` + para("y"), nil, "x\na\t\tc d\ne\tf\ny"},
		{"deleted text is left out, inserted kept", `<w:p>` + run("old ") + `<w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:ins>` + run("new") +
			`</w:ins><w:moveFrom>` + run("moved") + `</w:moveFrom></w:p>`, nil, "old new"},
		{"former formatting is no formatting", `<w:p><w:r><w:rPr><w:b/><w:rPrChange><w:rPr><w:vanish/></w:rPr></w:rPrChange></w:rPr><w:t>seen</w:t></w:r></w:p>`, nil, "seen"},
		{"a former style is no style", `<w:p><w:pPr><w:pPrChange><w:pPr><w:pStyle w:val="Ghost"/></w:pPr></w:pPrChange></w:pPr>` + run("seen") + `</w:p>`,
			[]string{"styles", root("w:styles", `<w:style w:styleId="Ghost"><w:rPr><w:vanish/></w:rPr></w:style>`)}, "seen"},
		{"field instructions are left out", `<w:p>` + field("begin") + `<w:r><w:instrText>PAGE \* x</w:instrText></w:r>` + field("separate") + run("7") + field("end") + run(" of 9") + `</w:p>`, nil, "7 of 9"},
		{"text in an instruction is not shown", `<w:p>` + field("begin") + run("aside") + field("separate") + run("7") + field("end") + `</w:p>`, nil, "{invisible:aside}7"},
		{"links show their text", `<w:p><w:hyperlink r:id="x">` + run("link") + `</w:hyperlink></w:p>`, nil, "link"},
		{"alternative text is left out", `<w:p><w:r><w:drawing><docPr descr="a cat"/></w:drawing></w:r>` + run("x") + `</w:p>`, nil, "x"},
		{"a text box comes once, after its paragraph", `<w:p>` + run("be") + `<w:r><mc:AlternateContent><mc:Choice Requires="wps">` + box(para("box")+para("two")) + `</mc:Choice><mc:Fallback><w:pict><v:shape><w:txbxContent>` +
			para("box") + `</w:txbxContent></v:shape></w:pict></mc:Fallback></mc:AlternateContent></w:r>` + run("fore") + `</w:p>` + para("after"), nil, "before\nbox\ntwo\nafter"},
		{"the alternative of an unknown extension is not shown", `<w:p><mc:AlternateContent><mc:Choice Requires="odd">` + run("A") + `</mc:Choice><mc:Fallback>` + run("B") + `</mc:Fallback></mc:AlternateContent></w:p>`, nil, "B"},
		{"headers and footers are on the first page", para("one") + `<w:p><w:r><w:br w:type="page"/></w:r></w:p>` + para("two"),
			[]string{"header", root("w:hdr", para("HEAD")), "footer", root("w:ftr", para("FOOT"))}, "HEAD\none\n\nFOOT\ftwo"},
		{"notes are on the page that refers to them",
			`<w:p>` + run("one") + `<w:r><w:footnoteReference w:id="2"/></w:r><w:r><w:commentReference w:id="0"/></w:r></w:p><w:p><w:r><w:endnoteReference w:id="1"/></w:r><w:r><w:br w:type="page"/></w:r></w:p>` + para("two"),
			[]string{"footnotes", root("w:footnotes", `<w:footnote w:id="2">`+para("foot")+`</w:footnote><w:footnote w:id="3">`+para("stray")+`</w:footnote>`),
				"endnotes", root("w:endnotes", `<w:endnote w:id="1">`+para("end")+`</w:endnote>`),
				"comments", root("w:comments", `<w:comment w:id="0" w:author="A">`+para("remark")+`</w:comment>`)},
			"one\n\nfoot\nremark\ftwo\n\nend\n{invisible:stray}"},
		{"vanished", para("x", "<w:vanish/>") + para("y", `<w:vanish w:val="0"/>`), nil, "{invisible:x}\ny"},
		{"hidden on the web", para("x", "<w:webHidden/>"), nil, "{invisible:x}"},
		{"a contents' page number", `<w:p>` + field("begin") + field("separate") + run("12", "<w:webHidden/>") + field("end") + `</w:p>`, nil, "12"},
		{"white on white", para("x", `<w:color w:val="FFFFFF"/>`) + para("y", `<w:color w:val="FFFFFF"/><w:shd w:val="clear" w:fill="FFFFFF"/>`), nil, "{white:x}\n{white:y}"},
		{"nearly white", para("x", `<w:color w:val="FEFDFE"/>`), nil, "{white:x}"},
		{"the theme's white", para("x", `<w:color w:val="000000" w:themeColor="background1"/>`), nil, "{white:x}"},
		{"white on a ground", para("x", `<w:color w:val="FFFFFF"/><w:shd w:val="clear" w:fill="203060"/>`) + para("y", `<w:color w:val="FFFFFF"/><w:highlight w:val="black"/>`) +
			`<w:p><w:pPr><w:shd w:val="clear" w:fill="333333"/></w:pPr>` + run("z", `<w:color w:val="FFFFFF"/>`) + `</w:p>`, nil, "x\ny\nz"},
		{"black on black", para("x", `<w:color w:val="000000"/><w:shd w:val="clear" w:fill="000000"/>`), nil, "{white:x}"},
		{"white in a dark cell", `<w:tbl><w:tr><w:tc><w:tcPr><w:shd w:val="clear" w:fill="000080"/></w:tcPr>` + para("x", `<w:color w:val="FFFFFF"/>`) + `</w:tc></w:tr></w:tbl>`, nil, "x"},
		{"white in a table whose style colours", `<w:tbl><w:tblPr><w:tblStyle w:val="Dark"/></w:tblPr><w:tr>` + cell(para("x", `<w:color w:val="FFFFFF"/>`)) + `</w:tr></w:tbl>`,
			[]string{"styles", root("w:styles", `<w:style w:type="table" w:styleId="Dark"><w:tblStylePr><w:tcPr><w:shd w:val="clear" w:fill="112233"/></w:tcPr></w:tblStylePr></w:style>`)}, "x"},
		{"transparent", para("x", `<w14:textFill><w14:noFill/></w14:textFill>`) + para("y", `<w14:textOutline><w14:noFill/></w14:textOutline>`), nil, "{white:x}\ny"},
		{"tiny", para("x", `<w:sz w:val="3"/>`) + para("y", `<w:sz w:val="4"/>`), nil, "{tiny:x}\ny"},
		{"a hidden row", `<w:tbl>` + grid + `<w:tr><w:trPr><w:hidden/></w:trPr>` + cell(para("x")) + `</w:tr><w:tr>` + cell(para("y")) + `</w:tr></w:tbl>`, nil, "{hidden_cell:x}\ny"},
		{"looks come from styles", `<w:p><w:pPr><w:pStyle w:val="Child"/></w:pPr>` + run("x") + run("y", `<w:rStyle w:val="Seen"/>`) + `</w:p>` + para("z", `<w:rStyle w:val="Small"/>`),
			[]string{"styles", root("w:styles", `<w:style w:type="paragraph" w:styleId="Ghost"><w:rPr><w:vanish/></w:rPr></w:style><w:style w:type="paragraph" w:styleId="Child"><w:basedOn w:val="Ghost"/></w:style>`+
				`<w:style w:type="character" w:styleId="Seen"><w:rPr><w:vanish w:val="false"/></w:rPr></w:style><w:style w:type="character" w:styleId="Small"><w:rPr><w:sz w:val="2"/></w:rPr></w:style>`+
				`<w:style w:type="paragraph" w:styleId="Loop"><w:basedOn w:val="Loop"/></w:style>`)}, "{invisible:x}y\n{tiny:z}"},
		{"the default style and the document's defaults", para("x") + `<w:p><w:pPr><w:pStyle w:val="Loop"/></w:pPr>` + run("y") + `</w:p>`,
			[]string{"styles", root("w:styles", `<w:docDefaults><w:rPrDefault><w:rPr><w:sz w:val="1"/></w:rPr></w:rPrDefault></w:docDefaults><w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:rPr><w:sz w:val="24"/></w:rPr></w:style>`+
				`<w:style w:type="paragraph" w:styleId="Loop"><w:basedOn w:val="Loop"/></w:style>`)}, "x\n{tiny:y}"},
		{"controls keep their text, not their settings", `<w:sdt><w:sdtPr><w:rPr><w:vanish/></w:rPr></w:sdtPr><w:sdtContent>` + para("x") + `</w:sdtContent></w:sdt>`, nil, "x"},
		{"a shape's white text on its colour", `<w:p><w:r><w:drawing><wps:wsp><wps:spPr><a:solidFill><a:srgbClr val="202020"/></a:solidFill></wps:spPr><wps:txbx><w:txbxContent>` + para("x", `<w:color w:val="FFFFFF"/>`) +
			`</w:txbxContent></wps:txbx></wps:wsp></w:drawing></w:r></w:p>`, nil, "x"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { wants(t, docx, wordFile(c.body, c.more...).zip(t), c.want) })
	}
}

func TestWordTextBoxesInEachOtherAreBounded(t *testing.T) {
	body := ""
	for range 2 * maxBoxes {
		body = `<w:p>` + run("a") + `<w:r><w:pict><w:txbxContent>` + body + `</w:txbxContent></w:pict></w:r>` + run("b") + `</w:p>`
	}
	text, _, err := readAll(docx, wordFile(body+para("end")).zip(t), roomy)
	if err != nil || strings.Count(text, "a") != 2*maxBoxes || strings.Count(text, "b") != 2*maxBoxes || !strings.HasSuffix(text, "\nend") {
		t.Errorf("text %q, error %v", text, err)
	}
}

func TestWordReadsNothingFromOutside(t *testing.T) {
	p := wordFile(para("x"), "header", root("w:hdr", para("HEAD")))
	p[len(p)-1] = strings.Replace(p[len(p)-1], `Target=`, `TargetMode="External" Target=`, 1)
	wants(t, docx, p.zip(t), "x")
}

func TestWordDiagramsComeLast(t *testing.T) {
	wants(t, docx, wordFile(para("x"), "diagramData", root("dataModel", `<pt><a:p><a:r><a:t>box</a:t></a:r></a:p></pt>`),
		"chart", root("chart", `<cat><strRef><strCache><pt><v>north</v></pt></strCache></strRef></cat>`)).zip(t), "x\n\nbox\nnorth")
}

func TestWordMainPartIsTheOneThatIsRelated(t *testing.T) {
	p := parts{"word/document.xml", root("w:document", "<w:body>"+para("decoy")+"</w:body>"), "_rels/.rels", rels("r1 officeDocument odd/real.xml"),
		"odd/real.xml", root("w:document", "<w:body>"+para("real")+"</w:body>")}
	wants(t, docx, p.zip(t), "real")
}

func TestWordUTF16Part(t *testing.T) {
	text := `<?xml version="1.0" encoding="UTF-16"?>` + root("w:document", "<w:body>"+para("grüße")+"</w:body>")[len(`<?xml version="1.0" encoding="UTF-8"?>`):]
	wide := []byte{0xFF, 0xFE}
	for _, r := range text {
		wide = append(wide, byte(r), byte(r>>8))
	}
	p := parts{"_rels/.rels", rels("r1 officeDocument d.xml"), "d.xml", string(wide)}
	wants(t, docx, p.zip(t), "grüße")
}
