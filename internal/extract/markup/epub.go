package markup

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"path"
	"strings"

	htmlcharset "golang.org/x/net/html/charset"

	"github.com/accession/accession/internal/extract/page"
)

// Bounds of an EPUB.
const (
	maxDirectory = 16 << 20 // bytes of the zip's directory
	maxPackage   = 16 << 20 // bytes of each file that says what the book is made of
	maxItems     = 50_000   // of the manifest, and of the spine
	maxFallbacks = 8        // of one item
)

// Encryption of fonts alone, which hides no text.
var fontObfuscation = map[string]bool{
	"http://www.idpf.org/2008/embedding": true,
	"http://ns.adobe.com/pdf/enc#RC":     true,
}

// ReadEPUB reads the items of the spine in their order, each as a page, by the rules of ReadHTML; style sheets of the book
// count. Titles of single items are left out, because no reading system shows them. An item that is no text is an empty page.
//
// A book with encrypted items is ErrEncrypted; one without a readable container, package or item of its spine is
// ErrBroken; one whose files grow beyond limits.ExpandedBytes is ErrTooLarge. Truncated: limits.Pages or limits.TextBytes.
func ReadEPUB(content io.ReaderAt, size int64, limits page.Limits, emit func(page.Page) error) (truncated bool, err error) {
	b, err := openBook(content, size, limits.ExpandedBytes)
	if err != nil {
		return false, err
	}
	if err := b.refuseEncrypted(); err != nil {
		return false, err
	}
	spine, err := b.spine()
	if err != nil {
		return false, err
	}
	room := limits.TextBytes
	for i, item := range spine {
		if i == limits.Pages || room <= 0 {
			return true, nil
		}
		p, cut, err := b.chapter(item, room)
		if err != nil {
			return false, err
		}
		room -= int64(len(p.Text))
		if err := emit(p); err != nil {
			return false, err
		}
		if cut {
			return true, nil
		}
	}
	return false, nil
}

type book struct {
	from   *metered
	files  map[string]*zip.File
	left   int64 // bytes that files may still grow to
	sheets map[string]*sheet
}

func openBook(content io.ReaderAt, size, expanded int64) (*book, error) {
	m := &metered{content: content, left: maxDirectory}
	z, err := zip.NewReader(m, size)
	switch {
	case m.left < 0:
		return nil, page.ErrTooLarge
	case m.err != nil:
		return nil, m.err
	case err != nil && !errors.Is(err, zip.ErrInsecurePath): // names are only looked up in the book
		return nil, page.ErrBroken
	}
	m.unlimited = true
	b := &book{from: m, files: map[string]*zip.File{}, left: expanded, sheets: map[string]*sheet{}}
	for _, f := range z.File {
		if b.files[f.Name] == nil {
			b.files[f.Name] = f
		}
	}
	return b, nil
}

// metered bounds how much of a file the zip reader takes for its directory, and keeps the errors of the file apart from those of
// the format.
type metered struct {
	content   io.ReaderAt
	left      int64
	unlimited bool
	err       error
}

func (m *metered) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 { // where a broken directory points
		return 0, page.ErrBroken
	}
	if !m.unlimited {
		if m.left -= int64(len(p)); m.left < 0 {
			return 0, page.ErrTooLarge
		}
	}
	n, err := m.content.ReadAt(p, at)
	if err != nil && err != io.EOF {
		m.err = err
	}
	return n, err
}

// open reads one file, and takes what it grows to from left.
func (b *book) open(name string, left *int64) (io.Reader, error) {
	f := b.files[name]
	if f == nil {
		return nil, page.ErrBroken
	}
	if f.Flags&1 != 0 {
		return nil, page.ErrEncrypted
	}
	r, err := f.Open()
	if err != nil {
		return nil, b.broken()
	}
	return &growing{book: b, from: r, left: left}, nil
}

// broken is why a file cannot be read: the book's own fault, or that of what it is read from.
func (b *book) broken() error {
	if b.from.err != nil {
		return b.from.err
	}
	return page.ErrBroken
}

type growing struct {
	book *book
	from io.Reader
	left *int64
}

func (g *growing) Read(p []byte) (int, error) {
	n, err := g.from.Read(p)
	if *g.left -= int64(n); *g.left < 0 {
		return 0, page.ErrTooLarge
	}
	if err != nil && err != io.EOF {
		return n, g.book.broken()
	}
	return n, err
}

