package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

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
	svc.metrics.Watch(metrics.Probes{
		Queues: func(ctx context.Context) (map[string]metrics.Queue, error) {
			queues := map[string]metrics.Queue{}
			for name, lane := range map[string]custody.Lane{"gates": custody.LaneGates, "deletions": custody.LaneDeletions, "rescans": custody.LaneRescans} {
				waits, oldest, err := svc.store.Backlog(ctx, lane)
				if err != nil {
					return nil, err
				}
				queues[name] = metrics.Queue{Depth: waits, Oldest: oldest}
			}
			return queues, nil
		},
		Scanner: func(ctx context.Context) (time.Time, error) {
			engine, err := svc.scanner.Health(ctx)
			return engine.SignatureDate, err
		},
		Rescans: func(ctx context.Context) (int, error) {
			state, err := svc.store.RescanState(ctx, custody.RescanScope{}, custody.Now())
			return state.Waiting, err
		},
	}, svc.log)
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
