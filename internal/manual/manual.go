// Package manual serves the documentation: the Markdown files of docs/, made into pages at their first use.
package manual

import (
	"bytes"
	"embed"
	"encoding/json"
	"html"
	"net/http"
	"strings"
	"sync"

	"github.com/accession/accession/docs"
	"github.com/accession/accession/internal/webfile"
)

//go:embed assets
var assets embed.FS

// exampleURL stands in the Markdown for the address of the service; a page shows the reader's own.
const exampleURL = "https://custody.example"

const (
	kindHTML     = "text/html; charset=utf-8"
	kindMarkdown = "text/markdown; charset=utf-8"
	kindJSON     = "application/json"
)

var kinds = map[string]string{"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}

type manual struct {
	baseURL string
	files   func() map[string]webfile.File // by path
}

// New makes the handler of /docs, /docs/<page>, /docs/<page>.md (the Markdown itself) and /docs/assets/<file>. baseURL is what
// clients reach the service at; examples show it. Any other path is a page that says so, with 404.
func New(baseURL string) http.Handler {
	m := &manual{baseURL: strings.TrimRight(baseURL, "/")}
	m.files = sync.OnceValue(m.render)
	return m
}

func (m *manual) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	files := m.files()
	if f, ok := files[r.URL.Path]; ok {
		f.Send(w, r)
		return
	}
	files[""].SendMissing(w, r)
}

// entry is what the search looks through.
type entry struct {
	Page  string `json:"page"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

func (m *manual) render() map[string]webfile.File {
	files := map[string]webfile.File{}
	var index []entry
	read := map[string]article{}
	for _, p := range pages() {
		source, err := docs.Files.ReadFile(p.file)
		if err != nil {
			panic(err) // a test reads every page
		}
		source = bytes.ReplaceAll(source, []byte(exampleURL), []byte(m.baseURL))
		a := readArticle(source)
		read[p.file] = a
		files["/docs/"+p.file] = webfile.New(kindMarkdown, source)
		index = append(index, entry{p.title, p.title, p.url()})
		for _, h := range a.headings {
			index = append(index, entry{p.title, h.text, p.url() + "#" + h.id})
		}
	}
	all := pages()
	for i, p := range all {
		var before, after *page
		if i > 0 {
			before = &all[i-1]
		}
		if i+1 < len(all) {
			after = &all[i+1]
		}
		files[p.url()] = webfile.New(kindHTML, layout(p, read[p.file], before, after))
	}
	missing := article{body: []byte("<h1>There is no such page</h1>\n<p>Look for it in the list of pages, or begin at the <a href=\"/docs\">start of the documentation</a>.</p>\n")}
	files[""] = webfile.New(kindHTML, layout(page{title: "No such page"}, missing, nil, nil))
	list, err := json.Marshal(index)
	if err != nil {
		panic(err) // strings
	}
	files["/docs/assets/headings.json"] = webfile.New(kindJSON, list)
	entries, err := assets.ReadDir("assets")
	if err != nil {
		panic(err) // what is embedded can be read
	}
	for _, e := range entries {
		content, err := assets.ReadFile("assets/" + e.Name())
		if err != nil {
			panic(err)
		}
		files["/docs/assets/"+e.Name()] = webfile.New(kinds[e.Name()[strings.LastIndexByte(e.Name(), '.')+1:]], content)
	}
	return files
}

// layout is a whole page around an article.
func layout(p page, a article, before, after *page) []byte {
	var b bytes.Buffer
	title := html.EscapeString(p.title)
	b.WriteString("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
		"<title>" + title + " – accession documentation</title>\n" +
		"<link rel=\"icon\" href=\"/assets/seal.svg\" type=\"image/svg+xml\">\n<script src=\"/assets/theme.js\"></script>\n" +
		"<link rel=\"stylesheet\" href=\"/assets/base.css\">\n<link rel=\"stylesheet\" href=\"/docs/assets/docs.css\">\n" +
		"<script type=\"module\" src=\"/assets/shell.js\"></script>\n<script type=\"module\" src=\"/docs/assets/docs.js\"></script>\n")
	for _, script := range p.scripts {
		b.WriteString("<script type=\"module\" src=\"/docs/assets/" + script + "\"></script>\n")
	}
	b.WriteString("</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header class=\"site\"><div class=\"site-in\">\n" +
		"<a class=\"brand\" href=\"/\"><img src=\"/assets/seal.svg\" alt=\"\" width=\"26\" height=\"26\">accession</a>\n" +
		"<nav aria-label=\"Main\"><a href=\"/portal/customer\">Customer</a><a href=\"/portal/company\">Solution company</a><a href=\"/portal/reader\">AI reader</a>" +
		"<a href=\"/portal/operator\">Operator</a><a href=\"/docs\">Documentation</a></nav>\n<div class=\"tools\"></div>\n</div></header>\n<div class=\"manual\">\n")

	b.WriteString("<div class=\"pages\"><details class=\"menu\" open><summary>Pages</summary>\n" +
		"<form id=\"search\" role=\"search\" hidden><label for=\"sought\" class=\"hidden-text\">Find a heading</label>" +
		"<input id=\"sought\" type=\"search\" placeholder=\"Find a heading\" autocomplete=\"off\" spellcheck=\"false\"></form>\n" +
		"<div id=\"found\" class=\"found\" role=\"status\"></div>\n<nav aria-label=\"Documentation\">\n")
	for _, c := range chapters {
		b.WriteString("<h2>" + html.EscapeString(c.title) + "</h2>\n<ul>")
		for _, other := range c.pages {
			current := ""
			if other.file == p.file {
				current = " aria-current=\"page\""
			}
			b.WriteString("<li><a href=\"" + other.url() + "\"" + current + ">" + html.EscapeString(other.title) + "</a></li>")
		}
		b.WriteString("</ul>\n")
	}
	b.WriteString("</nav></details></div>\n<main id=\"main\" tabindex=\"-1\">\n<article class=\"prose\">\n")
	b.Write(a.body)
	for _, place := range p.places {
		b.WriteString("<div id=\"" + place + "\"></div>\n")
	}
	b.WriteString("</article>\n")
	if before != nil || after != nil {
		b.WriteString("<nav class=\"around\" aria-label=\"Pages before and after\">")
		if before != nil {
			b.WriteString("<a href=\"" + before.url() + "\" rel=\"prev\"><small>Before</small>" + html.EscapeString(before.title) + "</a>")
		}
		if after != nil {
			b.WriteString("<a href=\"" + after.url() + "\" rel=\"next\"><small>Next</small>" + html.EscapeString(after.title) + "</a>")
		}
		b.WriteString("</nav>\n")
	}
	b.WriteString("</main>\n")
	if sections := a.sections(); len(sections) > 1 {
		b.WriteString("<div class=\"contents\"><nav aria-label=\"On this page\"><h2>On this page</h2>\n<ul>")
		for _, h := range sections {
			b.WriteString("<li><a href=\"#" + h.id + "\">" + html.EscapeString(h.text) + "</a></li>")
		}
		b.WriteString("</ul></nav></div>\n")
	}
	b.WriteString("</div>\n<footer class=\"foot\"><div class=\"foot-in\"><span>Customer-submitted, unverified. Nothing here says that anything is true.</span>")
	if p.file != "" {
		b.WriteString("<a href=\"/docs/" + p.file + "\">This page as Markdown</a>")
	}
	b.WriteString("</div></footer>\n</body>\n</html>\n")
	return b.Bytes()
}
