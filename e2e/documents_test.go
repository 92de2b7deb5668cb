package e2e

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// scannedPDF is the document that the repository ships: four pages, pictures only.
func scannedPDF(t testing.TB) []byte {
	t.Helper()
	return readFile(t, "../testdata/scans/pump-station-record.pdf")
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// textPDF writes a PDF of one page whose lines are text.
func textPDF(lines ...string) []byte {
	var ops, out strings.Builder
	ops.WriteString("BT /F1 12 Tf 14 TL 72 720 Td\n")
	for _, line := range lines {
		fmt.Fprintf(&ops, "(%s) Tj T*\n", line)
	}
	ops.WriteString("ET")
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", ops.Len(), ops.String()),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
	}
	out.WriteString("%PDF-1.4\n")
	var offsets []int
	for i, object := range objects {
		offsets = append(offsets, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	start := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, at := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, start)
	return []byte(out.String())
}

// eicar is the antivirus test file, put together here: in one piece it would have scanners quarantine this repository.
func eicar() string {
	return `X5O!P%@AP[4\PZX54(P^)7CC)7}` + `$EICAR-STANDARD-` + `ANTIVIRUS-TEST-FILE!$H+H*`
}

// note is a small document with a mark of its own.
func note(mark string) []byte {
	return []byte("The harbour office keeps this note. Its mark is " + mark + ". Nobody needs to act on it before spring.\n")
}

// noise is n bytes that look like no document, and differ by seed.
func noise(n int, seed uint32) []byte {
	b := make([]byte, n)
	for i := range b {
		seed = seed*1664525 + 1013904223
		b[i] = byte(seed >> 24)
	}
	return b
}

// cut divides content into parts of the given size.
func cut(content []byte, size int) (parts [][]byte) {
	for ; len(content) > size; content = content[size:] {
		parts = append(parts, content[:size])
	}
	return append(parts, content)
}

func whole(parts [][]byte) []byte { return bytes.Join(parts, nil) }
