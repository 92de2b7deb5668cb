package mcpapi

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The entry for the registry and the card of an installation name one server, in forms that the registry takes.
func TestRegistryEntry(t *testing.T) {
	b := newBench(t)
	s, err := New(Config{URL: publicURL, BaseURL: "https://custody.example", Version: "1.2.3"}, b, b)
	if err != nil {
		t.Fatal(err)
	}
	var own card
	if err := json.Unmarshal(s.Card(), &own); err != nil {
		t.Fatal(err)
	}
	if own.Remotes[0].URL != publicURL || own.Version != "1.2.3" || own.Remotes[0].Revisions[0] != revisions[0] || !own.Remotes[0].Headers[0].Secret {
		t.Errorf("card %+v", own)
	}
	var entry struct {
		Schema      string `json:"$schema"`
		Name        string
		Description string
		Version     string
		Remotes     []struct {
			Type, URL string
			Variables map[string]struct{ Description string }
			Headers   []cardHeader
		}
	}
	raw, err := os.ReadFile("../../server.json")
	if err == nil {
		err = json.Unmarshal(raw, &entry)
	}
	if err != nil {
		t.Fatal(err)
	}
	if entry.Name != own.Name || entry.Description != own.Description || len(entry.Description) > 100 || !regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`).MatchString(entry.Name) ||
		!regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(entry.Version) || !strings.HasSuffix(entry.Schema, "/server.schema.json") {
		t.Errorf("entry %+v, card %+v", entry, own)
	}
	if r := entry.Remotes[0]; r.Type != own.Remotes[0].Type || r.URL != "https://{host}/mcp" || r.Variables["host"].Description == "" || r.Headers[0].Name != own.Remotes[0].Headers[0].Name || !r.Headers[0].Secret {
		t.Errorf("remote %+v", r)
	}
}
