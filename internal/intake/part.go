package intake

import (
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/accession/accession/internal/custody"
)

// AcceptPart takes one part into private staging. Render gets the custody.AcceptedPart. i.RequestHash is made here, from the
// body. Errors: part_out_of_order with next_part_number, part_length_invalid with expected_bytes, part_conflict,
// content_digest_mismatch, upload_not_receiving, reservation_expired. (Section 4.6.)
func (s *Service) AcceptPart(ctx context.Context, c custody.Caller, p custody.IncomingPart, i custody.Idempotency) (custody.Answer, error) {
	if err := custody.Authorize(custody.OpPutPart, c, p.OrgID); err != nil {
		return custody.Answer{}, err
	}
	leave, err := s.enter(i)
	if err != nil {
		return custody.Answer{}, err
	}
	defer leave()
	u, err := s.upload(ctx, p.OrgID, p.UploadID)
	if err != nil {
		return custody.Answer{}, err
	}
	_, _, err = s.store.Answered(ctx, i)
	answered := err == nil
	if err != nil && !errors.Is(err, custody.ErrNotFound) {
		return custody.Answer{}, err
	}
	switch {
	case p.Length > u.PartSizeBytes:
		return custody.Answer{}, wrongLength(u, p)
	case answered || p.Number < u.NextPart:
		return s.repeatPart(ctx, u, p, i)
	case u.Status != custody.StatusInitiated && u.Status != custody.StatusReceiving:
		return custody.Answer{}, notReceiving(u)
	case !custody.Now().Before(u.ExpiresAt):
		return custody.Answer{}, expired(u)
	case p.Number > u.NextPart || p.Number > u.LastPart():
		return custody.Answer{}, outOfOrder(u, p)
	case p.Length != u.PartLength(p.Number):
		return custody.Answer{}, wrongLength(u, p)
	}
	return s.newPart(ctx, c, u, p, i)
}

// newPart seals the bytes, then publishes them: durable first, acknowledged last.
func (s *Service) newPart(ctx context.Context, c custody.Caller, u custody.Upload, p custody.IncomingPart, i custody.Idempotency) (custody.Answer, error) {
	part, whole := sha256.New(), sha256.New()
	if len(u.DigestState) > 0 {
		if err := whole.(encoding.BinaryUnmarshaler).UnmarshalBinary(u.DigestState); err != nil {
			return custody.Answer{}, fmt.Errorf("digest state: %w", err)
		}
	}
	objectKey, err := s.vault.SealPart(ctx, u.ID, p.Number, p.Body, p.Length, part, whole)
	if err != nil {
		return custody.Answer{}, s.notKept(ctx, p, err)
	}
	accepted := custody.Part{
		UploadID: u.ID, Number: p.Number, SizeBytes: p.Length, SHA256: hex.EncodeToString(part.Sum(nil)),
		ObjectKey: objectKey, AcceptedAt: custody.Now(),
	}
	a, err := s.publish(ctx, c, p, accepted, whole, i)
	if err == nil {
		return a, nil
	}
	if errors.Is(err, custody.ErrInDoubt) { // a row may name the object; the sweep finds out
		return a, err
	}
	// No row names the object: it must not stay.
	if discardErr := s.vault.DiscardPart(context.WithoutCancel(ctx), objectKey); discardErr != nil {
		s.cfg.Log.WarnContext(ctx, "unpublished part stays until the sweep", "upload_id", u.ID, "error", discardErr)
	}
	switch {
	case errors.Is(err, custody.ErrConflict):
		return s.lostRace(ctx, p, accepted, i)
	case errors.Is(err, custody.ErrTaken): // the key, by another part at the same time, in another process
		i.RequestHash = partHash(accepted)
		a, _, err = i.Replay(ctx, s.store)
	}
	return a, err
}

// notKept explains bytes that were not stored: the upload was withdrawn or lapsed under them, or cause says why.
func (s *Service) notKept(ctx context.Context, p custody.IncomingPart, cause error) error {
	u, err := s.upload(context.WithoutCancel(ctx), p.OrgID, p.UploadID)
	switch {
	case err != nil:
		return cause
	case u.Status != custody.StatusInitiated && u.Status != custody.StatusReceiving:
		return notReceiving(u)
	case !custody.Now().Before(u.ExpiresAt):
		return expired(u)
	case errors.Is(cause, custody.ErrDestroyed):
		return notReceiving(u)
	}
	return cause
}

// publish commits the ledger row, the digest so far, and the answer.
func (s *Service) publish(ctx context.Context, c custody.Caller, p custody.IncomingPart, accepted custody.Part, whole hash.Hash, i custody.Idempotency) (a custody.Answer, err error) {
	if p.DeclaredSHA256 != "" && p.DeclaredSHA256 != accepted.SHA256 {
		return a, digestMismatch()
	}
	i.RequestHash = partHash(accepted)
	err = s.store.InTx(context.WithoutCancel(ctx), func(tx Tx) error { // the bytes are here: a caller that left changes nothing
		u, err := tx.UploadForChange(ctx, p.OrgID, p.UploadID)
		if err != nil {
			return err
		}
		if !accepted.AcceptedAt.Before(u.ExpiresAt) {
			return expired(u)
		}
		state, sum, err := digestSoFar(u, accepted, whole)
		if err != nil {
			return err
		}
		if err := tx.AppendPart(ctx, &u, accepted, state, sum); err != nil {
			return err
		}
		if u.Status == custody.StatusInitiated {
			if err := tx.Transition(ctx, &u, custody.Change{Trigger: custody.TriggerPartAccepted, Cause: c.Cause()}); err != nil {
				return err
			}
		}
		if a, err = i.Render(custody.AcceptedPart{UploadID: u.ID, Number: p.Number, Sequence: u.Sequence, Status: u.Status}); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, i, a)
	})
	return a, err
}

