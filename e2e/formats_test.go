package e2e

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

const officeOpen = "application/vnd.openxmlformats-officedocument."

// harbourNotes are one real document of each format; all say the same (testdata/documents). Members are what is packed into each.
var harbourNotes = []struct {
	ending, declared, detected string
	pages, ocr, members        int
}{
	{"pdf", "application/pdf", "application/pdf", 1, 0, 0},
	{"docx", officeOpen + "wordprocessingml.document", officeOpen + "wordprocessingml.document", 1, 0, 0},
	{"pptx", officeOpen + "presentationml.presentation", officeOpen + "presentationml.presentation", 2, 0, 0},
	{"xlsx", officeOpen + "spreadsheetml.sheet", officeOpen + "spreadsheetml.sheet", 1, 0, 0},
	{"odt", "application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text", 1, 0, 0},
	{"ods", "application/vnd.oasis.opendocument.spreadsheet", "application/vnd.oasis.opendocument.spreadsheet", 1, 0, 0},
	{"odp", "application/vnd.oasis.opendocument.presentation", "application/vnd.oasis.opendocument.presentation", 2, 0, 0},
	{"rtf", "application/rtf", "application/rtf", 1, 0, 0},
	{"epub", "application/epub+zip", "application/epub+zip", 1, 0, 0},
	{"html", "text/html", "text/html", 1, 0, 0},
	{"md", "text/markdown", "text/markdown", 1, 0, 0},
	{"csv", "text/csv", "text/csv", 1, 0, 0},
	{"txt", "text/plain; charset=utf-8", "text/plain", 1, 0, 0},
	{"utf-16.txt", "text/plain", "text/plain", 1, 0, 0},
	{"windows-1252.txt", "text/plain", "text/plain", 1, 0, 0},
	{"png", "image/png", "image/png", 1, 1, 0},
	{"jpeg", "image/jpeg", "image/jpeg", 1, 1, 0},
	{"tiff", "image/tiff", "image/tiff", 1, 1, 0},
	{"webp", "image/webp", "image/webp", 1, 1, 0},
	{"eml", "message/rfc822", "message/rfc822", 2, 0, 1},
	{"zip", "application/zip", "application/zip", 3, 1, 3},
	{"tar", "application/x-tar", "application/x-tar", 2, 0, 2},
	{"tar.gz", "application/gzip", "application/gzip", 2, 0, 2},
	{"txt.gz", "application/octet-stream", "application/gzip", 1, 0, 1},
}

// markup is a tag of any of the formats; <office@harbour.example> is none.
var markup = regexp.MustCompile(`</|<[a-z:]+[ />]`)

// tables have no word with an accent.
var tables = map[string]bool{"csv": true, "ods": true, "xlsx": true, "zip": true}

func harbourNote(t testing.TB, ending string) []byte {
	t.Helper()
	return readFile(t, "../testdata/documents/harbour-note."+ending)
}

func TestEveryFormatIsRead(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	for _, c := range harbourNotes {
		t.Run(c.ending, func(t *testing.T) {
			t.Parallel()
			p := p.in(t)
			st := p.wantReady(p.send("harbour-note."+c.ending, c.declared, harbourNote(t, c.ending)))
			want := map[string]any{"declared_media_type": c.declared, "media_type": c.detected, "pages": c.pages, "ocr_pages": c.ocr, "truncated": false}
			if c.members > 0 {
				want["members"], want["members_left_out"] = c.members, 0
			}
			for name, value := range want {
				if got := st.Gates[3].Detail[name]; fmt.Sprint(got) != fmt.Sprint(value) {
					t.Errorf("extraction: %s is %v, want %v", name, got, value)
				}
			}
			served := decode[servedContext](t, s.in(t).context("harbour", reader, st.UploadID).want(t, 200, ""))
			text := served.text()
			for _, words := range []string{"amber-lighthouse-44", "nobody needs to act on it before spring"} {
				if !strings.Contains(strings.ReplaceAll(text, "\n", " "), words) {
					t.Errorf("the context lacks %q: %q", words, text)
				}
			}
			if markup.MatchString(text) || strings.Contains(text, "**") || strings.Contains(text, `\par`) || strings.Contains(text, "\ufffd") {
				t.Errorf("markup is served: %q", text)
			}
			if c.ocr == 0 && !tables[c.ending] && !strings.Contains(text, "café") {
				t.Errorf("letters are lost: %q", text)
			}
			if served.Context.MediaType != c.detected {
				t.Errorf("media type %q", served.Context.MediaType)
			}
		})
	}
}

