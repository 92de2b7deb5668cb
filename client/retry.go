package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Retry repeats what failed for a passing reason ([Retryable]), with delays that double and are spread at random, and never
// sooner than the service's Retry-After. The zero value makes 8 attempts over about a minute.
type Retry struct {
	// Attempts in all, the first included; 0 means 8. One attempt means no retry.
	Attempts int
	// First delay and the longest one, both before spreading; 0 means 500 ms and 30 s.
	First, Longest time.Duration
	// Patience is the longest Retry-After to sit out; a longer one ends the work with the service's error. 0 means 2 minutes.
	Patience time.Duration
	// Notify, if set, is told of each failure before the wait.
	Notify func(err error, wait time.Duration)

	sleep func(context.Context, time.Duration) error // tests only
}

// Do runs attempt until it succeeds, fails for good, the attempts are used up or ctx ends. It returns the last error.
func (r Retry) Do(ctx context.Context, attempt func(context.Context) error) error {
	inside := context.WithValue(ctx, retryKey{}, true)
	for failed := 0; ; {
		err := attempt(inside)
		if err == nil || ctx.Err() != nil || !Retryable(err) {
			return err
		}
		if failed++; failed >= or(r.Attempts, 8) {
			return err
		}
		wait := r.delay(failed)
		var refusal *Error
		if errors.As(err, &refusal) && refusal.RetryAfter > 0 {
			if refusal.RetryAfter > or(r.Patience, 2*time.Minute) {
				return err
			}
			wait = max(wait, refusal.RetryAfter)
		}
		if r.Notify != nil {
			r.Notify(err, wait)
		}
		if err := r.pause(ctx, wait); err != nil {
			return err
		}
	}
}

// retryKey marks the context of an attempt, so that a client with WithRetry does not repeat it by itself.
type retryKey struct{}

func insideRetry(ctx context.Context) bool { return ctx.Value(retryKey{}) != nil }

// delay is between half and the whole of First·2ⁿ, at most Longest.
func (r Retry) delay(failed int) time.Duration {
	whole := or(r.First, 500*time.Millisecond)
	longest := or(r.Longest, 30*time.Second)
	for range failed - 1 {
		whole = min(2*whole, longest)
	}
	whole = min(whole, longest)
	return whole/2 + rand.N(whole/2+1)
}

func (r Retry) pause(ctx context.Context, wait time.Duration) error {
	if r.sleep != nil {
		return r.sleep(ctx, wait)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}