// parts calls each for every element of an XML file of the book.
func (b *book) parts(name string, each func(xml.StartElement)) error {
	r, err := b.open(name, &b.left)
	if err != nil {
		return err
	}
	limited := &io.LimitedReader{R: r, N: maxPackage + 1}
	d := xml.NewDecoder(limited)
	d.CharsetReader = htmlcharset.NewReaderLabel
	d.Strict = false
	for {
		t, err := d.RawToken()
		switch {
		case err == io.EOF && limited.N > 0:
			return nil
		case limited.N <= 0, errors.Is(err, page.ErrTooLarge):
			return page.ErrTooLarge
		case err != nil:
			return b.broken()
		}
		if e, ok := t.(xml.StartElement); ok {
			each(e)
		}
	}
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (b *book) refuseEncrypted() error {
	const name = "META-INF/encryption.xml"
	if b.files[name] == nil {
		return nil
	}
	encrypted := false
	err := b.parts(name, func(e xml.StartElement) {
		if e.Name.Local == "EncryptionMethod" && !fontObfuscation[attribute(e, "Algorithm")] {
			encrypted = true
		}
	})
	if err == nil && encrypted {
		err = page.ErrEncrypted
	}
	return err
}

// item is a file of the book.
type item struct{ name, mediaType, fallback string }

func (b *book) spine() ([]item, error) {
	root := ""
	err := b.parts("META-INF/container.xml", func(e xml.StartElement) {
		if kind := attribute(e, "media-type"); e.Name.Local == "rootfile" && root == "" && (kind == "" || kind == "application/oebps-package+xml") {
			root = path.Clean("/" + attribute(e, "full-path"))[1:]
		}
	})
	if err != nil {
		return nil, err
	}
	manifest := map[string]item{}
	var order []string
	err = b.parts(root, func(e xml.StartElement) {
		switch id := attribute(e, "id"); {
		case e.Name.Local == "item" && len(manifest) < maxItems:
			manifest[id] = item{resolve(root, attribute(e, "href")), attribute(e, "media-type"), attribute(e, "fallback")}
		case e.Name.Local == "itemref" && len(order) < maxItems:
			order = append(order, attribute(e, "idref"))
		}
	})
	if err != nil {
		return nil, err
	}
	var items []item
	for _, id := range order {
		it, ok := manifest[id]
		for n := 0; ok && !readable(it.mediaType) && n < maxFallbacks; n++ {
			next, more := manifest[it.fallback]
			if !more {
				break
			}
			it = next
		}
		if ok { // reading systems pass over what is not in the manifest
			items = append(items, it)
		}
	}
	if len(items) == 0 {
		return nil, page.ErrBroken
	}
	return items, nil
}

func readable(mediaType string) bool {
	switch strings.ToLower(mediaType) {
	case "application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document":
		return true
	}
	return false
}

// resolve is the name in the zip that href means in the file base. It never leaves the zip.
func resolve(base, href string) string {
	href, _, _ = strings.Cut(href, "#")
	if plain, err := url.PathUnescape(href); err == nil {
		href = plain
	}
	return path.Clean("/" + path.Join(path.Dir(base), href))[1:]
}

func (b *book) chapter(it item, room int64) (page.Page, bool, error) {
	if !readable(it.mediaType) {
		return page.Page{}, false, nil
	}
	left, again := &b.left, b.left
	d := document{
		open: func() (io.Reader, error) {
			r, err := b.open(it.name, left)
			left = &again // the second reading does not count
			return r, err
		},
		linked:   func(href string) *sheet { return b.sheet(resolve(it.name, href)) },
		untitled: true,
	}
	p, cut, err := d.read(room)
	if err == nil && b.left < 0 {
		err = page.ErrTooLarge
	}
	return p, cut, err
}

// sheet reads a style sheet of the book once.
func (b *book) sheet(name string) *sheet {
	if s, ok := b.sheets[name]; ok {
		return s
	}
	b.sheets[name] = nil
	r, err := b.open(name, &b.left)
	if err != nil {
		return nil
	}
	css, err := io.ReadAll(io.LimitReader(r, maxSheetBytes))
	if err != nil {
		return nil
	}
	s := &sheet{}
	s.add(string(css))
	b.sheets[name] = s
	return s
}
