// Package otlptest is a collector of traces for tests: it takes OTLP over HTTP and keeps every byte.
package otlptest

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector takes what is exported to URL.
type Collector struct {
	URL string

	mu      sync.Mutex
	raw     []byte
	spans   []*trace.Span
	about   map[string]string
	arrived chan struct{}
}

// Start runs a collector until the test ends.
func Start(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{about: map[string]string{}, arrived: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.take(r); err != nil {
			t.Errorf("%s %s is no export of spans: %v", r.Method, r.URL.Path, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

func (c *Collector) take(r *http.Request) error {
	if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		return http.ErrNotSupported
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body = unpacked
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var said collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(raw, &said); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(c.raw, raw...)
	for name, values := range r.Header {
		for _, v := range values {
			c.raw = append(c.raw, name+": "+v+"\n"...)
		}
	}
	for _, from := range said.ResourceSpans {
		for _, a := range from.Resource.Attributes {
			c.about[a.Key] = a.Value.GetStringValue()
		}
		for _, s := range from.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
	close(c.arrived)
	c.arrived = make(chan struct{})
	return nil
}

// Raw is every byte that was received, headers included.
func (c *Collector) Raw() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.raw)
}

// About is the resource that the spans are of.
func (c *Collector) About(key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.about[key]
}

// Spans are those of a trace, by its id in hex, in the order in which they began; of all traces where it is empty.
func (c *Collector) Spans(traceID string) (found []*trace.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if traceID == "" || hex.EncodeToString(s.TraceId) == traceID {
			found = append(found, s)
		}
	}
	slices.SortStableFunc(found, func(a, b *trace.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	return found
}

// Await waits until enough says so of a trace's spans, and fails the test after 2 minutes.
func (c *Collector) Await(t testing.TB, traceID string, enough func([]*trace.Span) bool) []*trace.Span {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		c.mu.Lock()
		arrived := c.arrived
		c.mu.Unlock()
		spans := c.Spans(traceID)
		if enough(spans) {
			return spans
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			t.Fatalf("these spans came of trace %s: %s", traceID, Names(spans))
		}
	}
}

// Names of spans, in their order.
func Names(spans []*trace.Span) (names []string) {
	for _, s := range spans {
		names = append(names, s.Name)
	}
	return names
}

// Text is the value of a span's attribute as text; empty where it has none.
func Text(s *trace.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}
