package e2e

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	bigEndian "encoding/binary"
	"hash/crc32"
	"strings"
	"testing"
)

func zlibbed(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// lockedZip says of its only member that it is encrypted.
func lockedZip(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	member, err := w.CreateRaw(&zip.FileHeader{Name: "a.txt", Method: zip.Store, Flags: 1, CRC32: 1, CompressedSize64: 26, UncompressedSize64: 14})
	if err == nil {
		_, err = member.Write([]byte("twelve bytes, and the rest"))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// zipBomb is some kilobytes that would grow to gigabytes, level by level.
func zipBomb(t testing.TB) []byte {
	t.Helper()
	content := zipped(t, "0", strings.Repeat("0", 16<<20))
	for range 5 {
		var files []string
		for _, name := range strings.Split("abcdefghijklmnop", "") {
			files = append(files, name+".zip", string(content))
		}
		content = zipped(t, files...)
	}
	return content
}

// Each refusal has a code and a sentence, and nothing of the upload is served.
func TestEveryRefusal(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	program := append([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00\x01\x00\x00\x00"), noise(4000, 5)...)
	cutShort := func(ending string) []byte {
		whole := harbourNote(t, ending)
		return whole[:len(whole)*2/3]
	}
	ole := append([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), make([]byte, 2040)...)
	for name, c := range map[string]struct {
		declared   string
		content    []byte
		gate, code string
	}{
		"a program":                   {"application/octet-stream", program, "extraction", "media_type_unsupported"},
		"a program called PDF":        {"application/pdf", program, "extraction", "media_type_mismatch"},
		"a picture called PDF":        {"application/pdf", harbourNote(t, "png"), "extraction", "media_type_mismatch"},
		"a PDF called text":           {"text/plain", harbourNote(t, "pdf"), "extraction", "media_type_mismatch"},
		"a letter called a sheet":     {officeOpen + "spreadsheetml.sheet", harbourNote(t, "rtf"), "extraction", "media_type_mismatch"},
		"PDF and zip at once":         {"application/pdf", append(harbourNote(t, "pdf"), harbourNote(t, "zip")...), "", ""},
		"picture and zip at once":     {"image/png", append(harbourNote(t, "png"), harbourNote(t, "zip")...), "", ""},
		"a cut DOCX":                  {officeOpen + "wordprocessingml.document", cutShort("docx"), "", ""},
		"a cut PNG":                   {"image/png", cutShort("png"), "extraction", "document_broken"},
		"a cut gzip":                  {"application/gzip", cutShort("tar.gz"), "malware_scan", "content_unscannable"},
		"an encrypted zip":            {"application/zip", lockedZip(t), "malware_scan", "content_unscannable"},
		"a zip bomb":                  {"application/zip", zipBomb(t), "malware_scan", "content_unscannable"},
		"an OLE file":                 {"application/msword", ole, "extraction", "media_type_unsupported"},
		"a zip of programs":           {"application/zip", zipped(t, "a", string(program), "b", string(program)), "extraction", "media_type_unsupported"},
		"an archive packed too deep":  {"application/gzip", deep(t, 12), "malware_scan", "content_unscannable"},
		"text that is none":           {"text/plain", noise(4000, 6), "extraction", "media_type_mismatch"},
		"a PNG of too many pixels":    {"image/png", hugePNG(t, 30000, 30000), "extraction", "document_too_large"},
		"RTF without an end":          {"application/rtf", []byte(`{\rtf1{\b text without an end`), "extraction", "document_broken"},
		"mail with a broken encoding": {"message/rfc822", bytes.Replace(mailed("a.bin", noise(3000, 7)), []byte("AA"), []byte("*!"), -1), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := p.in(t)
			id := p.send("upload", c.declared, c.content)
			if c.code != "" {
				p.wantEnd(id, "REJECTED", c.gate, c.code)
			} else if st := p.follow(id); st.Status != "REJECTED" || st.Failure == nil {
				t.Errorf("%s: %+v", st.Status, st.Failure)
			}
			s.in(t).context("harbour", reader, id).want(t, 404, "context_not_ready")
		})
	}
}

func deep(t testing.TB, levels int) []byte {
	content := []byte("the innermost file")
	for range levels {
		content = gzipped(t, content)
	}
	return content
}

// hugePNG is a small file that says it is a picture of so many pixels, and has the data of its first rows.
func hugePNG(t testing.TB, width, height uint32) []byte {
	t.Helper()
	var out bytes.Buffer
	chunk := func(kind string, data []byte) {
		body := append([]byte(kind), data...)
		bigEndian.Write(&out, bigEndian.BigEndian, uint32(len(data)))
		out.Write(body)
		bigEndian.Write(&out, bigEndian.BigEndian, crc32.ChecksumIEEE(body))
	}
	out.WriteString("\x89PNG\r\n\x1a\n")
	header := bigEndian.BigEndian.AppendUint32(bigEndian.BigEndian.AppendUint32(nil, width), height)
	chunk("IHDR", append(header, 8, 0, 0, 0, 0))
	chunk("IDAT", zlibbed(t, make([]byte, 1<<20)))
	chunk("IEND", nil)
	return out.Bytes()
}
