package intake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/accession/accession/internal/custody"
)

// A customer's text goes from reservation to READY inside one request:
//
//	reserve   data key durable → quota, row and first event in one transaction, without a name and without who consented
//	seal      bytes durable under the reservation: a crash from here on leaves nothing that does not lapse with it
//	gates     the six of the pipeline, once
//	publish   names, ledger, five status changes, derived objects and answer in one transaction → answer
//
// Whatever ends it before publish deletes the bytes and lets the reservation lapse at once.

// Submit takes a customer's text through all six gates inside the request. Render gets the custody.Upload, READY. Errors:
// workspace_access_required, verification_claim_forbidden, content_refused with the gate, quota_exceeded, storage_full,
// service_unavailable where a gate has no answer. (Section 4.5.)
func (s *Service) Submit(ctx context.Context, c custody.Caller, sub custody.Submission, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpCustomerUpload, c, sub.OrgID); err != nil {
		return custody.Answer{}, err
	}
	sub.OriginalUploadID = ""
	return s.submit(ctx, c, sub, i)
}

// Correct takes a correction: an upload of its own that names its original, which stays as it is. The original is a READY
// customer upload or correction. Errors: those of Submit, upload_not_found for the original. (Section 4.5.)
func (s *Service) Correct(ctx context.Context, c custody.Caller, sub custody.Submission, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpCorrection, c, sub.OrgID); err != nil {
		return custody.Answer{}, err
	}
	if sub.OriginalUploadID == "" {
		return custody.Answer{}, custody.UploadNotFound()
	}
	return s.submit(ctx, c, sub, i)
}

func (s *Service) submit(ctx context.Context, c custody.Caller, sub custody.Submission, i custody.Idempotency) (custody.Answer, error) {
	if err := workspaceBoundary(sub); err != nil {
		return custody.Answer{}, err
	}
	if err := RefuseClaims(sub.Body, map[string]string{"/filename": sub.Filename, "/payload": sub.Payload}); err != nil {
		return custody.Answer{}, err
	}
	leave, err := s.enter(i)
	if err != nil {
		return custody.Answer{}, err
	}
	defer leave()
	if a, found, err := i.Replay(ctx, s.store); found || err != nil { // an answer outlives the original
		return a, err
	}
	if sub.OriginalUploadID != "" {
		u, err := s.upload(ctx, sub.OrgID, sub.OriginalUploadID)
		if err = customersReady(u, err); err != nil {
			return custody.Answer{}, err
		}
	}
	u := s.newSubmission(sub, c)
	if err := s.reserveSubmission(ctx, c, u); errors.Is(err, custody.ErrQuota) {
		return s.noRoom(ctx, u.OrgID, u.SizeBytes, i)
	} else if err != nil {
		return custody.Answer{}, err
	}
	a, err := s.keepSubmission(ctx, c, u, sub.Payload, i)
	if err == nil {
		return a, nil
	}
	if !errors.Is(err, custody.ErrInDoubt) { // it may be published after all, or lapses
		s.abandonSubmission(context.WithoutCancel(ctx), c, u)
	}
	var refusal *custody.Refusal
	var silent *custody.NoAnswer
	switch {
	case errors.Is(err, custody.ErrTaken): // the same request, at the same time, in another process
		a, _, err := i.Replay(ctx, s.store)
		return a, err
	case errors.As(err, &refusal):
		return custody.Answer{}, custody.Errorf(custody.CodeContentRefused, "the %s gate refused the content: %s", refusal.Gate, refusal.Message).
			With("gate", refusal.Gate).With("gate_code", refusal.Code)
	case errors.As(err, &silent), errors.Is(err, custody.ErrDestroyed): // no answer, or the reservation was ended under it
		return custody.Answer{}, custody.Unavailable(err)
	}
	return custody.Answer{}, err
}

