package e2e

import (
	"cmp"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
)

// servedDocument is the contract as the service publishes it.
type servedDocument struct {
	*openapi3.T
	operations []operation // by path, then method
}

// operation is one route of the served document.
type operation struct {
	routers.Route
	id string
}

func (s *service) document() servedDocument {
	s.t.Helper()
	raw := s.do(call{method: "GET", path: "/api/v1/ai/openapi.json"}).want(s.t, 200, "").Raw
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := doc.Validate(s.t.(*testing.T).Context()); err != nil {
		s.t.Fatalf("the served document is no OpenAPI document: %v", err)
	}
	d := servedDocument{T: doc}
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			d.operations = append(d.operations, operation{routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: o}, o.OperationID})
		}
	}
	slices.SortFunc(d.operations, func(a, b operation) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method)) })
	return d
}

// takes tells whether op has a security requirement with this scheme.
func (op operation) takes(scheme string) bool {
	return op.Operation.Security != nil && slices.ContainsFunc(*op.Operation.Security, func(r openapi3.SecurityRequirement) bool {
		_, found := r[scheme]
		return found
	})
}

func (op operation) tagged(tag string) bool { return slices.Contains(op.Operation.Tags, tag) }

// body is the media type of op's request, and its schema; empty where it takes none.
func (op operation) body() (mediaType string, schema *openapi3.Schema) {
	if op.Operation.RequestBody == nil {
		return "", nil
	}
	for name, m := range op.Operation.RequestBody.Value.Content {
		return name, m.Schema.Value
	}
	return "", nil
}
