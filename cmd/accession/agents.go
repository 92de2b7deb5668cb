package main

import (
	"net/url"
	"path"
	"strings"

	"github.com/accession/accession/internal/mcpapi"
)

// agents is the MCP server, over the rooms that the REST door opens, too.
func (svc *service) agents(baseURL string, contexts mcpapi.Contexts, uploads mcpapi.Uploads) (*mcpapi.Server, error) {
	return mcpapi.New(mcpapi.Config{URL: svc.settings.mcpURL(baseURL), BaseURL: baseURL, Version: programVersion(), Log: svc.log}, contexts, uploads)
}

// mcpURL is where agents reach the service whose other clients reach it at baseURL.
func (s *settings) mcpURL(baseURL string) string {
	if s.MCPURL != "" {
		return strings.TrimRight(s.MCPURL, "/")
	}
	return baseURL + "/mcp"
}

// taken are the beginnings of paths that the service uses itself.
var taken = []string{"/api", "/admin", "/oauth", "/portal", "/.well-known", "/healthz", "/readyz", "/llms.txt"}

// ownPath tells whether a URL has a path, in plain letters, that is none of the service's others.
func ownPath(text string) bool {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || u.Path == "" || path.Clean(u.Path) != u.Path || u.EscapedPath() != u.Path || strings.ContainsAny(u.Path, "{}") {
		return false
	}
	for _, beginning := range taken {
		if u.Path == beginning || strings.HasPrefix(u.Path, beginning+"/") {
			return false
		}
	}
	return true
}

// contact tells whether text is an address as security.txt has it. (RFC 9116, section 2.5.3.)
func contact(text string) bool {
	u, err := url.Parse(text)
	return err == nil && !strings.ContainsAny(text, " \r\n") && (u.Scheme == "https" && u.Host != "" || u.Scheme == "mailto" && strings.Contains(u.Opaque, "@"))
}
