package sqlstore

import (
	"context"
	"encoding/json"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/planted"
)

// Answered reads the answer that was given under a key, and the hash of the request it was given to; ErrNotFound where the
// key is fresh.
func (s queries) Answered(ctx context.Context, i custody.Idempotency) (requestHash string, a custody.Answer, err error) {
	var data string
	err = s.q.Row(ctx, `SELECT request_hash, answer_status, answer_data FROM idempotency_keys WHERE credential_id = $1 AND operation = $2 AND idempotency_key = $3`,
		[]any{i.CredentialID, i.Operation, i.Key}, &requestHash, &a.Status, &data)
	a.Data, a.Replayed = json.RawMessage(data), true
	if planted.Bug("key-of-another-request") {
		requestHash = i.RequestHash
	}
	return requestHash, a, err
}

// KeepAnswer makes the answer durable together with the effect that this transaction writes. ErrTaken where the key was
// used meanwhile: take the effect back.
func (tx *Tx) KeepAnswer(ctx context.Context, i custody.Idempotency, a custody.Answer) error {
	if i.Key == "" {
		return nil
	}
	n, err := tx.q.Exec(ctx, `INSERT INTO idempotency_keys (credential_id, operation, idempotency_key, request_hash, answer_status, answer_data, created_at, upload_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
		i.CredentialID, i.Operation, i.Key, i.RequestHash, a.Status, string(a.Data), millis(custody.Now()), i.UploadID)
	if err == nil && n == 0 {
		return custody.ErrTaken
	}
	return err
}

// ForgetAnswers deletes answers older than before.
func (tx *Tx) ForgetAnswers(ctx context.Context, before time.Time) error {
	_, err := tx.q.Exec(ctx, `DELETE FROM idempotency_keys WHERE created_at < $1`, millis(before))
	return err
}

// redactAnswers takes the file name out of the answers that show it; everything else of them stays as it was given.
func (tx *Tx) redactAnswers(ctx context.Context, uploadID string) error {
	type answer struct {
		i    custody.Idempotency
		data string
	}
	var answers []answer
	if err := tx.q.Each(ctx, `SELECT credential_id, operation, idempotency_key, answer_data FROM idempotency_keys WHERE upload_id <> '' AND upload_id = $1`,
		[]any{uploadID}, func(scan func(...any) error) error {
			var a answer
			err := scan(&a.i.CredentialID, &a.i.Operation, &a.i.Key, &a.data)
			answers = append(answers, a)
			return err
		}); err != nil {
		return err
	}
	for _, a := range answers {
		redacted, err := custody.WithoutFilename([]byte(a.data))
		if err != nil {
			return err
		}
		if err := one(tx.q.Exec(ctx, `UPDATE idempotency_keys SET answer_data = $1, upload_id = '' WHERE credential_id = $2 AND operation = $3 AND idempotency_key = $4`,
			string(redacted), a.i.CredentialID, a.i.Operation, a.i.Key)); err != nil {
			return err
		}
	}
	return nil
}
