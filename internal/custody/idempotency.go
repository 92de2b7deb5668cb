package custody

import (
	"context"
	"encoding/json"
	"errors"
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

// InProgress is the answer while the first request with a key still runs.
func InProgress() *Error {
	e := Errorf(CodeIdempotencyInProgress, "the first request with this Idempotency-Key is still running; repeat it shortly")
	e.RetryAfter = time.Second
	return e
}
