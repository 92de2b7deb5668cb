// Package metrics counts what the service does, for Prometheus. Names begin with accession_; no label ever holds an
// organization, a credential, an id or a path.
package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics of one process. Any number of goroutines may use it.
type Metrics struct {
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	received  *prometheus.CounterVec
	answered  *prometheus.CounterVec
	gates     *prometheus.HistogramVec
	rescans   *prometheus.CounterVec
}

// New makes the metrics of a process of the given version.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "accession_requests_total", Help: "Requests answered, by operation (empty where none was reached) and HTTP status.",
		}, []string{"operation", "status"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "accession_request_duration_seconds", Help: "From the headers of a request to the end of its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"operation"}),
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "accession_request_body_bytes_total", Help: "Bytes read of the bodies of requests.",
		}, []string{"operation"}),
		answered: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "accession_answer_body_bytes_total", Help: "Bytes written of the bodies of answers.",
		}, []string{"operation"}),
		gates: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "accession_gate_duration_seconds", Help: "From the start of a gate to its outcome: passed, rejected or failed.",
			Buckets: []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600, 7200},
		}, []string{"gate", "outcome"}),
		rescans: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "accession_rescans_total", Help: "Re-scans of stored uploads, by outcome: clean, found, unreadable, unanswered.",
		}, []string{"outcome"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "accession_build_info", Help: "Always 1; the version is in the label.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(m.requests, m.durations, m.received, m.answered, m.gates, m.rescans, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Request counts one answered request; in and out are bytes of bodies.
func (m *Metrics) Request(operation string, status int, in, out int64, took time.Duration) {
	m.requests.WithLabelValues(operation, strconv.Itoa(status)).Inc()
	m.durations.WithLabelValues(operation).Observe(took.Seconds())
	m.received.WithLabelValues(operation).Add(float64(in))
	m.answered.WithLabelValues(operation).Add(float64(out))
}

// Gate counts one gate that came to an outcome.
func (m *Metrics) Gate(name, outcome string, took time.Duration) {
	m.gates.WithLabelValues(name, outcome).Observe(took.Seconds())
}

// Rescan counts one re-scan of a stored upload.
func (m *Metrics) Rescan(outcome string) { m.rescans.WithLabelValues(outcome).Inc() }

// Queue is what waits for a worker.
type Queue struct {
	Depth  int           // uploads that are due and that nobody works on
	Oldest time.Duration // how long the longest of them has waited
}

// Probes are asked at every scrape; they must answer within its deadline. A probe that fails leaves its metrics out.
type Probes struct {
	Queues  func(context.Context) (map[string]Queue, error) // by lane
	Scanner func(context.Context) (signatures time.Time, err error)
	Rescans func(context.Context) (waiting int, err error)
}

// Watch adds the probes; call it once.
func (m *Metrics) Watch(p Probes, log *slog.Logger) {
	m.registry.MustRegister(&probed{p, log})
}

// scrape is how long the probes of one scrape may take.
const scrape = 3 * time.Second

type probed struct {
	Probes
	log *slog.Logger
}

var (
	depth   = prometheus.NewDesc("accession_queue_uploads", "Uploads that are due and that no worker has taken.", []string{"lane"}, nil)
	oldest  = prometheus.NewDesc("accession_queue_oldest_seconds", "How long the longest of them has waited.", []string{"lane"}, nil)
	up      = prometheus.NewDesc("accession_scanner_up", "1 while the malware scanner proves that it finds what it must.", nil, nil)
	waiting = prometheus.NewDesc("accession_rescans_waiting", "Stored uploads that are to be scanned again, those included that are tried again later.", nil, nil)
	sigsAge = prometheus.NewDesc("accession_scanner_signature_age_seconds", "Since the scanner's signatures were built; missing where that is unknown.", nil, nil)
)

// Describe says nothing: which metrics come depends on what answers.
func (*probed) Describe(chan<- *prometheus.Desc) {}

// Collect asks the probes.
func (p *probed) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrape)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if queues, err := p.Queues(ctx); err != nil {
		p.log.WarnContext(ctx, "queues could not be counted", "error", err)
	} else {
		for lane, q := range queues {
			gauge(depth, float64(q.Depth), lane)
			gauge(oldest, q.Oldest.Seconds(), lane)
		}
	}
	if n, err := p.Rescans(ctx); err != nil {
		p.log.WarnContext(ctx, "re-scans could not be counted", "error", err)
	} else {
		gauge(waiting, float64(n))
	}
	built, err := p.Scanner(ctx)
	if err != nil {
		gauge(up, 0)
		return
	}
	gauge(up, 1)
	if !built.IsZero() {
		gauge(sigsAge, time.Since(built).Seconds())
	}
}

// Handler serves the metrics at any path. It belongs on a listener of its own, out of clients' reach.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}
