package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/metrics"
	"github.com/accession/accession/internal/pipeline"
	"github.com/accession/accession/internal/sqlstore"
)

// openMetrics begins to count, if anybody listens.
func (svc *service) openMetrics() {
	if svc.settings.MetricsListen == "" {
		return
	}
	svc.metrics = metrics.New(version)
	var gates []string
	for _, g := range custody.Gates {
		gates = append(gates, string(g.Name))
	}
	svc.metrics.Expect(gates, []string{"gates", "deletions", "rescans"})
	svc.metrics.Watch(svc.probes(), svc.log)
}

// probes are asked at every scrape. They begin once everything is open.
func (svc *service) probes() metrics.Probes {
	return metrics.Probes{
		Queues: func(ctx context.Context) (map[string]metrics.Queue, error) {
			queues := map[string]metrics.Queue{}
			for _, named := range custody.NamedLanes {
				waits, oldest, err := svc.store.Backlog(custody.AcrossOrganizations(ctx), named.Lane)
				if err != nil {
					return nil, err
				}
				queues[named.Name] = metrics.Queue{Depth: waits, Oldest: oldest}
			}
			return queues, nil
		},
		Scanner: func(ctx context.Context) (time.Time, error) {
			engine, err := svc.scanner.Health(ctx)
			return engine.SignatureDate, err
		},
		Rescans: func(ctx context.Context) (int, error) {
			state, err := svc.store.RescanState(custody.AcrossOrganizations(ctx), custody.RescanScope{}, custody.Now())
			return state.Waiting, err
		},
		Webhooks: func(ctx context.Context) (w metrics.Webhooks, err error) {
			w.Waiting, w.Dead, w.Oldest, err = svc.store.WebhookBacklog(custody.AcrossOrganizations(ctx))
			return w, err
		},
		Quota: func(ctx context.Context) (metrics.Quota, error) {
			q, err := svc.store.QuotaOfAll(custody.AcrossOrganizations(ctx))
			return metrics.Quota{
				Organizations: q.Organizations, NearlyFull: q.NearlyFull, Allowance: q.AllowanceBytes, Used: q.UsedBytes, Reserved: q.ReservedBytes,
			}, err
		},
		Ready: map[string]func(context.Context) error{
			"store": func(ctx context.Context) error { return svc.store.Ping(ctx) },
			"blobs": func(ctx context.Context) error { return svc.vault.Ready(ctx) },
			"keys":  func(ctx context.Context) error { return svc.keys.Ready(ctx) },
		},
		Pools: func() map[string]metrics.Pool {
			pools := map[string]metrics.Pool{}
			for name, connections := range svc.pools {
				open, inUse, limit := connections()
				pools[name] = metrics.Pool{Open: open, InUse: inUse, Limit: limit}
			}
			return pools
		},
		Turns: func() metrics.Turns {
			waiting, refused := svc.turns.State()
			return metrics.Turns{Waiting: waiting, Refused: refused}
		},
		Storage: svc.disks(),
	}
}

// disks are the folders whose room the service depends on; storage that is no folder has none.
func (svc *service) disks() map[string]func() (free, size int64, err error) {
	disks := map[string]func() (free, size int64, err error){}
	for name, root := range map[string]string{"data": svc.settings.Data, "blobs": svc.settings.Blobs, "quarantine": svc.settings.Quarantine} {
		if root == "" || strings.Contains(root, "://") {
			continue
		}
		disks[name] = func() (free, size int64, err error) {
			var s unix.Statfs_t
			if err := unix.Statfs(root, &s); err != nil {
				return 0, 0, err
			}
			return int64(s.Bavail) * s.Bsize, int64(s.Blocks) * s.Bsize, nil
		}
	}
	return disks
}

// rescanned counts what the pipeline says of a re-scan, if anybody listens.
func (svc *service) rescanned(outcome string) {
	if svc.metrics != nil {
		svc.metrics.Rescan(outcome)
	}
}

// serveMetrics serves them on a listener of their own until the returned function is called.
func (svc *service) serveMetrics() (stop func() error, err error) {
	if svc.metrics == nil {
		return func() error { return nil }, nil
	}
	l, err := net.Listen("tcp", svc.settings.MetricsListen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", svc.metrics.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second,
		ErrorLog: slog.NewLogLogger(svc.log.Handler(), slog.LevelDebug)}
	svc.working.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			svc.log.Error("metrics are not served any more", "error", err)
		}
	})
	svc.log.Info("metrics", "address", l.Addr().String())
	return server.Close, nil
}

// observedTx notes the gates that come to an outcome, so that they are counted once their transaction is durable.
type observedTx struct {
	*sqlstore.Tx
	done []custody.GateResult
}

func (tx *observedTx) SetGate(ctx context.Context, uploadID string, g custody.GateResult) error {
	if !g.StartedAt.IsZero() && !g.FinishedAt.IsZero() {
		tx.done = append(tx.done, g)
	}
	return tx.Tx.SetGate(ctx, uploadID, g)
}

// observedStore counts the gates of the pipeline.
type observedStore struct {
	pipelineStore
	metrics *metrics.Metrics
}

func (s observedStore) InTx(ctx context.Context, fn func(pipeline.Tx) error) error {
	var done []custody.GateResult
	err := s.Store.InTx(ctx, func(tx *sqlstore.Tx) error {
		observed := &observedTx{Tx: tx}
		err := fn(observed)
		done = observed.done // of the last run, should a conflict have made it run again
		return err
	})
	if err == nil {
		for _, g := range done {
			s.metrics.Gate(string(g.Name), string(g.State), g.FinishedAt.Sub(g.StartedAt))
		}
	}
	return err
}
