package custody

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// Idempotency ties an effect to the key under which its answer can be had again. Render makes the answer from the
// operation's result while the effect is still being written, so that both become durable at once.
// (Contract decisions, "Idempotency-Key".)
type Idempotency struct {
	CredentialID string
	Operation    Operation
	Key          string // empty where the header is optional and absent
	RequestHash  string // SHA-256 of the canonical request
	UploadID     string // of the upload whose file name the answer shows, where it does: a withdrawal takes the name out
	Render       func(result any) (Answer, error)
}

// Answer is a successful answer: an HTTP status and the envelope's data as JSON. Replayed tells one given before.
type Answer struct {
	Status   int
	Data     json.RawMessage
	Replayed bool
}

// Match fails with idempotency_conflict where the key was used for another request than this one.
func (i Idempotency) Match(requestHash string) error {
	if requestHash != i.RequestHash {
		return Errorf(CodeIdempotencyConflict, "this Idempotency-Key was used for a different request; use a new key for a new request")
	}
	return nil
}

// Answers is where answers are kept; ErrNotFound where a key is fresh.
type Answers interface {
	Answered(ctx context.Context, i Idempotency) (requestHash string, a Answer, err error)
}

// Replay returns the answer given under the key before; found is false where there is none. Error: idempotency_conflict.
func (i Idempotency) Replay(ctx context.Context, kept Answers) (a Answer, found bool, err error) {
	if i.Key == "" {
		return Answer{}, false, nil
	}
	requestHash, a, err := kept.Answered(ctx, i)
	if errors.Is(err, ErrNotFound) {
		return Answer{}, false, nil
	}
	if err == nil {
		err = i.Match(requestHash)
	}
	if err != nil {
		return Answer{}, false, err
	}
	return a, true, nil
}

// AnswerKeeper is a transaction that keeps answers; ErrTaken where another request had the key first.
type AnswerKeeper interface {
	KeepAnswer(ctx context.Context, i Idempotency, a Answer) error
}

// Answering is a store that repeats answers, and keeps them in the transaction of their effect.
type Answering[T AnswerKeeper] interface {
	Answers
	InTx(ctx context.Context, fn func(T) error) error
}

// Once carries out change and keeps its answer in the same transaction. Where the same request was faster meanwhile, that one's
// answer is returned. Like InTx it may run change again. Look first whether there is an answer already (Replay).
func Once[T AnswerKeeper](ctx context.Context, s Answering[T], i Idempotency, change func(T) (result any, err error)) (a Answer, err error) {
	err = s.InTx(ctx, func(tx T) error {
		result, err := change(tx)
		if err != nil {
			return err
		}
		if a, err = i.Render(result); err != nil {
			return err
		}
		return tx.KeepAnswer(ctx, i, a)
	})
	if errors.Is(err, ErrTaken) {
		a, _, err = i.Replay(ctx, s)
	}
	if err != nil {
		return Answer{}, err
	}
	return a, nil
}

// InProgress is the answer while the first request with a key still runs.
func InProgress() *Error {
	e := Errorf(CodeIdempotencyInProgress, "the first request with this Idempotency-Key is still running; repeat it shortly")
	e.RetryAfter = time.Second
	return e
}

// WithoutFilename empties the member filename of an answer's data, an object; every other byte stays.
func WithoutFilename(data []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("the kept answer is no object") // the cause could quote it
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, errors.New("the kept answer is no object")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errors.New("the kept answer is no object")
		}
		if name == "filename" {
			end := d.InputOffset()
			return slices.Concat(data[:end-int64(len(value))], []byte(`""`), data[end:]), nil
		}
	}
	return data, nil
}
