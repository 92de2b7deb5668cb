package httpapi

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/accession/accession/internal/custody"
)

// Ids of the examples.
const (
	exampleRequestID  = "req_01jd3xq4f7v9m2r8t6w0z5k1bn"
	exampleTraceID    = "4bf92f3577b34da6a3ce929d0e0e4736"
	exampleUploadID   = "up_01jd3xq4f7v9m2r8t6w0z5k1bn"
	examplePipelineID = "pl_01jd3xq4f7v9m2r8t6w0z5k1bn"
)

var exampleTime = timestamp{time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)}

// examplesJSON has the request body and the data of each success of every operation that has them, by operationId.
//
//go:embed examples.json
var examplesJSON []byte

type example struct {
	Request any            `json:"request"`
	Answers map[string]any `json:"answers"` // by status
	Bare    bool           `json:"bare"`    // the answers stand without an envelope
}

func examples() (all map[string]example) {
	if err := json.Unmarshal(examplesJSON, &all); err != nil {
		panic(err) // a mistake in the file, met at start
	}
	return all
}

// exemplify puts examples into the document: of op's own, and for errors the first code that its status can have.
func exemplify(op *huma.Operation, own example) {
	if op.RequestBody != nil && own.Request != nil {
		for _, m := range op.RequestBody.Content {
			m.Example = own.Request
		}
	}
	for status, r := range op.Responses {
		m := r.Content["application/json"]
		if m == nil {
			continue
		}
		n, _ := strconv.Atoi(status)
		switch data := own.Answers[status]; {
		case saysProblem(r):
			m.Example = exampleProblem(n)
		case data != nil && own.Bare:
			m.Example = data
		case data != nil:
			m.Example = map[string]any{"request_id": exampleRequestID, "trace_id": exampleTraceID, "data": data}
		}
	}
}

func exampleProblem(status int) any {
	for _, c := range custody.Codes {
		if c.Status != status {
			continue
		}
		e := map[string]any{"code": string(c.Code), "message": c.Meaning, "request_id": exampleRequestID, "trace_id": exampleTraceID}
		if status == http.StatusBadRequest {
			e["details"] = map[string]any{"fields": []any{map[string]any{"path": "/query/limit", "reason": "expected number <= 100"}}}
		}
		return e
	}
	return nil
}
