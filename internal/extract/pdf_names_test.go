package extract

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/ascii85"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/accession/accession/internal/extract/archive"
)

const (
	plainAnnotation = "<< /Type /Annot /Subtype /FileAttachment /Rect [10 10 20 20] /FS 5 0 R >>"
	fileSpec        = "<< /F (pinned.txt) /EF << /F 8 0 R >> >>"
)

// numbered writes objects with the numbers they have, then a table of them all, or a stream that is one where packed says
// which objects lie in object 7, in order.
func numbered(objects map[int]string, packed []int, root string) []byte {
	var out bytes.Buffer
	at := map[int]int{}
	highest := 0
	for n := range objects {
		highest = max(highest, n)
	}
	out.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	for n := 1; n <= highest; n++ {
		if o, ok := objects[n]; ok {
			at[n] = out.Len()
			fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", n, o)
		}
	}
	start := out.Len()
	if packed == nil {
		fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", highest+1)
		for n := 1; n <= highest; n++ {
			fmt.Fprintf(&out, "%010d 00000 %s \n", at[n], map[bool]string{true: "n", false: "f"}[at[n] > 0])
		}
		fmt.Fprintf(&out, "trailer << /Size %d %s >>\nstartxref\n%d\n%%%%EOF\n", highest+1, root, start)
		return out.Bytes()
	}
	at[highest+1] = start
	var table bytes.Buffer
	for n := range highest + 2 {
		row := struct {
			Kind  uint8
			At    uint32
			Index uint16
		}{}
		if i := slices.Index(packed, n); i >= 0 {
			row.Kind, row.At, row.Index = 2, 7, uint16(i)
		} else if at[n] > 0 {
			row.Kind, row.At = 1, uint32(at[n])
		}
		_ = binary.Write(&table, binary.BigEndian, row) // into memory
	}
	fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\nstartxref\n%d\n%%%%EOF\n", highest+1,
		stream(fmt.Sprintf("/Type /XRef /W [1 4 2] /Size %d %s", highest+2, root), table.Bytes()), start)
	return out.Bytes()
}

// pinnedPDF has a file pinned on its page, by an annotation written like this.
func pinnedPDF(annotation string, more ...string) []byte {
	objects := map[int]string{
		1: "<< /Type /Catalog /Pages 2 0 R >>", 2: "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		3: "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Annots [4 0 R] >>",
		4: annotation, 5: fileSpec, 8: stream("", []byte("pinned")),
	}
	for i, o := range more {
		objects[9+i] = o
	}
	return numbered(objects, nil, "/Root 1 0 R")
}

// packedPDF is pinnedPDF with its objects in an object stream, object 7, whose dictionary and data are as given; more are
// numbered from 9.
func packedPDF(begin, dictionary string, code func([]byte) []byte, more ...string) []byte {
	packed := []string{"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Annots [4 0 R] >>", plainAnnotation, fileSpec}
	var head, body string
	for i, o := range packed {
		head += fmt.Sprintf("%d %d ", i+1, len(body))
		body += o + "\n"
	}
	data := code([]byte(head + body))
	objects := map[int]string{
		7: fmt.Sprintf("%s<< %s /N %d /First %d /Length %d >>\nstream\n%s\nendstream", begin, dictionary, len(packed), len(head), len(data), data),
		8: stream("", []byte("pinned")),
	}
	for i, o := range more {
		objects[9+i] = o
	}
	return numbered(objects, []int{1, 2, 3, 4, 5}, "/Root 1 0 R")
}

func same(b []byte) []byte { return b }

func inHex(b []byte) []byte { return []byte(hex.EncodeToString(b) + ">") }

func in85(b []byte) []byte {
	out := make([]byte, ascii85.MaxEncodedLen(len(b)))
	return append(out[:ascii85.Encode(out, b)], "~>"...)
}

// runLength writes the bytes as they are, in runs of 100.
func runLength(b []byte) (out []byte) {
	for run := range slices.Chunk(b, 100) {
		out = append(append(out, byte(len(run)-1)), run...)
	}
	return append(out, 128)
}

// predicted puts before each row of 20 bytes what says that it stands as it is: a space, as nobody would write it.
func predicted(b []byte) (out []byte) {
	for row := range slices.Chunk(b, 20) {
		out = append(append(out, ' '), row...)
	}
	return deflated(out)
}

