package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/accession/accession/internal/custody"
)

// A stored upload is scanned again where it is READY and due. No answer never changes it: what was clean stays readable, and
// the re-scan stays due. A refusal withdraws its context in one transaction, then deletes what was derived.

// lastRescanDelay bounds the growing delays between the tries of one re-scan.
const lastRescanDelay = 15 * time.Minute

// rescan takes one stored upload through the malware gate again.
func (r *Runner) rescan(ctx context.Context, c custody.Claim) {
	// The service itself acts; the ids of the request that brought the upload go on.
	c.Cause.CredentialID = ""
	log := r.cfg.Log.With("upload_id", c.Upload.ID, "attempt", c.Attempt, "request_id", c.Cause.RequestID, "trace_id", c.Cause.TraceID)
	err := r.rescanned(ctx, &c)
	var refusal *custody.Refusal
	switch {
	case err == nil:
		r.cfg.Rescanned(custody.RescanClean)
	case isLost(err) || ctx.Err() != nil: // withdrawn meanwhile, or the service stops
	case errors.As(err, &refusal):
		outcome := custody.RescanUnreadable
		if refusal.Code == codeMalwareFound {
			outcome = custody.RescanFound
		}
		r.cfg.Rescanned(outcome)
		log.WarnContext(ctx, "a re-scan refused a stored upload; its context is withdrawn", "code", refusal.Code)
		if n, err := r.vault.DropDerived(context.WithoutCancel(ctx), c.Upload.ID); err != nil { // no row names them any more: the sweeper goes on
			log.ErrorContext(ctx, "derived objects of a refused upload are left to the sweeper", "error", err)
		} else {
			log.InfoContext(ctx, "derived objects of a refused upload are deleted", "objects", n)
		}
	default:
		r.cfg.Rescanned(custody.RescanUnanswered)
		log.WarnContext(ctx, "a re-scan has no answer and stays due", "error", err)
		wait := min(firstDelay<<min(c.Attempt-1, 10), lastRescanDelay)
		if err := r.store.InTx(context.WithoutCancel(ctx), func(tx Tx) error { return tx.Postpone(ctx, c, wait) }); err != nil && !isLost(err) {
			log.WarnContext(ctx, "cannot postpone; the lease runs out instead", "error", err)
		}
		select { // an engine that is away would be away for the next one too
		case <-ctx.Done():
		case <-time.After(r.cfg.Poll):
		}
	}
}

// rescanned scans and writes the verdict; the refusal it returns is written already.
func (r *Runner) rescanned(ctx context.Context, c *custody.Claim) error {
	parts, err := r.store.Parts(ctx, c.Upload.ID)
	if err != nil {
		return err
	}
	results, err := r.store.Gates(ctx, c.Upload.ID)
	if err != nil {
		return err
	}
	at := r.gateAt(custody.GateMalwareScan)
	if at >= len(results) {
		return fmt.Errorf("upload has %d gates", len(results))
	}
	again := custody.GateResult{Name: custody.GateMalwareScan, State: custody.GateRunning, StartedAt: custody.Now()}
	p := &pass{Claim: *c, parts: parts, store: r.store, detail: map[string]any{
		"rescan": true, "first_passed_at": results[at].FinishedAt.UTC().Format(time.RFC3339),
	}}
	g := r.gates[at]
	g.run = func(ctx context.Context, p *pass) error {
		p.progress = func(map[string]any) {} // the upload's gate has passed, until this one says otherwise
		return r.gates[at].run(ctx, p)
	}
	err = r.attempt(ctx, g, &again, p)
	r.clocks.forget(c.Upload.ID)
	if ctx.Err() != nil {
		return context.Cause(ctx) // interrupted: whatever the engine said no longer counts
	}
	var refusal *custody.Refusal
	switch {
	case err == nil:
		return r.store.InTx(context.WithoutCancel(ctx), func(tx Tx) error { return tx.FinishRescan(ctx, *c, p.scannedWith, custody.Now()) })
	case errors.As(err, &refusal):
		if err := r.refuseStored(ctx, c, again, p, refusal); err != nil {
			return err
		}
		return refusal
	}
	return err
}

// refuseStored withdraws the context: from the commit on, nobody is served it and no row names what was derived.
func (r *Runner) refuseStored(ctx context.Context, c *custody.Claim, g custody.GateResult, p *pass, refusal *custody.Refusal) error {
	p.detail["code"] = refusal.Code
	return r.inHold(ctx, c, func(tx Tx, u *custody.Upload) error {
		g.State, g.FinishedAt, g.Detail = custody.GateRejected, custody.Now(), p.detail
		if err := tx.SetGate(ctx, u.ID, g); err != nil {
			return err
		}
		if err := tx.DropArtifacts(ctx, u.ID); err != nil {
			return err
		}
		return tx.Transition(ctx, u, custody.Change{
			Trigger: custody.TriggerRescanRefused, Stage: g.Name, GateState: g.State, Cause: c.Cause,
			Failure: &custody.Failure{Gate: g.Name, Code: refusal.Code, Message: refusal.Message},
		})
	})
}

// gateAt is where a gate stands in the table.
func (r *Runner) gateAt(name custody.GateName) int {
	for n, g := range r.gates {
		if g.Name == name {
			return n
		}
	}
	return len(r.gates)
}
