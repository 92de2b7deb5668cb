package main

import "testing"

func TestAddressOfMCP(t *testing.T) {
	for text, good := range map[string]bool{
		"https://custody.example/mcp": true, "https://tools.example/agents/v1": true, "https://tools.example/agents/": true, "http://127.0.0.1:8080/mcp": true,
		"https://tools.example": false, "https://tools.example/": false, "https://tools.example/api/v1/mcp": false, "https://tools.example/oauth": false,
		"https://tools.example/.well-known/mcp": false, "https://tools.example/a/../b": false, "https://tools.example/{x}": false, "https://tools.example/a%20b": false,
		"https://tools.example/apiary": true,
	} {
		if ownPath(text) != good {
			t.Errorf("%s: %v", text, !good)
		}
	}
	s := &settings{}
	if got := s.mcpURL("https://custody.example"); got != "https://custody.example/mcp" {
		t.Errorf("default %s", got)
	}
	s.MCPURL = "https://tools.example/agents/"
	if got := s.mcpURL("https://custody.example"); got != "https://tools.example/agents" {
		t.Errorf("given %s", got)
	}
}

func TestSecurityContact(t *testing.T) {
	for text, good := range map[string]bool{
		"mailto:security@custody.example": true, "https://custody.example/report": true,
		"security@custody.example": false, "http://custody.example": false, "https:": false, "mailto:nobody": false, "https://custody.example/a\nExpires: 2000-01-01T00:00:00Z": false, "": false,
	} {
		if contact(text) != good {
			t.Errorf("%q: %v", text, !good)
		}
	}
}
