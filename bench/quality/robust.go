package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/zlib"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"
)

// hostile is a document made to do harm, or merely large.
type hostile struct {
	name, file, media string
	make              func() ([]byte, error)
}

var hostiles = []hostile{
	{"a note of one line (for comparison)", "note.txt", "text/plain", func() ([]byte, error) { return []byte("The pump was repaired in March.\n"), nil }},
	{"PDF of 500 pages of text", "long.pdf", "application/pdf", func() ([]byte, error) { return longPDF(500), nil }},
	{"PNG of 30,000 × 30,000 pixels", "huge.png", "image/png", func() ([]byte, error) { return hugePNG(30_000) }},
	{"zip bomb, 5 levels of 16", "bomb.zip", "application/zip", func() ([]byte, error) { return zipBomb(5, 16, 1<<30) }},
	{"PDF that refers to one page 100,000 times", "pages.pdf", "application/pdf", func() ([]byte, error) { return repeatedPDF(100_000), nil }},
}

func (b *bench) robust(ctx context.Context) error {
	fmt.Printf("\n## Hostile documents\n")
	clamd, address, err := b.scanner(ctx)
	if err != nil {
		return err
	}
	defer clamd.Close()
	s, err := b.serve(ctx, address)
	if err != nil {
		return err
	}
	defer s.stop()
	fmt.Printf("\n| document | bytes | outcome | seconds | service's memory before, MiB | at its highest, MiB |\n|---|---|---|---|---|---|\n")
	for _, h := range hostiles {
		content, err := h.make()
		if err != nil {
			return err
		}
		if err := s.forgetPeak(); err != nil {
			return err
		}
		before, err := s.memory("VmRSS")
		if err != nil {
			return err
		}
		began := time.Now()
		status, err := s.submit(ctx, h.file, h.media, bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
		took := time.Since(began)
		peak, err := s.memory("VmHWM")
		if err != nil {
			return err
		}
		outcome := status.Status
		if f := status.Failure; f != nil {
			outcome += " " + f.Gate + " " + f.Code
		}
		for _, g := range status.Gates {
			if g.Name == "extraction" && status.Failure == nil {
				outcome += " (" + g.DetailText() + ")"
			}
		}
		fmt.Printf("| %s | %d | %s | %.1f | %.1f | %.1f |\n", h.name, len(content), strings.ReplaceAll(outcome, "|", " "), took.Seconds(),
			float64(before)/(1<<20), float64(peak)/(1<<20))
	}
	return nil
}

const helvetica = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"

// longPDF has pages of forty lines each.
func longPDF(pages int) []byte {
	w := newPDF()
	w.pageTree(pages, 3)
	for i := range pages {
		var text bytes.Buffer
		text.WriteString("BT /F 11 Tf 14 TL 60 780 Td\n")
		for line := range 40 {
			fmt.Fprintf(&text, "(Page %d, line %d: the valve of pump %d was opened, read at %d bar and closed again.) Tj T*\n", i+1, line+1, (i*7+line)%90, line%9)
		}
		text.WriteString("ET")
		font := w.object(helvetica)
		content := w.stream("", text.Bytes())
		w.object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R /Resources << /Font << /F %d 0 R >> >> >>", content, font))
	}
	return w.end()
}

// repeatedPDF has one page, and a tree that names it again and again.
func repeatedPDF(references int) []byte {
	w := newPDF()
	w.object(fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", references, strings.Repeat("5 0 R ", references)))
	w.object(helvetica)
	w.stream("", []byte("BT /F 11 Tf 60 780 Td (The valve was opened and closed again.) Tj ET"))
	w.object("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F 3 0 R >> >> >>")
	return w.end()
}

// hugePNG is a square of black, eight bits to a pixel, which compress a thousand times.
func hugePNG(side int) ([]byte, error) {
	var packed bytes.Buffer
	z, err := zlib.NewWriterLevel(&packed, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	row := make([]byte, 1+side)
	for range side {
		if _, err := z.Write(row); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("\x89PNG\r\n\x1a\n")
	chunk := func(name string, body []byte) {
		_ = binary.Write(&out, binary.BigEndian, uint32(len(body))) // into memory
		tagged := append([]byte(name), body...)
		out.Write(tagged)
		_ = binary.Write(&out, binary.BigEndian, crc32.ChecksumIEEE(tagged))
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(side))
	head = binary.BigEndian.AppendUint32(head, uint32(side))
	chunk("IHDR", append(head, 8, 0, 0, 0, 0)) // eight bits, gray
	chunk("IDAT", packed.Bytes())
	chunk("IEND", nil)
	return out.Bytes(), nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// zipBomb is an archive of archives, each of as many, down to one of zeros.
func zipBomb(levels, members int, bottom int64) ([]byte, error) {
	content := io.LimitReader(zeros{}, bottom)
	var packed []byte
	for level := range levels {
		var out bytes.Buffer
		w := zip.NewWriter(&out)
		n := members
		if level == 0 {
			n = 1
		}
		for i := range n {
			f, err := w.Create(fmt.Sprintf("%d-%02d.zip", level, i))
			if err != nil {
				return nil, err
			}
			if level > 0 {
				content = bytes.NewReader(packed)
			}
			if _, err := io.Copy(f, content); err != nil {
				return nil, err
			}
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		packed = out.Bytes()
	}
	return packed, nil
}