// zipped packs files, in the order of their names as given.
func zipped(t testing.TB, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err == nil {
			_, err = f.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func tarred(t testing.TB, name string, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644})
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func mailed(name string, content []byte) []byte {
	return []byte("From: a@harbour.example\r\nTo: b@harbour.example\r\nSubject: note\r\nDate: Mon, 12 Jan 2026 09:30:00 +0000\r\nMIME-Version: 1.0\r\n" +
		"Content-Type: multipart/mixed; boundary=edge\r\n\r\n--edge\r\nContent-Type: text/plain\r\n\r\nThe note is attached.\r\n--edge\r\n" +
		"Content-Type: application/octet-stream; name=\"" + name + "\"\r\nContent-Disposition: attachment; filename=\"" + name + "\"\r\n" +
		"Content-Transfer-Encoding: base64\r\n\r\n" + base64.StdEncoding.EncodeToString(content) + "\r\n--edge--\r\n")
}

// Malware is found wherever it is packed, also where the engine alone does not look.
func TestMalwareIsFoundInContainers(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	bad := eicar()
	for name, c := range map[string]struct {
		declared string
		content  []byte
	}{
		"zip":               {"application/zip", zipped(t, "a.txt", "words", "b.com", string(bad))},
		"zip in zip in tar": {"application/x-tar", tarred(t, "a.zip", zipped(t, "b.zip", string(zipped(t, "c.com", string(bad)))))},
		"tar.gz":            {"application/gzip", gzipped(t, tarred(t, "a.com", []byte(bad)))},
		"gzip, five deep":   {"application/gzip", gzipped(t, gzipped(t, gzipped(t, gzipped(t, gzipped(t, []byte(bad))))))},
		"mail":              {"message/rfc822", mailed("a.com", []byte(bad))},
		"mail with a zip":   {"message/rfc822", mailed("a.zip", zipped(t, "a.com", string(bad)))},
		"mail called text":  {"text/plain", mailed("a.com", []byte(bad))},
		"office document":   {officeOpen + "wordprocessingml.document", zipped(t, "[Content_Types].xml", "<Types/>", "word/document.xml", "<w:document/>", "word/embeddings/a.bin", string(bad))},
		"PDF":               {"application/pdf", attachedPDF(t, []byte(bad))},
		"PDF in zip":        {"application/zip", zipped(t, "a.pdf", string(attachedPDF(t, []byte(bad))))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := p.in(t)
			st := p.wantEnd(p.send("upload", c.declared, c.content), "REJECTED", "malware_scan", "malware_found")
			if !strings.Contains(st.Failure.Message, "EICAR") {
				t.Errorf("failure: %+v", st.Failure)
			}
		})
	}
}

// attachedPDF is a PDF of one page with a compressed file attached to it.
func attachedPDF(t testing.TB, attached []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	packed.Write(zlibbed(t, attached))
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R /Names << /EmbeddedFiles << /Names [(a.bin) 4 0 R] >> >> >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 6 0 R /Resources << /Font << /F1 7 0 R >> >> >>",
		"<< /Type /Filespec /F (a.bin) /UF (a.bin) /EF << /F 5 0 R >> >>",
		fmt.Sprintf("<< /Type /EmbeddedFile /Filter /FlateDecode /Length %d /Params << /Size %d >> >>\nstream\n%s\nendstream", packed.Len(), len(attached), packed.String()),
		"<< /Length 58 >>\nstream\nBT /F1 12 Tf 20 100 Td (The note is attached to this page.) Tj ET\nendstream",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
	}
	var out bytes.Buffer
	out.WriteString("%PDF-1.7\n")
	offsets := make([]int, len(objects))
	for i, object := range objects {
		offsets[i] = out.Len()
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	start := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, at := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, start)
	return out.Bytes()
}
