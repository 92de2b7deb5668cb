// Package withdrawal takes documents back out: unreadable at once, deleted and read back in every backend, the key
// destroyed, the quota freed, and only then a receipt.
//
//	request   status WITHDRAWING and who asked, in one transaction → running gates are interrupted
//	worker    claims the row, once no gate holds it: every backend deletes and reads back, the data key is destroyed
//	worker    quota, status WITHDRAWN and the signed receipt, in one transaction
//	request   answers 200 with the receipt, or 502 while any backend has not confirmed; the worker goes on trying
package withdrawal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/planted"
)

// patience is how long a request waits for the deletion that it asked for.
const patience = 30 * time.Second

// recheck is how often it looks although nobody told it to: the worker may be another process, and the word of it may be lost.
const recheck = time.Second

// Store is the metadata that withdrawal reads and, in transactions, changes.
type Store interface {
	Upload(ctx context.Context, orgID, uploadID string) (custody.Upload, error)
	Withdrawing(ctx context.Context, uploadID string) (custody.Withdrawing, error)
	Receipt(ctx context.Context, uploadID string) (custody.Receipt, error)
	SignedReceipt(ctx context.Context, orgID, receiptID string) (string, error)
	Answered(ctx context.Context, i custody.Idempotency) (requestHash string, a custody.Answer, err error)
	Changed() <-chan struct{}
	Scrub(ctx context.Context) error
	Retention(ctx context.Context, orgID string) (custody.Retention, error)
	RetentionEnded(ctx context.Context, limit int) ([]custody.RetentionEnded, error)
	InTx(ctx context.Context, fn func(Tx) error) error
}

// Tx is one transaction of Store.
type Tx interface {
	UploadForChange(ctx context.Context, orgID, uploadID string) (custody.Upload, error)
	Transition(ctx context.Context, u *custody.Upload, c custody.Change) error
	BeginWithdrawal(ctx context.Context, w custody.Withdrawing) error
	CountWithdrawalAttempt(ctx context.Context, uploadID string, unconfirmed []string) error
	NoteWithdrawalObjects(ctx context.Context, uploadID string, objects []custody.StoredObject) error
	WithdrawalObjects(ctx context.Context, uploadID string) ([]custody.DeletedObjects, error)
	Recalled(ctx context.Context, orgID, uploadID string) ([]custody.Recall, error)
	Hold(ctx context.Context, c custody.Claim) error
	FreeQuota(ctx context.Context, u *custody.Upload) (freed int64, err error)
	InsertReceipt(ctx context.Context, r custody.Receipt, consent custody.Consent) error
	KeepAnswer(ctx context.Context, i custody.Idempotency, a custody.Answer) error
	EndedRetention(ctx context.Context, uploadID string) (custody.Retention, error)
	SetRetention(ctx context.Context, r custody.Retention) error
	AppendAudit(ctx context.Context, l custody.AuditLine) error
}

// Vault deletes the bytes and destroys their key. It has note keep what a backend holds before it deletes it.
type Vault interface {
	DestroyNoting(ctx context.Context, uploadID string, note func([]custody.StoredObject) error) ([]custody.Deletion, error)
	// Backends names every backend that has to confirm.
	Backends() []string
}

// Config of the service.
type Config struct {
	Keys       Keys
	Issuer     string        // of receipts: the service's base URL
	KeyBackups time.Duration // how long the operator keeps backups of the key store; the receipt states it
	// Interrupt stops a gate that runs on the upload in this process; elsewhere its next heartbeat does.
	Interrupt func(uploadID string)
	Log       *slog.Logger
}

// Service withdraws uploads.
type Service struct {
	store Store
	vault Vault
	cfg   Config
	look  chan struct{} // asks Run to look at once
}

// New makes the service.
func New(store Store, vault Vault, cfg Config) *Service {
	return &Service{store, vault, cfg, make(chan struct{}, 1)}
}

// Withdraw deletes an upload permanently. Render gets the custody.Receipt. It is the same for every status, also for one that
// is WITHDRAWN already. Errors: access_denied, upload_not_found, deletion_not_confirmed (the deletion goes on by itself).
// (Sections 3 and 4.6.)
func (s *Service) Withdraw(ctx context.Context, c custody.Caller, w custody.Withdrawal, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpWithdrawUpload, c, w.OrgID); err != nil {
		return custody.Answer{}, err
	}
	if a, found, err := i.Replay(ctx, s.store); found || err != nil {
		return a, err
	}
	if err := s.accept(ctx, c, w); err != nil {
		return custody.Answer{}, err
	}
	s.cfg.Interrupt(w.UploadID)
	receipt, err := s.await(ctx, w.UploadID)
	if err != nil {
		return custody.Answer{}, err
	}
	a, err := i.Render(receipt)
	if err != nil {
		return a, err
	}
	err = s.store.InTx(ctx, func(tx Tx) error { return tx.KeepAnswer(ctx, i, a) })
	if errors.Is(err, custody.ErrTaken) { // the same request, at the same time
		a, _, err = i.Replay(ctx, s.store)
	}
	return a, err
}

