package office

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"golang.org/x/text/encoding/unicode"

	"github.com/accession/accession/internal/extract/page"
)

const (
	maxDepth      = 512     // elements inside each other
	tagBytes      = 8 << 20 // bytes of one tag with its attributes; Word puts whole drawings there
	maxNamespaces = 1024    // declared in one part
)

// visitor is shown a part's elements and text, in order. start may return errSkip: the element is then left out with all in
// it, its end included. Any other error ends the walk and is what it returns.
type visitor interface {
	start(e *element) error
	end(e *element) error
	text(s string, e *element) error
}

var errSkip = errors.New("skip this element")

// element is an open element. It is valid during the call only.
type element struct {
	name  string // without its prefix
	space string
	attrs []xml.Attr
	path  []string // names of the open elements, outermost first, its own last
}

func (e *element) parent() string      { return e.above(1) }
func (e *element) grandparent() string { return e.above(2) }

// section is the name of the element below the part's root.
func (e *element) section() string {
	if len(e.path) < 2 {
		return ""
	}
	return e.path[1]
}

func (e *element) above(n int) string {
	if n >= len(e.path) {
		return ""
	}
	return e.path[len(e.path)-1-n]
}

// attr finds an attribute by its name without prefix; one of the element's own namespace, or of none, goes before others.
func (e *element) attr(name string) string {
	found := ""
	for _, a := range e.attrs {
		if a.Name.Local == name && a.Name.Space != "xmlns" {
			if a.Name.Space == "" || a.Name.Space == e.space {
				return a.Value
			}
			if found == "" {
				found = a.Value
			}
		}
	}
	return found
}

// relation finds an attribute that names a relationship.
func (e *element) relation(name string) string {
	for _, a := range e.attrs {
		if a.Name.Local == name && strings.HasSuffix(a.Name.Space, "/relationships") {
			return a.Value
		}
	}
	return ""
}

// off reads an attribute or property that is on unless it says that it is not.
func off(value string) bool { return value == "0" || value == "false" || value == "off" }

// on reads an attribute that is off unless it says that it is not.
func on(value string) bool { return value == "1" || value == "true" || value == "on" }

// walk shows a part to v. Of mc:AlternateContent it shows the one alternative that a reader of today would. root, unless
// empty, is what the outermost element must be.
func (c *container) walk(name, root string, v visitor) error {
	r, err := c.open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	in := &tokens{r: bufio.NewReaderSize(r, 32<<10)}
	d := xml.NewDecoder(in)
	d.CharsetReader = func(label string, r io.Reader) (io.Reader, error) {
		if label = strings.ToLower(label); label == "us-ascii" || in.wide && strings.HasPrefix(label, "utf-16") {
			return r, nil
		}
		return nil, page.ErrUnsupported
	}
	if mark, _ := in.r.Peek(2); bytes.Equal(mark, []byte{0xFE, 0xFF}) || bytes.Equal(mark, []byte{0xFF, 0xFE}) {
		in.wide = true
		in.r = bufio.NewReader(unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewDecoder().Reader(in.r))
	}
	w := walk{visitor: v, root: root, namespaces: map[string]string{}}
	for {
		in.next(c.textBytes)
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return c.fault(err)
		}
		if err := w.token(token); err != nil {
			return err
		}
	}
	if !w.begun {
		return page.ErrBroken
	}
	return nil
}

type walk struct {
	visitor
	root       string
	begun      bool
	e          element
	skipped    int               // depth of the element that is left out; 0: none
	namespaces map[string]string // by prefix
	chosen     []bool            // for each open mc:AlternateContent: an alternative was shown
}

func (w *walk) token(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		return w.open(t)
	case xml.EndElement:
		return w.close(t)
	case xml.CharData:
		if w.skipped == 0 && len(w.e.path) > 0 {
			w.e.name = w.e.path[len(w.e.path)-1]
			return w.text(string(t), &w.e)
		}
	case xml.Directive: // a document type: entities come with it. Old manifests have one that only names itself.
		if w.root != "manifest" || bytes.ContainsRune(t, '[') {
			return page.ErrBroken
		}
	}
	return nil
}

func (w *walk) open(t xml.StartElement) error {
	if len(w.e.path) == maxDepth {
		return page.ErrTooLarge
	}
	if !w.begun && w.root != "" && t.Name.Local != w.root {
		return page.ErrBroken
	}
	w.begun = true
	w.e.path = append(w.e.path, t.Name.Local)
	if w.skipped > 0 {
		return nil
	}
	for _, a := range t.Attr {
		if a.Name.Space == "xmlns" && len(w.namespaces) < maxNamespaces {
			w.namespaces[a.Name.Local] = a.Value
		}
	}
	w.e.name, w.e.space, w.e.attrs = t.Name.Local, t.Name.Space, t.Attr
	err := w.alternative()
	if err == nil {
		err = w.start(&w.e)
	}
	if err == errSkip {
		w.skipped, err = len(w.e.path), nil
	}
	return err
}

func (w *walk) close(t xml.EndElement) error {
	depth := len(w.e.path)
	defer func() { w.e.path = w.e.path[:depth-1] }()
	if t.Name.Local == "AlternateContent" && len(w.chosen) > 0 && (w.skipped == 0 || w.skipped == depth) {
		w.chosen = w.chosen[:len(w.chosen)-1]
	}
	switch {
	case w.skipped == depth:
		w.skipped = 0
		return nil
	case w.skipped > 0:
		return nil
	}
	w.e.name, w.e.space, w.e.attrs = t.Name.Local, t.Name.Space, nil
	return w.end(&w.e)
}

// alternative chooses the first alternative whose extensions are known. All that are in use are Microsoft's.
func (w *walk) alternative() error {
	last := len(w.chosen) - 1
	switch {
	case w.e.name == "AlternateContent":
		w.chosen = append(w.chosen, false)
	case w.e.parent() != "AlternateContent" || last < 0:
	case w.chosen[last]:
		return errSkip
	case w.e.name == "Choice":
		for _, prefix := range strings.Fields(w.e.attr("Requires")) {
			if !strings.HasPrefix(w.namespaces[prefix], "http://schemas.microsoft.com/office/") {
				return errSkip
			}
		}
		w.chosen[last] = true
	case w.e.name == "Fallback":
		w.chosen[last] = true
	}
	return nil
}

// tokens bounds the bytes of one token: the decoder holds it in memory.
type tokens struct {
	r    *bufio.Reader
	left int
	tag  bool // the token that comes is a tag: the decoder has read its first byte
	wide bool
}

func (t *tokens) next(textBytes int) {
	if t.left = textBytes; t.tag {
		t.left = tagBytes
	}
}

func (t *tokens) ReadByte() (byte, error) {
	if t.left--; t.left < 0 {
		return 0, page.ErrTooLarge
	}
	b, err := t.r.ReadByte()
	switch b {
	case '<':
		t.left, t.tag = min(t.left, tagBytes), true
	case '>':
		t.tag = false
	}
	return b, err
}

// Read is for the decoder's CharsetReader, which hands the bytes on as they are.
func (t *tokens) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	b, err := t.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0] = b
	return 1, nil
}
