package office

import (
	"cmp"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/accession/accession/internal/extract/page"
)

var pictureNames = map[string]bool{".png": true, ".jpg": true, ".jpeg": true, ".tif": true, ".tiff": true, ".webp": true}

// Pictures visits the embedded PNG, JPEG, TIFF and WebP pictures, by their names' endings: first those that the document shows,
// in its order, then the others by name; each once. name is the member's. What the pictures grow to counts against
// limits.ExpandedBytes. It stops with visit's error; its own errors, and those of r, are Read's.
func Pictures(media string, content io.ReaderAt, size int64, limits page.Limits, visit func(name string, r io.Reader) error) error {
	which := kinds[strings.ToLower(media)]
	if which == 0 {
		return page.ErrUnsupported
	}
	c, err := openContainer(content, size, limits)
	if err != nil {
		return err
	}
	p := &pictures{c: c, seen: map[string]bool{}}
	if which == openDocument {
		p.href = true
		err = optional(c, "content.xml", "", p)
	} else {
		var main string
		if main, err = c.main(); err == nil {
			err = p.part(main, 0)
		}
	}
	if err != nil {
		return err
	}
	for _, name := range slices.SortedFunc(slices.Values(c.names), byNumber) {
		dir := path.Base(path.Dir(name))
		if dir == "media" || dir == "Pictures" {
			p.add(name)
		}
	}
	for _, name := range p.order {
		r, err := c.open(name)
		if err != nil {
			return err
		}
		err = visit(name, r)
		r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// byNumber orders names so that image2 comes before image10.
func byNumber(a, b string) int {
	stem := func(s string) string { return strings.TrimRight(strings.TrimSuffix(s, path.Ext(s)), "0123456789") }
	if x, y := stem(a), stem(b); x == y {
		return cmp.Or(cmp.Compare(len(a)-len(path.Ext(a)), len(b)-len(path.Ext(b))), cmp.Compare(a, b))
	}
	return cmp.Compare(a, b)
}

// pictures finds what pictures a document shows.
type pictures struct {
	c     *container
	order []string
	seen  map[string]bool // pictures and parts
	rels  *relations
	href  bool     // the file is ODF: pictures are named, not related
	next  []string // parts that the part refers to, in its order
}

func (p *pictures) add(name string) {
	if p.c.has(name) && !p.seen[name] && pictureNames[strings.ToLower(path.Ext(name))] {
		p.seen[name] = true
		p.order = append(p.order, name)
	}
}

// part looks through a part and then through those that it shows: slides, sheets, drawings.
func (p *pictures) part(name string, depth int) error {
	if p.seen[name] || depth > 3 || !p.c.has(name) {
		return nil
	}
	p.seen[name] = true
	rels, err := p.c.relationsOf(name)
	if err != nil {
		return err
	}
	q := &pictures{c: p.c, seen: p.seen, rels: rels, order: p.order}
	if err := p.c.walk(name, "", q); err != nil {
		return err
	}
	p.order = q.order
	for _, part := range q.next {
		if err := p.part(part, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (p *pictures) start(e *element) error {
	if p.href {
		if e.name == "image" || e.name == "fill-image" {
			p.add(path.Clean(e.attr("href")))
		}
		return nil
	}
	for _, id := range []string{e.relation("embed"), e.relation("id"), e.relation("pict"), e.relation("link")} {
		if id == "" {
			continue
		}
		target := p.rels.target(id)
		switch e.name {
		case "sldId", "sheet", "drawing", "headerReference", "footerReference":
			p.next = append(p.next, target)
		default:
			p.add(target)
		}
	}
	return nil
}

func (p *pictures) end(*element) error          { return nil }
func (p *pictures) text(string, *element) error { return nil }
