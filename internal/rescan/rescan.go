// Package rescan decides which stored uploads are scanned again: those an operator names, and, when the signatures change, all
// that others passed. It only makes rows due; the pipeline's lane of re-scans does the work.
//
//	signatures change ─┐
//	                   ├→ READY rows get due_at ─lane of re-scans→ clean: not due any more │ refused: REJECTED │ no answer: due later
//	an operator asks ──┘
package rescan

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/accession/accession/internal/custody"
)

const (
	batch        = 200              // rows that one transaction makes due
	loadPatience = 25 * time.Second // how long a request waits for changed signatures to be loaded
	// oldAfter is when signatures are called old in the log, whatever the gate allows; daily builds are the rule.
	oldAfter   = 7 * 24 * time.Hour
	warnEvery  = 24 * time.Hour
	everyCheck = time.Minute

	// house is the organization whose audit chain holds what concerns the whole installation.
	house = ""
)

// Store is the metadata that re-scans read and, in transactions, change.
type Store interface {
	RescanState(ctx context.Context, scope custody.RescanScope, since time.Time) (custody.RescanState, error)
	Answered(ctx context.Context, i custody.Idempotency) (requestHash string, a custody.Answer, err error)
	InTx(ctx context.Context, fn func(Tx) error) error
}

// Tx is one transaction of Store.
type Tx interface {
	QueueRescans(ctx context.Context, scope custody.RescanScope, after string, limit int) (queued int, last string, err error)
	QueueOutdated(ctx context.Context, scannedWith string, limit int) (queued int64, err error)
	EnsureOrganization(ctx context.Context, orgID string, allowance int64) error
	AppendAudit(ctx context.Context, l custody.AuditLine) error
	KeepAnswer(ctx context.Context, i custody.Idempotency, a custody.Answer) error
}

// Engine is the scan engine, as far as re-scans need it. An error is no answer.
type Engine interface {
	// Signatures names engine and signatures as one string, as reports of scans do, and their date; zero where it is unknown.
	Signatures(ctx context.Context) (scannedWith string, date time.Time, err error)
	// Refresh lets the engine load signatures that changed and returns once they are in use.
	Refresh(ctx context.Context) error
}

// Service queues re-scans.
type Service struct {
	store  Store
	engine Engine
	every  time.Duration
	log    *slog.Logger

	warned   string // the signatures that were last called old
	warnedAt time.Time
}

// New makes the service. every is the time between looks at the signatures; 0: a minute.
func New(store Store, engine Engine, every time.Duration, log *slog.Logger) *Service {
	if every <= 0 {
		every = everyCheck
	}
	return &Service{store: store, engine: engine, every: every, log: log}
}

// Queue makes every READY upload of the scope due at once, whatever passed it, after changed signatures are loaded. Render gets
// the custody.QueuedRescans. It goes in batches: what a crash cut short, the same request does again. Errors: 401 for all but
// the administrator.
func (s *Service) Queue(ctx context.Context, c custody.Caller, scope custody.RescanScope, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpQueueRescans, c, ""); err != nil {
		return custody.Answer{}, err
	}
	if a, found, err := i.Replay(ctx, s.store); found || err != nil {
		return a, err
	}
	loading, cancel := context.WithTimeout(ctx, loadPatience)
	if err := s.engine.Refresh(loading); err != nil { // once they are loaded, Run queues all that they did not pass
		s.log.WarnContext(ctx, "re-scans begin before changed signatures are loaded", "error", err)
	}
	cancel()
	said := custody.QueuedRescans{RequestedAt: custody.Now()}
	for after := ""; ; {
		queued := 0
		if err := s.store.InTx(ctx, func(tx Tx) (err error) {
			var last string
			if queued, last, err = tx.QueueRescans(ctx, scope, after, batch); err == nil {
				after = max(after, last)
			}
			return err
		}); err != nil {
			return custody.Answer{}, err
		}
		said.Queued += queued
		if queued < batch {
			break
		}
	}
	state, err := s.store.RescanState(ctx, scope, said.RequestedAt)
	if err != nil {
		return custody.Answer{}, err
	}
	said.Waiting = state.Waiting
	return custody.Once(ctx, s.store, i, func(tx Tx) (any, error) {
		if err := tx.EnsureOrganization(ctx, house, 0); err != nil {
			return nil, err
		}
		return said, tx.AppendAudit(ctx, custody.AuditLine{
			OrgID: house, At: said.RequestedAt, Action: "rescan_requested", CredentialID: c.CredentialID, UploadID: scope.UploadID,
			Detail: fmt.Sprintf("org_id=%q queued=%d", scope.OrgID, said.Queued), RequestID: c.RequestID, TraceID: c.TraceID,
		})
	})
}

// State counts what waits, and the outcomes since then. Errors: 401 for all but the administrator.
func (s *Service) State(ctx context.Context, c custody.Caller, scope custody.RescanScope, since time.Time) (custody.RescanState, error) {
	if err := custody.Authorize(custody.OpRescans, c, ""); err != nil {
		return custody.RescanState{}, err
	}
	return s.store.RescanState(ctx, scope, since)
}

// Run looks at the signatures at once and then again and again until ctx ends: it queues what others passed, and warns of old
// ones.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		if err := s.Look(ctx); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "stored uploads could not be queued for a re-scan", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Look queues every READY upload that something else than the present engine and signatures passed. While the engine does not
// answer there is nothing to compare with.
func (s *Service) Look(ctx context.Context) error {
	scannedWith, date, err := s.engine.Signatures(ctx)
	if err != nil {
		s.log.DebugContext(ctx, "the scan engine does not tell its signatures", "error", err)
		return nil
	}
	s.warn(ctx, scannedWith, date)
	total := int64(0)
	for {
		var queued int64
		if err := s.store.InTx(ctx, func(tx Tx) (err error) {
			queued, err = tx.QueueOutdated(ctx, scannedWith, batch)
			return err
		}); err != nil {
			return err
		}
		total += queued
		if queued < batch {
			break
		}
	}
	if total > 0 {
		s.log.InfoContext(ctx, "stored uploads are scanned again with other signatures", "uploads", total, "signatures", scannedWith)
	}
	return nil
}

func (s *Service) warn(ctx context.Context, scannedWith string, date time.Time) {
	if date.IsZero() || time.Since(date) <= oldAfter || s.warned == scannedWith && time.Since(s.warnedAt) < warnEvery {
		return
	}
	s.warned, s.warnedAt = scannedWith, time.Now()
	s.log.WarnContext(ctx, "malware signatures are older than 7 days: run freshclam", "date", date.UTC().Format(time.DateOnly), "age_days", int(time.Since(date).Hours()/24))
}
