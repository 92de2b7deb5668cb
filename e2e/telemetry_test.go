package e2e

import (
	"bytes"
	"encoding/hex"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/accession/accession/client"
	"github.com/accession/accession/internal/telemetry/otlptest"
)

// exportAtOnce has spans exported every 50 ms.
const exportAtOnce = "OTEL_BSP_SCHEDULE_DELAY=50"

// ended tells whether spans hold one of each name.
func ended(names ...string) func([]*trace.Span) bool {
	return func(spans []*trace.Span) bool {
		got := otlptest.Names(spans)
		for _, name := range names {
			if !slices.Contains(got, name) {
				return false
			}
		}
		return true
	}
}

func spanNamed(t *testing.T, spans []*trace.Span, name string) *trace.Span {
	t.Helper()
	for _, s := range spans {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no span %s", name)
	return nil
}

// The trace that a client begins goes on through the request, the job and its gates to the databases and the storage; and
// nothing of the document or its sender is exported with it.
func TestTraceFromClientToGate(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	reader := b.issue(b.org, "ai_reader")
	const traceID, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	content := []byte("The harbour of " + b.content + " was dredged in May. It is open to ships again.")
	id := b.reserve("text/plain", len(content))
	b.part(id, 1, content).want(t, 200, "")
	completing := b.closing(byQuery, id, client.NewIdempotencyKey(), [][]byte{content})
	completing.header = map[string]string{"Traceparent": "00-" + traceID + "-" + parent + "-01"}
	done := b.do(completing)
	done.want(t, 202, "")
	b.wantReady(id)
	spans := b.traces.Await(t, traceID, ended("POST /api/v1/organizations/{org_id}/partner-uploads/complete", "job gates", "gate ai_context", "storage copy", "metadata transaction", "keys read"))

	request := spanNamed(t, spans, "POST /api/v1/organizations/{org_id}/partner-uploads/complete")
	job := spanNamed(t, spans, "job gates")
	if hex.EncodeToString(request.ParentSpanId) != parent || !bytes.Equal(job.ParentSpanId, request.SpanId) {
		t.Errorf("the request hangs on %x, the job on %x, the request is %x", request.ParentSpanId, job.ParentSpanId, request.SpanId)
	}
	if own := done.Header.Get("Traceparent"); own != "00-"+traceID+"-"+hex.EncodeToString(request.SpanId)+"-01" {
		t.Errorf("the answer's traceparent is %s, its span %x", own, request.SpanId)
	}
	if otlptest.Text(request, "accession.request_id") != done.Header.Get("X-Request-Id") {
		t.Error("the request's span has not its request id")
	}
	for _, gate := range []string{"integrity", "quarantine", "malware_scan", "extraction", "controlled_summary", "ai_context"} {
		s := spanNamed(t, spans, "gate "+gate)
		if !bytes.Equal(s.ParentSpanId, job.SpanId) || otlptest.Text(s, "accession.outcome") != "passed" {
			t.Errorf("gate %s: %v", gate, s)
		}
	}

	b.do(call{method: "GET", path: "/api/v1/organizations/" + b.org + "/ai-context/" + id, token: reader}).want(t, 200, "")
	gone := b.withdraw(id)
	gone.want(t, 200, "")
	removed := b.traces.Await(t, gone.Header.Get("Traceparent")[3:35], ended("POST /api/v1/organizations/{org_id}/partner-uploads/{upload_id}/withdraw", "job deletions", "storage delete"))
	if job := spanNamed(t, removed, "job deletions"); len(job.ParentSpanId) == 0 {
		t.Error("the deletion hangs on nothing")
	}
	// Ids of requests are ours, and are there to be found in the log; nothing else names anybody.
	for _, secret := range []string{id, b.org, b.token, reader, b.name, b.mail, b.notes, b.content, "cred_"} {
		if bytes.Contains(b.traces.Raw(), []byte(secret)) {
			t.Errorf("exported: %q", secret)
		}
	}
}

// A customer's text passes its gates inside the request; and what a stranger asks for leaves no word of his.
func TestTraceOfARequestWithGates(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	said := b.do(call{method: "POST", path: b.path("/customer-uploads"), token: b.token, key: client.NewIdempotencyKey(), json: map[string]any{
		"filename": b.name + ".txt", "payload": "The crane of " + b.content + " lifts ten tons.", "visibility": "ai_readable_controlled", "consent": consent(),
	}})
	said.want(t, 201, "")
	traceID := said.Header.Get("Traceparent")[3:35]
	spans := b.traces.Await(t, traceID, ended("POST /api/v1/organizations/{org_id}/customer-uploads", "gate malware_scan", "gate ai_context"))
	if gate, request := spanNamed(t, spans, "gate ai_context"), spanNamed(t, spans, "POST /api/v1/organizations/{org_id}/customer-uploads"); !bytes.Equal(gate.ParentSpanId, request.SpanId) {
		t.Errorf("the gate hangs on %x, the request is %x", gate.ParentSpanId, request.SpanId)
	}
	req, err := http.NewRequest(b.marks.name[:4]+"X", b.url+"/"+b.content+"?"+b.notes, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319d-b7ad6b7169203331-01")
	req.Header.Set("Tracestate", "x="+b.mail)
	req.Header.Set("Baggage", "x="+b.mail)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	b.traces.Await(t, "0af7651916cd43dd8448eb211c80319d", ended("unmatched"))
	b.failIf(find("the traces", b.traces.Raw(), b.content, b.name, b.notes, b.mail))
	if bytes.Contains(b.traces.Raw(), []byte(b.marks.name[:4]+"X")) {
		t.Error("a made up method is exported")
	}
}

var metricName = regexp.MustCompile(`(?m)^# TYPE (accession_\w+) (\w+)$`)

// scrape is the service's metrics and the types of those that are its own.
func (b *bench) scrape() (text string, types map[string]string) {
	b.t.Helper()
	res, err := http.Get("http://" + b.metrics + "/metrics")
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	types = map[string]string{}
	for _, m := range metricName.FindAllStringSubmatch(string(raw), -1) {
		types[m[1]] = m[2]
	}
	return string(raw), types
}

// The four golden signals, of operations and of gates, and nobody's name in them.
func TestMetricsOfWork(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	id := b.deposit("text/plain", []byte("The lock of "+b.content+" is closed."))
	b.wantReady(id)
	wanted := []string{
		`accession_requests_total{operation="completePartnerUpload",status="202"} 1`, `accession_requests_in_flight{operation="completePartnerUpload"} 0`,
		`accession_request_duration_seconds_count{operation="completePartnerUpload"} 1`, `accession_gate_attempts_total{gate="malware_scan",outcome="passed"} 1`,
		`accession_gates_running{gate="malware_scan"} 0`, `accession_job_start_delay_seconds_count{lane="gates"} 1`, `accession_ready{check="store"} 1`,
		`accession_ready{check="blobs"} 1`, `accession_ready{check="keys"} 1`, `accession_organizations 1`, `accession_organizations_nearly_full 0`,
		`accession_database_connections_limit{database="metadata"} 5`, `accession_database_duration_seconds_count{database="keys",kind="read"}`,
		`accession_storage_duration_seconds_count{operation="copy"} 1`, `accession_storage_free_bytes{folder="data"}`, `accession_scanner_up 1`,
	}
	var text string
	lacking := func() (lack []string) {
		text, _ = b.scrape()
		for _, want := range wanted {
			if !strings.Contains(text, want) {
				lack = append(lack, want)
			}
		}
		return lack
	}
	lack := lacking()
	for deadline := time.Now().Add(2 * time.Minute); len(lack) > 0 && time.Now().Before(deadline); time.Sleep(lookAgain) {
		lack = lacking() // a scrape on a busy machine leaves out whoever does not answer in time
	}
	if len(lack) > 0 {
		t.Errorf("the metrics lack %q", lack)
	}
	for _, name := range []string{id, b.org, "cred_", b.name, b.content} {
		if strings.Contains(text, name) {
			t.Errorf("the metrics name %s", name)
		}
	}
}
