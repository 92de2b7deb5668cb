package mcpapi

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/accession/accession/internal/custody"
)

// Documentation, the only resources there are: public, and the same for everybody.

//go:embed docs
var docs embed.FS

var documents = []struct{ name, title, description string }{
	{"quick-start", "Quick start", "How to get a credential and read a context."},
	{"boundary", "Boundary", "What is true of everything that is served, and what is not claimed."},
	{"errors", "Error catalogue", "Every error code, what it means and what to do."},
	{"api", "Other ways in", "Where the REST contract and the metadata are."},
}

func (s *Server) addDocuments(sdk *mcp.Server) error {
	fill := strings.NewReplacer("{{base_url}}", s.cfg.BaseURL, "{{mcp_url}}", s.cfg.URL, "{{metadata_url}}", s.metadata)
	for _, d := range documents {
		body := errorCatalogue()
		if d.name != "errors" {
			b, err := docs.ReadFile("docs/" + d.name + ".md")
			if err != nil {
				return fmt.Errorf("MCP documents: %w", err)
			}
			body = fill.Replace(string(b))
		}
		sdk.AddResource(&mcp.Resource{
			URI: "accession://docs/" + d.name, Name: d.name, Title: d.title, Description: d.description, MIMEType: "text/markdown", Size: int64(len(body)),
			Annotations: &mcp.Annotations{Audience: []mcp.Role{"assistant", "user"}},
		}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "text/markdown", Text: body}}}, nil
		})
	}
	return nil
}

func errorCatalogue() string {
	var b strings.Builder
	b.WriteString("# Error catalogue\n\n| Code | HTTP | What happened | What to do |\n|---|---|---|---|\n")
	for _, c := range custody.Codes {
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s |\n", c.Code, c.Status, c.Meaning, c.Advice)
	}
	return b.String()
}

// card describes the server to a client that has not connected yet. (SEP-2127.)
type card struct {
	Schema      string       `json:"$schema"`
	Name        string       `json:"name"`
	Title       string       `json:"title"`
	Description string       `json:"description"`
	Version     string       `json:"version"`
	WebsiteURL  string       `json:"websiteUrl"`
	Remotes     []cardRemote `json:"remotes"`
}

type cardRemote struct {
	Type      string       `json:"type"`
	URL       string       `json:"url"`
	Revisions []string     `json:"supportedProtocolVersions"`
	Headers   []cardHeader `json:"headers"`
}

type cardHeader struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"isRequired"`
	Secret      bool   `json:"isSecret"`
}

// Card is the server card: identity, address and how to get in; what the server can do is said by itself. (SEP-2127.)
func (s *Server) Card() json.RawMessage {
	b, err := json.Marshal(card{
		Schema: "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
		Name:   "io.github.accession/accession", Title: "accession", Version: s.cfg.Version, WebsiteURL: s.cfg.BaseURL,
		Description: "Bounded, labelled, unverified context of documents that organizations submitted.",
		Remotes: []cardRemote{{"streamable-http", s.cfg.URL, revisions, []cardHeader{
			{"x-api-key", "Credential of one organization with the scope mcp; needed to call tools, or an OAuth access token instead.", false, true},
		}}},
	})
	if err != nil {
		panic(err) // strings
	}
	return b
}
