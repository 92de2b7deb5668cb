// Package pipeline runs what happens behind an answer: the six gates, lapsed reservations, and withdrawals. The uploads' own
// rows are the queue (architecture, "The state is the queue"):
//
//	due row ─claim by lease→ gate runs, lease kept alive ─┬─ passed ──→ result, event and next gate in one transaction
//	                                                      ├─ refused ─→ REJECTED
//	                                                      ├─ no answer → due again later; past the gate's deadline FAILED
//	                                                      └─ lease lost → nothing is written; whoever took over decides
//
// A crash only lets a lease run out.
package pipeline

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/accession/accession/internal/custody"
)

// Store is the metadata that workers read and, in transactions, change.
type Store interface {
	Due(ctx context.Context, lane custody.Lane) (bool, error)
	Parts(ctx context.Context, uploadID string) ([]custody.Part, error)
	Gates(ctx context.Context, uploadID string) ([]custody.GateResult, error)
	Artifact(ctx context.Context, uploadID, name string) (custody.Artifact, error)
	Work() <-chan struct{}
	Scrub(ctx context.Context) error
	// WaitsTooLong tells whether work waits for longer than longest from now, or is held for longer: then the clock was put back.
	WaitsTooLong(ctx context.Context, longest custody.LongestWaits) (bool, error)
	InTx(ctx context.Context, fn func(Tx) error) error
}

// Tx is one transaction of Store.
type Tx interface {
	ClaimDue(ctx context.Context, lane custody.Lane, limit int) ([]custody.Claim, error)
	Heartbeat(ctx context.Context, c custody.Claim) error
	Hold(ctx context.Context, c custody.Claim) error
	Postpone(ctx context.Context, c custody.Claim, delay time.Duration) error
	Release(ctx context.Context, c custody.Claim) error
	RestartAttempts(ctx context.Context, c custody.Claim) error
	BringBack(ctx context.Context, longest custody.LongestWaits, limit int) (int64, error)
	SetGate(ctx context.Context, uploadID string, g custody.GateResult) error
	PutArtifact(ctx context.Context, a custody.Artifact) error
	Transition(ctx context.Context, u *custody.Upload, c custody.Change) error
	FreeQuota(ctx context.Context, u *custody.Upload) (freed int64, err error)
	DropLedger(ctx context.Context, uploadID string) error
	ForgetNames(ctx context.Context, uploadID string, consent custody.Consent) error
	DropArtifacts(ctx context.Context, uploadID string) error
	FinishRescan(ctx context.Context, c custody.Claim, scannedWith string, at time.Time) error
}

// Vault keeps the bytes.
type Vault interface {
	Open(ctx context.Context, uploadID string, parts []custody.Part) (custody.Content, error)
	Quarantine(ctx context.Context, uploadID string, parts []custody.Part) (custody.Content, error)
	SealArtifact(ctx context.Context, uploadID, name string, text []byte) (custody.Artifact, error)
	OpenArtifact(ctx context.Context, a custody.Artifact) ([]byte, error)
	DropDerived(ctx context.Context, uploadID string) (objects int, err error)
	Destroy(ctx context.Context, uploadID string) ([]custody.Deletion, error)
}

// Withdrawals finishes an accepted withdrawal; an error means: not confirmed everywhere, try again.
type Withdrawals interface {
	Finish(ctx context.Context, c custody.Claim) error
}

// Engines are what the gates ask.
type Engines struct {
	Scanner    Scanner
	Extractor  Extractor
	Summarizer Summarizer
	Composer   Composer
}

// Config of the runner. Zero values have sensible defaults.
type Config struct {
	Gates []custody.Gate // default custody.Gates; shorter deadlines for tests
	Slots int            // uploads whose gates run at once, default 2
	Poll  time.Duration  // between looks for due rows that nobody announced, default 1 s
	Log   *slog.Logger

	Rescanned func(outcome string) // hears of every re-scan; default nobody
	Watch     Watch                // default nobody
}

// Runner works off due uploads until its context ends.
type Runner struct {
	store       Store
	vault       Vault
	withdrawals Withdrawals
	gates       []gate
	extractor   Extractor
	fewAtOnce   fewAtOnce
	cfg         Config

	mu      sync.Mutex
	running map[string]context.CancelCauseFunc // gates and re-scans at work, by upload id

	clocks gateClocks
}

// gate is one row of the gate table with the code that answers it.
type gate struct {
	custody.Gate
	run func(ctx context.Context, p *pass) error
}

// New makes a runner. Connect before Run.
func New(store Store, vault Vault, e Engines, cfg Config) *Runner {
	if cfg.Gates == nil {
		cfg.Gates = custody.Gates
	}
	if cfg.Slots == 0 {
		cfg.Slots = 2
	}
	if cfg.Poll == 0 {
		cfg.Poll = time.Second
	}
	if cfg.Rescanned == nil {
		cfg.Rescanned = func(string) {}
	}
	if cfg.Watch == nil {
		cfg.Watch = nobody{}
	}
	r := &Runner{
		store: store, vault: vault, extractor: e.Extractor, cfg: cfg,
		fewAtOnce: fewAtOnce{e.Summarizer, make(chan struct{}, cfg.Slots)},
		running:   map[string]context.CancelCauseFunc{},
		clocks:    gateClocks{began: custody.Now(), seen: map[string]gateStart{}},
	}
	runs := map[custody.GateName]func(context.Context, *pass) error{
		custody.GateIntegrity:         integrity{vault}.run,
		custody.GateQuarantine:        quarantine{vault}.run,
		custody.GateMalwareScan:       malwareScan{vault, e.Scanner}.run,
		custody.GateExtraction:        extraction{vault, e.Extractor}.run,
		custody.GateControlledSummary: controlledSummary{vault, e.Summarizer}.run,
		custody.GateAIContext:         aiContext{vault, e.Composer}.run,
	}
	for _, g := range cfg.Gates {
		r.gates = append(r.gates, gate{g, runs[g.Name]})
	}
	return r
}

