package mcpapi

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/accession/accession/internal/custody"
)

// contextView is a served context for a model. It is the one that REST serves, of the same hash and with the same evidence, without
// summary and excerpts: they stand in text, between the lines of the boundary, and nowhere outside of them.
type contextView struct {
	UploadID   string                     `json:"upload_id"`
	OrgID      string                     `json:"org_id"`
	Visibility custody.Visibility         `json:"visibility"`
	RecordID   string                     `json:"record_id"`
	Context    map[string]json.RawMessage `json:"context"`
}

// labelView goes before the text for those who read the content of a result alone: the service's own words.
type labelView struct {
	UploadID         string          `json:"upload_id"`
	OrgID            string          `json:"org_id"`
	RecordID         string          `json:"record_id"`
	BoundaryLabel    json.RawMessage `json:"boundary_label"`
	EvaluationStatus json.RawMessage `json:"evaluation_status"`
	ContentTrust     json.RawMessage `json:"content_trust"`
	Truncated        json.RawMessage `json:"truncated"`
	Signals          json.RawMessage `json:"signals"`
	ContextSHA256    json.RawMessage `json:"context_sha256"`
}

func (s *Server) context(ctx context.Context, c custody.Caller, in uploadInput) (*mcp.CallToolResult, any, error) {
	served, err := s.contexts.Serve(ctx, c, in.OrgID, in.UploadID, surface)
	if err != nil {
		return nil, nil, err
	}
	v := contextView{UploadID: served.UploadID, OrgID: served.OrgID, Visibility: served.Visibility, RecordID: served.RecordID}
	if err := json.Unmarshal(served.Context, &v.Context); err != nil {
		return nil, nil, fmt.Errorf("reading a served context: %w", err)
	}
	var text string
	if err := json.Unmarshal(v.Context["text"], &text); err != nil {
		return nil, nil, fmt.Errorf("a served context without its text: %w", err)
	}
	delete(v.Context, "summary")
	delete(v.Context, "excerpts")
	label, err := json.Marshal(labelView{
		v.UploadID, v.OrgID, v.RecordID, v.Context["boundary_label"], v.Context["evaluation_status"], v.Context["content_trust"],
		v.Context["truncated"], v.Context["signals"], v.Context["context_sha256"],
	})
	if err != nil {
		return nil, nil, fmt.Errorf("labelling a context: %w", err)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(label)}, &mcp.TextContent{Text: text}}}, v, nil
}
