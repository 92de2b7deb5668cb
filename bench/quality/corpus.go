package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

//go:embed corpus.tsv
var corpus string

// document is one line of corpus.tsv: a PDF of a Debian package, and the file or folder that holds the same text.
type document struct {
	use              string // what it is measured for
	pkg, version     string
	path, reference  string // inside the package; a reference that ends in / is all HTML in that folder, "-" is none
	file, sourceFile string // in the cache
}

// name is the package and the file without its folders and without .pdf.
func (d document) name() string {
	return d.pkg + "/" + strings.TrimSuffix(strings.TrimSuffix(path.Base(d.path), ".gz"), ".pdf")
}

// fetch gets the packages that are not in the cache yet. What cannot be had is counted as missing.
func (b *bench) fetch(ctx context.Context) error {
	var wanted []document
	for line := range strings.Lines(corpus) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 5 && !strings.HasPrefix(line, "#") {
			wanted = append(wanted, document{use: f[0], pkg: f[1], version: f[2], path: f[3], reference: f[4]})
		}
	}
	fetched := int64(0)
	for i, d := range wanted {
		folder := filepath.Join(b.cache, "files", d.pkg+"_"+d.version)
		d.file, d.sourceFile = filepath.Join(folder, d.path), filepath.Join(folder, d.reference)
		if !exists(d.file) || d.reference != "-" && !exists(d.sourceFile) {
			n, err := b.unpack(ctx, d.pkg, d.version, folder, wanted)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err == nil && !exists(d.file) {
				err = errors.New("the package does not hold it")
			}
			if err != nil {
				fmt.Printf("missing: %s of %s %s: %v\n", d.path, d.pkg, d.version, err)
				b.missing++
				continue
			}
			fetched += n
		}
		b.documents = append(b.documents, d)
		wanted[i] = d
	}
	fmt.Printf("%d documents, %d missing; %.1f MB downloaded now\n", len(b.documents), b.missing, float64(fetched)/1e6)
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// unpack downloads one package and keeps those of its files that the corpus names. It returns the bytes downloaded.
func (b *bench) unpack(ctx context.Context, pkg, version, folder string, wanted []document) (int64, error) {
	debs, err := os.MkdirTemp(b.work, "deb-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(debs)
	get := exec.CommandContext(ctx, "apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", pkg+"="+version)
	get.Dir = debs
	if out, err := get.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("apt-get download %s=%s: %w: %s", pkg, version, err, bytes.TrimSpace(out))
	}
	found, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil || len(found) != 1 {
		return 0, fmt.Errorf("apt-get download %s=%s left %d files", pkg, version, len(found))
	}
	info, err := os.Stat(found[0])
	if err != nil {
		return 0, err
	}
	fmt.Printf("downloaded %s %s, %.1f MB\n", pkg, version, float64(info.Size())/1e6)
	data := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", found[0])
	pipe, err := data.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := data.Start(); err != nil {
		return 0, err
	}
	err = keep(pipe, folder, func(name string) bool {
		return slices.ContainsFunc(wanted, func(d document) bool {
			return d.pkg == pkg && (name == d.path || name == d.reference ||
				strings.HasSuffix(d.reference, "/") && path.Dir(name)+"/" == d.reference && strings.HasSuffix(name, ".html"))
		})
	})
	_, _ = io.Copy(io.Discard, pipe)
	return info.Size(), errors.Join(err, data.Wait())
}

// keep writes the wanted files of a tar into folder, ungzipped.
func keep(from io.Reader, folder string, wanted func(name string) bool) error {
	for archive := tar.NewReader(from); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		if h.Typeflag != tar.TypeReg || !wanted(name) {
			continue
		}
		var content io.Reader = archive
		if strings.HasSuffix(name, ".gz") {
			if content, err = gzip.NewReader(archive); err != nil {
				return err
			}
		}
		to := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		raw, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, raw, 0o644); err != nil {
			return err
		}
	}
}

// source is the text that the document was made of, or from.
func (d document) source() (string, error) {
	if !strings.HasSuffix(d.reference, "/") {
		raw, err := os.ReadFile(d.sourceFile)
		if err == nil && strings.HasSuffix(d.reference, ".html") {
			return htmlText(raw), nil
		}
		return string(raw), err
	}
	files, err := filepath.Glob(filepath.Join(d.sourceFile, "*.html"))
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		all.WriteString(htmlText(raw))
	}
	return all.String(), nil
}

// htmlText is what a reader of the page sees, without layout.
func htmlText(raw []byte) string {
	var text strings.Builder
	skip := 0
	for z := html.NewTokenizer(bytes.NewReader(raw)); ; {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return text.String()
		case html.TextToken:
			if skip == 0 {
				text.Write(z.Text())
			}
		case html.StartTagToken, html.EndTagToken:
			name, _ := z.TagName()
			switch a := atom.Lookup(name); {
			case a != atom.Script && a != atom.Style && a != atom.Title:
			case kind == html.StartTagToken:
				skip++
			default:
				skip = max(0, skip-1)
			}
		}
	}
}
