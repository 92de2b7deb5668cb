package pipeline

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/storetest"
)

// A gate that began long before its process is tried before its deadline counts: nobody tried it meanwhile, or the clock was put forward.
// A document that ends one process after the other comes to its end all the same, and no answer is no pass.
func TestOldGateAfterARestart(t *testing.T) {
	const told = 7 // attempts without an answer, as the gate says
	found := &custody.Refusal{Code: codeMalwareFound, Message: "The malware scan found Evil.Test."}
	silence := &custody.NoAnswer{Code: "scanner_unavailable", Message: "the engine does not answer"}
	for name, c := range map[string]struct {
		claims  int // of the gate until now
		answer  error
		attempt time.Duration
		want    string
		tried   bool
	}{
		"that was stopped":          {told, found, 10 * time.Minute, codeMalwareFound, true},
		"that was killed":           {told + mostUntold, found, 10 * time.Minute, codeMalwareFound, true},
		"that was killed each time": {told + mostUntold + 1, found, 10 * time.Minute, silence.Code, false},
		"without an answer":         {told, silence, 50 * time.Millisecond, silence.Code, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := storetest.OpenSQLite(t)
			store := realStore{in.Store, joined(in.Store.InTx)}
			u := in.Processing(t)
			if err := store.InTx(t.Context(), func(tx Tx) error {
				return tx.SetGate(t.Context(), u.ID, custody.GateResult{Name: custody.GateIntegrity, State: custody.GateRunning, StartedAt: custody.Now().Add(-24 * time.Hour),
					Detail: map[string]any{"attempts": told, "last_error": silence.Code, "last_message": silence.Message}})
			}); err != nil {
				t.Fatal(err)
			}
			if err := in.Exec(t.Context(), `UPDATE uploads SET attempt = $1`, c.claims); err != nil {
				t.Fatal(err)
			}
			gates := slices.Clone(custody.Gates)
			gates[0].Attempt = c.attempt
			r := New(store, &bytesAway{}, Engines{}, Config{Gates: gates, Log: slog.New(slog.DiscardHandler), Poll: 10 * time.Millisecond})
			var tried atomic.Bool
			r.gates[0].run = func(context.Context, *pass) error { tried.Store(true); return c.answer }
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); r.Run(ctx) }()
			defer func() { cancel(); <-done }()
			limit := time.After(time.Minute)
			for {
				changed := in.DB.Changed()
				var err error
				if u, err = in.Store.Upload(t.Context(), u.OrgID, u.ID); err != nil {
					t.Fatal(err)
				}
				if u.Failure != nil {
					break
				}
				select {
				case <-changed:
				case <-limit:
					t.Fatalf("it stays %s", u.Status)
				}
			}
			if u.Failure.Code != c.want || tried.Load() != c.tried {
				t.Errorf("%s for %+v, want %s; tried: %t, want %t", u.Status, u.Failure, c.want, tried.Load(), c.tried)
			}
		})
	}
}
