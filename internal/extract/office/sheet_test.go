package office

import (
	"fmt"
	"strings"
	"testing"
)

// bookFile makes an XLSX of sheets: attributes of the sheet in the workbook and content of the sheet, by turns.
func bookFile(shared, styles string, sheets ...string) parts {
	list, relations, p := "", []string{"str sharedStrings shared.xml", "sty styles styles.xml"}, parts{}
	for i := 0; i < len(sheets); i += 2 {
		name := fmt.Sprintf("worksheets/sheet%d.xml", len(sheets)-i)
		list += fmt.Sprintf(`<sheet sheetId="%d" r:id="s%d" %s/>`, i+1, i, sheets[i])
		relations = append(relations, fmt.Sprintf("s%d worksheet %s", i, name))
		p = append(p, "xl/"+name, root("worksheet", sheets[i+1]))
	}
	return append(p, "_rels/.rels", rels("r1 officeDocument xl/workbook.xml"), "xl/workbook.xml", root("workbook", "<sheets>"+list+"</sheets>"),
		"xl/_rels/workbook.xml.rels", rels(relations...), "xl/shared.xml", root("sst", shared), "xl/styles.xml", root("styleSheet", styles))
}

func TestWorkbook(t *testing.T) {
	const s = `name="S"`
	data := func(rows string) string { return "<sheetData>" + rows + "</sheetData>" }
	styled := `<numFmts><numFmt numFmtId="164" formatCode="dd\.mm\.yyyy"/><numFmt numFmtId="165" formatCode=";;;"/><numFmt numFmtId="166" formatCode="[h]:mm:ss"/><numFmt numFmtId="167" formatCode="0.0&quot;days&quot;"/></numFmts>` +
		`<fonts><font><sz val="11"/><color theme="1"/></font><font><color rgb="FFFFFFFF"/></font><font><sz val="1"/></font></fonts>` +
		`<fills><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="solid"><fgColor rgb="FF000080"/></patternFill></fill></fills>` +
		`<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>` +
		`<cellXfs><xf numFmtId="0" fontId="0"/><xf numFmtId="14"/><xf numFmtId="22"/><xf numFmtId="164"/><xf numFmtId="21"/><xf numFmtId="166"/><xf numFmtId="167"/><xf numFmtId="165"/>` +
		`<xf fontId="1" fillId="0"/><xf fontId="1" fillId="1"/><xf fontId="2"/></cellXfs>`
	cases := []struct {
		name string
		file parts
		want string
	}{
		{"sheets come in the workbook's order, under their names", bookFile("", "", `name="First"`, data(`<row><c r="A1"><v>1</v></c></row>`), `name="Second"`, data("")), "First\n1\fSecond"},
		{"kinds of cells", bookFile(`<si><t>shared</t></si><si><r><t>ri</t></r><r><t>ch</t></r><rPh><t>no</t></rPh></si>`, "", s, data(
			`<row><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="inlineStr"><is><r><t>in</t></r><r><t>line</t></r><rPh><t>no</t></rPh></is></c><c r="D1"><f>SUM(A1)</f><v>0.30000000000000004</v></c>`+
				`<c r="E1" t="b"><v>1</v></c><c r="F1" t="str"><f>"x"</f><v>made</v></c><c r="G1" t="e"><v>#DIV/0!</v></c><c r="H1" t="s"><v>9</v></c></row>`)),
			"S\nshared\trich\tinline\t0.30000000000000004\tTRUE\tmade\t#DIV/0!"},
		{"gaps", bookFile("", "", s, data(`<row r="1"><c r="B1"><v>1</v></c><c r="D1"><v>2</v></c></row><row r="9"><c><v>3</v></c><c><v>4</v></c></row>`)), "S\n\t1\t\t2\n3\t4"},
		{"a far gap is bounded", bookFile("", "", s, data(`<row><c r="XFD1"><v>1</v></c></row>`)), "S\n" + strings.Repeat("\t", maxTabs) + "1"},
		{"a line end stays in its row", bookFile(`<si><t>a&#10;b</t></si>`, "", s, data(`<row><c t="s"><v>0</v></c></row>`)), "S\na b"},
		{"dates", bookFile("", styled, s, data(`<row><c s="0"><v>45000</v></c><c s="1"><v>45000</v></c><c s="2"><v>45000.5</v></c><c s="3"><v>45000</v></c><c s="4"><v>0.25</v></c><c s="5"><v>1.5</v></c><c s="6"><v>2.5</v></c><c s="1"><v>60</v></c><c s="1"><v>-3</v></c></row>`)),
			"S\n45000\t2023-03-15\t2023-03-15 12:00:00\t2023-03-15\t06:00:00\t36:00:00\t2.5\t1900-02-29\t-3"},
		{"a hidden sheet", bookFile("", "", s, data(`<row><c><v>1</v></c></row>`), `name="H" state="veryHidden"`, data(`<row><c><v>2</v></c></row>`)), "S\n1\f{hidden_cell:H}\n{hidden_cell:2}"},
		{"hidden rows and columns", bookFile("", "", s, `<cols><col min="2" max="3" hidden="1"/></cols>`+data(`<row hidden="1"><c r="A1"><v>1</v></c></row><row><c r="A2"><v>2</v></c><c r="B2"><v>3</v></c><c r="D2"><v>4</v></c></row><row ht="0"><c><v>5</v></c></row>`)),
			"S\n{hidden_cell:1}\n2\t{hidden_cell:3}\t\t4\n{hidden_cell:5}"},
		{"rows that are hidden unless they say otherwise", bookFile("", "", s, `<sheetFormatPr zeroHeight="1"/>`+data(`<row><c><v>1</v></c></row><row ht="15"><c><v>2</v></c></row>`)), "S\n{hidden_cell:1}\n2"},
		{"a format that shows nothing", bookFile("", styled, s, data(`<row><c s="7"><v>1</v></c></row>`)), "S\n{invisible:1}"},
		{"white and tiny", bookFile("", styled, s, data(`<row><c s="8"><v>1</v></c><c s="9"><v>2</v></c><c s="10"><v>3</v></c></row>`)), "S\n{white:1}\t2\t{tiny:3}"},
		{"white in a string's part", bookFile(`<si><r><t>a</t></r><r><rPr><color rgb="FFFFFFFF"/></rPr><t>b</t></r><r><t>c</t></r></si><si><t>d</t></si>`, "", s, data(`<row><c t="s"><v>0</v></c><c t="s"><v>1</v></c></row>`)), "S\na{white:b}c\td"},
		{"comments and text boxes", append(bookFile("", "", s, data(`<row><c><v>1</v></c></row>`)), "xl/worksheets/_rels/sheet2.xml.rels", rels("a comments ../c.xml", "b drawing ../d.xml"),
			"xl/c.xml", root("comments", `<commentList><comment><text><r><t>remark</t></r></text></comment></commentList>`),
			"xl/d.xml", root("xdr:wsDr", `<xdr:sp><xdr:txBody><a:p><a:r><a:t>box</a:t></a:r></a:p></xdr:txBody></xdr:sp>`)), "S\n1\n\nbox\n\nremark"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { wants(t, xlsx, c.file.zip(t), c.want) })
	}
}

