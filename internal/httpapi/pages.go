package httpapi

import (
	"net/http"

	"github.com/accession/accession/internal/custody"
)

// pages are for people: the portal and the documentation. They are files, the same for everybody, and no operations of the
// contract. They count against their address alone: one page is several requests.
type pages struct{}

func (pages) mount(d *door) {
	for _, served := range []struct {
		name     string
		handler  http.Handler
		patterns []string
	}{
		{"getPage", d.cfg.Pages, []string{"/{$}", "/portal", "/portal/{page}", "/assets/{file...}"}},
		{"getManual", d.cfg.Manual, []string{"/docs", "/docs/{page...}"}},
	} {
		if served.handler == nil {
			continue
		}
		for _, pattern := range served.patterns {
			d.mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) {
				x := exchangeOf(r.Context())
				d.reached(x, served.name)
				served.handler.ServeHTTP(w, r)
				if x.answer.status == http.StatusNotFound {
					x.code = custody.CodeRouteNotFound
				}
			})
		}
	}
}
