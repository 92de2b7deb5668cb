package mcpapi

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/accession/accession/internal/custody"
)

// surface is what a record says of a context served here. (Contract decisions, request records.)
const surface = "mcp"

// maxRecords on a page: a record is some 300 tokens, and a page stays under the token bound of a context.
const maxRecords = 8

// toolsJSON is how the tools are published: names, descriptions, annotations and schemas, against which the SDK checks what comes
// in and what goes out.
//
//go:embed tools.json
var toolsJSON []byte

const (
	toolCapabilities = "get_capabilities"
	toolContext      = "get_ai_context"
	toolStatus       = "get_upload_status"
	toolRecords      = "list_request_records"
)

// toolOperations are the operations of the contract that tools stand for: they name the tool's own scope. (ScopeOf.)
var toolOperations = map[string]custody.Operation{
	toolContext: custody.OpAIContext,
	toolStatus:  custody.OpUploadStatus,
	toolRecords: custody.OpRequestRecords,
}

func (s *Server) addTools(sdk *mcp.Server) error {
	var published []*mcp.Tool
	if err := json.Unmarshal(toolsJSON, &published); err != nil {
		return fmt.Errorf("MCP tools: %w", err)
	}
	var described []struct {
		Name        string      `json:"name"`
		InputSchema inputSchema `json:"inputSchema"`
	}
	if err := json.Unmarshal(toolsJSON, &described); err != nil {
		return fmt.Errorf("MCP tools: %w", err)
	}
	for _, t := range described {
		s.arguments[t.Name] = t.InputSchema
	}
	for _, t := range published {
		switch t.Name {
		case toolCapabilities:
			mcp.AddTool(sdk, t, answering(s.capabilities))
		case toolContext:
			mcp.AddTool(sdk, t, answering(s.context))
		case toolStatus:
			mcp.AddTool(sdk, t, answering(s.status))
		case toolRecords:
			mcp.AddTool(sdk, t, answering(s.records))
		default:
			return fmt.Errorf("nothing answers the tool %s", t.Name)
		}
	}
	return nil
}

// answering calls a room for who asks in this very request.
func answering[In any](ask func(context.Context, custody.Caller, In) (*mcp.CallToolResult, any, error)) mcp.ToolHandlerFor[In, any] {
	return func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		caller := visitOf(ctx).caller
		r, out, err := ask(custody.InScopeOf(ctx, caller), caller, in)
		var e *custody.Error
		if err != nil && !errors.As(err, &e) {
			err = &internalFailure{err}
		}
		return r, out, err
	}
}

type capabilitiesView struct {
	Status       string            `json:"status"`
	APIContract  string            `json:"api_contract"`
	Endpoints    map[string]string `json:"endpoints"`
	DataBoundary map[string]any    `json:"data_boundary"`
	OrgID        string            `json:"org_id"`
	Scopes       []custody.Scope   `json:"scopes"`
}

func (s *Server) capabilities(_ context.Context, c custody.Caller, _ struct{}) (*mcp.CallToolResult, any, error) {
	return nil, capabilitiesView{
		Status: "available", APIContract: custody.ContractLabel, DataBoundary: custody.DataBoundary, OrgID: c.OrgID, Scopes: c.Scopes,
		Endpoints: map[string]string{
			"mcp": s.cfg.URL, "openapi": s.cfg.BaseURL + "/api/v1/ai/openapi.json", "token": s.cfg.BaseURL + "/oauth/token", "protected_resource_metadata": s.metadata,
		},
	}, nil
}

type uploadInput struct {
	OrgID    string `json:"org_id"`
	UploadID string `json:"upload_id"`
}

// gateView has no detail: it is of no use to an agent, and costs tokens.
type gateView struct {
	Name       custody.GateName  `json:"name"`
	State      custody.GateState `json:"state"`
	FinishedAt *time.Time        `json:"finished_at,omitempty"`
}

// statusView has no filename: it is the submitter's text, and this is not where that is marked.
type statusView struct {
	UploadID         string           `json:"upload_id"`
	Status           custody.Status   `json:"status"`
	Terminal         bool             `json:"terminal"`
	Sequence         int64            `json:"sequence"`
	EvaluationStatus string           `json:"evaluation_status"`
	SizeBytes        int64            `json:"size_bytes"`
	ReceivedBytes    int64            `json:"received_bytes"`
	CreatedAt        time.Time        `json:"created_at"`
	UpdatedAt        time.Time        `json:"updated_at"`
	Gates            []gateView       `json:"gates"`
	Failure          *custody.Failure `json:"failure,omitempty"`
}

func (s *Server) status(ctx context.Context, c custody.Caller, in uploadInput) (*mcp.CallToolResult, any, error) {
	u, err := s.uploads.Status(ctx, c, in.OrgID, in.UploadID)
	if err != nil {
		return nil, nil, err
	}
	v := statusView{
		UploadID: u.ID, Status: u.Status, Terminal: u.Status.Terminal(), Sequence: u.Sequence, EvaluationStatus: custody.EvaluationStatus, SizeBytes: u.SizeBytes,
		ReceivedBytes: u.ReceivedBytes, CreatedAt: u.CreatedAt, UpdatedAt: u.UpdatedAt, Gates: []gateView{}, Failure: u.Failure,
	}
	for _, g := range u.Gates {
		v.Gates = append(v.Gates, gateView{g.Name, g.State, instant(g.FinishedAt)})
	}
	return nil, v, nil
}

type recordsInput struct {
	OrgID     string `json:"org_id"`
	RequestID string `json:"request_id"`
	UploadID  string `json:"upload_id"`
	Limit     int    `json:"limit"`
	Cursor    string `json:"cursor"`
}

type recordView struct {
	custody.Record
	RecalledAt *time.Time `json:"recalled_at,omitempty"`
}

type recordPage struct {
	Records          []recordView `json:"records"`
	NextCursor       string       `json:"next_cursor"`
	SchemaDisclaimer string       `json:"schema_disclaimer"`
}

func (s *Server) records(ctx context.Context, c custody.Caller, in recordsInput) (*mcp.CallToolResult, any, error) {
	q := custody.RecordQuery{OrgID: in.OrgID, RequestID: in.RequestID, UploadID: in.UploadID, Limit: min(in.Limit, maxRecords)}
	var ok bool
	if q.Before, ok = q.After(in.Cursor); !ok {
		return nil, nil, custody.Errorf(custody.CodeInvalidRequest, "cursor is not the next_cursor of a page with the same organization and filters").
			With("fields", []field{{"/cursor", "expected the next_cursor of a page with the same organization and filters"}})
	}
	found, next, err := s.contexts.Records(ctx, c, q)
	if err != nil {
		return nil, nil, err
	}
	page := recordPage{Records: []recordView{}, NextCursor: q.Cursor(next), SchemaDisclaimer: custody.RecordDisclaimer}
	for _, r := range found {
		page.Records = append(page.Records, recordView{r, instant(r.RecalledAt)})
	}
	return nil, page, nil
}

// instant is at, or nil where there is none.
func instant(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
