package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// formats are made of the same HTML by LibreOffice, and read by us and by LibreOffice.
var formats = []struct{ extension, media, filter string }{
	{"html", "text/html", ""},
	{"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx:MS Word 2007 XML"},
	{"odt", "application/vnd.oasis.opendocument.text", "odt:writer8"},
	{"rtf", "application/rtf", "rtf:Rich Text Format"},
}

// otherFormats prints the recall of LibreOffice's own text of the same file, letters and digits: list marks are not text.
func (b *bench) otherFormats(ctx context.Context) error {
	dir := filepath.Join(b.work, "formats")
	var names, sources []string
	for _, d := range b.documents {
		if d.use != "format" {
			continue
		}
		raw, err := os.ReadFile(d.file)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(d.file), ".html")
		file := filepath.Join(dir, name+".html")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			return err
		}
		names, sources = append(names, name), append(sources, file)
	}
	fmt.Printf("\nOther formats, beside what LibreOffice makes text of the same file:\n\n| document |")
	for _, f := range formats {
		fmt.Printf(" %s |", f.extension)
	}
	fmt.Printf("\n|---|%s\n", strings.Repeat("---|", len(formats)))
	e := b.extractor()
	rows := make([][]share, len(names))
	all := make([]share, len(formats))
	for i, f := range formats {
		if f.filter != "" {
			if err := b.convert(ctx, f.filter, dir, "HTML (StarWriter)", sources); err != nil {
				return err
			}
		}
		var made []string
		for _, name := range names {
			made = append(made, filepath.Join(dir, name+"."+f.extension))
		}
		texts := filepath.Join(dir, f.extension)
		infilter := ""
		if f.filter == "" {
			infilter = "HTML (StarWriter)"
		}
		if err := b.convert(ctx, "txt:Text (encoded):UTF8", texts, infilter, made); err != nil {
			return err
		}
		for j, name := range names {
			theirs, err := os.ReadFile(filepath.Join(texts, name+".txt"))
			if err != nil {
				return err
			}
			doc, err := extractFile(ctx, e, made[j], f.media)
			if err != nil {
				return fmt.Errorf("%s: %w", filepath.Base(made[j]), err)
			}
			s := recall(string(theirs), textOf(doc), true)
			rows[j] = append(rows[j], s)
			all[i].found, all[i].of = all[i].found+s.found, all[i].of+s.of
		}
	}
	for j, name := range names {
		fmt.Printf("| %s |", name)
		for _, s := range rows[j] {
			fmt.Printf(" %v |", s)
		}
		fmt.Println()
	}
	fmt.Printf("| **all characters** |")
	for _, s := range all {
		fmt.Printf(" **%v** |", s)
	}
	fmt.Println()
	return nil
}

// convert runs LibreOffice with a profile of its own.
func (b *bench) convert(ctx context.Context, to, dir, from string, files []string) error {
	args := []string{"-env:UserInstallation=file://" + filepath.Join(b.work, "libreoffice"), "--headless", "--convert-to", to, "--outdir", dir}
	if from != "" {
		args = append(args, "--infilter="+from)
	}
	out, err := exec.CommandContext(ctx, "soffice", append(args, files...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("soffice --convert-to %s: %w: %s", to, err, out)
	}
	return nil
}
