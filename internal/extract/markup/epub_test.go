package markup

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/accession/accession/internal/extract/page"
)

const container = `<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
	<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`

const opf = `<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf"><manifest>
	<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
	<item id="two" href="text/two%20b.xhtml" media-type="application/xhtml+xml"/>
	<item id="one" href="text/one.xhtml" media-type="application/xhtml+xml"/>
	<item id="picture" href="x.svg" media-type="image/svg+xml"/>
	<item id="video" href="v.mp4" media-type="video/mp4" fallback="three"/>
	<item id="three" href="../three.xhtml" media-type="application/xhtml+xml"/>
</manifest><spine><itemref idref="one"/><itemref idref="picture"/><itemref idref="gone"/><itemref idref="two"/><itemref idref="video" linear="no"/></spine></package>`

func wholeBook() map[string]string {
	return map[string]string{
		"mimetype":               "application/epub+zip",
		"META-INF/container.xml": container,
		"OEBPS/book.opf":         opf,
		"OEBPS/nav.xhtml":        `<?xml version="1.0"?><html><body>contents</body></html>`,
		"OEBPS/text/one.xhtml": `<?xml version="1.0"?><html><head><title>One</title><link rel="stylesheet" href="../css/a.css"/>` +
			`<style>.s{display:block}</style></head><body><p>a <i class="h">b</i></p><p class="s">c</p></body></html>`,
		"OEBPS/text/two b.xhtml": `<?xml version="1.0"?><html><body><a id="x"/><p>d<![CDATA[<e>]]></p></body></html>`,
		"OEBPS/css/a.css":        `.h, .s { display: none }`,
		"three.xhtml":            `<p>f</p>`,
		"OEBPS/x.svg":            `<svg><text>no</text></svg>`,
	}
}

