package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/accession/accession/internal/custody"
)

// Delays between the attempts of a gate or a deletion grow from the first to the last.
const (
	firstDelay = time.Second
	lastDelay  = time.Minute
)

// pass is one upload on its way through one gate.
type pass struct {
	custody.Claim
	parts     []custody.Part
	store     Store
	detail    map[string]any     // becomes the gate's detail: metadata only
	artifacts []custody.Artifact // published together with the gate's result
	made      map[string][]byte  // what the gates of one inline run derived so far; nothing of it is published yet
	progress  func(detail map[string]any)
	reported  time.Time // when progress was last shown

	scannedWith string // what found the content clean, once something did
}

func isLost(err error) bool { return errors.Is(err, custody.ErrLeaseLost) }

// process takes one upload from gate to gate until it is through, refused, or must wait.
func (r *Runner) process(ctx context.Context, c custody.Claim) {
	err := r.passGates(ctx, &c)
	if c.Upload.Status != custody.StatusProcessing { // where the lease was lost, this process may have claimed it again
		r.clocks.forget(c.Upload.ID)
	}
	if err != nil && !isLost(err) && ctx.Err() == nil {
		r.cfg.Log.ErrorContext(ctx, "processing stopped", "upload_id", c.Upload.ID, "pipeline_id", c.Upload.PipelineID, "error", err)
		r.postpone(ctx, c)
	}
}

