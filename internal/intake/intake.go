// Package intake takes documents in: a partner reserves room, sends parts in order, and completes.
//
//	initiate   data key durable → reservation, event and answer in one transaction
//	part       bytes sealed and durable → ledger row, digest state and answer in one transaction → answer
//	complete   running digest against the declared one → PROCESSING and answer in one transaction → a worker takes over
//
// A customer hands in a small text at once: reserved, sealed, through the same gates inside the request, and published READY in
// one transaction with its ledger, events and answer (customer.go).
package intake

import (
	"context"
	"errors"
	"hash"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/accession/accession/internal/custody"
)

// Store is the metadata that intake reads and, in transactions, changes.
type Store interface {
	Upload(ctx context.Context, orgID, uploadID string) (custody.Upload, error)
	Part(ctx context.Context, uploadID string, number int) (custody.Part, error)
	PartDigests(ctx context.Context, uploadID string) ([]custody.Part, error)             // number, size and digest alone
	UploadState(ctx context.Context, orgID, uploadID string) (custody.UploadState, error) // without gates and withdrawal
	GatesShown(ctx context.Context, uploadID string) ([]custody.GateShown, error)
	Withdrawing(ctx context.Context, uploadID string) (custody.Withdrawing, error)
	Quota(ctx context.Context, orgID string) (custody.Quota, error)
	Answered(ctx context.Context, i custody.Idempotency) (requestHash string, a custody.Answer, err error)
	Changed() <-chan struct{}
	InTx(ctx context.Context, fn func(Tx) error) error
}

// Tx is one transaction of Store.
type Tx interface {
	UploadForChange(ctx context.Context, orgID, uploadID string) (custody.Upload, error)
	InsertUpload(ctx context.Context, u *custody.Upload, cause custody.Cause) error
	NameUpload(ctx context.Context, u custody.Upload) error
	AppendPart(ctx context.Context, u *custody.Upload, p custody.Part, digestState []byte, sha256 string) error
	Transition(ctx context.Context, u *custody.Upload, c custody.Change) error
	ReserveQuota(ctx context.Context, orgID string, size int64) error
	UseQuota(ctx context.Context, u *custody.Upload) error
	FreeQuota(ctx context.Context, u *custody.Upload) (freed int64, err error)
	SetGate(ctx context.Context, uploadID string, g custody.GateResult) error
	PutArtifact(ctx context.Context, a custody.Artifact) error
	AppendReference(ctx context.Context, r custody.Review, credentialID string) error
	AppendAudit(ctx context.Context, l custody.AuditLine) error
	KeepAnswer(ctx context.Context, i custody.Idempotency, a custody.Answer) error
}

// Gates runs the six gates over a small text at once; nothing it makes is published before the caller's transaction.
type Gates interface {
	Inline(ctx context.Context, u custody.Upload, parts []custody.Part) ([]custody.GateResult, []custody.Artifact, error)
}

// Vault keeps the bytes.
type Vault interface {
	Admit(ctx context.Context, uploadID string) error
	Dismiss(ctx context.Context, uploadID string) error
	SealPart(ctx context.Context, uploadID string, number int, body io.Reader, length int64, digests ...hash.Hash) (objectKey string, err error)
	DiscardPart(ctx context.Context, objectKey string) error
	Destroy(ctx context.Context, uploadID string) ([]custody.Deletion, error)
}

// Config of intake.
type Config struct {
	PartSizeBytes       int64           // length of every part but the last; a multiple of 64, so that no plaintext stays in a digest state
	ReservationLifetime time.Duration   // from initiate to complete; default custody.ReservationLifetime
	Closing             <-chan struct{} // closed when the service begins to stop: nobody is kept waiting; nil means never
	Log                 *slog.Logger
}

// Service takes documents in. Its methods ask custody.Authorize before anything else.
type Service struct {
	store Store
	vault Vault
	gates Gates
	cfg   Config

	mu      sync.Mutex
	running map[inFlight]struct{}
}

// New makes the service.
func New(store Store, vault Vault, gates Gates, cfg Config) *Service {
	if cfg.ReservationLifetime == 0 {
		cfg.ReservationLifetime = custody.ReservationLifetime
	}
	return &Service{store: store, vault: vault, gates: gates, cfg: cfg, running: map[inFlight]struct{}{}}
}

// inFlight is an idempotency key whose first request still runs in this process.
type inFlight struct {
	credentialID string
	operation    custody.Operation
	key          string
}

// enter fails with idempotency_in_progress while another request with the same key runs; call leave afterwards.
func (s *Service) enter(i custody.Idempotency) (leave func(), err error) {
	k := inFlight{i.CredentialID, i.Operation, i.Key}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, busy := s.running[k]; busy {
		return nil, custody.InProgress()
	}
	s.running[k] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, k)
	}, nil
}

// upload reads the organization's upload, or answers 404.
func (s *Service) upload(ctx context.Context, orgID, uploadID string) (custody.Upload, error) {
	u, err := s.store.Upload(ctx, orgID, uploadID)
	return u, unknown(err)
}

// unknown is err, as a caller may see it who asked for an upload.
func unknown(err error) error {
	if errors.Is(err, custody.ErrNotFound) {
		return custody.UploadNotFound()
	}
	return err
}

// Quota answers an organization's figures. (Section 4.6.)
func (s *Service) Quota(ctx context.Context, c custody.Caller, orgID string) (custody.Quota, error) {
	if err := custody.Authorize(custody.OpQuota, c, orgID); err != nil {
		return custody.Quota{}, err
	}
	return s.store.Quota(ctx, orgID)
}
