package httpapi

import (
	_ "embed"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/accession/accession/internal/custody"
)

// conventions hold for all operations: what the contract says of none in particular.
//
//go:embed conventions.md
var conventions string

// contract is the frame of the published document. (Section 9, rule 6.)
func contract(baseURL string) huma.Config {
	c := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "accession", Version: contractLabel,
				Description: conventions,
				License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
			},
			Servers: []*huma.Server{{URL: baseURL}},
			Tags: []*huma.Tag{
				{Name: "customer uploads", Description: "Small texts, their corrections, and references to reviews of them."},
				{Name: "partner uploads", Description: "Initiate, send parts in order, complete, poll; withdraw at any time."},
				{Name: "AI context", Description: "Bounded context and the evidence of its serving."},
				{Name: "tenant credentials", Description: "Issued, rotated and revoked by the administrator; signing keys too."},
				{Name: oauthTag, Description: "OAuth 2.0 client credentials, for machines only."},
				{Name: sandboxTag, Description: "A free trial without an account, apart from everything else."},
				{Name: "webhooks", Description: "Where an organization's events are posted; set by the administrator."},
				{Name: "callbacks", Description: "What the service posts to a tenant's callback URL."},
				{Name: portalTag, Description: "The session of a person's browser. Its cookie counts in requests of the service's own pages alone."},
				{Name: "discovery", Description: "The contract, and the state of the service."},
			},
			Components: &huma.Components{
				Schemas:         huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
				SecuritySchemes: securitySchemes(baseURL),
				Headers:         answerHeaders(),
			},
		},
		Formats:       map[string]huma.Format{"application/json": strictJSON},
		DefaultFormat: "application/json",
	}
	c.AllowAdditionalPropertiesByDefault = true // answers may grow; requests that may not hold more say so (section 2)
	return c
}

func securitySchemes(baseURL string) map[string]*huma.SecurityScheme {
	return map[string]*huma.SecurityScheme{
		"apiKey":      {Type: "apiKey", In: "header", Name: "x-api-key", Description: "A tenant credential, bound to one organization; in the sandbox a sandbox credential."},
		"bearer":      {Type: "http", Scheme: "bearer", Description: "The same credentials, or an OAuth access token."},
		"adminToken":  {Type: "http", Scheme: "bearer", Description: "The administrator's token."},
		"clientBasic": {Type: "http", Scheme: "basic", Description: "An OAuth client: client_id and client_secret, each form-urlencoded."},
		"portalSession": {Type: "apiKey", In: "cookie", Name: cookieName(baseURL),
			Description: "The session of a person who signed in to the portal. The other operations take it too, with X-Accession-Seat in the credential's place; see getPortalSession."},
		"oauth2": {Type: "oauth2", Description: "Client credentials: client_id is the credential_id, client_secret the token of a tenant credential.",
			Flows: &huma.OAuthFlows{ClientCredentials: &huma.OAuthFlow{TokenURL: baseURL + "/oauth/token", Scopes: map[string]string{
				string(custody.ScopeCustomerUpload):    "Create and complete uploads of the organization.",
				string(custody.ScopeMetadataRead):      "Metadata and canonical upload status.",
				string(custody.ScopeAIReadiness):       "AI-readiness and processing metadata.",
				string(custody.ScopeAIContext):         "Bounded AI context.",
				string(custody.ScopeMCP):               "Authenticated MCP tools.",
				string(custody.ScopeCorrection):        "Create corrections.",
				string(custody.ScopeExternalReference): "Attach external review references.",
			}}}},
	}
}

// polish completes the document once every operation is mounted: what each error status can mean, the headers of answers,
// examples, and no 422, which huma documents and this door never sends.
func polish(doc *huma.OpenAPI) {
	used := map[string]bool{}
	examples := examples()
	for _, p := range doc.Paths {
		for _, op := range operationsOf(p) {
			delete(op.Responses, "422")
			for status, r := range op.Responses {
				n, _ := strconv.Atoi(status)
				if n >= 400 && r.Description == http.StatusText(n) { // else it says itself what it means
					r.Description = meaning(n)
				}
				r.Headers = headersOf(n, op)
				for name := range r.Headers {
					used[name] = true
				}
			}
			exemplify(op, examples[op.OperationID])
		}
	}
	maps.DeleteFunc(doc.Components.Headers, func(name string, _ *huma.Header) bool { return !used[name] })
	doc.Webhooks = callbacks(doc.Components.Schemas)
}

// forget lets go of what only the published document says, once it is written: some 4 MiB that no request needs. Requests are still
// checked against the schemas of their parameters and bodies.
func forget(doc *huma.OpenAPI) {
	doc.Webhooks, doc.Components.Headers = nil, nil
	needed := map[*huma.Schema]bool{}
	for _, p := range doc.Paths {
		for _, op := range operationsOf(p) {
			op.Responses = nil
			for _, parameter := range op.Parameters {
				need(doc.Components.Schemas, parameter.Schema, needed)
			}
			if op.RequestBody == nil {
				continue
			}
			for _, m := range op.RequestBody.Content {
				m.Example = nil
				need(doc.Components.Schemas, m.Schema, needed)
			}
		}
	}
	maps.DeleteFunc(doc.Components.Schemas.Map(), func(_ string, s *huma.Schema) bool { return !needed[s] })
}

// need marks s and all that it is made of.
func need(schemas huma.Registry, s *huma.Schema, needed map[*huma.Schema]bool) {
	if s == nil || needed[s] {
		return
	}
	needed[s] = true
	if s.Ref != "" {
		need(schemas, schemas.SchemaFromRef(s.Ref), needed)
	}
	others, _ := s.AdditionalProperties.(*huma.Schema)
	for _, part := range slices.Concat([]*huma.Schema{s.Items, s.Not, others}, s.OneOf, s.AnyOf, s.AllOf, slices.Collect(maps.Values(s.Properties))) {
		need(schemas, part, needed)
	}
}

func operationsOf(p *huma.PathItem) []*huma.Operation {
	return slices.DeleteFunc([]*huma.Operation{p.Get, p.Put, p.Post, p.Delete}, func(op *huma.Operation) bool { return op == nil })
}

// saysProblem tells the error object from the errors of OAuth, which have a form of their own.
func saysProblem(r *huma.Response) bool {
	m := r.Content["application/json"]
	return m != nil && m.Schema.Ref == "#/components/schemas/Problem"
}

// meaning says which codes go with status.
func meaning(status int) string {
	lines := []string{}
	for _, c := range custody.Codes {
		if c.Status == status {
			lines = append(lines, fmt.Sprintf("`%s`: %s %s", c.Code, c.Meaning, c.Advice))
		}
	}
	return strings.Join(lines, "\n")
}
