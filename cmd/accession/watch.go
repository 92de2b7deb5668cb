package main

import (
	"context"
	"errors"
	"hash"
	"io"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/metrics"
	"github.com/accession/accession/internal/pipeline"
	"github.com/accession/accession/internal/sqldb"
	"github.com/accession/accession/internal/telemetry"
	"github.com/accession/accession/internal/vault"
)

// openTelemetry begins to count and to export traces, if anybody listens for the ones or collects the others.
func (svc *service) openTelemetry(ctx context.Context) (err error) {
	svc.pools = map[string]func() (open, inUse, limit int){}
	svc.openMetrics()
	if svc.settings.OTLPEndpoint == "" {
		return nil
	}
	if svc.traces, err = telemetry.Open(ctx, svc.settings.OTLPEndpoint, version, svc.log); err == nil {
		svc.closers = append(svc.closers, svc.traces.Close)
	}
	return err
}

// watch tells metrics and traces, whichever there are, of the work that is done.
type watch struct {
	metrics *metrics.Metrics
	traces  *telemetry.Traces
}

func (svc *service) watch() watch { return watch{svc.metrics, svc.traces} }

// Job is told by the pipeline.
func (w watch) Job(ctx context.Context, lane string, c custody.Claim) (context.Context, func()) {
	counted, traced := func() {}, func() {}
	if w.metrics != nil {
		delay := time.Duration(-1)
		switch c.Upload.Status { // those that are due at once, not at a time of their own
		case custody.StatusProcessing, custody.StatusWithdrawing:
			if c.Attempt == 1 {
				delay = max(0, time.Since(c.Upload.UpdatedAt))
			}
		}
		counted = w.metrics.Job(lane, c.Attempt, delay)
	}
	if w.traces != nil {
		ctx, traced = w.traces.Job(ctx, lane, c.Attempt, c.Cause, c.Upload.Status == custody.StatusReady)
	}
	return ctx, func() { counted(); traced() }
}

// Gate is told by the pipeline.
func (w watch) Gate(ctx context.Context, gate custody.GateName) (context.Context, func(error)) {
	counted, traced := func(string) {}, func(string, error) {}
	if w.metrics != nil {
		counted = w.metrics.Attempt(string(gate))
	}
	asked := ctx // before the gate's own time limit
	if w.traces != nil {
		ctx, traced = w.traces.Gate(ctx, string(gate))
	}
	return ctx, func(err error) {
		outcome := "unanswered"
		var refusal *custody.Refusal
		switch {
		case err == nil:
			outcome = "passed"
		case errors.Is(context.Cause(asked), custody.ErrLeaseLost), errors.Is(context.Cause(asked), context.Canceled):
			outcome = "interrupted"
		case errors.As(err, &refusal):
			outcome = "rejected"
		}
		counted(outcome)
		traced(outcome, err)
	}
}

var _ pipeline.Watch = watch{}

// observedDatabase tells how long its answers take.
type observedDatabase struct {
	sqldb.DB
	name string
	watch
}

// observed is db, watched if anybody wants to know.
func (svc *service) observed(name string, db sqldb.DB) sqldb.DB {
	if p, ok := db.(interface {
		Connections() (open, inUse, limit int)
	}); ok {
		svc.pools[name] = p.Connections
	}
	if svc.metrics == nil && svc.traces == nil {
		return db
	}
	return observedDatabase{db, name, svc.watch()}
}

func (db observedDatabase) step(ctx context.Context, kind string) (context.Context, func(error)) {
	began, traced := time.Now(), func(error) {}
	if db.traces != nil {
		ctx, traced = db.traces.Step(ctx, db.name+" "+kind, db.DB.Dialect().Name)
	}
	return ctx, func(err error) {
		if db.metrics != nil {
			db.metrics.Database(db.name, kind, time.Since(began), err != nil && !errors.Is(err, custody.ErrNotFound))
		}
		traced(err)
	}
}

