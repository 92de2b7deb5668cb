package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// discovery serves the contract; it mounts last, when the document is whole. (Section 4.1.)
type discovery struct{ document []byte }

func (s *discovery) mount(d *door) {
	op := d.document(operation{
		name: "getOpenAPI", method: http.MethodGet, path: "/api/v1/ai/openapi.json", tag: "discovery", public: true,
		summary: "The machine-readable contract", doc: "This document, without an envelope.",
		answers: map[int]reflect.Type{200: reflect.TypeFor[openDocument]()},
	})
	huma.Register(d.api, op, func(context.Context, *struct{}) (*written, error) {
		return &written{func(hc huma.Context) {
			_, w := humago.Unwrap(hc)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "public, max-age=300")
			w.Header().Set("Content-Length", strconv.Itoa(len(s.document)))
			_, _ = w.Write(s.document)
		}}, nil
	})
	polish(d.api.OpenAPI())
	var err error
	if s.document, err = json.Marshal(d.api.OpenAPI()); err != nil {
		panic(err) // a mistake in the operations, met at start
	}
}

// openDocument stands for the document in the document.
type openDocument struct {
	OpenAPI string `json:"openapi"`
}
