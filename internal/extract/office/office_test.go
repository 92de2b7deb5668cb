package office

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/accession/accession/internal/extract/page"
)

func TestRealFiles(t *testing.T) {
	const first = "Lighthouse survey, draft\nSurvey of lighthouses\nThe keeper noted calm weather.\n" +
		"Seen {white:in white }{invisible:not shown }{tiny:very small }again.\nTower\tHeight\nNorth\t41 m\nBeside the frame.\nText in a frame.\n\n" +
		"Measured at noon.\nCheck the height.\n\nPage 4\fThe second page begins here.\nEntry 1: the lamp"
	for name, c := range map[string]struct {
		media string
		pages int
	}{"survey.odt": {odt, 4}, "survey.docx": {docx, 2}} {
		file, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		text, truncated, err := readAll(c.media, file, roomy)
		if err != nil || truncated {
			t.Errorf("%s: truncated %t, error %v", name, truncated, err)
		}
		if !strings.HasPrefix(text, first) || strings.Count(text, "Entry ") != 60 || strings.Count(text, "\f") != c.pages-1 {
			t.Errorf("%s: text\n%q", name, text)
		}
	}
}

func TestMediaTypes(t *testing.T) {
	all := MediaTypes()
	for _, media := range []string{docx, pptx, xlsx, odt, ods, odp, "application/vnd.ms-word.document.macroenabled.12", "application/vnd.oasis.opendocument.presentation-template"} {
		if !slices.Contains(all, media) {
			t.Errorf("%s is not read", media)
		}
	}
	if text, _, err := readAll(strings.ToUpper(docx), wordFile(para("x")).zip(t), roomy); err != nil || text != "x" {
		t.Errorf("in capitals: %q, error %v", text, err)
	}
	if _, _, err := readAll("text/plain", nil, roomy); !errors.Is(err, page.ErrUnsupported) {
		t.Errorf("plain text: error %v", err)
	}
}

// patch changes bytes behind each of a zip's records of a kind.
func patch(file []byte, signature string, at int, value ...byte) []byte {
	file = bytes.Clone(file)
	for i := 0; ; i++ {
		next := bytes.Index(file[i:], []byte(signature))
		if next < 0 {
			return file
		}
		i += next
		copy(file[i+at:], value)
	}
}

const central = "PK\x01\x02"

func TestRefusals(t *testing.T) {
	whole := wordFile(para("x")).zip(t)
	body := func(xml string) []byte {
		return parts{"_rels/.rels", rels("r1 officeDocument d.xml"), "d.xml", xml}.zip(t)
	}
	many := parts{}
	for i := range maxEntries + 1 {
		many = append(many, "p"+string(rune('a'+i%26))+strings.Repeat("x", i/26%50)+string(rune(0x4E00+i/1300)), "")
	}
	ole := oleFile("EncryptedPackage", 9)
	cases := []struct {
		name  string
		media string
		file  []byte
		want  error
	}{
		{"nothing", docx, nil, page.ErrBroken},
		{"no zip", docx, []byte("plain text, and no zip at all"), page.ErrBroken},
		{"cut short", docx, whole[:len(whole)/2], page.ErrBroken},
		{"a member's bytes were changed", docx, corrupt(t, wordFile(para(strings.Repeat("x", 4000))).zip(t), "word/document.xml"), page.ErrBroken},
		{"a wrong checksum", docx, patch(whole, central, 16, 1, 2, 3, 4), page.ErrBroken},
		{"an encrypted member", docx, patch(whole, central, 8, 1), page.ErrEncrypted},
		{"an encrypted file", docx, ole, page.ErrEncrypted},
		{"an unknown compression", docx, patch(whole, central, 10, 77), page.ErrUnsupported},
		{"one name twice", docx, append(wordFile(para("x")), "word/document.xml", root("w:document", "")).zip(t), page.ErrBroken},
		{"too many members", docx, many.zip(t), page.ErrTooLarge},
		{"no main part", docx, parts{"word/document.xml", root("w:document", "")}.zip(t), page.ErrBroken},
		{"two main parts", docx, append(wordFile(para("x")), "_rels/x", "")[2:].withRels(t), page.ErrBroken},
		{"another kind", docx, deck(slide("")).zip(t), page.ErrBroken},
		{"a document type", docx, body(`<!DOCTYPE d [<!ENTITY e "boom">]>` + root("w:document", "")[38:]), page.ErrBroken},
		{"an entity", docx, body(root("w:document", `<w:body>`+para("&boom;")+`</w:body>`)), page.ErrBroken},
		{"XML without its end", docx, body(`<w:document` + names + `><w:body>`), page.ErrBroken},
		{"tags that cross", docx, body(root("w:document", `<w:body><w:p></w:body></w:p>`)), page.ErrBroken},
		{"an empty part", docx, body(""), page.ErrBroken},
		{"an unknown encoding", docx, body(`<?xml version="1.0" encoding="ebcdic"?><w:document/>`), page.ErrUnsupported},
		{"elements without end", docx, body(root("w:document", strings.Repeat("<w:p>", maxDepth+1)+strings.Repeat("</w:p>", maxDepth+1))), page.ErrTooLarge},
		{"a missing slide", pptx, deck(slide(""))[2:].zip(t), page.ErrBroken},
		{"a drawing", odt, odfFile(`<office:drawing/>`, "").zip(t), page.ErrUnsupported},
		{"ODF without content", odt, parts{"mimetype", "x"}.zip(t), page.ErrBroken},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, truncated, err := readAll(c.media, c.file, roomy); !errors.Is(err, c.want) || truncated {
				t.Errorf("truncated %t, error %v, want %v", truncated, err, c.want)
			}
		})
	}
}

