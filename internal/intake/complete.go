package intake

import (
	"context"
	"errors"

	"github.com/accession/accession/internal/custody"
)

// Complete compares the client's ledger and digest with what was received and hands the upload to the gates. It reads no
// bytes: the digest was kept as the parts came. Render gets the custody.Completed. Errors: part_ledger_mismatch,
// digest_mismatch, upload_not_receiving, reservation_expired. (Section 4.6.)
func (s *Service) Complete(ctx context.Context, c custody.Caller, done custody.Completion, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpCompleteUpload, c, done.OrgID); err != nil {
		return custody.Answer{}, err
	}
	if a, found, err := i.Replay(ctx, s.store); found || err != nil {
		return a, err
	}
	u, err := s.upload(ctx, done.OrgID, done.UploadID)
	if err != nil {
		return custody.Answer{}, err
	}
	if err := s.checkLedger(ctx, u, done); err != nil {
		return custody.Answer{}, err
	}
	var a custody.Answer
	err = s.store.InTx(ctx, func(tx Tx) error {
		u, err := tx.UploadForChange(ctx, done.OrgID, done.UploadID)
		if err != nil {
			return err
		}
		accepted := u.Status == custody.StatusReceiving
		switch {
		case accepted && !custody.Now().Before(u.ExpiresAt):
			return expired(u)
		case accepted:
			if err := tx.UseQuota(ctx, &u); err != nil {
				return err
			}
			switch err := tx.Transition(ctx, &u, custody.Change{Trigger: custody.TriggerCompleted, Cause: c.Cause()}); {
			case errors.Is(err, custody.ErrConflict): // lapsed by the clock of the database, which deletes
				return expired(u)
			case err != nil:
				return err
			}
		case !completed(u.Status):
			return notReceiving(u)
		}
		if a, err = i.Render(custody.Completed{Upload: u, Accepted: accepted}); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, i, a)
	})
	if errors.Is(err, custody.ErrTaken) {
		a, _, err = i.Replay(ctx, s.store)
	}
	return a, err
}

// completed tells whether an upload in this status was complete once, and still has its bytes.
func completed(s custody.Status) bool {
	switch s {
	case custody.StatusProcessing, custody.StatusReady, custody.StatusRejected, custody.StatusFailed:
		return true
	}
	return false
}

// checkLedger compares part by part, then the whole digest. The ledger of a complete upload does not change any more.
func (s *Service) checkLedger(ctx context.Context, u custody.Upload, done custody.Completion) error {
	if u.Status != custody.StatusInitiated && u.Status != custody.StatusReceiving && !completed(u.Status) {
		return notReceiving(u)
	}
	if u.ReceivedBytes != u.SizeBytes {
		return custody.Errorf(custody.CodePartLedgerMismatch, "%d of %d bytes are here; part %d comes next", u.ReceivedBytes, u.SizeBytes, u.NextPart).
			With("received_bytes", u.ReceivedBytes).With("size_bytes", u.SizeBytes).With("next_part_number", u.NextPart)
	}
	if len(done.Parts) != u.LastPart() {
		return custody.Errorf(custody.CodePartLedgerMismatch, "the request names %d parts, %d were accepted", len(done.Parts), u.LastPart()).
			With("accepted_parts", u.LastPart())
	}
	if err := s.compareParts(ctx, u, done.Parts); err != nil {
		return err
	}
	if done.ClientSHA256 != u.SHA256 {
		return custody.Errorf(custody.CodeDigestMismatch, "the received bytes do not have the declared client_file_sha256; withdraw the upload and send the file again").
			With("received_sha256", u.SHA256)
	}
	return nil
}

// compareParts compares each part that is declared, as many as were accepted, with the accepted one. Parts are accepted in order, so
// where all are declared by their numbers alone there is nothing to read.
func (s *Service) compareParts(ctx context.Context, u custody.Upload, declared []custody.DeclaredPart) error {
	byNumber := true
	for n, d := range declared {
		byNumber = byNumber && d == custody.DeclaredPart{Number: n + 1}
	}
	if byNumber {
		return nil
	}
	parts, err := s.store.PartDigests(ctx, u.ID)
	if err != nil {
		return err
	}
	for n, d := range declared {
		if n >= len(parts) { // withdrawn since it was read
			return notReceiving(u)
		}
		p := parts[n]
		if d.Number != p.Number || d.SHA256 != "" && d.SHA256 != p.SHA256 || d.SizeBytes != 0 && d.SizeBytes != p.SizeBytes {
			return custody.Errorf(custody.CodePartLedgerMismatch, "entry %d of parts does not match the accepted part %d", n+1, p.Number).
				With("part_number", p.Number).With("size_bytes", p.SizeBytes).With("sha256", p.SHA256)
		}
	}
	return nil
}
