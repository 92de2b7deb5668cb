// Package portal serves the pages for people: static files that are part of the binary. They call the same API as everybody else.
package portal

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed site
var site embed.FS

// contentPolicy allows what comes from this service and nothing else, and nothing that stands inside a page.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

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

// file is one of the site, as it is sent.
type file struct {
	content []byte
	kind    string
	etag    string
}

type pages map[string]file // by path in the site

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
		sum := sha256.Sum256(content)
		p[strings.TrimPrefix(name, "site/")] = file{content, kind, `"` + hex.EncodeToString(sum[:16]) + `"`}
		return nil
	})
	if err != nil {
		panic(err) // what is embedded can be read
	}
	return p
}

func (p pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	f, ok := p[place(r.URL.Path)]
	if !ok {
		f = p[missing]
		h.Set("Content-Type", f.kind)
		w.WriteHeader(http.StatusNotFound)
		if r.Method != http.MethodHead {
			_, _ = w.Write(f.content) // nobody left to tell
		}
		return
	}
	h.Set("Content-Type", f.kind)
	h.Set("ETag", f.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
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
