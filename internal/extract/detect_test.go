package extract

import (
	"archive/zip"
	"bytes"
	"errors"
	"testing"
)

// zipOf is a zip with one short member.
func zipOf(t testing.TB, name string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	f, err := w.Create(name)
	if err == nil {
		_, err = f.Write([]byte("words"))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestDetect(t *testing.T) {
	t.Parallel()
	pdf := makePDF(textPage("One page."))
	picture := asPNG(t, blank(20, 20))
	for _, c := range []struct {
		name, declared string
		content        []byte
		media, format  string
		code           string // refusal
	}{
		{"pdf", "application/pdf", pdf, "application/pdf", formatPDF, ""},
		{"pdf, nothing declared", "", pdf, "application/pdf", formatPDF, ""},
		{"pdf called text", "text/plain", pdf, "", "", CodeMismatch},
		{"pdf called nothing", "application/octet-stream", pdf, "application/pdf", formatPDF, ""},
		{"pdf after junk", "application/pdf", append([]byte("Content-Disposition: inline\r\n\r\n"), pdf...), "application/pdf", formatPDF, ""},
		{"text about pdf", "text/plain", []byte("A PDF file begins with %PDF-1.4 or so."), "text/plain", formatText, ""},
		{"pdf in a picture", "application/pdf", append(bytes.Clone(picture[:33]), pdf...), "", "", CodeMismatch},
		{"pdf and zip", "application/pdf", append(bytes.Clone(pdf), zipOf(t, "a.txt")...), "", "", CodeMismatch},
		{"pdf with a zip inside", "application/pdf", append([]byte("%PDF-1.4\nPK\x05\x06"), append(make([]byte, 18), "\n%%EOF\n"...)...), "application/pdf", formatPDF, ""},
		{"png", "image/png", picture, "image/png", formatPicture, ""},
		{"png called jpeg", "image/jpeg", picture, "image/png", formatPicture, ""},
		{"jpeg", "", asJPEG(t, blank(20, 20)), "image/jpeg", formatPicture, ""},
		{"text", "text/plain; charset=utf-8", []byte("plain words"), "text/plain", formatText, ""},
		{"markdown", "text/markdown", []byte("<p>words *in* Markdown</p>"), "text/markdown", formatMarkdown, ""},
		{"csv", "text/csv", []byte("a,b\n1,2\n"), "text/csv", formatText, ""},
		{"json called text", "text/plain", []byte(`{"a": 1}`), "text/plain", formatText, ""},
		{"utf-16 without a mark", "", []byte("w\x00o\x00r\x00d\x00s\x00"), "text/plain", formatText, ""},
		{"json", "application/json", []byte(`{"a": 1}`), "", "", CodeUnsupported},
		{"html", "text/html", []byte("<html><body>words</body></html>"), "text/html", formatHTML, ""},
		{"rtf called text", "text/plain", []byte(`{\rtf1\ansi words}`), "", "", CodeMismatch},
		{"program called pdf", "application/pdf", []byte("\x7fELF\x02\x01\x01" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00"), "", "", CodeMismatch},
		{"program", "application/octet-stream", []byte("\x7fELF\x02\x01\x01" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00"), "", "", CodeUnsupported},
		{"gif", "image/gif", []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"), "", "", CodeUnsupported},
		{"nothing known", "", []byte{1, 2, 3, 0, 0, 0, 4}, "", "", CodeUnsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, err := detect(bytes.NewReader(c.content), int64(len(c.content)), c.declared)
			var refusal *Refusal
			errors.As(err, &refusal)
			switch {
			case c.code != "":
				if refusal == nil || refusal.Code != c.code {
					t.Errorf("want refusal %s, got %+v, error %v", c.code, d, err)
				}
			case err != nil || d.media != c.media || d.format != c.format:
				t.Errorf("want %s as %s, got %+v, error %v", c.media, c.format, d, err)
			}
		})
	}
}
