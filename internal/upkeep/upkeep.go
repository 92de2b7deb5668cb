// Package upkeep is what an operator does to keep custody whole: he looks at how the installation is, compares rows, objects and
// keys, and lets uploads go on whose gate had no answer.
package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/accession/accession/internal/custody"
)

const (
	// house is the organization whose audit chain holds what concerns the whole installation.
	house = ""
	// grace is how old an object or key without a row must be before nobody can still be about to publish it: the sweeper's.
	grace = 2 * time.Hour

	page         = 200  // uploads of one step
	mostFindings = 1000 // listed by one step
)

// Store is the metadata that upkeep reads and, in transactions, changes.
type Store interface {
	UploadsAfter(ctx context.Context, after string, limit int) ([]custody.Upload, error)
	StatusOf(ctx context.Context, uploadID string) (custody.Status, error) // custody.ErrNotFound
	Parts(ctx context.Context, uploadID string) ([]custody.Part, error)
	Artifacts(ctx context.Context, uploadID string) ([]custody.Artifact, error)
	Gates(ctx context.Context, uploadID string) ([]custody.GateResult, error)
	Answered(ctx context.Context, i custody.Idempotency) (requestHash string, a custody.Answer, err error)
	Backlog(ctx context.Context, lane custody.Lane) (waits int, oldest time.Duration, err error)
	Running(ctx context.Context, lane custody.Lane) (int, error)
	StuckUploads(ctx context.Context, limit int) (custody.StuckUploads, error)
	WebhookBacklog(ctx context.Context) (waiting, dead int, oldest time.Duration, err error)
	RescanState(ctx context.Context, scope custody.RescanScope, since time.Time) (custody.RescanState, error)
	InTx(ctx context.Context, fn func(Tx) error) error
}

// Tx is one transaction of Store.
type Tx interface {
	UploadForChange(ctx context.Context, orgID, uploadID string) (custody.Upload, error)
	Gates(ctx context.Context, uploadID string) ([]custody.GateResult, error)
	SetGate(ctx context.Context, uploadID string, g custody.GateResult) error
	Transition(ctx context.Context, u *custody.Upload, c custody.Change) error
	EnsureOrganization(ctx context.Context, orgID string, allowance int64) error
	AppendAudit(ctx context.Context, l custody.AuditLine) error
	KeepAnswer(ctx context.Context, i custody.Idempotency, a custody.Answer) error
}

// Vault is the bytes and their keys.
type Vault interface {
	Uploads(ctx context.Context) (map[string]bool, error)
	Held(ctx context.Context, uploadID string) ([]custody.HeldObject, error)
	Expected(parts []custody.Part, artifacts []custody.Artifact) (staging, copies []custody.StoredObject)
	KeyOpens(ctx context.Context, uploadID string) error
	KeysBefore(ctx context.Context, then time.Time) ([]string, error)
	Discard(ctx context.Context, o custody.StoredObject) error
	Dismiss(ctx context.Context, uploadID string) error
}

// Service does the upkeep.
type Service struct {
	store Store
	vault Vault
	here  Installation
	log   *slog.Logger
}

// New makes the service.
func New(store Store, vault Vault, here Installation, log *slog.Logger) *Service {
	return &Service{store, vault, here, log}
}

// Resume lets a FAILED upload go on: the gates that passed stay passed, the one that failed starts anew with a whole deadline.
// Render gets the custody.Resumed. Errors: 401 for all but the administrator, upload_not_found, upload_not_failed.
func (s *Service) Resume(ctx context.Context, c custody.Caller, r custody.Resumption, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpResumeUpload, c, ""); err != nil {
		return custody.Answer{}, err
	}
	if a, found, err := i.Replay(ctx, s.store); found || err != nil {
		return a, err
	}
	return custody.Once(ctx, s.store, i, func(tx Tx) (any, error) {
		u, err := tx.UploadForChange(ctx, r.OrgID, r.UploadID)
		if errors.Is(err, custody.ErrNotFound) {
			return nil, custody.UploadNotFound()
		}
		if err != nil {
			return nil, err
		}
		if u.Status != custody.StatusFailed {
			return nil, custody.Errorf(custody.CodeUploadNotFailed, "the upload is %s; only a FAILED one can be resumed", u.Status)
		}
		gate, err := reopen(ctx, tx, u.ID)
		if err != nil {
			return nil, err
		}
		if err := tx.Transition(ctx, &u, custody.Change{Trigger: custody.TriggerResumed, Stage: gate, GateState: custody.GatePending, Cause: c.Cause()}); err != nil {
			return nil, err
		}
		return custody.Resumed{UploadID: u.ID, PipelineID: u.PipelineID, Status: u.Status, Sequence: u.Sequence, Gate: gate}, nil
	})
}

// reopen makes the gate that failed pending again.
func reopen(ctx context.Context, tx Tx, uploadID string) (custody.GateName, error) {
	gates, err := tx.Gates(ctx, uploadID)
	if err != nil {
		return "", err
	}
	for _, g := range gates {
		if g.State == custody.GateFailed {
			return g.Name, tx.SetGate(ctx, uploadID, custody.GateResult{Name: g.Name, State: custody.GatePending})
		}
	}
	return "", fmt.Errorf("upload %s is FAILED and no gate of it is", uploadID)
}