func (db observedDatabase) Row(ctx context.Context, sql string, args []any, dst ...any) error {
	ctx, ended := db.step(ctx, "read")
	err := db.DB.Row(ctx, sql, args, dst...)
	ended(err)
	return err
}

func (db observedDatabase) Each(ctx context.Context, sql string, args []any, fn func(scan func(dst ...any) error) error) error {
	ctx, ended := db.step(ctx, "read")
	err := db.DB.Each(ctx, sql, args, fn)
	ended(err)
	return err
}

func (db observedDatabase) InTx(ctx context.Context, fn func(sqldb.Querier) error) error {
	ctx, ended := db.step(ctx, "transaction")
	var refused error // by what the transaction is for: no failure of the database
	err := db.DB.InTx(ctx, func(q sqldb.Querier) error {
		refused = fn(q)
		return refused
	})
	if refused != nil {
		ended(nil)
	} else {
		ended(err)
	}
	return err
}

// Scrub goes on to engines that can.
func (db observedDatabase) Scrub(ctx context.Context) error {
	if scrubs, ok := db.DB.(interface{ Scrub(context.Context) error }); ok {
		return scrubs.Scrub(ctx)
	}
	return nil
}

// Sound asks engines that have a file of their own whether it is.
func (db observedDatabase) Sound(ctx context.Context) error {
	if file, ok := db.DB.(interface{ Sound(context.Context) error }); ok {
		return file.Sound(ctx)
	}
	return db.DB.Row(ctx, `SELECT 1`, nil, new(int))
}

// observedVault tells how long storage takes: what is written, copied, read whole and deleted. Content that is read piece by
// piece is told with the gate that reads it.
type observedVault struct {
	*vault.Vault
	watch
}

func (svc *service) observedVault() observedVault { return observedVault{svc.vault, svc.watch()} }

func (v observedVault) step(ctx context.Context, operation string) (context.Context, func(error)) {
	began, traced := time.Now(), func(error) {}
	if v.traces != nil {
		ctx, traced = v.traces.Step(ctx, "storage "+operation, "storage")
	}
	return ctx, func(err error) {
		if v.metrics != nil {
			v.metrics.Storage(operation, time.Since(began), err != nil)
		}
		traced(err)
	}
}

func (v observedVault) SealPart(ctx context.Context, uploadID string, number int, body io.Reader, length int64, digests ...hash.Hash) (string, error) {
	ctx, ended := v.step(ctx, "write_part")
	key, err := v.Vault.SealPart(ctx, uploadID, number, body, length, digests...)
	ended(err)
	return key, err
}

func (v observedVault) Quarantine(ctx context.Context, uploadID string, parts []custody.Part) (custody.Content, error) {
	ctx, ended := v.step(ctx, "copy")
	content, err := v.Vault.Quarantine(ctx, uploadID, parts)
	ended(err)
	return content, err
}

func (v observedVault) SealArtifact(ctx context.Context, uploadID, name string, text []byte) (custody.Artifact, error) {
	ctx, ended := v.step(ctx, "write_derived")
	a, err := v.Vault.SealArtifact(ctx, uploadID, name, text)
	ended(err)
	return a, err
}

func (v observedVault) OpenArtifact(ctx context.Context, a custody.Artifact) ([]byte, error) {
	ctx, ended := v.step(ctx, "read_derived")
	text, err := v.Vault.OpenArtifact(ctx, a)
	ended(err)
	return text, err
}

func (v observedVault) Destroy(ctx context.Context, uploadID string) ([]custody.Deletion, error) {
	ctx, ended := v.step(ctx, "delete")
	deletions, err := v.Vault.Destroy(ctx, uploadID)
	ended(err)
	return deletions, err
}

func (v observedVault) DestroyNoting(ctx context.Context, uploadID string, note func([]custody.StoredObject) error) ([]custody.Deletion, error) {
	ctx, ended := v.step(ctx, "delete")
	deletions, err := v.Vault.DestroyNoting(ctx, uploadID, note)
	ended(err)
	return deletions, err
}
