package httpapi

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// answerHeaders are the headers that answers can carry, described once.
func answerHeaders() map[string]*huma.Header {
	least, zero := 1.0, 0.0
	text := func(doc, example string) *huma.Header {
		return &huma.Header{Description: doc, Schema: &huma.Schema{Type: huma.TypeString}, Example: example}
	}
	h := map[string]*huma.Header{
		"X-Request-Id":        text("The request_id.", exampleRequestID),
		"Traceparent":         text("W3C trace context: the sender's trace, if it sent one, and this request in it.", "00-"+exampleTraceID+"-00f067aa0ba902b7-01"),
		"Idempotent-Replayed": {Description: "true where the answer was given before.", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"true"}}},
		"ETag":                text("Changes with every event and every accepted part.", `W/"3.2"`),
		"Preference-Applied":  text("The wait of Prefer, where the answer waited. (RFC 7240)", "wait=30"),
		"Location":            {Description: "The canonical status URL.", Schema: &huma.Schema{Type: huma.TypeString, Format: "uri"}},
		"Retry-After":         {Description: "Seconds to wait.", Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: &least}, Example: 1},
		"WWW-Authenticate":    text("Bearer, and what was wrong with the credential.", `Bearer realm="accession", error="invalid_token"`),
		"Deprecation":         text("Since when the operation, or a field of it, is deprecated. (RFC 9745)", "@1798761600"),
		"Set-Cookie":          text("The session, or the end of it.", "accession_session=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZD; Path=/; HttpOnly; SameSite=Strict"),
		"Sunset":              text("When it goes, at the earliest; at least 90 days after Deprecation. (RFC 8594)", "Tue, 01 Jun 2027 00:00:00 GMT"),
	}
	for _, rate := range rateHeaders {
		h[rate.name] = &huma.Header{Description: rate.doc, Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: &zero}, Example: 1}
	}
	return h
}

// headersOf are the headers of op's answers with status.
func headersOf(status int, op *huma.Operation) map[string]*huma.Header {
	names := []string{"X-Request-Id", "Traceparent"}
	if op.Responses[strconv.Itoa(http.StatusTooManyRequests)] != nil {
		for _, rate := range rateHeaders {
			names = append(names, rate.name)
		}
	}
	if op.Metadata[retiring] != nil {
		names = append(names, "Deprecation", "Sunset")
	}
	takes := func(name string) bool {
		return slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.Name == name })
	}
	if status < 300 && takes("Idempotency-Key") && !slices.Contains(op.Tags, sandboxTag) {
		names = append(names, "Idempotent-Replayed")
	}
	if status < 400 && takes("If-None-Match") {
		names = append(names, "ETag")
	}
	if status < 400 && takes("Prefer") {
		names = append(names, "Preference-Applied")
	}
	if status < 300 && slices.Contains(op.Tags, portalTag) && op.Method != http.MethodGet {
		names = append(names, "Set-Cookie")
	}
	switch status {
	case http.StatusAccepted:
		names = append(names, "Location", "Retry-After")
	case http.StatusUnauthorized:
		names = append(names, "WWW-Authenticate")
	case http.StatusConflict, http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusInsufficientStorage:
		names = append(names, "Retry-After")
	}
	h := map[string]*huma.Header{}
	for _, name := range names {
		h[name] = &huma.Header{Ref: "#/components/headers/" + name}
	}
	return h
}
