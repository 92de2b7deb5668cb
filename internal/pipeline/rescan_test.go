package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/storetest"
)

// reads are what the pipeline reads of the real store; its transactions are of a type that this package does not know.
type reads interface {
	Due(context.Context, custody.Lane) (bool, error)
	Parts(context.Context, string) ([]custody.Part, error)
	Gates(context.Context, string) ([]custody.GateResult, error)
	Artifact(context.Context, string, string) (custody.Artifact, error)
	Work() <-chan struct{}
	Scrub(context.Context) error
	WaitsTooLong(context.Context, custody.LongestWaits) (bool, error)
}

type realStore struct {
	reads
	inTx func(context.Context, func(Tx) error) error
}

func (s realStore) InTx(ctx context.Context, fn func(Tx) error) error { return s.inTx(ctx, fn) }

func joined[T Tx](inTx func(context.Context, func(T) error) error) func(context.Context, func(Tx) error) error {
	return func(ctx context.Context, fn func(Tx) error) error {
		return inTx(ctx, func(tx T) error { return fn(tx) })
	}
}

// bytesAway stands in for the vault: what matters here is that derived objects go, once, and only then.
type bytesAway struct {
	Vault
	mu      sync.Mutex
	dropped []string
	fault   error
}

func (v *bytesAway) Open(context.Context, string, []custody.Part) (custody.Content, error) {
	return document{strings.NewReader(strings.Repeat("x", 64))}, v.fault
}

func (v *bytesAway) DropDerived(_ context.Context, uploadID string) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dropped = append(v.dropped, uploadID)
	return 3, nil
}

type document struct{ *strings.Reader }

func (document) Close() error  { return nil }
func (d document) Size() int64 { return d.Reader.Size() }

// engine answers each scan by asking the test.
type engine func(ctx context.Context) (ScanReport, error)

func (e engine) Scan(ctx context.Context, _ io.ReaderAt, _ int64) (ScanReport, error) { return e(ctx) }

// stored is a READY upload that waits to be scanned again, with a context, in a real store.
type stored struct {
	*testing.T
	in       *storetest.Installation
	store    realStore
	vault    *bytesAway
	upload   custody.Upload
	outcomes chan string

	withdrawals Withdrawals
}

func newStored(t *testing.T) *stored {
	t.Helper()
	in := storetest.OpenSQLite(t)
	s := &stored{T: t, in: in, store: realStore{in.Store, joined(in.Store.InTx)}, vault: &bytesAway{}, outcomes: make(chan string, 10)}
	s.upload = in.Ready(t, "acme", "old signatures")
	s.must(func(tx Tx) error {
		return tx.PutArtifact(t.Context(), custody.Artifact{UploadID: s.upload.ID, Name: ArtifactContext, ObjectKey: "k"})
	})
	if err := in.Exec(t.Context(), `UPDATE uploads SET due_at = 1`); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stored) must(fn func(Tx) error) {
	s.Helper()
	if err := s.store.InTx(s.Context(), fn); err != nil {
		s.Fatal(err)
	}
}

// run lets a runner work on it until the test ends; the function it returns stops it and waits.
func (s *stored) run(e engine) (r *Runner, stop func()) {
	r = New(s.store, s.vault, Engines{Scanner: e}, Config{Log: slog.New(slog.DiscardHandler), Poll: 10 * time.Millisecond,
		Rescanned: func(outcome string) { s.outcomes <- outcome }})
	r.Connect(s.withdrawals)
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	stop = func() { cancel(); <-done }
	s.Cleanup(stop)
	return r, stop
}

func (s *stored) now() (custody.Upload, custody.RescanState) {
	s.Helper()
	u, err := s.in.Store.Upload(s.Context(), "acme", s.upload.ID)
	if err != nil {
		s.Fatal(err)
	}
	state, err := s.in.Store.RescanState(s.Context(), custody.RescanScope{}, time.Time{})
	if err != nil {
		s.Fatal(err)
	}
	return u, state
}

func clean(scannedWith string) (ScanReport, error) {
	return ScanReport{Clean: true, ScannedBytes: 64, ScannedWith: scannedWith, Engine: "engine"}, nil
}

func TestRescanOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		engine  engine
		fault   error
		outcome string
		code    string // empty: it stays READY
		waiting int
	}{
		"clean":      {engine: func(context.Context) (ScanReport, error) { return clean("new signatures") }, outcome: custody.RescanClean},
		"found":      {engine: func(context.Context) (ScanReport, error) { return ScanReport{Found: "Evil.Test"}, nil }, outcome: custody.RescanFound, code: "malware_found"},
		"unreadable": {engine: func(context.Context) (ScanReport, error) { return ScanReport{Unscannable: "It is encrypted."}, nil }, outcome: custody.RescanUnreadable, code: "content_unscannable"},
		"no answer": {engine: func(context.Context) (ScanReport, error) {
			return ScanReport{}, &custody.NoAnswer{Code: "scanner_unavailable"}
		}, outcome: custody.RescanUnanswered, waiting: 1},
		"half looked at": {engine: func(context.Context) (ScanReport, error) { return ScanReport{Clean: true, ScannedBytes: 63}, nil },
			outcome: custody.RescanUnanswered, waiting: 1},
		"panics":           {engine: func(context.Context) (ScanReport, error) { panic("the engine fell") }, outcome: custody.RescanUnanswered, waiting: 1},
		"storage is away":  {fault: errors.New("disk on fire"), outcome: custody.RescanUnanswered, waiting: 1},
		"bytes are broken": {fault: custody.ErrCorrupt, outcome: custody.RescanUnreadable, code: "stored_bytes_differ"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStored(t)
			s.vault.fault = c.fault
			_, stop := s.run(c.engine)
			outcome := <-s.outcomes
			stop()
			u, state := s.now()
			if outcome != c.outcome || state.Waiting != c.waiting || state.Unanswered != c.waiting {
				t.Errorf("outcome %s, want %s; %+v", outcome, c.outcome, state)
			}
			events, err := s.in.Store.Events(t.Context(), u.ID, s.upload.Sequence)
			if err != nil {
				t.Fatal(err)
			}
			gates, err := s.in.Store.Gates(t.Context(), u.ID)
			if err != nil {
				t.Fatal(err)
			}
			_, artifact := s.in.Store.Artifact(t.Context(), u.ID, ArtifactContext)
			scan := gates[2]
			if c.code == "" {
				if u.Status != custody.StatusReady || u.Sequence != s.upload.Sequence || len(events) != 0 || artifact != nil || len(s.vault.dropped) != 0 || scan.State != custody.GatePassed {
					t.Errorf("it changed: %s, %d events, gate %s, context %v, dropped %v", u.Status, len(events), scan.State, artifact, s.vault.dropped)
				}
				return
			}
			if u.Status != custody.StatusRejected || u.Failure == nil || u.Failure.Code != c.code || u.Failure.Gate != custody.GateMalwareScan || u.Failure.Message == "" {
				t.Errorf("it is %s for %+v", u.Status, u.Failure)
			}
			if len(events) != 1 || events[0].Trigger != custody.TriggerRescanRefused || events[0].Cause.CredentialID != "" || events[0].Cause.TraceID == "" {
				t.Errorf("events: %+v", events)
			}
			if scan.State != custody.GateRejected || scan.Detail["rescan"] != true || scan.Detail["code"] != c.code || scan.FinishedAt.IsZero() {
				t.Errorf("the gate is %+v", scan)
			}
			if !errors.Is(artifact, custody.ErrNotFound) || len(s.vault.dropped) != 1 || s.vault.dropped[0] != u.ID {
				t.Errorf("the context: %v, dropped %v", artifact, s.vault.dropped)
			}
		})
	}
}