func TestDateFormat(t *testing.T) {
	for code, want := range map[string]dateKind{
		"General": notDate, "0.00": notDate, "#,##0": notDate, `0" days"`: notDate, "0.00E+00": notDate, "[Red]0": notDate, `[$-409]0`: notDate,
		"yyyy-mm-dd": dayOnly, "m/d/yy h:mm": dayAndTime, "mmm": dayOnly, "h:mm AM/PM": timeOnly, "[h]:mm": elapsed, "[mm]:ss": elapsed,
		`[$-F800]dddd, mmmm dd, yyyy`: dayOnly, `[Red]\d0`: notDate, "0;yyyy": notDate, `"open`: notDate, "[": notDate, "": notDate,
	} {
		if got := dateFormat(code); got != want {
			t.Errorf("format %q is %d, want %d", code, got, want)
		}
	}
}

func TestFormatDateOf1900(t *testing.T) {
	for serial, want := range map[string]string{"1": "1900-01-01", "59": "1900-02-28", "61": "1900-03-01", "2958465": "9999-12-31", "2958467": "2958467", "x": "x", "": "", "0": "1899-12-31"} {
		if got := formatDate(serial, dayOnly, false); got != want {
			t.Errorf("day %s is %s, want %s", serial, got, want)
		}
	}
}

func TestFormatDateSince1904(t *testing.T) {
	if got := formatDate("1", dayOnly, true); got != "1904-01-02" {
		t.Errorf("day 1 is %s", got)
	}
}