func (r *Runner) passGates(ctx context.Context, c *custody.Claim) error {
	parts, err := r.store.Parts(ctx, c.Upload.ID)
	if err != nil {
		return err
	}
	results, err := r.store.Gates(ctx, c.Upload.ID)
	if err != nil {
		return err
	}
	for n, g := range r.gates {
		result := &results[n]
		if result.State == custody.GatePassed {
			continue
		}
		if result.State != custody.GateRunning {
			if err := r.start(ctx, c, g, result); err != nil {
				return err
			}
		}
		p := &pass{Claim: *c, parts: parts, store: r.store, detail: map[string]any{}}
		err := r.attempt(ctx, g, result, p)
		if ctx.Err() != nil {
			return context.Cause(ctx) // interrupted: whatever the gate said no longer counts
		}
		var refusal *custody.Refusal
		switch {
		case err == nil:
			err = r.passed(ctx, c, n, results, p)
		case errors.As(err, &refusal):
			return r.rejected(ctx, c, result, p, refusal)
		default:
			return r.unanswered(ctx, c, g, result, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// attempt runs a gate once, no longer than its attempt and its deadline allow.
func (r *Runner) attempt(ctx context.Context, g gate, result *custody.GateResult, p *pass) (err error) {
	left := min(g.Attempt, g.Deadline-r.clocks.ran(p.Claim, g.Gate, result))
	if left <= 0 {
		if reason := earlier(result); reason != nil {
			return reason
		}
		return &custody.NoAnswer{Code: "gate_deadline_exceeded", Message: "the gate had no answer before its deadline"}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, left, &custody.NoAnswer{Code: "gate_attempt_timeout", Message: fmt.Sprintf("no answer within %s", left.Round(time.Second))})
	defer cancel()
	p.progress = func(detail map[string]any) { r.reportProgress(ctx, p, *result, detail) }
	ctx, ended := r.cfg.Watch.Gate(ctx, g.Name)
	defer func() { ended(err) }()
	defer func() {
		if v := recover(); v != nil { // one document must not take the service down
			err = &custody.NoAnswer{Code: "internal_error", Message: "the gate failed inside", Cause: fmt.Errorf("panic: %v", v)}
		}
	}()
	if err := g.run(ctx, p); err != nil {
		if errors.Is(err, custody.ErrCorrupt) {
			return bytesDiffer() // whichever gate reads them: trying again changes nothing
		}
		if ctx.Err() != nil {
			err = errors.Join(err, context.Cause(ctx)) // what the gate itself says of it comes first
			if reason := earlier(result); reason != nil && left < g.Attempt {
				return errors.Join(reason, err) // the deadline cut this attempt short: the one before says more
			}
		}
		return err
	}
	return nil
}

// earlier is why the attempt before this one had no answer; nil where there was none.
func earlier(g *custody.GateResult) error {
	code, _ := g.Detail["last_error"].(string)
	message, _ := g.Detail["last_message"].(string)
	if code == "" || message == "" {
		return nil
	}
	return &custody.NoAnswer{Code: code, Message: message}
}

// progressPause is the least time between two reports of one gate: each is a write.
const progressPause = 250 * time.Millisecond

// reportProgress shows how far a gate is, beside what its detail says already (why an earlier attempt had no answer); it
// makes no event, and its failure stops nothing.
func (r *Runner) reportProgress(ctx context.Context, p *pass, g custody.GateResult, detail map[string]any) {
	if time.Since(p.reported) < progressPause {
		return
	}
	p.reported = time.Now()
	shown := map[string]any{}
	maps.Copy(shown, g.Detail)
	maps.Copy(shown, detail)
	g.Detail = shown
	if err := r.store.InTx(ctx, func(tx Tx) error {
		if err := tx.Hold(ctx, p.Claim); err != nil {
			return err
		}
		return tx.SetGate(ctx, p.Upload.ID, g)
	}); err != nil && ctx.Err() == nil {
		r.cfg.Log.WarnContext(ctx, "progress not shown", "upload_id", p.Upload.ID, "gate", g.Name, "error", err)
	}
}

// inHold runs a transaction that counts only while the claim holds, and keeps the claim's upload as it then is.
func (r *Runner) inHold(ctx context.Context, c *custody.Claim, fn func(tx Tx, u *custody.Upload) error) error {
	var u custody.Upload
	err := r.store.InTx(context.WithoutCancel(ctx), func(tx Tx) error {
		u = c.Upload
		if err := tx.Hold(ctx, *c); err != nil {
			return err
		}
		return fn(tx, &u)
	})
	if err == nil {
		c.Upload = u
	}
	return err
}

func (r *Runner) start(ctx context.Context, c *custody.Claim, g gate, result *custody.GateResult) error {
	return r.inHold(ctx, c, func(tx Tx, u *custody.Upload) error { return startIn(ctx, tx, u, c.Cause, g, result) })
}

func startIn(ctx context.Context, tx Tx, u *custody.Upload, cause custody.Cause, g gate, result *custody.GateResult) error {
	result.State, result.StartedAt, result.FinishedAt = custody.GateRunning, custody.Now(), time.Time{}
	result.Detail = map[string]any{"deadline_at": stamp(result.StartedAt.Add(g.Deadline))}
	if err := tx.SetGate(ctx, u.ID, *result); err != nil {
		return err
	}
	return tx.Transition(ctx, u, custody.Change{Trigger: custody.TriggerGateChanged, Stage: g.Name, GateState: result.State, Cause: cause})
}

// passed writes the gate's result and what it derived, and begins the next gate or ends the processing.
func (r *Runner) passed(ctx context.Context, c *custody.Claim, n int, results []custody.GateResult, p *pass) error {
	g := &results[n]
	return r.inHold(ctx, c, func(tx Tx, u *custody.Upload) error {
		for _, a := range p.artifacts {
			if err := tx.PutArtifact(ctx, a); err != nil {
				return err
			}
		}
		g.State, g.FinishedAt, g.Detail, g.ScannedWith = custody.GatePassed, custody.Now(), p.detail, p.scannedWith
		if err := tx.SetGate(ctx, u.ID, *g); err != nil {
			return err
		}
		change := custody.Change{Trigger: custody.TriggerGateChanged, Stage: g.Name, GateState: g.State, Cause: c.Cause}
		if n == len(results)-1 {
			change.Trigger = custody.TriggerGatesPassed
			return tx.Transition(ctx, u, change)
		}
		if err := tx.Transition(ctx, u, change); err != nil {
			return err
		}
		if err := tx.RestartAttempts(ctx, *c); err != nil {
			return err
		}
		c.Attempt = 1
		return startIn(ctx, tx, u, c.Cause, r.gates[n+1], &results[n+1])
	})
}

// rejected ends the processing because of the content.
func (r *Runner) rejected(ctx context.Context, c *custody.Claim, g *custody.GateResult, p *pass, refusal *custody.Refusal) error {
	p.detail["code"] = refusal.Code
	return r.end(ctx, c, g, p.detail, custody.GateRejected, custody.TriggerContentRejected, refusal.Code, refusal.Message)
}

func (r *Runner) end(ctx context.Context, c *custody.Claim, g *custody.GateResult, detail map[string]any, state custody.GateState, trigger custody.Trigger, code, message string) error {
	return r.inHold(ctx, c, func(tx Tx, u *custody.Upload) error {
		g.State, g.FinishedAt, g.Detail = state, custody.Now(), detail
		if err := tx.SetGate(ctx, u.ID, *g); err != nil {
			return err
		}
		return tx.Transition(ctx, u, custody.Change{
			Trigger: trigger, Stage: g.Name, GateState: state, Cause: c.Cause,
			Failure: &custody.Failure{Gate: g.Name, Code: code, Message: message},
		})
	})
}

// unanswered tries the gate again later, or gives up at its deadline.
func (r *Runner) unanswered(ctx context.Context, c *custody.Claim, g gate, result *custody.GateResult, cause error) error {
	code, message := "internal_error", "the gate failed inside; the operator's log has the reason"
	var n *custody.NoAnswer
	if errors.As(cause, &n) {
		code, message = n.Code, n.Message
	}
	log := r.cfg.Log.With("upload_id", c.Upload.ID, "pipeline_id", c.Upload.PipelineID, "gate", g.Name, "attempt", c.Attempt, "request_id", c.Cause.RequestID, "trace_id", c.Cause.TraceID)
	detail := map[string]any{"attempts": c.Attempt, "last_error": code, "last_message": message}
	left := g.Deadline - r.clocks.ran(*c, g.Gate, result)
	if left <= 0 {
		log.ErrorContext(ctx, "gate failed", "error", cause)
		return r.end(ctx, c, result, detail, custody.GateFailed, custody.TriggerGateExhausted, code,
			fmt.Sprintf("The %s gate had no answer within %s: %s.", g.Name, g.Deadline, message))
	}
	log.WarnContext(ctx, "gate tries again", "error", cause)
	wait := min(delay(c.Attempt), left)
	detail["deadline_at"], detail["next_attempt_at"] = stamp(result.StartedAt.Add(g.Deadline)), stamp(custody.Now().Add(wait))
	return r.inHold(ctx, c, func(tx Tx, u *custody.Upload) error {
		result.Detail = detail
		if err := tx.SetGate(ctx, u.ID, *result); err != nil {
			return err
		}
		return tx.Postpone(ctx, *c, wait)
	})
}

// stamp is a time as a gate's detail has it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// delay after an attempt, from 1: doubles up to lastDelay.
func delay(attempt int) time.Duration {
	return min(firstDelay<<min(max(attempt-1, 0), 10), lastDelay)
}

func (r *Runner) postpone(ctx context.Context, c custody.Claim) {
	err := r.store.InTx(context.WithoutCancel(ctx), func(tx Tx) error { return tx.Postpone(ctx, c, delay(c.Attempt)) })
	if err != nil && !isLost(err) {
		r.cfg.Log.WarnContext(ctx, "cannot postpone; the lease runs out instead", "upload_id", c.Upload.ID, "error", err)
	}
}
