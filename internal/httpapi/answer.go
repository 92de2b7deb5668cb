package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/accession/accession/internal/custody"
)

// answer is a success on its way out.
type answer struct {
	custody.Answer
	header map[string]string
}

// envelope is the form of every success (section 2.1), for the document; write makes it by hand.
type envelope[T any] struct {
	RequestID string `json:"request_id"`
	TraceID   string `json:"trace_id"`
	Data      T      `json:"data"`
}

// write sends a. Data goes out as it is, so that a replay is the first answer byte for byte.
func (a answer) write(w http.ResponseWriter, x *exchange) {
	h := w.Header()
	for name, value := range a.header {
		h.Set(name, value)
	}
	if a.Replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	if a.Status == http.StatusNotModified || a.Status == http.StatusNoContent {
		w.WriteHeader(a.Status)
		return
	}
	head := make([]byte, 0, 128)
	head = appendText(head, `{"request_id":`, x.requestID)
	head = appendText(head, `,"trace_id":`, x.traceID)
	head = append(head, `,"data":`...)
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(head)+len(a.Data)+len(tail)))
	w.WriteHeader(a.Status)
	for _, piece := range [][]byte{head, a.Data, tail} { // together they would be a copy of what may be long
		if _, err := w.Write(piece); err != nil {
			return // nobody left to tell
		}
	}
}

// tail ends every success.
var tail = []byte("}\n")

// render makes the Render of an Idempotency from what shows the operation's result.
func render[T any](view func(T) (status int, data any)) func(any) (custody.Answer, error) {
	return func(result any) (custody.Answer, error) {
		v, ok := result.(T)
		if !ok {
			return custody.Answer{}, fmt.Errorf("rendering a %T where a %T belongs", result, v)
		}
		status, data := view(v)
		b, err := marshal(data)
		return custody.Answer{Status: status, Data: b}, err
	}
}

// respond answers 200 with data.
func respond(data any) (answer, error) {
	b, err := marshal(data)
	return answer{Answer: custody.Answer{Status: http.StatusOK, Data: b}}, err
}

// marshal leaves embedded JSON as it is, but for white space.
func marshal(v any) (json.RawMessage, error) {
	if p, ok := v.(selfWritten); ok {
		return p.appendJSON(make([]byte, 0, 3072)), nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("rendering an answer: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
