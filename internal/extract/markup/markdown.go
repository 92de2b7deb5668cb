package markup

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	goldhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"golang.org/x/net/html"

	"github.com/accession/accession/internal/extract/charset"
	"github.com/accession/accession/internal/extract/page"
)

// ReadMarkdown reads CommonMark with tables and strikethrough as one page of text without the marks, laid out as ReadHTML
// does. Of links the text is kept, of autolinks the address; of pictures nothing. HTML inside goes by the rules of ReadHTML.
//
// A piece of the document that would take the parser more than linear time (see costs) is taken literally, marks and
// all, only its tags are left out. Text that is no text is ErrBroken. Of the content the first 2×limits.TextBytes are read.
func ReadMarkdown(content io.ReaderAt, size int64, declaredCharset string, limits page.Limits, emit func(page.Page) error) (truncated bool, err error) {
	whole := min(size, 2*limits.TextBytes)
	raw, err := io.ReadAll(io.NewSectionReader(content, 0, whole))
	if err != nil {
		return false, err
	}
	source, ok := charset.Decode(raw, declaredCharset)
	if !ok {
		return false, page.ErrBroken
	}
	source = strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(source, "\uFEFF"), "\r\n", "\n"), "\r", "\n")
	m := markdown{
		view:   view{flow: flow{w: page.NewWriter(limits.TextBytes)}, sheets: []*sheet{stylesIn(source)}},
		parser: goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough)).Parser(),
	}
	if err := m.read(source); err != nil {
		return false, err
	}
	return m.w.Full() || whole < size, emit(m.w.Page())
}

type markdown struct {
	view
	parser parser.Parser
	source []byte
}

func (m *markdown) read(source string) error {
	var links []parser.Reference
	if len(source) > pieceBytes {
		links = linksIn(source)
	}
	budget := maxCost
	for piece := range pieces(source) {
		if m.w.Full() {
			return nil
		}
		cost, tame := costs(piece)
		if budget -= cost; !tame || budget < 0 {
			if err := m.literally(piece); err != nil {
				return err
			}
			continue
		}
		known := parser.NewContext()
		for _, link := range links {
			known.AddReference(link)
		}
		m.source = []byte(piece)
		if err := m.walk(m.parser.Parse(text.NewReader(m.source), parser.WithContext(known))); err != nil {
			return err
		}
	}
	return nil
}

func (m *markdown) literally(piece string) error {
	m.element("pre", "")
	_, err := m.feed(strings.NewReader(piece), false)
	m.end("pre")
	return err
}

// walk goes through the tree without recursion: it may be as deep as the document wants.
func (m *markdown) walk(root ast.Node) error {
	for n, entering := root, true; n != nil && !m.w.Full(); {
		if entering {
			into, err := m.enter(n)
			if err != nil {
				return err
			}
			if child := n.FirstChild(); into && child != nil {
				n = child
				continue
			}
		}
		if tag := tagOf(n); tag != "" {
			m.end(tag)
		}
		if n == root {
			return nil
		}
		if next := n.NextSibling(); next != nil {
			n, entering = next, true
		} else {
			n, entering = n.Parent(), false
		}
	}
	return nil
}

func tagOf(n ast.Node) string {
	switch n := n.(type) {
	case *ast.Heading:
		return fmt.Sprintf("h%d", n.Level)
	case *ast.Paragraph:
		return "p"
	case *ast.TextBlock:
		return "div"
	case *ast.Blockquote:
		return "blockquote"
	case *ast.List:
		if n.IsOrdered() {
			return "ol"
		}
		return "ul"
	case *ast.ListItem:
		return "li"
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		return "pre"
	case *extast.Table:
		return "table"
	case *extast.TableHeader, *extast.TableRow:
		return "tr"
	case *extast.TableCell:
		return "td"
	}
	return ""
}

// enter tells whether what is inside the node is to be read too.
func (m *markdown) enter(n ast.Node) (into bool, err error) {
	start := ""
	if l, ok := n.(*ast.List); ok && l.IsOrdered() {
		start = fmt.Sprint(l.Start)
	}
	if tag := tagOf(n); tag != "" {
		m.element(tag, start)
	}
	switch n := n.(type) {
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		lines := n.Lines()
		for i := range lines.Len() {
			m.text(m.valid(lines.At(i)))
		}
		return false, nil
	case *ast.ThematicBreak:
		m.element("hr", "")
	case *ast.HTMLBlock:
		var b strings.Builder
		lines := n.Lines()
		for i := range lines.Len() {
			b.WriteString(m.valid(lines.At(i)))
		}
		if n.HasClosure() {
			b.WriteString(m.valid(n.ClosureLine))
		}
		_, err = m.feed(strings.NewReader(b.String()), false)
		return false, err
	case *ast.RawHTML:
		var b strings.Builder
		for i := range n.Segments.Len() {
			b.WriteString(m.valid(n.Segments.At(i)))
		}
		_, err = m.feed(strings.NewReader(b.String()), false)
		return false, err
	case *ast.Text:
		s := m.valid(n.Segment)
		if !n.IsRaw() {
			s = unescaped(s)
		}
		m.text(s)
		if n.HardLineBreak() {
			m.element("br", "")
		} else if n.SoftLineBreak() {
			m.text("\n")
		}
	case *ast.String:
		m.text(strings.ToValidUTF8(string(n.Value), "\uFFFD"))
	case *ast.AutoLink:
		m.text(strings.ToValidUTF8(string(n.Label(m.source)), "\uFFFD"))
		return false, nil
	case *ast.Image:
		return false, nil
	}
	return true, nil
}

// element starts one that Markdown knows.
func (m *markdown) element(tag, start string) {
	m.start(tag, attributes{start: start}, false)
	m.fresh = false
}

func (m *markdown) valid(s text.Segment) string {
	return strings.ToValidUTF8(string(s.Value(m.source)), "\uFFFD")
}

// unescaped resolves backslashes and entities the way the parser's own writer does.
func unescaped(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var b strings.Builder
	w := bufio.NewWriter(&b)
	goldhtml.DefaultWriter.Write(w, []byte(s))
	_ = w.Flush()
	return html.UnescapeString(b.String())
}

// stylesIn gathers every <style>, because the rules count wherever they stand.
func stylesIn(source string) *sheet {
	var s sheet
	lower := asciiLower(source)
	for at := 0; ; {
		i := strings.Index(lower[at:], "<style")
		if i < 0 {
			return &s
		}
		at += i
		open := strings.IndexByte(lower[at:], '>')
		if open < 0 {
			return &s
		}
		at += open + 1
		end := strings.Index(lower[at:], "</style")
		if end < 0 {
			return &s
		}
		s.add(source[at : at+end])
		at += end
	}
}

func asciiLower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
