package office

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/accession/accession/internal/extract/page"
)

func pictureNamesIn(media string, file []byte) (string, error) {
	var seen []string
	err := Pictures(media, bytes.NewReader(file), int64(len(file)), roomy, func(name string, r io.Reader) error {
		content, err := io.ReadAll(r)
		seen = append(seen, name+"="+string(content))
		return err
	})
	return strings.Join(seen, " "), err
}

func TestPictures(t *testing.T) {
	blip := func(id string) string {
		return `<w:p><w:r><w:drawing><a:blip r:embed="` + id + `"/></w:drawing></w:r></w:p>`
	}
	doc := wordFile(blip("p2") + `<w:p><w:r><w:pict><v:imagedata r:id="p1"/></w:pict></w:r></w:p>` + blip("p2") + blip("p9"))
	doc = append(doc[:len(doc)-1], rels("p1 image media/image1.PNG", "p2 image media/image2.jpeg", "p9 image media/gone.png"),
		"word/media/image1.PNG", "one", "word/media/image2.jpeg", "two", "word/media/image10.tif", "ten", "word/media/image3.webp", "three", "word/media/image4.emf", "no", "word/theme/x.png", "no")
	show := append(deck(slide(`<p:pic><p:blipFill><a:blip r:embed="a"/></p:blipFill></p:pic>`), slide(`<p:pic><p:blipFill><a:blip r:embed="a"/></p:blipFill></p:pic>`)),
		"ppt/slides/_rels/slide2.xml.rels", rels("a image ../media/b.png"), "ppt/slides/_rels/slide1.xml.rels", rels("a image ../media/a.png"), "ppt/media/a.png", "A", "ppt/media/b.png", "B")
	book := append(bookFile("", "", `name="S"`, `<drawing r:id="d"/>`), "xl/worksheets/_rels/sheet2.xml.rels", rels("d drawing ../drawings/d.xml"),
		"xl/drawings/d.xml", root("xdr:wsDr", `<xdr:pic><a:blip r:embed="i"/></xdr:pic>`), "xl/drawings/_rels/d.xml.rels", rels("i image ../media/z.png"), "xl/media/z.png", "Z", "xl/media/a.png", "A")
	text := odfFile(`<office:text><text:p><draw:frame><draw:image xlink:href="Pictures/b.png"/></draw:frame><draw:frame><draw:image xlink:href="./Pictures/a.png"/></draw:frame></text:p></office:text>`, "",
		"Pictures/a.png", "A", "Pictures/b.png", "B", "Thumbnails/thumbnail.png", "no")
	for _, c := range []struct {
		media string
		file  parts
		want  string
	}{
		{docx, doc, "word/media/image2.jpeg=two word/media/image1.PNG=one word/media/image3.webp=three word/media/image10.tif=ten"},
		{pptx, show, "ppt/media/b.png=B ppt/media/a.png=A"},
		{xlsx, book, "xl/media/z.png=Z xl/media/a.png=A"},
		{odt, text, "Pictures/b.png=B Pictures/a.png=A"},
	} {
		if got, err := pictureNamesIn(c.media, c.file.zip(t)); err != nil || got != c.want {
			t.Errorf("%s: pictures %s, error %v; want %s", c.media, got, err, c.want)
		}
	}
	broken := corrupt(t, append(wordFile(""), "word/media/a.png", strings.Repeat("0123456789", 100)).zip(t), "word/media/a.png")
	if _, err := pictureNamesIn(docx, broken); !errors.Is(err, page.ErrBroken) {
		t.Errorf("a damaged picture: error %v", err)
	}
	stop := errors.New("enough")
	file := doc.zip(t)
	if err := Pictures(docx, bytes.NewReader(file), int64(len(file)), roomy, func(string, io.Reader) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the caller's error: %v", err)
	}
	if err := Pictures("text/plain", bytes.NewReader(nil), 0, roomy, nil); !errors.Is(err, page.ErrUnsupported) {
		t.Errorf("plain text: error %v", err)
	}
}
