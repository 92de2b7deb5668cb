package telemetry

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/telemetry/otlptest"
)

const sent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func opened(t *testing.T, endpoint string) *Traces {
	t.Helper()
	traces, err := Open(t.Context(), endpoint, "1.2.3", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return traces
}

// closed ends traces once everything is exported: Close alone waits for 3 s at most.
func closed(t *testing.T, traces *Traces) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := errors.Join(traces.provider.ForceFlush(ctx), traces.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestOneTraceFromRequestToGate(t *testing.T) {
	c := otlptest.Start(t)
	traces := opened(t, c.URL)
	ctx, own, ended := traces.Request(t.Context(), "req_1", sent)
	_, read := traces.Step(ctx, "metadata read", "sqlite")
	read(nil)
	_, read = traces.Step(ctx, "keys read", "sqlite")
	read(fmt.Errorf("no row of secret.pdf: %w", custody.ErrNotFound))
	ended("PUT", "PUT /parts/{part_number}", "putPart", 503, custody.CodeUnavailable)
	// Later, in another process, from what the event keeps.
	cause := custody.Cause{CredentialID: "cred_1", RequestID: "req_1", TraceID: own[3:35]}
	job, jobEnded := traces.Job(t.Context(), "gates", 2, cause, false)
	_, gate := traces.Gate(job, "malware_scan")
	gate("unanswered", &custody.NoAnswer{Code: "scanner_unavailable", Message: "at /var/secret", Cause: errors.New("secret.pdf")})
	_, gate = traces.Gate(job, "malware_scan")
	gate("rejected", &custody.Refusal{Code: "malware_found", Message: "secret.pdf"})
	_, gate = traces.Gate(job, "extraction")
	gate("unanswered", errors.New("open /var/secret.pdf"))
	jobEnded()
	again, againEnded := traces.Job(t.Context(), "rescans", 1, cause, true)
	againEnded()
	closed(t, traces)

	spans := c.Spans("0af7651916cd43dd8448eb211c80319c")
	want := []string{"PUT /parts/{part_number}", "metadata read", "keys read", "job gates", "gate malware_scan", "gate malware_scan", "gate extraction"}
	if names := otlptest.Names(spans); !slices.Equal(names, want) {
		t.Fatalf("spans %q, want %q", names, want)
	}
	request, job1 := spans[0], spans[3]
	ids := map[string]bool{}
	for _, s := range spans {
		if ids[string(s.SpanId)] {
			t.Errorf("%s has the id of another span", s.Name)
		}
		ids[string(s.SpanId)] = true
	}
	for i, parent := range map[int][]byte{0: {0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31}, 1: request.SpanId, 2: request.SpanId, 3: request.SpanId, 4: job1.SpanId, 6: job1.SpanId} {
		if !bytes.Equal(spans[i].ParentSpanId, parent) {
			t.Errorf("%s hangs on %x, not on %x", spans[i].Name, spans[i].ParentSpanId, parent)
		}
	}
	if own != "00-0af7651916cd43dd8448eb211c80319c-"+hex.EncodeToString(request.SpanId)+"-01" {
		t.Errorf("the answer says %s of span %x", own, request.SpanId)
	}
	for i, want := range map[int][2]string{
		0: {"STATUS_CODE_ERROR", string(custody.CodeUnavailable)}, 2: {"STATUS_CODE_UNSET", ""}, 4: {"STATUS_CODE_ERROR", "scanner_unavailable"},
		5: {"STATUS_CODE_UNSET", ""}, 6: {"STATUS_CODE_ERROR", "_OTHER"},
	} {
		if got := spans[i].Status.GetCode().String(); got != want[0] || otlptest.Text(spans[i], "error.type") != want[1] {
			t.Errorf("%s ended with %s %q", spans[i].Name, got, otlptest.Text(spans[i], "error.type"))
		}
	}
	if otlptest.Text(spans[5], "accession.code") != "malware_found" || otlptest.Text(request, "http.route") != "PUT /parts/{part_number}" || otlptest.Text(request, "accession.operation") != "putPart" {
		t.Errorf("attributes: %v, %v", spans[5].Attributes, request.Attributes)
	}
	if id := trace.SpanContextFromContext(again).TraceID().String(); len(c.Spans(id)) != 1 || len(c.Spans(id)[0].Links) != 1 || !bytes.Equal(c.Spans(id)[0].Links[0].SpanId, request.SpanId) {
		t.Error("a re-scan has no trace of its own with a link to the request")
	}
	if c.About("service.name") != "accession" || c.About("service.version") != "1.2.3" {
		t.Error("the resource is not named")
	}
	if raw := c.Raw(); bytes.Contains(raw, []byte("secret")) || bytes.Contains(raw, []byte("cred_1")) {
		t.Errorf("exported: %q", raw)
	}
}

// Nobody upstream has decided: the trace id decides, for the request and its jobs alike.
func TestJobsAreSampledAsTheirRequests(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
	c := otlptest.Start(t)
	traces := opened(t, c.URL)
	sampled := 0
	for i := range 64 {
		id := fmt.Sprintf("req_%d", i)
		request, own, ended := traces.Request(t.Context(), id, "")
		job, jobEnded := traces.Job(t.Context(), "gates", 1, custody.Cause{RequestID: id, TraceID: own[3:35]}, false)
		asked, worked := trace.SpanContextFromContext(request), trace.SpanContextFromContext(job)
		if asked.IsSampled() != worked.IsSampled() || asked.TraceID() != worked.TraceID() || !strings.HasSuffix(own, "-0"+map[bool]string{true: "1", false: "0"}[asked.IsSampled()]) {
			t.Errorf("%s: request %v, job %v", own, asked, worked)
		}
		if asked.IsSampled() {
			sampled++
		}
		if _, step := traces.Step(request, "metadata read", "sqlite"); step != nil {
			step(nil)
		}
		jobEnded()
		ended("GET", "GET /x", "", 200, "")
	}
	closed(t, traces)
	if sampled < 10 || sampled > 54 || len(c.Spans("")) != 3*sampled {
		t.Errorf("%d of 64 sampled, %d spans", sampled, len(c.Spans("")))
	}
}

// What no trace leads to makes none: polls of the queue would fill every collector.
func TestStepOutsideATrace(t *testing.T) {
	c := otlptest.Start(t)
	traces := opened(t, c.URL)
	_, ended := traces.Step(t.Context(), "metadata read", "sqlite")
	ended(nil)
	if err := traces.Close(); err != nil || len(c.Spans("")) != 0 {
		t.Errorf("%v, %v", err, c.Spans(""))
	}
}

// A collector that is away costs a line in the log, and nothing else.
func TestCollectorAway(t *testing.T) {
	var log bytes.Buffer
	traces, err := Open(t.Context(), "http://127.0.0.1:1", "1", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	_, _, ended := traces.Request(t.Context(), "req_1", "")
	ended("GET", "GET /x", "", 200, "")
	if err := traces.Close(); err != nil || strings.Count(log.String(), "traces are not exported") != 1 {
		t.Errorf("%v, %s", err, &log)
	}
}

func TestWhatIsNotUsable(t *testing.T) {
	for _, endpoint := range []string{"", "127.0.0.1:4318", "grpc://a:1", "http://", "http://user:pw@a/", "http://a/?x", "http://a/#x"} {
		if _, err := Open(context.Background(), endpoint, "1", nil); err == nil {
			t.Errorf("%q is taken", endpoint)
		}
	}
	for _, env := range []map[string]string{{"OTEL_TRACES_SAMPLER": "sometimes"}, {"OTEL_TRACES_SAMPLER_ARG": "2"}, {"OTEL_TRACES_SAMPLER_ARG": "NaN"}} {
		if _, err := sampler(func(name string) string { return env[name] }); err == nil {
			t.Errorf("%v is taken", env)
		}
	}
	for name, want := range map[string]sdk.Sampler{
		"": sdk.ParentBased(sdk.AlwaysSample()), "parentbased_always_off": sdk.ParentBased(sdk.NeverSample()), "always_on": sdk.AlwaysSample(),
		"always_off": sdk.NeverSample(), "traceidratio": sdk.TraceIDRatioBased(0.25), "parentbased_traceidratio": sdk.ParentBased(sdk.TraceIDRatioBased(0.25)),
	} {
		s, err := sampler(func(v string) string {
			return map[string]string{"OTEL_TRACES_SAMPLER": name, "OTEL_TRACES_SAMPLER_ARG": "0.25"}[v]
		})
		if err != nil || s.Description() != want.Description() {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}