func (s *Service) newSubmission(sub custody.Submission, c custody.Caller) custody.Upload {
	now := custody.Now()
	sum := sha256.Sum256([]byte(sub.Payload))
	u := custody.Upload{
		ID: custody.NewID("upl"), OrgID: sub.OrgID, Kind: sub.Kind(), PipelineID: custody.NewID("pip"), CredentialID: c.CredentialID,
		OriginalUploadID: sub.OriginalUploadID,
		Filename:         sub.Filename, ContentType: sub.ContentType, SizeBytes: int64(len(sub.Payload)),
		Visibility: sub.Visibility, UploaderType: sub.UploaderType, Consent: sub.Consent, Importance: custody.ImportanceNormal,
		PartSizeBytes: custody.MaxPayloadBytes, NextPart: 1, SHA256: hex.EncodeToString(sum[:]), ReservedBytes: int64(len(sub.Payload)),
		CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(s.cfg.ReservationLifetime),
	}
	if u.ContentType == "" {
		u.ContentType = "text/plain"
	}
	if u.UploaderType == "" {
		u.UploaderType = custody.UploaderCustomer
	}
	return u
}

// reserveSubmission makes the row before any byte of the text, so that bytes without a row never exist. The row has no name
// yet: of what the gates refuse, nobody's consent and no filename stays. Error: custody.ErrQuota.
func (s *Service) reserveSubmission(ctx context.Context, c custody.Caller, u custody.Upload) error {
	if err := s.vault.Admit(ctx, u.ID); err != nil {
		return err
	}
	err := s.store.InTx(ctx, func(tx Tx) error {
		nameless := u
		nameless.Filename, nameless.Consent = "", custody.Consent{}
		if err := tx.ReserveQuota(ctx, u.OrgID, u.SizeBytes); err != nil {
			return err
		}
		return tx.InsertUpload(ctx, &nameless, c.Cause())
	})
	if err == nil || errors.Is(err, custody.ErrInDoubt) { // it may be there and need its key; the sweep finds out
		return err
	}
	if dismissErr := s.vault.Dismiss(context.WithoutCancel(ctx), u.ID); dismissErr != nil {
		s.cfg.Log.WarnContext(ctx, "data key of a refused reservation stays", "upload_id", u.ID, "error", dismissErr)
	}
	return err
}

// keepSubmission seals the text, asks the gates, and publishes everything at once.
func (s *Service) keepSubmission(ctx context.Context, c custody.Caller, u custody.Upload, payload string, i custody.Idempotency) (a custody.Answer, err error) {
	objectKey, err := s.vault.SealPart(ctx, u.ID, 1, strings.NewReader(payload), u.SizeBytes)
	if err != nil {
		return a, err
	}
	part := custody.Part{UploadID: u.ID, Number: 1, SizeBytes: u.SizeBytes, SHA256: u.SHA256, ObjectKey: objectKey, AcceptedAt: custody.Now()}
	results, artifacts, err := s.gates.Inline(ctx, u, []custody.Part{part})
	if err != nil {
		return a, err
	}
	err = s.store.InTx(context.WithoutCancel(ctx), func(tx Tx) error {
		published, err := publishSubmission(ctx, tx, u, c.Cause(), part, results, artifacts)
		if err != nil {
			return err
		}
		if a, err = i.Render(published); err != nil {
			return err
		}
		i.UploadID = u.ID
		return tx.KeepAnswer(ctx, i, a)
	})
	return a, err
}