// A re-scan that had no answer is tried again by itself.
func TestRescanIsTriedAgain(t *testing.T) {
	s := newStored(t)
	var mu sync.Mutex
	tries := 0
	s.run(func(context.Context) (ScanReport, error) {
		mu.Lock()
		defer mu.Unlock()
		if tries++; tries == 1 {
			return ScanReport{}, &custody.NoAnswer{Code: "scanner_unavailable"}
		}
		return clean("new signatures")
	})
	if first, second := <-s.outcomes, <-s.outcomes; first != custody.RescanUnanswered || second != custody.RescanClean {
		t.Errorf("outcomes %s, %s", first, second)
	}
	if u, state := s.now(); u.Status != custody.StatusReady || state != (custody.RescanState{Clean: 1}) {
		t.Errorf("%s, %+v", u.Status, state)
	}
}

// The clock was put back by three hours since a re-scan had no answer: it does not wait for the old time.
func TestRescanAfterTheClockWasPutBack(t *testing.T) {
	s := newStored(t)
	if err := s.in.Exec(t.Context(), fmt.Sprintf(`UPDATE uploads SET due_at = %d, attempt = 1`, custody.Now().Add(3*time.Hour).UnixMilli())); err != nil {
		t.Fatal(err)
	}
	s.run(func(context.Context) (ScanReport, error) { return clean("new signatures") })
	select {
	case outcome := <-s.outcomes:
		if outcome != custody.RescanClean {
			t.Errorf("outcome %s", outcome)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits for the old time")
	}
}

// A withdrawal accepted while the scan runs wins over whatever the scan finds.
func TestWithdrawalWinsOverARescan(t *testing.T) {
	s := newStored(t)
	finished := make(finishes, 1)
	s.withdrawals = finished
	scanning, interrupted := make(chan struct{}), make(chan error, 1)
	r, _ := s.run(func(ctx context.Context) (ScanReport, error) {
		close(scanning)
		<-ctx.Done()
		interrupted <- context.Cause(ctx)
		return ScanReport{Found: "Evil.Test"}, nil
	})
	<-scanning
	r.mu.Lock()
	if r.running[s.upload.ID] == nil {
		t.Error("a withdrawal cannot interrupt the re-scan")
	}
	r.mu.Unlock()
	u := s.upload
	s.must(func(tx Tx) error {
		return tx.Transition(t.Context(), &u, custody.Change{Trigger: custody.TriggerWithdrawal})
	})
	r.Interrupt(u.ID)
	if err := <-interrupted; !errors.Is(err, custody.ErrLeaseLost) {
		t.Errorf("interrupted by %v", err)
	}
	if c := <-finished; c.Upload.Status != custody.StatusWithdrawing { // the lease was given back
		t.Errorf("the deletion has %+v", c)
	}
	if u, _ := s.now(); u.Status != custody.StatusWithdrawing || u.Failure != nil || len(s.vault.dropped) != 0 || len(s.outcomes) != 0 {
		t.Errorf("%s for %+v, dropped %v", u.Status, u.Failure, s.vault.dropped)
	}
}

type finishes chan custody.Claim

func (f finishes) Finish(ctx context.Context, c custody.Claim) error {
	select {
	case f <- c:
	default:
	}
	<-ctx.Done()
	return ctx.Err()
}

// One slot of their own: however many re-scans hang, gates go on.
func TestRescansNeverHoldUpGates(t *testing.T) {
	s := newStored(t)
	for range 5 {
		s.in.Ready(t, "acme", "old signatures")
	}
	if err := s.in.Exec(t.Context(), `UPDATE uploads SET due_at = 1`); err != nil {
		t.Fatal(err)
	}
	hanging := make(chan struct{}, 10)
	r := New(s.store, s.vault, Engines{Scanner: engine(func(ctx context.Context) (ScanReport, error) {
		hanging <- struct{}{}
		<-ctx.Done()
		return ScanReport{}, ctx.Err()
	})}, Config{Log: slog.New(slog.DiscardHandler), Poll: 10 * time.Millisecond})
	passed := make(chan struct{}, 10)
	r.gates[0].run = func(context.Context, *pass) error { passed <- struct{}{}; return errors.New("far enough") }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	defer func() { cancel(); <-done }()
	<-hanging
	s.in.Processing(t)
	<-passed
	if len(hanging) != 0 {
		t.Errorf("%d re-scans run beside the first", len(hanging))
	}
}
