package office

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/accession/accession/internal/extract/page"
)

// sampleParts is a file of each format that uses most of what is read.
func sampleParts() map[string]parts {
	field := `<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>` + run("1") + `<w:r><w:fldChar w:fldCharType="end"/></w:r>`
	box := `<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wps:wsp><wps:spPr>` + solid("FFFFFF") + `</wps:spPr><wps:txbx><w:txbxContent>` + para("box") +
		`<w:tbl><w:tr><w:tc>` + para("in") + `</w:tc></w:tr></w:tbl></w:txbxContent></wps:txbx></wps:wsp></w:drawing></mc:Choice><mc:Fallback/></mc:AlternateContent></w:r>`
	table := `<w:tbl><w:tblPr><w:tblStyle w:val="T"/></w:tblPr><w:tblGrid><w:gridCol/><w:gridCol/></w:tblGrid><w:tr><w:tc>` + para("a") + `</w:tc><w:tc>` + para("b") + `<w:p><w:r><w:lastRenderedPageBreak/></w:r></w:p></w:tc></w:tr></w:tbl>`
	return map[string]parts{
		docx: wordFile(`<w:p><w:pPr><w:pStyle w:val="S"/></w:pPr>`+run("text ", `<w:color w:val="FFFFFF"/>`)+field+box+`<w:r><w:footnoteReference w:id="1"/></w:r></w:p>`+table+
			`<w:p><w:r><w:br w:type="page"/></w:r></w:p>`+para("two", "<w:vanish/>"),
			"styles", root("w:styles", `<w:style w:type="paragraph" w:styleId="S"><w:basedOn w:val="S"/><w:rPr><w:sz w:val="20"/></w:rPr></w:style>`),
			"footnotes", root("w:footnotes", `<w:footnote w:id="1">`+para("note")+`</w:footnote>`), "header", root("w:hdr", para("head"))),
		pptx: append(deck(slide(`<p:grpSp><p:grpSpPr>`+at(0, 0, 5, 5)+`</p:grpSpPr>`+shape(at(1, 1, 5, 5)+solid("00FF00"), whiteRun, "one")+`</p:grpSp>`+
			`<p:graphicFrame><a:tbl><a:tr><a:tc><a:txBody><a:p><a:r><a:t>cell</a:t></a:r></a:p></a:txBody><a:tcPr/></a:tc></a:tr></a:tbl></p:graphicFrame>`), slide(shape("", `<a:rPr sz="100"/>`, "two"))),
			"ppt/slides/_rels/slide1.xml.rels", rels("a notesSlide n.xml", "b slideLayout l.xml"), "ppt/slides/n.xml", root("p:notes", shape("", "", "note")), "ppt/slides/l.xml", root("p:sldLayout", shape(solid("FF0000"), "", ""))),
		xlsx: bookFile(`<si><t>shared</t></si><si><r><rPr><sz val="1"/></rPr><t>small</t></r></si>`, `<fonts><font><color rgb="FFFFFFFF"/></font></fonts><fills><fill><patternFill patternType="solid"><fgColor theme="0"/></patternFill></fill></fills><cellXfs><xf numFmtId="14" fontId="0" fillId="0"/></cellXfs>`,
			`name="S"`, `<cols><col min="1" max="2" hidden="1"/></cols><sheetData><row><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c><c s="0"><v>45000.25</v></c></row><row hidden="1"><c t="inlineStr"><is><t>in</t></is></c></row></sheetData>`, `name="T" state="hidden"`, ""),
		odt: odfFile(`<office:text><text:p text:style-name="P">a<text:span text:style-name="T">b</text:span><draw:frame svg:x="1cm"><draw:text-box><text:p>box</text:p></draw:text-box></draw:frame><text:note><text:note-body><text:p>n</text:p></text:note-body></text:note></text:p>`+
			`<table:table><table:table-column table:number-columns-repeated="2"/><table:table-row><table:table-cell><text:p>c<text:soft-page-break/>d</text:p></table:table-cell><table:table-cell/></table:table-row></table:table></office:text>`,
			`<style:style style:name="T" style:family="text" style:parent-style-name="T"><style:text-properties fo:color="#ffffff" fo:font-size="1pt"/></style:style>`,
			"styles.xml", `<office:document-styles`+odfNames+`><office:master-styles><style:master-page style:name="M"><style:header><text:p>h</text:p></style:header></style:master-page></office:master-styles></office:document-styles>`),
		ods: odfFile(`<office:spreadsheet><table:table table:name="S"><table:table-column table:visibility="collapse"/><table:table-row table:number-rows-repeated="3"><table:table-cell table:number-columns-repeated="9"><text:p>x</text:p><office:annotation><text:p>r</text:p></office:annotation></table:table-cell></table:table-row>`+
			`<table:table-row table:number-rows-repeated="99999"><table:table-cell table:number-columns-repeated="16384"/></table:table-row></table:table></office:spreadsheet>`, ""),
		odp: odfFile(`<office:presentation><draw:page draw:style-name="H"><draw:frame svg:x="1cm" svg:y="1cm" svg:width="2cm" svg:height="2cm"><draw:image/><draw:text-box><text:p>one</text:p></draw:text-box></draw:frame><presentation:notes><draw:frame><draw:text-box><text:p>n</text:p></draw:text-box></draw:frame></presentation:notes></draw:page></office:presentation>`,
			`<style:style style:name="H" style:family="drawing-page"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>`),
	}
}

