package extract

import (
	"bytes"
	"fmt"
	"testing"
)

// Wherever in a PDF a name stands that files must have, and however it is escaped, the PDF is walked: false is a proof. What is not in
// object streams, nothing hides.
func FuzzPDFNames(f *testing.F) {
	for _, content := range filesPDF(f) {
		if len(content) < 64<<10 {
			f.Add(content, uint16(len(content)/2), uint16(0))
		}
	}
	f.Add(makePDF(textPage("A page of text.")), uint16(100), uint16(0xfff))
	f.Add([]byte("%PDF-1.7 /ObjStm /N 1 /First 4 /Filter /FlateDecode >> stream\n"), uint16(3), uint16(5))
	f.Fuzz(func(t *testing.T, raw []byte, at, escaped uint16) {
		if len(raw) > 1<<20 {
			return
		}
		before := bytes.Clone(raw)
		mayHoldFiles(raw)
		if !bytes.Equal(raw, before) {
			t.Fatal("the document was changed")
		}
		for _, name := range pdfFileNames {
			in := bytes.Join([][]byte{raw[:int(at)%(len(raw)+1)], []byte("/" + withEscapes(name, escaped)), raw[int(at)%(len(raw)+1):]}, []byte(" "))
			if !mayHoldFiles(in) {
				t.Errorf("%s at %d is missed", withEscapes(name, escaped), at)
			}
		}
	})
}

// withEscapes spells the letters of name that which has bits for as #-escapes, in both cases of their digits.
func withEscapes(name string, which uint16) (spelled string) {
	for i, c := range []byte(name) {
		switch {
		case which>>(i%16)&1 == 0:
			spelled += string(c)
		case i%2 == 0:
			spelled += fmt.Sprintf("#%02x", c)
		default:
			spelled += fmt.Sprintf("#%02X", c)
		}
	}
	return spelled
}

// A dictionary that is found to end without objects does so for every reader: it holds no name ObjStm in any spelling before its
// end, nothing in parentheses, and no comment.
func FuzzPDFDictionary(f *testing.F) {
	for _, dictionary := range []string{
		"<< /Predictor 12 /Columns 4 >> >>", " [<< /K -1 >> null] /Length 5 0 R >>", "<<>>>>", " /None>>", "<< /A (x) >> >>", "<< /A % \n >> >>", " [[[[[[[[[[]]]]]]]]]]>>", "<< /T /Obj#53tm >> >>", "<< /T#20 1 >> >>", " <41 42> /X true>>", " 1 0 R>>",
	} {
		f.Add([]byte(dictionary))
	}
	f.Fuzz(func(t *testing.T, rest []byte) {
		if !pdfEndsWithoutObjects(rest) {
			return
		}
		after, ok := pdfValue(rest, 0)
		if ok {
			after = pdfPairs(after, 0)
		}
		if len(rest) <= pdfDictionaryBytes && after == nil {
			t.Fatalf("%q has no end", rest)
		}
		if len(rest) > pdfDictionaryBytes {
			return
		}
		looked := rest[:len(rest)-len(after)]
		if bytes.ContainsAny(looked, "()%#{}\x00") || bytes.Contains(looked, []byte("ObjStm")) || !bytes.HasSuffix(looked, []byte(">>")) {
			t.Errorf("%q", looked)
		}
	})
}
