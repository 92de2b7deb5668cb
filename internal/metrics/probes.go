package metrics

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Queue is what waits for a worker.
type Queue struct {
	Depth  int           // uploads that are due and that nobody works on
	Oldest time.Duration // how long the longest of them has waited
}

// Quota is the storage of all organizations together, in bytes.
type Quota struct {
	Organizations, NearlyFull int // NearlyFull: have 90 % or more of their allowance in use or reserved
	Allowance, Used, Reserved int64
}

// Pool is the connections of this process to a database.
type Pool struct{ Open, InUse, Limit int }

// Webhooks are the deliveries of all organizations together.
type Webhooks struct {
	Waiting int           // not delivered yet, those included that are tried again later
	Dead    int           // given up, until somebody replays them
	Oldest  time.Duration // since the oldest that waits
}

// Turns are the requests of this process that wait for theirs.
type Turns struct {
	Waiting int
	Refused uint64 // whose turn did not come, so far
}

// Probes are asked at every scrape; they must answer within its deadline. A probe that fails leaves its metrics out, one that is
// nil too.
type Probes struct {
	Queues   func(context.Context) (map[string]Queue, error) // by lane
	Scanner  func(context.Context) (signatures time.Time, err error)
	Rescans  func(context.Context) (waiting int, err error)
	Quota    func(context.Context) (Quota, error)
	Ready    map[string]func(context.Context) error // by check, as /readyz has them
	Pools    func() map[string]Pool                 // by database
	Turns    func() Turns
	Webhooks func(context.Context) (Webhooks, error)
	Storage  map[string]func() (free, size int64, err error) // by folder, in bytes
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

func described(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	depth   = described("accession_queue_uploads", "Uploads that are due and that no worker has taken.", "lane")
	oldest  = described("accession_queue_oldest_seconds", "How long the longest of them has waited.", "lane")
	up      = described("accession_scanner_up", "1 while the malware scanner proves that it finds what it must.")
	waiting = described("accession_rescans_waiting", "Stored uploads that are to be scanned again, those included that are tried again later.")
	sigsAge = described("accession_scanner_signature_age_seconds", "Since the scanner's signatures were built; missing where that is unknown.")

	organizations = described("accession_organizations", "Organizations with an allowance.")
	nearlyFull    = described("accession_organizations_nearly_full", "Organizations that have 90 % or more of their allowance in use or reserved.")
	allowance     = described("accession_quota_allowance_bytes", "Allowances of all organizations together.")
	used          = described("accession_quota_used_bytes", "Stored for all organizations together.")
	reserved      = described("accession_quota_reserved_bytes", "Reserved by all organizations together, for uploads that are not complete.")

	hooks       = described("accession_webhooks_waiting", "Webhook deliveries that are not delivered yet, those included that are tried again later.")
	hooksDead   = described("accession_webhooks_dead", "Webhook deliveries that are given up, until somebody replays them.")
	hooksOldest = described("accession_webhooks_oldest_seconds", "How long the oldest of the waiting deliveries has waited.")

	inTurn  = described("accession_requests_waiting", "Requests that wait for their turn.")
	noTurns = described("accession_turns_refused_total", "Requests whose turn did not come: answered 503, or given up by who asked.")

	isReady  = described("accession_ready", "1 while the check of /readyz is ok.", "check")
	poolOpen = described("accession_database_connections_open", "Connections of this process to a database.", "database")
	poolBusy = described("accession_database_connections_in_use", "Those of them that are in use.", "database")
	poolMost = described("accession_database_connections_limit", "How many there may be.", "database")
	freeRoom = described("accession_storage_free_bytes", "What is free on the disk of a folder.", "folder")
	allRoom  = described("accession_storage_size_bytes", "The size of the disk of a folder.", "folder")
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
	if p.Pools != nil {
		for name, pool := range p.Pools() {
			gauge(poolOpen, float64(pool.Open), name)
			gauge(poolBusy, float64(pool.InUse), name)
			gauge(poolMost, float64(pool.Limit), name)
		}
	}
	if p.Turns != nil {
		turns := p.Turns()
		gauge(inTurn, float64(turns.Waiting))
		out <- prometheus.MustNewConstMetric(noTurns, prometheus.CounterValue, float64(turns.Refused))
	}
	for name, disk := range p.Storage {
		if free, size, err := disk(); err != nil {
			p.log.WarnContext(ctx, "free space is not known", "folder", name, "error", err)
		} else {
			gauge(freeRoom, float64(free), name)
			gauge(allRoom, float64(size), name)
		}
	}
	for name, ready := range p.Ready {
		v := 1.0
		if err := ready(ctx); err != nil {
			v = 0
		}
		gauge(isReady, v, name)
	}
	p.collectStore(ctx, gauge)
	if p.Scanner == nil {
		return
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

// collectStore asks what only the metadata knows.
func (p *probed) collectStore(ctx context.Context, gauge func(d *prometheus.Desc, v float64, labels ...string)) {
	if p.Queues != nil {
		queues, err := p.Queues(ctx)
		if err != nil {
			p.log.WarnContext(ctx, "queues could not be counted", "error", err)
			queues = nil
		}
		for lane, q := range queues {
			gauge(depth, float64(q.Depth), lane)
			gauge(oldest, q.Oldest.Seconds(), lane)
		}
	}
	if p.Rescans != nil {
		if n, err := p.Rescans(ctx); err != nil {
			p.log.WarnContext(ctx, "re-scans could not be counted", "error", err)
		} else {
			gauge(waiting, float64(n))
		}
	}
	if p.Webhooks != nil {
		if w, err := p.Webhooks(ctx); err != nil {
			p.log.WarnContext(ctx, "webhook deliveries could not be counted", "error", err)
		} else {
			gauge(hooks, float64(w.Waiting))
			gauge(hooksDead, float64(w.Dead))
			gauge(hooksOldest, w.Oldest.Seconds())
		}
	}
	if p.Quota != nil {
		q, err := p.Quota(ctx)
		if err != nil {
			p.log.WarnContext(ctx, "quota could not be summed", "error", err)
			return
		}
		gauge(organizations, float64(q.Organizations))
		gauge(nearlyFull, float64(q.NearlyFull))
		gauge(allowance, float64(q.Allowance))
		gauge(used, float64(q.Used))
		gauge(reserved, float64(q.Reserved))
	}
}
