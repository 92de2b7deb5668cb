// Package telemetry follows work through the service as OpenTelemetry traces, exported by OTLP over HTTP:
//
//	request (its route) ─┬─ gate            texts of customers: inside the request
//	                     └─ job (its lane) ─── gate      later, in any process
//	     each of them ───── database, storage
//
// The ids that an upload's events keep are enough to go on from a request to its jobs: the trace id, and the request id, of which
// the span id of the request is made. A span says which route, lane, gate, database or storage, how long, and how it ended. It
// never holds an organization, a credential, an upload's id, a file name, content, a query's values or the text of an error.
package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Traces of one process. Any number of goroutines may use it.
type Traces struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// flush is how long spans that are not exported yet may take at the end.
const flush = 3 * time.Second

// CheckEndpoint tells what is wrong with the URL of a collector; nil where nothing is.
func CheckEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("must be the URL of an OTLP collector, such as http://127.0.0.1:4318")
	}
	return nil
}

// Open begins to export to a collector; nothing is asked of it before the first span ends, and its absence holds up nothing.
// endpoint is its base URL: /v1/traces is added where it has no path. What the service does not set itself is taken from the
// environment as OpenTelemetry has it: OTEL_EXPORTER_OTLP_* (headers, certificate, timeout, compression), OTEL_BSP_*,
// OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES. Close it.
func Open(ctx context.Context, endpoint, version string, log *slog.Logger) (*Traces, error) {
	if err := CheckEndpoint(endpoint); err != nil {
		return nil, err
	}
	if u, _ := url.Parse(endpoint); u.Path == "" || u.Path == "/" {
		endpoint = u.JoinPath("v1", "traces").String()
	}
	decides, err := sampler(os.Getenv)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "accession"), attribute.String("service.version", version), attribute.String("service.instance.id", rand.Text()),
	), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	otel.SetErrorHandler(&complaints{log: log})
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about), sdk.WithIDGenerator(ids{}), sdk.WithSampler(jobsByTrace{decides}))
	return &Traces{provider, provider.Tracer("github.com/accession/accession")}, nil
}

// Close exports what is left, for up to 3 s.
func (t *Traces) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), flush)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		otel.Handle(err) // a collector that is away is no failure of the service
	}
	return nil
}

// sampler is what the environment says of it; default: whatever the caller's traceparent says, else everything.
func sampler(getenv func(string) string) (sdk.Sampler, error) {
	ratio := 1.0
	if text := getenv("OTEL_TRACES_SAMPLER_ARG"); text != "" {
		var err error
		if ratio, err = strconv.ParseFloat(text, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
			return nil, errors.New("OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1")
		}
	}
	switch name := getenv("OTEL_TRACES_SAMPLER"); name {
	case "", "parentbased_always_on":
		return sdk.ParentBased(sdk.AlwaysSample()), nil
	case "parentbased_always_off":
		return sdk.ParentBased(sdk.NeverSample()), nil
	case "parentbased_traceidratio":
		return sdk.ParentBased(sdk.TraceIDRatioBased(ratio)), nil
	case "always_on":
		return sdk.AlwaysSample(), nil
	case "always_off":
		return sdk.NeverSample(), nil
	case "traceidratio":
		return sdk.TraceIDRatioBased(ratio), nil
	default:
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER: %q is not known; use parentbased_traceidratio with OTEL_TRACES_SAMPLER_ARG=0.01, for one in a hundred", name)
	}
}

// jobsByTrace lets the trace id of a job decide, as it did for a request that nobody else had decided on: whether its request
// was sampled is not kept.
type jobsByTrace struct{ sdk.Sampler }

type jobKey struct{}

func (s jobsByTrace) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	if p.ParentContext.Value(jobKey{}) != nil {
		p.ParentContext = trace.ContextWithSpanContext(p.ParentContext, trace.SpanContext{})
	}
	return s.Sampler.ShouldSample(p)
}

// ids makes the span id of a request of its request id, so that its jobs can name it; all others are random.
type ids struct{}

type requestKey struct{}

func (ids) NewIDs(ctx context.Context) (id trace.TraceID, _ trace.SpanID) {
	rand.Read(id[:])
	return id, ids{}.NewSpanID(ctx, id)
}

func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) (id trace.SpanID) {
	if requestID, ok := ctx.Value(requestKey{}).(string); ok {
		return spanOf(requestID)
	}
	rand.Read(id[:])
	return id
}

func spanOf(requestID string) (id trace.SpanID) {
	digest := sha256.Sum256([]byte("span of " + requestID))
	copy(id[:], digest[:])
	return id
}

// complaints logs that spans are lost, once a minute at most: a collector may be away for long.
type complaints struct {
	log *slog.Logger

	mu   sync.Mutex
	next time.Time
}

func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.After(c.next) {
		c.next = now.Add(time.Minute)
		c.log.Warn("traces are not exported", "error", err)
	}
}