// withRels adds relationships with two main parts.
func (p parts) withRels(t *testing.T) []byte {
	return append(p, "_rels/.rels", rels("r1 officeDocument word/document.xml", "r2 officeDocument word/document.xml")).zip(t)
}

// corrupt changes a byte in the middle of a member's compressed bytes.
func corrupt(t *testing.T, file []byte, name string) []byte {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.File {
		if f.Name == name {
			at, err := f.DataOffset()
			if err != nil {
				t.Fatal(err)
			}
			file = bytes.Clone(file)
			file[at+int64(f.CompressedSize64)/2] ^= 0x10
			return file
		}
	}
	t.Fatalf("no member %s", name)
	return nil
}

func TestLimits(t *testing.T) {
	three := para("one") + `<w:p><w:r><w:br w:type="page"/></w:r></w:p>` + para("two") + `<w:p><w:r><w:br w:type="page"/></w:r></w:p>` + para("three")
	cell := `<sheetData><row><c><v>123</v></c></row></sheetData>`
	files := map[string][]byte{
		docx: wordFile(three).zip(t),
		pptx: deck(slide(shape("", "", "one")), slide(shape("", "", "two")), slide(shape("", "", "three"))).zip(t),
		xlsx: bookFile("", "", `name="S"`, cell, `name="T"`, cell, `name="U"`, cell).zip(t),
		odt:  odfFile(`<office:text><text:p>one</text:p><text:p>a<text:soft-page-break/>b</text:p><text:p>c<text:soft-page-break/>d</text:p></office:text>`, "").zip(t),
		ods:  odfFile(`<office:spreadsheet>`+strings.Repeat(`<table:table table:name="S"><table:table-row><table:table-cell><text:p>123</text:p></table:table-cell></table:table-row></table:table>`, 3)+`</office:spreadsheet>`, "").zip(t),
		odp:  odfFile(`<office:presentation>`+strings.Repeat(`<draw:page><draw:frame><draw:text-box><text:p>one</text:p></draw:text-box></draw:frame></draw:page>`, 3)+`</office:presentation>`, "").zip(t),
	}
	for media, file := range files {
		whole, truncated, err := readAll(media, file, roomy)
		if err != nil || truncated || strings.Count(whole, "\f") != 2 {
			t.Fatalf("%s: %q, truncated %t, error %v", media, whole, truncated, err)
		}
		for pages := 1; pages <= 3; pages++ {
			text, truncated, err := readAll(media, file, page.Limits{Pages: pages, TextBytes: 1000, ExpandedBytes: 1 << 20})
			if err != nil || truncated != (pages < 3) || strings.Count(text, "\f") != pages-1 || !strings.HasPrefix(whole, text) {
				t.Errorf("%s, %d pages: %q, truncated %t, error %v", media, pages, text, truncated, err)
			}
		}
		letters := len(strings.ReplaceAll(whole, "\f", ""))
		for room := 1; room <= letters; room++ {
			text, truncated, err := readAll(media, file, page.Limits{Pages: 10, TextBytes: int64(room), ExpandedBytes: 1 << 20})
			if err != nil || truncated != (room < letters) || len(strings.ReplaceAll(text, "\f", "")) > room || !strings.HasPrefix(whole, text) {
				t.Errorf("%s, %d bytes: %q, truncated %t, error %v", media, room, text, truncated, err)
			}
		}
		if _, _, err := readAll(media, file, page.Limits{Pages: 10, TextBytes: 1000, ExpandedBytes: 100}); !errors.Is(err, page.ErrTooLarge) {
			t.Errorf("%s, 100 expanded bytes: error %v", media, err)
		}
	}
}