// hexTwice is a stream that holds one thing to who inflates it, and another to who reads it as hexadecimal digits: the bytes
// as they are, behind a header without such digits.
func hexTwice(t testing.TB, b []byte) []byte {
	content := inHex(b)
	for range 256 {
		var out bytes.Buffer
		w, err := zlib.NewWriterLevel(&out, zlib.NoCompression)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(content)
		w.Close()
		if !bytes.ContainsAny(out.Bytes()[:7], "abcdef0123456789ABCDEF") {
			return out.Bytes()
		}
		content = append(content, ' ')
	}
	t.Fatal("no length will do")
	return nil
}

// filesPDF are PDFs that have a file, each in another guise; those of which the name begins with "perhaps" have one for some
// readers at most.
func filesPDF(t testing.TB) map[string][]byte {
	encrypted, err := os.ReadFile("testdata/encrypted.pdf")
	if err != nil {
		t.Fatal(err)
	}
	kind := func(kind string) string { return strings.Replace(plainAnnotation, "/FileAttachment", kind, 1) }
	plain := pinnedPDF(kind("/Text"))
	update := string(plain) + fmt.Sprintf("4 0 obj\n%s\nendobj\nxref\n4 1\n%010d 00000 n \ntrailer << /Size 9 /Root 1 0 R /Prev %d >>\nstartxref\n%d\n%%%%EOF\n",
		kind("/FileAttachment"), len(plain), bytes.LastIndex(plain, []byte("xref\n0")), len(plain)+len(kind("/FileAttachment"))+len("4 0 obj\n\nendobj\n"))
	flate := "/Type /ObjStm /Filter /FlateDecode"
	all := map[string][]byte{
		"plain":                         pinnedPDF(plainAnnotation),
		"escaped":                       pinnedPDF(kind("/#46ileAttachment")),
		"escaped in between":            pinnedPDF(kind("/F#69leAtt#61chmen#74")),
		"perhaps badly escaped":         pinnedPDF(kind("/#3MileAttachment")),
		"escaped key":                   pinnedPDF(strings.Replace(kind("/#46ileAttachment"), "Subtype", "Sub#74ype", 1)),
		"perhaps a string":              pinnedPDF(kind("(FileAttachment)")),
		"perhaps a string with escapes": pinnedPDF(kind("(Fi\\154e\\\nAttachment)")),
		"perhaps a hexadecimal":         pinnedPDF(kind("<46 69 6c654174746163686D656E74>")),
		"perhaps a name by reference":   pinnedPDF(kind("9 0 R"), "/#46ileAttachment"),
		"perhaps a string by reference": pinnedPDF(kind("9 0 R"), "(FileAttachment)"),
		"perhaps a behind a comment":    pinnedPDF(kind("% none here\n(FileAttachment)")),
		"behind junk":                   append([]byte(strings.Repeat("junk\n", 20)), pinnedPDF(kind("/#46ileAttachment"))...),
		"no table":                      bytes.Replace(pinnedPDF(kind("/#46ileAttachment")), []byte("startxref"), []byte("startxxxx"), 1),
		"update":                        []byte(update),
		"attached":                      numbered(map[int]string{1: "<< /Type /Catalog /Pages 2 0 R /Names << /EmbeddedFiles << /Names [(a) 5 0 R] >> >> >>", 2: "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", 3: "<< /Type /Page /Parent 2 0 R >>", 5: fileSpec, 8: stream("", []byte("attached"))}, nil, "/Root 1 0 R"),
		"attached, escaped":             numbered(map[int]string{1: "<< /Type /Catalog /Pages 2 0 R /Names << /Embedded#46iles << /Names [(a) 5 0 R] >> >> >>", 2: "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", 3: "<< /Type /Page /Parent 2 0 R >>", 5: fileSpec, 8: stream("", []byte("attached"))}, nil, "/Root 1 0 R"),
		"perhaps encrypted":             encrypted,
		"objects in a stream":           packedPDF("", flate, deflated),
		"objects not deflated":          packedPDF("", "/Type /ObjStm", same),
		"escaped kind of stream":        packedPDF("", "/Type /Obj#53tm /Filter /FlateDecode", deflated),
		"filter in an array":            packedPDF("", "/Type /ObjStm /Filter [ /FlateDecode ]", deflated),
		"filter abbreviated":            packedPDF("", "/Type /ObjStm /Filter /Fl", deflated),
		"filter by reference":           packedPDF("", "/Type /ObjStm /Filter 9 0 R", inHex, "/ASCIIHexDecode"),
		"filters before":                packedPDF("", "/Filter [/ASCIIHexDecode /FlateDecode] /Type /ObjStm", func(b []byte) []byte { return inHex(deflated(b)) }),
		"abbreviated before":            packedPDF("", "/Filter [/AHx /Fl] /Type /ObjStm", func(b []byte) []byte { return inHex(deflated(b)) }),
		"base 85":                       packedPDF("", "/Filter /A85 /Type /ObjStm", in85),
		"run length":                    packedPDF("", "/Filter /RL /Type /ObjStm", runLength),
		"run length, escaped":           packedPDF("", "/Filter /R#4c /Type /ObjStm", runLength),
		"two readings":                  packedPDF("", "/Filter /AHx /Type /ObjStm", func(b []byte) []byte { return hexTwice(t, b) }),
		"deflated twice":                packedPDF("", "/Filter [/FlateDecode /FlateDecode] /Type /ObjStm", func(b []byte) []byte { return deflated(deflated(b)) }),
		"predicted":                     packedPDF("", "/DecodeParms << /Predictor 12 /Columns 20 >> "+flate, predicted),
		"predicted by reference":        packedPDF("", "/DecodeParms 9 0 R "+flate, predicted, "<< /Predictor 12 /Columns 20 >>"),
		"predicted after":               packedPDF("", flate+" /DecodeParms << /Predictor 12 /Columns 20 >>", predicted),
		// The engine reads on over what looks like the end of an object and the begin of another.
		"perhaps a dictionary within": packedPDF("<< /DecodeParms << /Predictor 12 /Columns 20 >> /X [[ >> endobj\n7 0 obj\n", flate, predicted),
		"perhaps a filter within":     packedPDF("<< /Filter /ASCIIHexDecode /X [[ >> endobj\n7 0 obj\n", "/Type /ObjStm", inHex),
		"comment in the dictionary":   packedPDF("", "/Filter /FlateDecode /Type /ObjStm % stream\n", deflated),
		"string in the dictionary":    packedPDF("", "/Filter /FlateDecode /Type /ObjStm /X (>> stream\n\x78\x9c)", deflated),
		"perhaps kind as a string":    packedPDF("", "/Type (ObjStm) /Filter /FlateDecode", deflated),
		"perhaps kind by reference":   packedPDF("", "/Type 9 0 R /Filter /FlateDecode", deflated, "/ObjStm /N 1 /First 1 /Length 1 >> stream\n"+string(deflated([]byte("1 0 null")))),
		"a line that ends early":      bytes.Replace(packedPDF("", flate, deflated), []byte(">>\nstream\n"), []byte(">>\nstream\r"), 1),
		"a line that goes on":         bytes.Replace(packedPDF("", flate, deflated), []byte(">>\nstream\n"), []byte(">>stream \n"), 1),
	}
	for c := range 256 { // which of them the engine takes for a name's end is its own affair
		all[fmt.Sprintf("perhaps before byte %02x", c)] = pinnedPDF(kind("/FileAttachment" + string([]byte{byte(c)})))
		all[fmt.Sprintf("perhaps a kind before byte %02x", c)] = pinnedPDF(kind(string([]byte{byte(c)}) + "(FileAttachment)"))
	}
	return all
}

