package manual

import "strings"

// page is one file of docs/ at its place in the manual.
type page struct {
	file, title string
	scripts     []string // of its own, of assets
	places      []string // ids of the elements that they fill, below the text
}

// url is the page's path. index.md is the start.
func (p page) url() string {
	if p.file == start {
		return "/docs"
	}
	return "/docs/" + strings.TrimSuffix(p.file, ".md")
}

const start = "index.md"

// chapters are the pages in the order of reading. A test misses a file that is not here.
var chapters = []struct {
	title string
	pages []page
}{
	{"Begin", []page{
		{file: start, title: "Documentation"},
		{file: "quick-start.md", title: "Quick start"},
		{file: "concepts.md", title: "Concepts"},
	}},
	{"Guides", []page{
		{file: "portal.md", title: "Portal"},
		{file: "upload.md", title: "Uploading from a program"},
		{file: "webhooks.md", title: "Webhooks"},
		{file: "mcp.md", title: "Agents (MCP)"},
		{file: "command-line.md", title: "Command line"},
	}},
	{"Reference", []page{
		{file: "reference.md", title: "API reference", scripts: []string{"reference.js"}, places: []string{"sandbox", "reference"}},
		{file: "api.md", title: "API at a glance"},
		{file: "errors.md", title: "Errors"},
		{file: "clients.md", title: "Clients"},
	}},
	{"Operator handbook", []page{
		{file: "operations.md", title: "Operations"},
		{file: "custody.md", title: "What is promised"},
		{file: "reliability.md", title: "Reliability"},
		{file: "threat-model.md", title: "Threat model"},
		{file: "architecture.md", title: "Architecture"},
		{file: "quality.md", title: "Quality"},
		{file: "scale.md", title: "Scale"},
		{file: "performance.md", title: "Performance"},
	}},
}

func pages() (all []page) {
	for _, c := range chapters {
		all = append(all, c.pages...)
	}
	return all
}