// TestBombs reads members that grow a thousandfold. Each is refused after a part of it, held in a part of the memory.
func TestBombs(t *testing.T) {
	blank := `<w:body>` + strings.Repeat(" ", 24<<20) + `</w:body>`
	long := `<w:body><w:p><w:r><w:t>` + strings.Repeat("a", 24<<20) + `</w:t></w:r></w:p></w:body>`
	aside := `<w:body><w:p><w:r><w:instrText>` + strings.Repeat("a", 24<<20) + `</w:instrText></w:r></w:p></w:body>`
	attribute := `<w:body x="` + strings.Repeat("a", 24<<20) + `"/>`
	var cells strings.Builder
	for cells.Len() < 24<<20 {
		cells.WriteString(`<si><t>0123456789</t></si>`)
	}
	honest := func(xml string) []byte {
		return parts{"_rels/.rels", rels("r1 officeDocument d.xml"), "d.xml", root("w:document", xml)}.zip(t)
	}
	for _, c := range []struct {
		name   string
		media  string
		file   []byte
		grow   int64
		memory uint64
		want   error
	}{
		{"a member that says its size", docx, honest(blank), 8 << 20, 4 << 20, page.ErrTooLarge},
		{"a long text", docx, honest(long), 64 << 20, 16 << 20, nil},
		{"a long text that is not shown", docx, honest(aside), 64 << 20, 16 << 20, page.ErrTooLarge},
		{"a long attribute", docx, honest(attribute), 64 << 20, 40 << 20, page.ErrTooLarge},
		{"a member that says less", docx, patch(honest(blank), central, 24, 0, 0, 1, 0), 8 << 20, 40 << 20, page.ErrBroken},
		{"shared strings", xlsx, bookFile(cells.String(), "", `name="S"`, "").zip(t), 8 << 20, 40 << 20, page.ErrTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, truncated, err := readAll(c.media, c.file, page.Limits{Pages: 10, TextBytes: 1 << 20, ExpandedBytes: c.grow})
			runtime.ReadMemStats(&after)
			if !errors.Is(err, c.want) || truncated != (c.want == nil) {
				t.Errorf("truncated %t, error %v, want %v", truncated, err, c.want)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > c.memory {
				t.Errorf("%d bytes allocated, more than %d", used, c.memory)
			}
		})
	}
}

var errStore = errors.New("the store is gone")

// failing is a store that fails after so many reads.
type failing struct {
	io.ReaderAt
	reads int
}

func (f *failing) ReadAt(p []byte, at int64) (int, error) {
	if f.reads--; f.reads < 0 {
		return 0, errStore
	}
	return f.ReaderAt.ReadAt(p, at)
}

func TestTheStoresErrorComesOutAsItIs(t *testing.T) {
	file := wordFile(para("x")).zip(t)
	for reads := 0; ; reads++ {
		_, err := Read(docx, &failing{bytes.NewReader(file), reads}, int64(len(file)), roomy, func(page.Page) error { return nil })
		if err == nil {
			if reads < 3 {
				t.Errorf("only %d reads", reads)
			}
			return
		}
		if !errors.Is(err, errStore) {
			t.Fatalf("after %d reads: error %v", reads, err)
		}
	}
}

func TestReadStopsWithTheCallersError(t *testing.T) {
	stop := errors.New("enough")
	for media, file := range samples(t) {
		if _, err := Read(media, bytes.NewReader(file), int64(len(file)), roomy, func(page.Page) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("%s: error %v", media, err)
		}
	}
}

// oleFile makes a compound file whose directory is in two sectors; the second one names an entry.
func oleFile(entry string, shift int) []byte {
	size := 1 << shift
	file := make([]byte, size*5)
	copy(file, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")
	binary.LittleEndian.PutUint16(file[30:], uint16(shift))
	binary.LittleEndian.PutUint32(file[48:], 2) // the directory begins here
	for i := range 109 {
		binary.LittleEndian.PutUint32(file[76+4*i:], 0xFFFFFFFF)
	}
	binary.LittleEndian.PutUint32(file[76:], 0) // the table
	table := file[size:]
	binary.LittleEndian.PutUint32(table[4*2:], 1)
	binary.LittleEndian.PutUint32(table[4*1:], 0xFFFFFFFE)
	name := func(at int, s string) {
		for i, r := range s {
			binary.LittleEndian.PutUint16(file[at+2*i:], uint16(r))
		}
		binary.LittleEndian.PutUint16(file[at+64:], uint16(2*len(s)+2))
	}
	name(size*3, "Root Entry")
	name(size*2+128, entry)
	return file
}

func TestEncryptedOLE(t *testing.T) {
	is := func(file []byte) bool { return EncryptedOLE(bytes.NewReader(file), int64(len(file))) }
	for _, shift := range []int{9, 12} {
		for entry, want := range map[string]bool{"EncryptedPackage": true, "EncryptionInfo": true, "WordDocument": false} {
			if got := is(oleFile(entry, shift)); got != want {
				t.Errorf("%s in sectors of 2^%d: %t", entry, shift, got)
			}
		}
	}
	loop := oleFile("Workbook", 9)
	binary.LittleEndian.PutUint32(loop[512+4:], 2) // the directory's second sector leads to its first
	whole := oleFile("EncryptedPackage", 9)
	for name, file := range map[string][]byte{"nothing": nil, "a zip": wordFile("").zip(t), "a loop": loop, "a header": whole[:512], "half": whole[:1100]} {
		if is(file) {
			t.Errorf("%s is taken for encrypted", name)
		}
	}
}
