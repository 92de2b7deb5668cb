// Package webfile sends a browser what it shows: files that the service holds whole, all under one policy.
package webfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"
)

// contentPolicy allows what comes from this service and nothing else, and nothing that stands inside a page.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// File is one answer. Make it with New.
type File struct {
	content []byte
	kind    string // media type
	etag    string
}

// New is the file of that media type and content.
func New(kind string, content []byte) File {
	sum := sha256.Sum256(content)
	return File{content, kind, `"` + hex.EncodeToString(sum[:16]) + `"`}
}

// Send answers r with the file, or that the browser has it already.
func (f File) Send(w http.ResponseWriter, r *http.Request) {
	f.announce(w.Header())
	w.Header().Set("ETag", f.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
}

// SendMissing answers r with 404 and the file, the page that says so.
func (f File) SendMissing(w http.ResponseWriter, r *http.Request) {
	f.announce(w.Header())
	w.WriteHeader(http.StatusNotFound)
	if r.Method != http.MethodHead {
		_, _ = w.Write(f.content) // nobody left to tell
	}
}

func (f File) announce(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Type", f.kind)
}