// Connect tells who finishes withdrawals.
func (r *Runner) Connect(w Withdrawals) { r.withdrawals = w }

// Run works until ctx ends, then gives back what it holds and returns once nothing runs any more.
func (r *Runner) Run(ctx context.Context) {
	var lanes sync.WaitGroup
	lanes.Go(func() { r.runLane(ctx, laneGates, custody.LaneGates, r.cfg.Slots, r.process) })
	lanes.Go(func() { r.runLane(ctx, laneDeletions, custody.LaneDeletions, 2, r.delete) })
	lanes.Go(func() { r.runLane(ctx, laneRescans, custody.LaneRescans, 1, r.rescan) })
	lanes.Go(func() { r.mindClock(ctx) })
	lanes.Wait()
}

// runLane keeps up to slots claims of one lane at work.
func (r *Runner) runLane(ctx context.Context, name string, lane custody.Lane, slots int, work func(context.Context, custody.Claim)) {
	free := make(chan struct{}, slots)
	for range slots {
		free <- struct{}{}
	}
	var working sync.WaitGroup
	defer working.Wait()
	tick := time.NewTicker(r.cfg.Poll)
	defer tick.Stop()
	for {
		select {
		case <-free:
		case <-ctx.Done():
			return
		}
		announced := r.store.Work() // taken before looking: what comes in between is not missed
		claims, err := r.claim(ctx, lane)
		if err != nil && ctx.Err() == nil {
			r.cfg.Log.ErrorContext(ctx, "cannot claim work", "error", err)
		}
		if len(claims) == 0 {
			free <- struct{}{}
			select {
			case <-announced:
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			continue
		}
		for _, c := range claims { // one
			working.Go(func() {
				defer func() { free <- struct{}{} }()
				ctx, ended := r.cfg.Watch.Job(custody.InOrganization(ctx, c.Upload.OrgID), name, c)
				defer ended()
				r.hold(ctx, c, work)
			})
		}
	}
}

func (r *Runner) claim(ctx context.Context, lane custody.Lane) (claims []custody.Claim, err error) {
	due, err := r.store.Due(ctx, lane)
	if err != nil || !due {
		return nil, err
	}
	err = r.store.InTx(ctx, func(tx Tx) (err error) {
		claims, err = tx.ClaimDue(ctx, lane, 1)
		return err
	})
	return claims, err
}

// Interrupt stops the gate or the re-scan that runs on an upload in this process, because the upload moved on. The gate's end gives the
// lease back. A deletion is never interrupted.
func (r *Runner) Interrupt(uploadID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel, ok := r.running[uploadID]; ok {
		cancel(custody.ErrLeaseLost)
	}
}

// hold runs work with the lease kept alive, and gives the lease back where work did not.
func (r *Runner) hold(ctx context.Context, c custody.Claim, work func(context.Context, custody.Claim)) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	interruptible := c.Upload.Status == custody.StatusProcessing || c.Upload.Status == custody.StatusReady
	if interruptible {
		r.mu.Lock()
		r.running[c.Upload.ID] = cancel
		r.mu.Unlock()
	}
	var heart sync.WaitGroup
	stop := make(chan struct{})
	heart.Go(func() { r.beat(ctx, c, cancel, stop) })
	defer func() {
		close(stop)
		heart.Wait()
		if interruptible {
			r.mu.Lock()
			delete(r.running, c.Upload.ID)
			r.mu.Unlock()
		}
		ctx := context.WithoutCancel(ctx)
		if err := r.store.InTx(ctx, func(tx Tx) error { return tx.Release(ctx, c) }); err != nil {
			r.cfg.Log.WarnContext(ctx, "lease runs out instead of being given back", "upload_id", c.Upload.ID, "error", err)
		}
	}()
	work(ctx, c)
}

// beat renews the lease three times in its lifetime. Whoever cannot renew it in time must assume that it is lost.
func (r *Runner) beat(ctx context.Context, c custody.Claim, lost context.CancelCauseFunc, stop <-chan struct{}) {
	tick := time.NewTicker(custody.LeaseLifetime / 3)
	defer tick.Stop()
	renewed := time.Now()
	for {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
		asked := time.Now()
		err := r.store.InTx(context.WithoutCancel(ctx), func(tx Tx) error { return tx.Heartbeat(ctx, c) })
		switch {
		case err == nil:
			renewed = asked
		case isLost(err) || time.Since(renewed) > custody.LeaseLifetime:
			lost(custody.ErrLeaseLost)
			return
		}
	}
}
