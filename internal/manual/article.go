package manual

import (
	"bytes"
	"net/url"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// repository is where links lead that leave the manual.
const repository = "https://github.com/accession/accession/blob/main/"

// heading is a place in a page that a link can name.
type heading struct {
	level    int
	id, text string
}

// article is a Markdown file as HTML, with its headings.
type article struct {
	body     []byte
	headings []heading // of levels 2 and 3, in order
}

// sections are the headings of level 2.
func (a article) sections() (found []heading) {
	for _, h := range a.headings {
		if h.level == 2 {
			found = append(found, h)
		}
	}
	return found
}

// Cells have no alignment, which goldmark would write as a style: the policy forbids those. Raw HTML is left out; in the files
// it is comments alone, for tests.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone))),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(blocks{}, 100))),
)

func readArticle(source []byte) article {
	var a article
	tree := markdown.Parser().Parse(text.NewReader(source))
	var comments []ast.Node
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function below has no error
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.HTMLBlock:
			comments = append(comments, n)
		case *ast.Link:
			n.Destination = []byte(target(string(n.Destination)))
		case *ast.Heading:
			if n.Level == 2 || n.Level == 3 {
				a.headings = append(a.headings, heading{n.Level, idOf(n), plain(n, source)})
			}
		}
		return ast.WalkContinue, nil
	})
	for _, n := range comments {
		n.Parent().RemoveChild(n.Parent(), n)
	}
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, source, tree); err != nil {
		panic(err) // a buffer takes everything
	}
	a.body = b.Bytes()
	return a
}

// target is where a link of a file in docs/ leads on the site.
func target(destination string) string {
	u, err := url.Parse(destination)
	if err != nil || u.IsAbs() || u.Path == "" || strings.HasPrefix(u.Path, "/") {
		return destination
	}
	at := path.Join("docs", u.Path)
	for _, p := range pages() {
		if at == "docs/"+p.file {
			u.Path = p.url()
			return u.String()
		}
	}
	return repository + at
}

func idOf(n ast.Node) string {
	id, _ := n.AttributeString("id")
	b, _ := id.([]byte)
	return string(b)
}

// plain is the text of a node without its marks.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// blocks writes headings that can be linked to, and tables and code that scroll and can be reached by keyboard.
type blocks struct{}

func (b blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, b.heading)
	r.Register(ast.KindFencedCodeBlock, b.code)
	r.Register(tables.KindTable, b.table)
}

func (blocks) heading(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.Heading)
	level := string('0' + rune(n.Level))
	if entering {
		_, _ = w.WriteString("<h" + level + " id=\"" + idOf(n) + "\">") // errors show when the whole is rendered
		return ast.WalkContinue, nil
	}
	if n.Level > 1 {
		_, _ = w.WriteString(" <a class=\"anchor\" href=\"#" + idOf(n) + "\" aria-label=\"Link to “")
		_, _ = w.Write(util.EscapeHTML([]byte(plain(n, source))))
		_, _ = w.WriteString("”\">#</a>")
	}
	_, _ = w.WriteString("</h" + level + ">\n")
	return ast.WalkContinue, nil
}

func (blocks) code(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.FencedCodeBlock)
	language := util.EscapeHTML(n.Language(source))
	_, _ = w.WriteString("<div class=\"code\" data-language=\"")
	_, _ = w.Write(language)
	_, _ = w.WriteString("\"><pre tabindex=\"0\"><code>")
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		_, _ = w.Write(util.EscapeHTML(line.Value(source)))
	}
	_, _ = w.WriteString("</code></pre></div>\n")
	return ast.WalkContinue, nil
}

func (blocks) table(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString("<div class=\"scroll\" role=\"group\" aria-label=\"Table\" tabindex=\"0\"><table>\n")
	} else {
		_, _ = w.WriteString("</table></div>\n")
	}
	return ast.WalkContinue, nil
}