func zipped(t testing.TB, files map[string]string, change func(*zip.FileHeader)) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range files {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		if change != nil {
			change(h)
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readBook(content []byte, limits page.Limits) (pages []string, truncated bool, err error) {
	truncated, err = ReadEPUB(bytes.NewReader(content), int64(len(content)), limits, func(p page.Page) error {
		pages = append(pages, marked(p))
		return nil
	})
	return
}

func TestEPUB(t *testing.T) {
	t.Parallel()
	pages, truncated, err := readBook(zipped(t, wholeBook(), nil), roomy)
	want := []string{"a[invisible: b]\n\nc", "", "d<e>", "f"}
	if !reflect.DeepEqual(pages, want) || truncated || err != nil {
		t.Errorf("%q, truncated %t, %v", pages, truncated, err)
	}
}

func TestEPUBLimits(t *testing.T) {
	t.Parallel()
	content := zipped(t, wholeBook(), nil)
	for _, c := range []struct {
		name   string
		limits page.Limits
		pages  []string
	}{
		{"pages", page.Limits{Pages: 2, TextBytes: 100, ExpandedBytes: 1 << 20}, []string{"a[invisible: b]\n\nc", ""}},
		{"room", page.Limits{Pages: 9, TextBytes: 8, ExpandedBytes: 1 << 20}, []string{"a[invisible: b]\n\nc", "", "d<"}},
		{"room used up", page.Limits{Pages: 9, TextBytes: 6, ExpandedBytes: 1 << 20}, []string{"a[invisible: b]\n\nc"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pages, truncated, err := readBook(content, c.limits)
			if !reflect.DeepEqual(pages, c.pages) || !truncated || err != nil {
				t.Errorf("%q, truncated %t, %v", pages, truncated, err)
			}
		})
	}
	var total int64
	for name, content := range wholeBook() {
		if name != "mimetype" && name != "OEBPS/nav.xhtml" && name != "OEBPS/x.svg" {
			total += int64(len(content))
		}
	}
	if _, _, err := readBook(content, page.Limits{Pages: 9, TextBytes: 100, ExpandedBytes: total}); err != nil {
		t.Errorf("%d bytes of room for what it grows to: %v", total, err)
	}
	for _, room := range []int64{total - 1, total / 2, 10} {
		if _, _, err := readBook(content, page.Limits{Pages: 9, TextBytes: 100, ExpandedBytes: room}); !errors.Is(err, page.ErrTooLarge) {
			t.Errorf("%d bytes of room for what it grows to: %v", room, err)
		}
	}
}

func TestEPUBRefused(t *testing.T) {
	t.Parallel()
	encryption := func(algorithm string) string {
		return `<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><enc:EncryptedData xmlns:enc="http://www.w3.org/2001/04/xmlenc#">` +
			`<enc:EncryptionMethod Algorithm="` + algorithm + `"/></enc:EncryptedData></encryption>`
	}
	for _, c := range []struct {
		name, file, content string
		want                error
	}{
		{"fonts obfuscated", "META-INF/encryption.xml", encryption("http://www.idpf.org/2008/embedding"), nil},
		{"fonts obfuscated by Adobe", "META-INF/encryption.xml", encryption("http://ns.adobe.com/pdf/enc#RC"), nil},
		{"encrypted", "META-INF/encryption.xml", encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc"), page.ErrEncrypted},
		{"encryption not readable", "META-INF/encryption.xml", "<a", page.ErrBroken},
		{"container not readable", "META-INF/container.xml", "<a", page.ErrBroken},
		{"no package", "META-INF/container.xml", "<container/>", page.ErrBroken},
		{"package outside", "META-INF/container.xml", strings.Replace(container, "OEBPS/", "../../OEBPS/x/../", 1), nil},
		{"empty spine", "OEBPS/book.opf", "<package/>", page.ErrBroken},
		{"missing chapter", "OEBPS/book.opf", strings.Replace(opf, "one.xhtml", "../../../etc/passwd", 1), page.ErrBroken},
		{"chapter that is no text", "OEBPS/text/one.xhtml", strings.Repeat("\x01\x02", 100), page.ErrBroken},
		{"huge package", "OEBPS/book.opf", "<package>" + strings.Repeat(" ", maxPackage) + "</package>", page.ErrTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := wholeBook()
			files[c.file] = c.content
			if _, _, err := readBook(zipped(t, files, nil), roomy); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	t.Run("locked zip", func(t *testing.T) {
		t.Parallel()
		content := zipped(t, wholeBook(), func(h *zip.FileHeader) { h.Flags |= 1 })
		if _, _, err := readBook(content, roomy); !errors.Is(err, page.ErrEncrypted) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no zip", func(t *testing.T) {
		t.Parallel()
		if _, _, err := readBook([]byte("PK\x03\x04 nothing"), roomy); !errors.Is(err, page.ErrBroken) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("huge directory", func(t *testing.T) {
		t.Parallel()
		files := map[string]string{}
		long := strings.Repeat("x", 60_000)
		for i := range maxDirectory/60_000 + 1 {
			files[long+string(rune('a'+i/26))+string(rune('a'+i%26))] = ""
		}
		if _, _, err := readBook(zipped(t, files, nil), roomy); !errors.Is(err, page.ErrTooLarge) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("reading fails", func(t *testing.T) {
		t.Parallel()
		fault := errors.New("no such disk")
		content := zipped(t, wholeBook(), nil)
		for _, good := range []int{0, 2, 5, 8} {
			_, err := ReadEPUB(&failing{bytes.NewReader(content), good, fault}, int64(len(content)), roomy, func(page.Page) error { return nil })
			if !errors.Is(err, fault) {
				t.Errorf("after %d reads: %v", good, err)
			}
		}
	})
}

type failing struct {
	io.ReaderAt
	good  int
	fault error
}

func (f *failing) ReadAt(p []byte, at int64) (int, error) {
	if f.good--; f.good < 0 {
		return 0, f.fault
	}
	return f.ReaderAt.ReadAt(p, at)
}

func TestEPUBRepeatedItemsAreBounded(t *testing.T) {
	t.Parallel()
	files := wholeBook()
	files["OEBPS/book.opf"] = strings.Replace(opf, "<spine>", "<spine>"+strings.Repeat(`<itemref idref="one"/>`, 20_000), 1)
	pages, truncated, err := readBook(zipped(t, files, nil), page.Limits{Pages: 500, TextBytes: 1 << 20, ExpandedBytes: 1 << 20})
	if len(pages) != 500 || !truncated || err != nil {
		t.Errorf("%d pages, truncated %t, %v", len(pages), truncated, err)
	}
	if _, _, err := readBook(zipped(t, files, nil), page.Limits{Pages: 20_000, TextBytes: 1 << 20, ExpandedBytes: 1 << 20}); !errors.Is(err, page.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}
