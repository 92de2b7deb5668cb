package withdrawal

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/accession/accession/internal/custody"
)

// ReceiptType is the typ in the header of a signed receipt: it keeps receipts apart from everything else that is signed.
const ReceiptType = "accession-receipt+json"

// Keys holds the keys that receipts are signed with: Ed25519 seeds, wrapped where they lie, made at the first need.
type Keys interface {
	SigningKeys(ctx context.Context, purpose string) ([]custody.SigningKey, error) // newest first
}

// Receipt reads a withdrawal's receipt, as it was signed, with its signed form. Errors: receipt_not_found, insufficient_scope.
func (s *Service) Receipt(ctx context.Context, c custody.Caller, orgID, receiptID string) (r custody.Receipt, err error) {
	if err := custody.Authorize(custody.OpReceipt, c, orgID); err != nil {
		return r, err
	}
	signed, err := s.store.SignedReceipt(ctx, orgID, receiptID)
	if errors.Is(err, custody.ErrNotFound) {
		return r, custody.ReceiptNotFound()
	}
	if err != nil {
		return r, err
	}
	document, err := jose.ParseSignedCompact(signed, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return r, errors.New("the kept receipt is no signed document") // the cause could quote it
	}
	if err := json.Unmarshal(document.UnsafePayloadWithoutVerification(), &r); err != nil { // whoever relies on it verifies it
		return r, errors.New("the kept receipt is no document")
	}
	r.Signed = signed
	return r, nil
}

// signer signs with the newest key that has been announced.
func (s *Service) signer(ctx context.Context) (jose.Signer, error) {
	keys, err := s.cfg.Keys.SigningKeys(ctx, custody.PurposeReceipt)
	if err != nil {
		return nil, fmt.Errorf("receipt key: %w", err)
	}
	signing, ok := custody.SignsAt(keys, custody.Now())
	if !ok || len(signing.Key) != ed25519.SeedSize {
		return nil, errors.New("receipt key: there is none that fits")
	}
	key := jose.JSONWebKey{Key: ed25519.NewKeyFromSeed(signing.Key), KeyID: signing.ID}
	return jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: key}, (&jose.SignerOptions{}).WithType(ReceiptType))
}

// sign makes the compact JWS of a receipt. (RFC 7515, 8037.)
func sign(signer jose.Signer, r custody.Receipt) (string, error) {
	document, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("write receipt: %w", err)
	}
	signed, err := signer.Sign(document)
	if err != nil {
		return "", fmt.Errorf("sign receipt: %w", err)
	}
	return signed.CompactSerialize()
}

// answersLifetime is how long an answer can be repeated at most: the sweeper comes once an hour.
const answersLifetime = custody.IdempotencyLifetime + 2*time.Hour

// remains is what a withdrawal leaves by design; without keyBackups there are no backups of keys. u is the upload as it was
// withdrawn. (Section 1; section 3.)
func remains(u custody.Upload, keyBackups time.Duration) []custody.Remnant {
	withdrawnAt := u.UpdatedAt
	kept := []custody.Remnant{
		{What: "status events of the upload"},
		{What: "audit lines that name the upload"},
		{What: "request records of its servings"},
		{What: "the redacted consent: versions, text digest and time, not who consented"},
		{What: "the upload's row: ids, kind, status, size, digest, media type as declared, visibility and times"},
		{What: "what its gates said: states, times, counts, digests, the media type and language found, the name of a malware signature; and why it was refused or failed"},
		{What: "deliveries of its events to the organization's webhook: ids, digests and times, until 30 days after each ended"},
		{What: "this receipt"},
		{What: "answers to requests about the upload, without the file's name, so that a repeated request gets them again", Until: withdrawnAt.Add(answersLifetime)},
	}
	if keyBackups > 0 {
		kept = append(kept, custody.Remnant{
			What:  "the wrapped data key in backups of the key store made before withdrawn_at, until the operator's horizon for such backups",
			Until: withdrawnAt.Add(keyBackups),
		})
	}
	return kept
}

// total gives each deletion the count of everything that was noted for its backend.
func total(deletions []custody.Deletion, noted []custody.DeletedObjects) []custody.Deletion {
	for i := range deletions {
		deletions[i].Objects, deletions[i].Bytes = 0, 0
		for _, n := range noted {
			if n.Backend == deletions[i].Backend {
				deletions[i].Objects, deletions[i].Bytes = n.Objects, n.Bytes
			}
		}
	}
	return deletions
}

func keyDestroyedAt(deletions []custody.Deletion) (at time.Time) {
	for _, d := range deletions {
		if d.Backend == custody.BackendKeys {
			at = d.ConfirmedAt
		}
	}
	return at
}

// duration is d as ISO 8601 has it: whole hours, or seconds.
func duration(d time.Duration) string {
	if d%time.Hour == 0 && d > 0 {
		return fmt.Sprintf("PT%dH", int64(d/time.Hour))
	}
	return fmt.Sprintf("PT%dS", int64(d/time.Second))
}