// publishSubmission walks the rest of the lifecycle at once, event by event.
func publishSubmission(ctx context.Context, tx Tx, sub custody.Upload, cause custody.Cause, part custody.Part, results []custody.GateResult, artifacts []custody.Artifact) (custody.Upload, error) {
	if sub.OriginalUploadID != "" { // it may have been withdrawn meanwhile
		original, err := tx.UploadForChange(ctx, sub.OrgID, sub.OriginalUploadID)
		if err = customersReady(original, err); err != nil {
			return original, err
		}
	}
	u, err := tx.UploadForChange(ctx, sub.OrgID, sub.ID)
	if err != nil {
		return u, err
	}
	if u.Status != custody.StatusInitiated || !custody.Now().Before(u.ExpiresAt) {
		return u, custody.Unavailable(errors.New("the reservation lapsed while the gates ran"))
	}
	u.Filename, u.Consent = sub.Filename, sub.Consent
	if err := tx.NameUpload(ctx, u); err != nil {
		return u, err
	}
	if err := tx.AppendPart(ctx, &u, part, nil, sub.SHA256); err != nil {
		return u, err
	}
	if err := tx.Transition(ctx, &u, custody.Change{Trigger: custody.TriggerPartAccepted, Cause: cause}); err != nil {
		return u, err
	}
	if err := tx.UseQuota(ctx, &u); err != nil {
		return u, err
	}
	if err := tx.Transition(ctx, &u, custody.Change{Trigger: custody.TriggerCompleted, Cause: cause}); err != nil {
		return u, err
	}
	for _, artifact := range artifacts {
		if err := tx.PutArtifact(ctx, artifact); err != nil {
			return u, err
		}
	}
	for n, g := range results {
		if err := tx.SetGate(ctx, u.ID, g); err != nil {
			return u, err
		}
		change := custody.Change{Trigger: custody.TriggerGateChanged, Stage: g.Name, GateState: g.State, Cause: cause}
		if n == len(results)-1 {
			change.Trigger = custody.TriggerGatesPassed
		}
		if err := tx.Transition(ctx, &u, change); err != nil {
			return u, err
		}
	}
	return u, nil
}

// abandonSubmission deletes what was sealed and ends the reservation. What fails here, the lapse of the reservation does later.
func (s *Service) abandonSubmission(ctx context.Context, c custody.Caller, sub custody.Upload) {
	u, err := s.store.Upload(ctx, sub.OrgID, sub.ID)
	if err == nil && u.Status == custody.StatusInitiated { // anything else: published after all, or somebody ends it already
		if _, err = s.vault.Destroy(ctx, u.ID); err == nil {
			err = s.store.InTx(ctx, func(tx Tx) error {
				u, err := tx.UploadForChange(ctx, sub.OrgID, sub.ID)
				if err != nil || u.Status != custody.StatusInitiated {
					return err
				}
				if _, err := tx.FreeQuota(ctx, &u); err != nil {
					return err
				}
				return tx.Transition(ctx, &u, custody.Change{Trigger: custody.TriggerReservationLapsed, Cause: c.Cause()})
			})
		}
	}
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "a refused submission stays until its reservation lapses", "upload_id", sub.ID, "error", err)
	}
}

// customersReady passes a READY upload that a customer made; everything else is not found, as is what err says so of.
func customersReady(u custody.Upload, err error) error {
	if errors.Is(err, custody.ErrNotFound) || err == nil && (u.Kind == custody.KindPartner || u.Status != custody.StatusReady) {
		return custody.UploadNotFound()
	}
	return err
}

// workspaceBoundary keeps writes inside the organization of the path. (Contract decisions, "Customers' rule".)
func workspaceBoundary(sub custody.Submission) error {
	refuse := func(reason string) error { return custody.Errorf(custody.CodeWorkspaceAccess, "%s", reason) }
	delegated := sub.UploaderType == custody.UploaderSolutionCompany || sub.UploaderType == custody.UploaderThirdParty
	switch {
	case sub.WorkspaceAccess == custody.WorkspaceNotGranted:
		return refuse("the customer has not granted access to the workspace")
	case delegated && sub.WorkspaceAccess != custody.WorkspaceGranted:
		return refuse("a solution company or third party needs customer_workspace_access granted")
	case sub.AssertedSubjectOrgID != "" && sub.AssertedSubjectOrgID != sub.OrgID:
		return refuse("asserted_subject_org_id is not the organization of the path")
	case !delegated && sub.UploaderOrgID != "" && sub.UploaderOrgID != sub.OrgID:
		return refuse("a customer's uploader_organization_id is not the organization of the path")
	}
	return nil
}