// enginesFiles tells whether pdfium comes upon a file, or upon something that it cannot tell.
func enginesFiles(t testing.TB, w *worker, content []byte) bool {
	t.Helper()
	d, err := w.openPDF(content)
	if err != nil { // it looks at nothing
		return false
	}
	defer d.close()
	visited := false
	err = d.attachments(d.allPages(), archive.NewBudget(archive.DefaultLimits(), int64(len(content))), func(archive.Member, io.Reader) error {
		visited = true
		return nil
	})
	return visited || err != nil
}

// inProcess is a worker without a cage, for content that the tests make.
func inProcess(t testing.TB) *worker {
	t.Helper()
	engine, err := loadPDF(workerCache)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	return &worker{pdf: engine, to: &sink{out: bufio.NewWriter(io.Discard)}, job: job{InputBytes: 1 << 30}}
}

// Where the engine finds a file, it is asked; and whatever the test takes for a file, it does find.
func TestEveryPDFWithFilesIsWalked(t *testing.T) {
	t.Parallel()
	w := inProcess(t)
	for name, content := range filesPDF(t) {
		found, may := enginesFiles(t, w, content), mayHoldFiles(content)
		perhaps := strings.HasPrefix(name, "perhaps")
		if !perhaps && !found {
			t.Errorf("%s: the engine finds none, so the test proves nothing", name)
		}
		if !may && (found || !strings.Contains(name, "byte")) {
			t.Errorf("%s: a file is taken not to be there; the engine finds it: %v", name, found)
		}
	}
}

