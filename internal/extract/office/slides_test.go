package office

import (
	"fmt"
	"testing"
)

// deck makes a PPTX of slides, each the content of its p:spTree; their files' names run against their order.
func deck(slides ...string) parts {
	list, relations := "", []string{}
	p := parts{}
	for i, slide := range slides {
		name := fmt.Sprintf("slides/slide%d.xml", len(slides)-i)
		list += fmt.Sprintf(`<p:sldId id="%d" r:id="s%d"/>`, 256+i, i)
		relations = append(relations, fmt.Sprintf("s%d slide %s", i, name))
		p = append(p, "ppt/"+name, slide)
	}
	return append(p, "_rels/.rels", rels("r1 officeDocument ppt/presentation.xml"),
		"ppt/presentation.xml", root("p:presentation", `<p:sldIdLst>`+list+`</p:sldIdLst><p:sldSz cx="9144000" cy="6858000"/>`),
		"ppt/_rels/presentation.xml.rels", rels(relations...))
}

func slide(tree string) string {
	return root("p:sld", "<p:cSld><p:spTree>"+tree+"</p:spTree></p:cSld>")
}

func at(x, y, w, h int) string {
	return fmt.Sprintf(`<a:xfrm><a:off x="%d" y="%d"/><a:ext cx="%d" cy="%d"/></a:xfrm>`, x, y, w, h)
}

func solid(rgb string) string { return `<a:solidFill><a:srgbClr val="` + rgb + `"/></a:solidFill>` }

// shape has properties of its own and a text whose run has properties too.
func shape(properties, runProperties, text string) string {
	return `<p:sp><p:nvSpPr><p:cNvPr id="1" descr="a cat"/></p:nvSpPr><p:spPr>` + properties + `</p:spPr><p:txBody><a:p><a:r>` +
		runProperties + `<a:t>` + text + `</a:t></a:r></a:p></p:txBody></p:sp>`
}

const whiteRun = `<a:rPr><a:solidFill><a:srgbClr val="FFFFFF"/></a:solidFill></a:rPr>`

