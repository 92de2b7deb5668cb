package aicontext

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/planted"
)

// Store is the metadata that serving reads, and the records it writes.
type Store interface {
	Published(ctx context.Context, orgID, uploadID string) (custody.Published, error)
	Corrections(ctx context.Context, orgID, uploadID string, limit int) ([]string, error)
	References(ctx context.Context, uploadID string, limit int) ([]custody.Reference, error)
	Records(ctx context.Context, q custody.RecordQuery) (records []custody.Record, next int64, err error)
	Record(ctx context.Context, recordID string) (custody.Record, error)
	InTx(ctx context.Context, fn func(Tx) error) error
}

// Tx is one transaction of Store.
type Tx interface {
	StatusForChange(ctx context.Context, orgID, uploadID string) (custody.Status, error)
	AppendRecord(ctx context.Context, r *custody.Record) error
}

// Vault opens published contexts.
type Vault interface {
	OpenArtifact(ctx context.Context, a custody.Artifact) ([]byte, error)
}

// maxNamed bounds the corrections and references that one context names: a context stays small whatever is attached.
const maxNamed = 20

// Service serves contexts with evidence.
type Service struct {
	store  Store
	vault  Vault
	marker func() string // at least 128 random bits, in capitals and digits
}

// NewService makes the service.
func NewService(store Store, vault Vault) *Service { return &Service{store, vault, rand.Text} }

// Serve gives one reader the bounded context of one upload, after the record of it is durable: no record, no serving.
// surface is "rest" or "mcp". Errors: access_denied, upload_not_found, context_not_ready, visibility_denied,
// service_unavailable. (Sections 2.7 and 4.7.)
func (s *Service) Serve(ctx context.Context, c custody.Caller, orgID, uploadID, surface string) (custody.Serving, error) {
	if err := custody.Authorize(custody.OpAIContext, c, orgID); err != nil {
		return custody.Serving{}, err
	}
	p, err := s.store.Published(ctx, orgID, uploadID)
	if errors.Is(err, custody.ErrNotFound) {
		return custody.Serving{}, custody.UploadNotFound()
	}
	if err != nil {
		return custody.Serving{}, custody.Unavailable(err)
	}
	if !servable(p.Status) {
		return custody.Serving{}, notReady(p.Status)
	}
	record := custody.Record{
		ID: custody.NewID("rec"), RequestID: c.RequestID, TraceID: c.TraceID, OrgID: orgID, UploadID: uploadID,
		CredentialID: c.CredentialID, Surface: surface, Outcome: custody.OutcomeServed, ServedAt: custody.Now(),
	}
	if p.Visibility == custody.VisibilityInternal {
		record.Outcome = custody.OutcomeRefusedVisibility
		if err := s.keep(ctx, &record); err != nil {
			return custody.Serving{}, err
		}
		return custody.Serving{}, custody.Errorf(custody.CodeVisibilityDenied, "the upload is for internal use only; it has no AI context for readers")
	}
	served, sum, err := s.open(ctx, p, record)
	if err != nil {
		return custody.Serving{}, err
	}
	record.ContextSHA256, record.Bytes = sum, int64(len(served))
	if err := s.keep(ctx, &record); err != nil {
		return custody.Serving{}, err
	}
	return custody.Serving{UploadID: uploadID, OrgID: orgID, Visibility: p.Visibility, Context: served, RecordID: record.ID}, nil
}

// open reads the published context and wraps it for this serving.
func (s *Service) open(ctx context.Context, p custody.Published, r custody.Record) (served []byte, sum string, err error) {
	if p.Context.ObjectKey == "" {
		return nil, "", custody.Unavailable(custody.ErrNotFound)
	}
	b, err := s.vault.OpenArtifact(ctx, p.Context)
	if err != nil {
		return nil, "", s.meanwhile(ctx, r, err)
	}
	var c Context
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, "", custody.Unavailable(err)
	}
	if c.Corrections, err = s.store.Corrections(ctx, r.OrgID, r.UploadID, maxNamed); err != nil {
		return nil, "", custody.Unavailable(err)
	}
	if c.ExternalReferences, err = s.store.References(ctx, r.UploadID, maxNamed); err != nil {
		return nil, "", custody.Unavailable(err)
	}
	for i, named := range c.ExternalReferences {
		c.ExternalReferences[i].ReviewID, c.ExternalReferences[i].Reviewer = Sanitize(named.ReviewID), Sanitize(named.Reviewer)
	}
	if err := c.wrap(r.ID, s.marker); err != nil {
		return nil, "", err
	}
	served, err = json.Marshal(c)
	return served, c.ContextSHA256, err
}

// keep makes the record durable in the same transaction that makes sure the upload may still be served: a withdrawal
// accepted before it wins.
func (s *Service) keep(ctx context.Context, r *custody.Record) error {
	err := s.store.InTx(ctx, func(tx Tx) error {
		now, err := tx.StatusForChange(ctx, r.OrgID, r.UploadID)
		if err != nil {
			return err
		}
		if !servable(now) {
			return notReady(now)
		}
		return tx.AppendRecord(ctx, r)
	})
	var visible *custody.Error
	if err == nil || errors.As(err, &visible) {
		return err
	}
	if planted.Bug("served-without-record") {
		return nil
	}
	return custody.Unavailable(err)
}

// servable tells whether an upload of that status has a context that may be served.
func servable(status custody.Status) bool {
	return status == custody.StatusReady || status == custody.StatusWithdrawing && planted.Bug("withdrawing-served")
}

// meanwhile explains a context that could not be opened: the upload was withdrawn under the reader, or a store fails.
func (s *Service) meanwhile(ctx context.Context, r custody.Record, cause error) error {
	now, err := s.store.Published(ctx, r.OrgID, r.UploadID)
	if err == nil && now.Status != custody.StatusReady {
		return notReady(now.Status)
	}
	return custody.Unavailable(errors.Join(cause, err))
}

func notReady(status custody.Status) error {
	return custody.Errorf(custody.CodeContextNotReady, "the upload has no AI context to serve").With("status", status)
}

// Records answers request records, newest first, and the position to go on before (0: no more). (Section 4.7.)
func (s *Service) Records(ctx context.Context, c custody.Caller, q custody.RecordQuery) ([]custody.Record, int64, error) {
	if err := custody.Authorize(custody.OpRequestRecords, c, q.OrgID); err != nil {
		return nil, 0, err
	}
	return s.store.Records(ctx, q)
}

// FindCanary answers the record of the serving that carried a canary, whatever became of the upload since. An operator asks
// it, who does not know the organization. Errors: authentication_required, credential_invalid, canary_not_found,
// service_unavailable.
func (s *Service) FindCanary(ctx context.Context, c custody.Caller, canary string) (custody.Record, error) {
	if err := custody.Authorize(custody.OpFindCanary, c, ""); err != nil {
		return custody.Record{}, err
	}
	id, ok := strings.CutPrefix(canary, canaryPrefix)
	if !ok {
		return custody.Record{}, noSuchCanary
	}
	r, err := s.store.Record(ctx, id)
	switch {
	case errors.Is(err, custody.ErrNotFound), err == nil && r.Outcome != custody.OutcomeServed: // a refusal carried none
		return custody.Record{}, noSuchCanary
	case err != nil:
		return custody.Record{}, custody.Unavailable(err)
	}
	return r, nil
}

var noSuchCanary = custody.Errorf(custody.CodeCanaryNotFound, "no serving carries this canary")