// digestSoFar is the running state or, with the last part, the digest itself: the last part's end would leave plaintext
// in a state.
func digestSoFar(u custody.Upload, p custody.Part, whole hash.Hash) (state []byte, sum string, err error) {
	if u.ReceivedBytes+p.SizeBytes == u.SizeBytes {
		return nil, hex.EncodeToString(whole.Sum(nil)), nil
	}
	state, err = whole.(encoding.BinaryMarshaler).MarshalBinary()
	return state, "", err
}

// lostRace answers a part that somebody else published, or that the upload no longer takes.
func (s *Service) lostRace(ctx context.Context, p custody.IncomingPart, mine custody.Part, i custody.Idempotency) (custody.Answer, error) {
	u, err := s.upload(ctx, p.OrgID, p.UploadID)
	if err != nil {
		return custody.Answer{}, err
	}
	if p.Number >= u.NextPart {
		return custody.Answer{}, notReceiving(u)
	}
	return s.answerRepeated(ctx, u, mine, i)
}

// repeatPart answers a part that was accepted before: the same bytes again are fine, others are not. Nothing is stored.
func (s *Service) repeatPart(ctx context.Context, u custody.Upload, p custody.IncomingPart, i custody.Idempotency) (custody.Answer, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(p.Body, p.Length))
	if err != nil {
		return custody.Answer{}, err
	}
	again := custody.Part{UploadID: u.ID, Number: p.Number, SizeBytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))}
	if n != p.Length {
		return custody.Answer{}, io.ErrUnexpectedEOF
	}
	if p.DeclaredSHA256 != "" && p.DeclaredSHA256 != again.SHA256 {
		return custody.Answer{}, digestMismatch()
	}
	return s.answerRepeated(ctx, u, again, i)
}

func (s *Service) answerRepeated(ctx context.Context, u custody.Upload, again custody.Part, i custody.Idempotency) (custody.Answer, error) {
	i.RequestHash = partHash(again)
	if a, found, err := i.Replay(ctx, s.store); found || err != nil {
		return a, err
	}
	accepted, err := s.store.Part(ctx, u.ID, again.Number)
	if errors.Is(err, custody.ErrNotFound) {
		return custody.Answer{}, notReceiving(u) // withdrawn: the ledger is gone
	}
	if err != nil {
		return custody.Answer{}, err
	}
	if accepted.SHA256 != again.SHA256 {
		return custody.Answer{}, custody.Errorf(custody.CodePartConflict, "part %d was accepted with other bytes", again.Number).
			With("part_number", again.Number).With("next_part_number", u.NextPart)
	}
	a, err := i.Render(custody.AcceptedPart{UploadID: u.ID, Number: again.Number, Sequence: u.Sequence, Status: u.Status})
	if err != nil {
		return a, err
	}
	err = s.store.InTx(ctx, func(tx Tx) error { return tx.KeepAnswer(ctx, i, a) })
	if errors.Is(err, custody.ErrTaken) {
		a, _, err = i.Replay(ctx, s.store)
	}
	return a, err
}

// partHash stands for a part's request: the same part with the same bytes.
func partHash(p custody.Part) string { return fmt.Sprintf("%s/%d/%s", p.UploadID, p.Number, p.SHA256) }

func wrongLength(u custody.Upload, p custody.IncomingPart) error {
	want := u.PartSizeBytes
	if p.Number >= 1 && p.Number <= u.LastPart() {
		want = u.PartLength(p.Number)
	}
	return custody.Errorf(custody.CodePartLengthInvalid, "part %d must have %d bytes", p.Number, want).
		With("part_number", p.Number).With("expected_bytes", want)
}

func outOfOrder(u custody.Upload, p custody.IncomingPart) error {
	if u.NextPart > u.LastPart() {
		return custody.Errorf(custody.CodePartOutOfOrder, "all %d parts are here; complete the upload", u.LastPart()).With("last_part_number", u.LastPart())
	}
	return custody.Errorf(custody.CodePartOutOfOrder, "parts are sent in order; part %d comes next", u.NextPart).With("next_part_number", u.NextPart)
}

func notReceiving(u custody.Upload) error {
	if u.Status == custody.StatusExpired {
		return expired(u)
	}
	return custody.Errorf(custody.CodeUploadNotReceiving, "the upload no longer takes parts").With("status", u.Status)
}

func expired(u custody.Upload) error {
	return custody.Errorf(custody.CodeReservationExpired, "the reservation lapsed; initiate a new upload").With("expires_at", u.ExpiresAt)
}

func digestMismatch() error {
	return custody.Errorf(custody.CodeContentDigestMismatch, "the body does not match its Content-Digest; send the part again")
}