func TestSlides(t *testing.T) {
	tree := func(cells string, style string) string {
		return `<p:graphicFrame><a:graphic><a:tbl><a:tblPr><a:tableStyleId>` + style + `</a:tableStyleId></a:tblPr>` + cells + `</a:tbl></a:graphic></p:graphicFrame>`
	}
	cell := func(run, fill string) string {
		return `<a:tc><a:txBody><a:p><a:r>` + run + `</a:r></a:p></a:txBody><a:tcPr>` + fill + `</a:tcPr></a:tc>`
	}
	white, dark := whiteRun, solid("102030")
	cases := []struct {
		name string
		file parts
		want string
	}{
		{"slides come in the presentation's order", deck(slide(shape("", "", "one")), slide(shape("", "", "two")), slide("")), "one\ftwo\f"},
		{"lines", deck(slide(`<p:sp><p:txBody><a:p><a:r><a:t>a</a:t></a:r><a:br/><a:r><a:t>b</a:t></a:r></a:p><a:p><a:fld type="slidenum"><a:t>4</a:t></a:fld></a:p></p:txBody></p:sp>`)), "a\nb\n4"},
		{"a hidden slide", deck(root("p:sld", `<p:cSld><p:spTree>`+shape("", "", "x")+`</p:spTree></p:cSld>`), `<?xml version="1.0"?><p:sld`+names+` show="0"><p:cSld>`+shape("", "", "y")+`</p:cSld></p:sld>`), "x\f{hidden_slide:y}"},
		{"a table", deck(slide(tree(`<a:tr>`+cell(`<a:t>a</a:t>`, "")+cell(`<a:t>b</a:t>`, "")+`</a:tr><a:tr>`+cell(`<a:t>c</a:t>`, "")+`</a:tr>`, ""))), "a\tb\nc"},
		{"white in a table", deck(slide(tree(`<a:tr>`+cell(white+`<a:t>a</a:t>`, dark)+cell(white+`<a:t>b</a:t>`, "<a:noFill/>")+`</a:tr>`, "{5C22544A-7EE6-4342-B048-85BDC9FD1C3A}"))), "a\t{white:b}"},
		{"white on white", deck(slide(shape("", white, "x"))), "{white:x}"},
		{"white in a dark shape", deck(slide(shape(dark, white, "x"))), "x"},
		{"white over a dark shape", deck(slide(shape(at(0, 0, 100, 100)+dark, "", "") + shape(at(10, 10, 20, 20), white, "x") + shape(at(200, 200, 20, 20), white, "y"))), "x\n{white:y}"},
		{"white over a picture", deck(slide(`<p:pic><p:spPr>` + at(0, 0, 100, 100) + `</p:spPr></p:pic>` + shape(at(10, 10, 500, 20), white, "x"))), "x"},
		{"white on a dark slide", deck(root("p:sld", `<p:cSld><p:bg><p:bgPr>`+dark+`</p:bgPr></p:bg><p:spTree>`+shape("", white, "x")+`</p:spTree></p:cSld>`)), "x"},
		{"white by its theme's name", deck(slide(shape("", `<a:rPr><a:solidFill><a:schemeClr val="bg1"/></a:solidFill></a:rPr>`, "x"))), "{white:x}"},
		{"grey made of white", deck(slide(shape("", `<a:rPr><a:solidFill><a:schemeClr val="bg1"><a:lumMod val="50000"/></a:schemeClr></a:solidFill></a:rPr>`, "x"))), "x"},
		{"a white outline", deck(slide(shape("", `<a:rPr><a:ln><a:solidFill><a:srgbClr val="FFFFFF"/></a:solidFill></a:ln></a:rPr>`, "x"))), "x"},
		{"transparent", deck(slide(shape("", `<a:rPr><a:solidFill><a:srgbClr val="000000"><a:alpha val="0"/></a:srgbClr></a:solidFill></a:rPr>`, "x"))), "{white:x}"},
		{"tiny", deck(slide(shape("", `<a:rPr sz="100"/>`, "x") + shape("", `<a:rPr sz="200"/>`, "y"))), "{tiny:x}\ny"},
		{"a hidden shape", deck(slide(`<p:sp><p:nvSpPr><p:cNvPr hidden="1"/></p:nvSpPr><p:txBody><a:p><a:r><a:t>x</a:t></a:r></a:p></p:txBody></p:sp>` + shape("", "", "y"))), "{invisible:x}\ny"},
		{"beside the slide", deck(slide(shape(at(-5000000, 0, 1000, 1000), "", "x") + shape(at(9143000, 0, 5000, 5000), "", "y"))), "{off_page:x}\ny"},
		{"beside the slide by its group", deck(slide(`<p:grpSp><p:grpSpPr><a:xfrm><a:off x="20000000" y="0"/><a:ext cx="10" cy="10"/><a:chOff x="0" y="0"/><a:chExt cx="100" cy="100"/></a:xfrm></p:grpSpPr>` + shape(at(10, 10, 10, 10), "", "x") + `</p:grpSp>` + shape(at(10, 10, 10, 10), "", "y"))), "{off_page:x}\ny"},
		{"one alternative", deck(slide(`<mc:AlternateContent><mc:Choice Requires="wps">` + shape("", "", "x") + `</mc:Choice><mc:Fallback>` + shape("", "", "x") + `</mc:Fallback></mc:AlternateContent>`)), "x"},
		{"notes, a diagram and comments", append(deck(slide(shape("", "", "x"))), "ppt/slides/_rels/slide1.xml.rels", rels("a notesSlide ../notesSlides/n.xml", "b diagramData ../diagrams/d.xml", "c comments ../comments/c.xml"),
			"ppt/notesSlides/n.xml", root("p:notes", `<p:cSld><p:spTree>`+shape("", "", "say this")+`<p:sp><p:txBody><a:p><a:fld type="slidenum"><a:t>1</a:t></a:fld></a:p></p:txBody></p:sp></p:spTree></p:cSld>`),
			"ppt/diagrams/d.xml", root("p:dataModel", `<p:ptLst> <p:pt><p:t><a:p><a:r><a:t>box</a:t></a:r></a:p></p:t></p:pt> </p:ptLst>`),
			"ppt/comments/c.xml", root("p:cmLst", `<p:cm><p:text>remark</p:text></p:cm>`)), "x\n\nbox\n\nsay this\n\nremark"},
		{"a hidden slide's notes", parts(append(deck(`<?xml version="1.0"?><p:sld`+names+` show="0"/>`), "ppt/slides/_rels/slide1.xml.rels", rels("a notesSlide n.xml"),
			"ppt/slides/n.xml", root("p:notes", shape("", "", "say")))), "{hidden_slide:say}"},
		{"a dark master", append(deck(slide(shape("", white, "x")+shape("", `<a:rPr><a:solidFill><a:schemeClr val="bg1"/></a:solidFill></a:rPr>`, "y"))),
			"ppt/slides/_rels/slide1.xml.rels", rels("a slideLayout ../l/l.xml"), "ppt/l/l.xml", root("p:sldLayout", ""), "ppt/l/_rels/l.xml.rels", rels("a slideMaster ../m/m.xml"),
			"ppt/m/m.xml", root("p:sldMaster", `<p:cSld><p:bg><p:bgRef idx="1001"><a:schemeClr val="bg1"/></p:bgRef></p:bg></p:cSld><p:clrMap bg1="dk1" tx1="lt1"/>`), "ppt/m/_rels/m.xml.rels", rels("a theme ../t.xml"),
			"ppt/t.xml", root("a:theme", `<a:themeElements><a:clrScheme name="n"><a:dk1><a:sysClr val="windowText" lastClr="000000"/></a:dk1><a:lt1><a:srgbClr val="FFFFFF"/></a:lt1></a:clrScheme></a:themeElements>`)), "x\n{white:y}"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { wants(t, pptx, c.file.zip(t), c.want) })
	}
}