// accept begins the withdrawal that a request asks for, unless one has begun.
func (s *Service) accept(ctx context.Context, c custody.Caller, w custody.Withdrawal) error {
	err := s.store.InTx(ctx, func(tx Tx) error {
		u, err := tx.UploadForChange(ctx, w.OrgID, w.UploadID)
		if err != nil {
			return err
		}
		if u.Status == custody.StatusWithdrawing || u.Status == custody.StatusWithdrawn {
			return nil
		}
		return begin(ctx, tx, u, c.Cause(), custody.Withdrawing{Reason: w.Reason})
	})
	if errors.Is(err, custody.ErrNotFound) {
		return custody.UploadNotFound()
	}
	return err
}

// await waits for the receipt, for an attempt that was not confirmed, or for patience to end.
func (s *Service) await(ctx context.Context, uploadID string) (custody.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(recheck)
	defer tick.Stop()
	before := -1
	for {
		changed := s.store.Changed()
		receipt, err := s.store.Receipt(context.WithoutCancel(ctx), uploadID)
		if !errors.Is(err, custody.ErrNotFound) {
			return receipt, err
		}
		w, err := s.store.Withdrawing(context.WithoutCancel(ctx), uploadID)
		if err != nil {
			return receipt, err
		}
		if before >= 0 && w.Attempts > before {
			return receipt, notConfirmed()
		}
		before = w.Attempts
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return receipt, notConfirmed()
		}
	}
}

func notConfirmed() *custody.Error {
	e := custody.Errorf(custody.CodeDeletionNotConfirmed, "deletion is not confirmed in every storage backend yet; the content is unreadable already and deletion goes on")
	e.RetryAfter = 5 * time.Second
	return e
}

// Finish is the worker's half: it deletes everywhere, confirms, and writes the receipt. An error means that not every backend
// confirmed: no receipt, to be tried again.
func (s *Service) Finish(ctx context.Context, claim custody.Claim) error {
	u := claim.Upload
	w, err := s.store.Withdrawing(ctx, u.ID)
	if err != nil {
		return err
	}
	deletions, err := s.vault.DestroyNoting(ctx, u.ID, func(objects []custody.StoredObject) error {
		return s.store.InTx(ctx, func(tx Tx) error { return tx.NoteWithdrawalObjects(ctx, u.ID, objects) })
	})
	if err != nil && planted.Bug("receipt-without-deletion") {
		err = nil
	}
	var signer jose.Signer
	if err == nil {
		signer, err = s.signer(ctx)
	}
	if err != nil && ctx.Err() != nil {
		return err // the process stops, or another has the upload: no answer of a backend, so the request goes on waiting
	}
	if err != nil {
		return errors.Join(fmt.Errorf("deletion not confirmed: %w", err),
			s.store.InTx(ctx, func(tx Tx) error { return tx.CountWithdrawalAttempt(ctx, u.ID, s.unconfirmed(deletions)) }))
	}
	if err := s.store.InTx(ctx, func(tx Tx) error {
		if err := tx.Hold(ctx, claim); err != nil {
			return err
		}
		u, err := tx.UploadForChange(ctx, u.OrgID, u.ID)
		if err != nil {
			return err
		}
		freed, err := tx.FreeQuota(ctx, &u)
		if err != nil {
			return err
		}
		if err := tx.Transition(ctx, &u, custody.Change{Trigger: custody.TriggerDeletionConfirmed, Cause: claim.Cause}); err != nil {
			return err
		}
		noted, err := tx.WithdrawalObjects(ctx, u.ID)
		if err != nil {
			return err
		}
		recalled, err := tx.Recalled(ctx, u.OrgID, u.ID)
		if err != nil {
			return err
		}
		receipt := custody.Receipt{
			ID: custody.NewID("rct"), Issuer: s.cfg.Issuer, UploadID: u.ID, OrgID: u.OrgID, SHA256: u.SHA256, CredentialID: w.CredentialID, Reason: w.Reason,
			RequestedAt: w.RequestedAt, RetainedUntil: w.RetainedUntil, WithdrawnAt: u.UpdatedAt, QuotaBytes: freed, Deletions: total(deletions, noted), KeyDestroyedAt: keyDestroyedAt(deletions),
			KeyBackupHorizon: duration(s.cfg.KeyBackups), Recalled: recalled, Remains: remains(u, s.cfg.KeyBackups),
		}
		if receipt.Recalled == nil {
			receipt.Recalled = []custody.Recall{}
		}
		if u.SHA256 != "" {
			receipt.SizeBytes = u.SizeBytes
		}
		if receipt.Signed, err = sign(signer, receipt); err != nil {
			return err
		}
		return tx.InsertReceipt(ctx, receipt, u.Consent)
	}); err != nil {
		return err
	}
	// The row forgot name, notes and who consented; so must the file's free pages. The content and its key are gone already.
	if err := s.store.Scrub(context.WithoutCancel(ctx)); err != nil {
		s.cfg.Log.WarnContext(ctx, "metadata of a withdrawn upload stays in the log until the next one", "upload_id", u.ID, "error", err)
	}
	return nil
}

// unconfirmed names the backends that are not among those that confirmed. The receipt's signature comes from the key store.
func (s *Service) unconfirmed(confirmed []custody.Deletion) (names []string) {
	for _, name := range s.vault.Backends() {
		if !slices.ContainsFunc(confirmed, func(d custody.Deletion) bool { return d.Backend == name }) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		names = []string{custody.BackendKeys}
	}
	return names
}