// The same of PDFs that are damaged at random: splices of two, bytes changed, left out and repeated.
func TestNoDamagedPDFHidesItsFiles(t *testing.T) {
	t.Parallel()
	w := inProcess(t)
	all := filesPDF(t)
	var seeds [][]byte
	for name, content := range all {
		if !strings.Contains(name, "byte") {
			seeds = append(seeds, content)
		}
	}
	slices.SortFunc(seeds, func(a, b []byte) int { return cmp.Or(len(a)-len(b), bytes.Compare(a, b)) })
	random := rand.New(rand.NewPCG(1, 2))
	found := 0
	for _, seed := range seeds {
		for range 40 {
			content := damaged(random, seed, seeds[random.IntN(len(seeds))])
			if enginesFiles(t, w, content) {
				found++
				if !mayHoldFiles(content) {
					t.Fatalf("the engine finds a file in\n%q", content)
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("%d files found: the damage is such that the test proves little", found)
	}
}

// damaged is content with a few changes, at places where words are rather than anywhere.
func damaged(random *rand.Rand, content, other []byte) []byte {
	content = slices.Clone(content)
	words := []string{"/", "#", "%\n", "(", ")", "<<", ">>", "<", ">", "[", "]", " ", "\n", "\r", "\x00", "\x80", "endobj\n", "7 0 obj\n", "4 0 R", "null", "stream\n",
		"endstream", "/Type", "/ObjStm", "/Subtype", "/Filter", "/Fl", "/AHx", "/DecodeParms", "/FileAttachment", "(FileAttachment)"}
	for range 1 + random.IntN(4) {
		at := random.IntN(len(content))
		if next := bytes.IndexAny(content[at:], "/ \n<>[]"); next >= 0 && random.IntN(4) > 0 {
			at += next
		}
		word := []byte(words[random.IntN(len(words))])
		switch random.IntN(5) {
		case 0:
			content[at] = byte(random.Uint32())
		case 1:
			content = slices.Insert(content, at, word...)
		case 2:
			copy(content[at:], word) // keeps the offsets
		case 3:
			from := random.IntN(len(other))
			copy(content[at:], other[from:min(len(other), from+random.IntN(200))])
		case 4:
			content = slices.Delete(content, at, min(len(content), at+1+random.IntN(8)))
		}
		if len(content) == 0 {
			return []byte("%PDF-1.7\n")
		}
	}
	return content
}

// The proof is worth its while: of PDFs as programs make them it needs no engine.
func TestOrdinaryPDFsAreNotWalked(t *testing.T) {
	t.Parallel()
	table := "/DecodeParms<</Columns 5/Predictor 12>>/ID[<0A1b><0A1B>]/W[1 3 1]"
	pages := []string{"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", "<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"}
	objects := "1 0 2 34 3 80 " + strings.Join(pages, " ")
	for name, content := range map[string][]byte{
		"text":                    makePDF(textPage("One page.")),
		"picture":                 makePDF(picturePage(t, blank(20, 20))),
		"deflated objects":        []byte("%PDF-1.7\n4 0 obj\n" + stream("/Type/ObjStm/N 3/First 14/Filter/FlateDecode", deflated([]byte(objects))) + "\nendobj\n5 0 obj\n" + stream("/Type/XRef"+table, nil) + "\nendobj\n"),
		"table of several tables": []byte("%PDF-1.7\n4 0 obj\n" + stream("/Type /ObjStm\n/N 3 /First 14\n/Extends 9 0 R /Filter [/FlateDecode]", deflated([]byte(objects))) + "\nendobj\n5 0 obj\n" + stream(table+"/Index [0 3 7 2]/Type/XRef", nil) + "\nendobj\n"),
	} {
		if mayHoldFiles(content) {
			t.Errorf("%s: is walked", name)
		}
	}
	for _, coding := range []string{"ASCIIHexDecode", "AHx", "ASCII85Decode", "A85", "LZWDecode", "LZW", "RunLengthDecode", "RL", "R#4c", "Crypt", "DecodeParms 5"} {
		in := stream("/Type/ObjStm/N 3/First 14/Filter/FlateDecode", deflated([]byte(objects+"/"+coding)))
		for _, content := range []string{in, "/" + coding + "\n" + stream("/Type/ObjStm/N 3/First 14/Filter/FlateDecode", deflated([]byte(objects)))} {
			if !mayHoldFiles([]byte("%PDF-1.7\n4 0 obj\n" + content + "\nendobj\n")) {
				t.Errorf("%s: a stream may be coded in this way, but is not walked", coding)
			}
		}
	}
	if !mayHoldFiles([]byte("%PDF-1.7\n4 0 obj\n" + stream("/Type/ObjStm/N 3/First 14/Filter/FlateDecode", deflated(make([]byte, pdfUnpackBytes+1))) + "\nendobj\n")) {
		t.Error("a stream that grows past the bound is taken for looked at")
	}
}
