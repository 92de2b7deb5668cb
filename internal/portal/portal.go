// Package portal serves the pages for people: static files that are part of the binary. They call the same API as everybody else.
package portal

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/accession/accession/internal/webfile"
)

//go:embed site
var site embed.FS

const missing = "missing.html" // answers for a page that is not there

// kinds are the media types of the site's files: those of the machine it runs on may differ.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".json": "application/json",
	".svg":  "image/svg+xml",
	".png":  "image/png",
	".ico":  "image/x-icon",
	".txt":  "text/plain; charset=utf-8",
}

type pages map[string]webfile.File // by path in the site

// New makes the handler of /, /portal, /portal/<page> and /assets/<file>. Any other path is a page that says so, with 404.
func New() http.Handler {
	p := pages{}
	err := fs.WalkDir(site, "site", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := site.ReadFile(name)
		if err != nil {
			return err
		}
		kind, ok := kinds[path.Ext(name)]
		if !ok {
			kind = "application/octet-stream"
		}
		p[strings.TrimPrefix(name, "site/")] = webfile.New(kind, content)
		return nil
	})
	if err != nil {
		panic(err) // what is embedded can be read
	}
	return p
}

func (p pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f, ok := p[place(r.URL.Path)]; ok {
		f.Send(w, r)
		return
	}
	p[missing].SendMissing(w, r)
}

// place is where the file for a path lies in the site; empty where there can be none.
func place(at string) string {
	switch {
	case at == "/":
		return "home.html"
	case at == "/portal":
		return "portal.html"
	case strings.HasPrefix(at, "/assets/"):
		return strings.TrimPrefix(at, "/")
	}
	switch page := strings.TrimPrefix(at, "/portal/"); page {
	case at, "home", "portal", "missing":
		return ""
	default:
		return page + ".html"
	}
}