func samples(t testing.TB) map[string][]byte {
	all := map[string][]byte{}
	for media, p := range sampleParts() {
		all[media] = p.zip(t)
	}
	return all
}

// holds checks what goes for any file.
func holds(t *testing.T, media string, file []byte) {
	t.Helper()
	limits := page.Limits{Pages: 50, TextBytes: 1 << 16, ExpandedBytes: 4 << 20}
	left := limits.TextBytes
	_, err := Read(media, bytes.NewReader(file), int64(len(file)), limits, func(p page.Page) error {
		left -= int64(len(p.Text))
		end := 0
		for _, run := range p.Hidden {
			if run.Start < end || run.End <= run.Start || run.End > len(p.Text) || run.Class == "" {
				t.Errorf("run %+v after %d, of %d bytes", run, end, len(p.Text))
			}
			end = run.End
		}
		if !utf8.ValidString(p.Text) || left < 0 {
			t.Errorf("text %q, %d bytes left", p.Text, left)
		}
		return nil
	})
	known(t, err)
	known(t, Pictures(media, bytes.NewReader(file), int64(len(file)), limits, func(_ string, r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	}))
}

func known(t *testing.T, err error) {
	t.Helper()
	for _, one := range []error{nil, page.ErrBroken, page.ErrEncrypted, page.ErrTooLarge, page.ErrUnsupported} {
		if errors.Is(err, one) {
			return
		}
	}
	t.Errorf("error %v", err)
}

func mutate(r *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) < 4 {
		return b
	}
	switch r.IntN(4) {
	case 0:
		for range 1 + r.IntN(8) {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
	case 1:
		b = b[:r.IntN(len(b))]
	case 2: // two blocks change places
		n := 1 + r.IntN(len(b)/4)
		x, y := r.IntN(len(b)-n), r.IntN(len(b)-n)
		first := bytes.Clone(b[x : x+n])
		copy(b[x:x+n], b[y:y+n])
		copy(b[y:y+n], first)
	case 3: // a stretch is gone
		x := r.IntN(len(b))
		b = append(b[:x], b[min(len(b), x+1+r.IntN(64)):]...)
	}
	return b
}

// shuffle moves tags of a part to other places: most of what comes out is no XML, some is, and means something else.
func shuffle(r *rand.Rand, s string) string {
	tags := strings.SplitAfter(s, ">")
	for range 1 + r.IntN(3) {
		x, y := r.IntN(len(tags)), r.IntN(len(tags))
		tags[x], tags[y] = tags[y], tags[x]
	}
	return strings.Join(tags, "")
}

func TestMutations(t *testing.T) {
	for media, p := range sampleParts() {
		r := rand.New(rand.NewPCG(4, uint64(len(media))))
		whole := p.zip(t)
		if _, _, err := readAll(media, whole, roomy); err != nil {
			t.Errorf("%s: error %v", media, err)
		}
		for range 400 {
			holds(t, media, mutate(r, whole))
		}
		for range 400 { // inside a member, with a checksum that is right
			q := append(parts{}, p...)
			i := r.IntN(len(q)/2)*2 + 1
			if r.IntN(2) == 0 {
				q[i] = string(mutate(r, []byte(q[i])))
			} else {
				q[i] = shuffle(r, q[i])
			}
			holds(t, media, q.zip(t))
		}
	}
}

func FuzzRead(f *testing.F) {
	all := MediaTypes()
	for media, file := range samples(f) {
		for i := range all {
			if all[i] == media {
				f.Add(uint8(i), file)
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, file []byte) { holds(t, all[int(which)%len(all)], file) })
}

// FuzzPart fuzzes the XML of one member.
func FuzzPart(f *testing.F) {
	media := []string{docx, pptx, xlsx, odt, ods, odp}
	for which, m := range media {
		p := sampleParts()[m]
		for i := 0; i < len(p); i += 2 {
			f.Add(uint8(which), uint8(i/2), []byte(p[i+1]))
		}
	}
	f.Fuzz(func(t *testing.T, which, member uint8, xml []byte) {
		m := media[int(which)%len(media)]
		p := sampleParts()[m]
		p[int(member)%(len(p)/2)*2+1] = string(xml)
		holds(t, m, p.zip(t))
	})
}
