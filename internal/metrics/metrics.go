// Package metrics counts what the service does, for Prometheus. Names begin with accession_; no label ever holds an
// organization, a credential, an id or a path, so that the number of series does not grow with use. docs/operations.md
// lists them; a test compares that list with what is printed.
package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics of one process. Any number of goroutines may use it.
type Metrics struct {
	registry *prometheus.Registry

	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	inFlight  *prometheus.GaugeVec
	received  *prometheus.CounterVec
	answered  *prometheus.CounterVec

	gates    *prometheus.HistogramVec
	attempts *prometheus.CounterVec
	running  *prometheus.GaugeVec
	jobs     *prometheus.GaugeVec
	delays   *prometheus.HistogramVec
	retries  *prometheus.CounterVec
	rescans  *prometheus.CounterVec

	databases *prometheus.HistogramVec
	errors    *prometheus.CounterVec
	storage   *prometheus.HistogramVec
	failures  *prometheus.CounterVec
}

// quick are the bounds, in seconds, of what should take milliseconds.
var quick = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// New makes the metrics of a process of the given version.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(g)
		return g
	}
	histogram := func(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, labels)
		m.registry.MustRegister(h)
		return h
	}
	m.requests = counter("accession_requests_total", "Requests answered, by operation (empty where none was reached) and HTTP status.", "operation", "status")
	m.durations = histogram("accession_request_duration_seconds", "From the headers of a request to the end of its answer.", quick, "operation")
	m.inFlight = gauge("accession_requests_in_flight", "Requests that are being answered.", "operation")
	m.received = counter("accession_request_body_bytes_total", "Bytes read of the bodies of requests.", "operation")
	m.answered = counter("accession_answer_body_bytes_total", "Bytes written of the bodies of answers.", "operation")
	m.gates = histogram("accession_gate_duration_seconds", "From the start of a gate to its outcome: passed, rejected or failed; waiting between attempts included.",
		[]float64{.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600, 7200}, "gate", "outcome")
	m.attempts = counter("accession_gate_attempts_total", "Attempts of gates, those of re-scans and of customers' texts included, by what they said: passed, rejected, unanswered or interrupted.", "gate", "outcome")
	m.running = gauge("accession_gates_running", "Attempts of gates that run.", "gate")
	m.jobs = gauge("accession_jobs_running", "Uploads that workers hold, by lane.", "lane")
	m.delays = histogram("accession_job_start_delay_seconds", "From the change that made an upload due to the worker that took it, by lane.", quick, "lane")
	m.retries = counter("accession_job_retries_total", "Uploads that a worker took again, because the try before had no answer or was cut short, by lane.", "lane")
	m.rescans = counter("accession_rescans_total", "Re-scans of stored uploads, by outcome: clean, found, unreadable, unanswered.", "outcome")
	m.databases = histogram("accession_database_duration_seconds", "What the service waited for a database (metadata, keys), by kind: read or transaction.", quick, "database", "kind")
	m.errors = counter("accession_database_errors_total", "Reads and transactions that failed for a reason of the database's.", "database", "kind")
	m.storage = histogram("accession_storage_duration_seconds", "What the service waited for storage, by operation: write_part (with its sender), write_derived, read_derived, copy, delete.", quick, "operation")
	m.failures = counter("accession_storage_errors_total", "Those of them that failed, also because a sender broke off.", "operation")
	build := gauge("accession_build_info", "Always 1; the version is in the label.", "version")
	build.WithLabelValues(version).Set(1)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Expect shows the series of these gates and lanes from the start, as 0: an alert sees the first failure only as a growth.
func (m *Metrics) Expect(gates, lanes []string) {
	for _, gate := range gates {
		m.running.WithLabelValues(gate)
		for _, outcome := range []string{"passed", "rejected", "unanswered", "interrupted"} {
			m.attempts.WithLabelValues(gate, outcome)
		}
		for _, outcome := range []string{"passed", "rejected", "failed"} {
			m.gates.WithLabelValues(gate, outcome)
		}
	}
	for _, lane := range lanes {
		m.jobs.WithLabelValues(lane)
		m.retries.WithLabelValues(lane)
		m.delays.WithLabelValues(lane)
	}
	for _, outcome := range []string{"clean", "found", "unreadable", "unanswered"} {
		m.rescans.WithLabelValues(outcome)
	}
	for _, database := range []string{"metadata", "keys"} {
		for _, kind := range []string{"read", "transaction"} {
			m.errors.WithLabelValues(database, kind)
		}
	}
	for _, operation := range []string{"write_part", "write_derived", "read_derived", "copy", "delete"} {
		m.failures.WithLabelValues(operation)
	}
}

// Begun counts a request in that came to an operation; Request counts it out.
func (m *Metrics) Begun(operation string) { m.inFlight.WithLabelValues(operation).Inc() }

// Request counts one answered request; in and out are bytes of bodies.
func (m *Metrics) Request(operation string, status int, in, out int64, took time.Duration) {
	m.requests.WithLabelValues(operation, strconv.Itoa(status)).Inc()
	m.durations.WithLabelValues(operation).Observe(took.Seconds())
	m.received.WithLabelValues(operation).Add(float64(in))
	m.answered.WithLabelValues(operation).Add(float64(out))
	if operation != "" {
		m.inFlight.WithLabelValues(operation).Dec()
	}
}

// Gate counts one gate that came to an outcome.
func (m *Metrics) Gate(name, outcome string, took time.Duration) {
	m.gates.WithLabelValues(name, outcome).Observe(took.Seconds())
}

// Attempt counts an attempt of a gate in; the returned function counts it out, by outcome.
func (m *Metrics) Attempt(gate string) (ended func(outcome string)) {
	m.running.WithLabelValues(gate).Inc()
	return func(outcome string) {
		m.running.WithLabelValues(gate).Dec()
		m.attempts.WithLabelValues(gate, outcome).Inc()
	}
}

// Job counts an upload in that a worker took; the returned function counts it out. delay is how long it waited, less than
// 0 where that is unknown. attempt counts from 1.
func (m *Metrics) Job(lane string, attempt int, delay time.Duration) (ended func()) {
	if attempt > 1 {
		m.retries.WithLabelValues(lane).Inc()
	}
	if delay >= 0 {
		m.delays.WithLabelValues(lane).Observe(delay.Seconds())
	}
	running := m.jobs.WithLabelValues(lane)
	running.Inc()
	return running.Dec
}

// Rescan counts one re-scan of a stored upload.
func (m *Metrics) Rescan(outcome string) { m.rescans.WithLabelValues(outcome).Inc() }

// Database counts one read or transaction.
func (m *Metrics) Database(database, kind string, took time.Duration, failed bool) {
	m.databases.WithLabelValues(database, kind).Observe(took.Seconds())
	if failed {
		m.errors.WithLabelValues(database, kind).Inc()
	}
}

// Storage counts one call of the storage.
func (m *Metrics) Storage(operation string, took time.Duration, failed bool) {
	m.storage.WithLabelValues(operation).Observe(took.Seconds())
	if failed {
		m.failures.WithLabelValues(operation).Inc()
	}
}

// Handler serves the metrics at any path. It belongs on a listener of its own, out of clients' reach.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}
