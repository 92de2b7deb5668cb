package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/accession/accession/internal/custody"
)

const (
	sweepEvery = time.Hour
	// strayAge is how old an object must be before nobody can still be about to publish it.
	strayAge = 2 * time.Hour
)

// SweepStore is the metadata that tells what belongs to something.
type SweepStore interface {
	StatusOf(ctx context.Context, uploadID string) (custody.Status, error) // custody.ErrNotFound
	ObjectKeys(ctx context.Context, uploadID string) (map[string]bool, error)
	ForgetAnswers(ctx context.Context, before time.Time) error
}

// SweepVault lists and deletes bytes that no row names.
type SweepVault interface {
	Uploads(ctx context.Context) (map[string]bool, error)
	Strays(ctx context.Context, uploadID string, named map[string]bool, before time.Time) ([]string, error)
	KeysBefore(ctx context.Context, then time.Time) ([]string, error)
	Dismiss(ctx context.Context, uploadID string) error
	DiscardPart(ctx context.Context, objectKey string) error
	Destroy(ctx context.Context, uploadID string) ([]custody.Deletion, error)
}

// Sweeper removes what crashes leave behind: bytes that were written but never published, bytes that arrived after their
// upload was withdrawn or had lapsed, and answers past their lifetime.
type Sweeper struct {
	store SweepStore
	vault SweepVault
	log   *slog.Logger

	began  time.Time // as the clock then was, and as the one that nobody sets
	steady time.Time
}

// NewSweeper makes a sweeper.
func NewSweeper(store SweepStore, vault SweepVault, log *slog.Logger) *Sweeper {
	return &Sweeper{store: store, vault: vault, log: log, began: custody.Now(), steady: time.Now()}
}

// strayBefore is before when a stray must have been written. A clock that was put forward since the start makes nothing old: it may be
// what a request is about to publish.
func (s *Sweeper) strayBefore() time.Time {
	now := custody.Now()
	if lived := s.began.Add(time.Since(s.steady)); lived.Before(now) {
		now = lived
	}
	return now.Add(-strayAge)
}

// Run sweeps at once and then every hour, until ctx ends.
func (s *Sweeper) Run(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "sweep stopped", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Sweep does one round. It is safe beside live requests and other sweepers.
func (s *Sweeper) Sweep(ctx context.Context) error {
	if err := s.store.ForgetAnswers(ctx, custody.Now().Add(-custody.IdempotencyLifetime-time.Hour)); err != nil {
		return err
	}
	uploads, err := s.vault.Uploads(ctx)
	if err != nil {
		return err
	}
	for id := range uploads {
		if err := s.sweepUpload(ctx, id); err != nil {
			return err
		}
	}
	return s.sweepKeys(ctx, uploads)
}

// sweepKeys destroys data keys whose upload was never reserved: they have no row, and have sealed nothing.
func (s *Sweeper) sweepKeys(ctx context.Context, sealed map[string]bool) error {
	ids, err := s.vault.KeysBefore(ctx, s.strayBefore())
	if err != nil {
		return err
	}
	for _, id := range ids {
		if sealed[id] {
			continue
		}
		if _, err := s.store.StatusOf(ctx, id); errors.Is(err, custody.ErrNotFound) {
			if err := s.vault.Dismiss(ctx, id); err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (s *Sweeper) sweepUpload(ctx context.Context, uploadID string) error {
	status, err := s.store.StatusOf(ctx, uploadID)
	if err != nil {
		// Bytes without a row are for an operator to look at: a restored database must not cost content.
		s.log.WarnContext(ctx, "objects of an unknown upload", "upload_id", uploadID, "error", err)
		return nil
	}
	if status == custody.StatusWithdrawn || status == custody.StatusExpired {
		deleted, err := s.vault.Destroy(ctx, uploadID)
		s.log.WarnContext(ctx, "deleted objects that arrived late", "upload_id", uploadID, "backends", deleted, "error", err)
		return err
	}
	named, err := s.store.ObjectKeys(ctx, uploadID)
	if err != nil {
		return err
	}
	strays, err := s.vault.Strays(ctx, uploadID, named, s.strayBefore())
	for _, key := range strays {
		if err := s.vault.DiscardPart(ctx, key); err != nil {
			return err
		}
	}
	if len(strays) > 0 {
		s.log.InfoContext(ctx, "deleted objects that were never published", "upload_id", uploadID, "objects", len(strays))
	}
	return err
}
