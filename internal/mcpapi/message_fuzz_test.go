package mcpapi

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
)

// A message of whatever bytes, from a stranger and from a reader, ends in an answer that is JSON or in none, never in a fault of the
// service; a stranger reaches no room.
func FuzzMessage(f *testing.F) {
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{}}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + toolContext + `","arguments":{"org_id":"org_1","upload_id":"up_1"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + toolRecords + `","arguments":{"org_id":"org_1","limit":1e99}}}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + toolStatus + `","arguments":[]}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + toolCapabilities + `","name":"` + toolContext + `"}}`, `{"jsonrpc":"2.0","id":1,"Method":"tools/call","method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"accession://docs/errors"}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":null,"method":"ping","params":null}`, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"prompts/get"}`, `{}`, `null`, ``, strings.Repeat("[", 10000), "\xff", `{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`,
	} {
		f.Add([]byte(message), "2025-11-25")
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`), "2026-07-28")
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), "1")
	b := &bench{rooms: &rooms{}}
	s, err := New(Config{URL: publicURL, BaseURL: "https://custody.example", Version: "1.2.3", Log: slog.New(slog.DiscardHandler)}, b, b)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, message []byte, version string) {
		if strings.ContainsFunc(version, func(r rune) bool { return r < ' ' || r > '~' }) {
			return // no header holds it
		}
		for _, caller := range []custody.Caller{{RequestID: "req_1"}, reader("org_1")} {
			b.callers = nil
			r := httptest.NewRequest("POST", "/mcp", bytes.NewReader(message))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.Header.Set("MCP-Protocol-Version", version)
			w := httptest.NewRecorder()
			code := s.Answer(w, r, caller, nil)
			if w.Code >= 500 || code == custody.CodeInternal {
				t.Fatalf("%q from %q: %d %s", message, caller.CredentialID, w.Code, w.Body)
			}
			body, err := io.ReadAll(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") && !json.Valid(body) {
				t.Errorf("%q: %q", message, body)
			}
			if caller.CredentialID == "" && len(b.callers) > 0 {
				t.Errorf("%q: a stranger reached a room: %+v", message, b.callers)
			}
			for _, c := range b.callers {
				if c.OrgID != "org_1" {
					t.Errorf("%q: %+v", message, c)
				}
			}
		}
	})
}
