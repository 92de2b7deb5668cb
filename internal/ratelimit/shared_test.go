package ratelimit

import (
	"context"
	"errors"
	"testing"
	"time"
)

// ledger answers what a store would that replicas share.
type ledger struct {
	limited bool
	ahead   time.Duration
	err     error
	asked   string
}

func (l *ledger) TakeRate(_ context.Context, who string, interval time.Duration, burst int) (bool, time.Duration, error) {
	l.asked = who
	if interval != 500*time.Millisecond || burst != 3 {
		return false, 0, errors.New("asked for another rate")
	}
	return l.limited, l.ahead, l.err
}

// The figures are those that counting in memory shows.
func TestSharedFigures(t *testing.T) {
	store := &ledger{}
	l, err := New(Config{Rates: Rates{Read: {2, 3}}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		limited bool
		ahead   time.Duration
		want    Verdict
	}{
		{false, 500 * time.Millisecond, Verdict{false, 3, 2, 500 * time.Millisecond, 0}},
		{false, 1500 * time.Millisecond, Verdict{false, 3, 0, 1500 * time.Millisecond, 0}},
		{true, 1500 * time.Millisecond, Verdict{true, 3, 0, 1500 * time.Millisecond, 500 * time.Millisecond}},
		{true, 1100 * time.Millisecond, Verdict{true, 3, 0, 1100 * time.Millisecond, 100 * time.Millisecond}},
	} {
		store.limited, store.ahead = c.limited, c.ahead
		if got, limits, err := l.Take(t.Context(), Read, "a"); err != nil || !limits || got != c.want {
			t.Errorf("%s ahead: %+v, %v, %v; want %+v", c.ahead, got, limits, err, c.want)
		}
	}
	if store.asked != "read a" {
		t.Errorf("counted for %q", store.asked)
	}
	store.err = errors.New("away")
	if _, _, err := l.Take(t.Context(), Read, "a"); !errors.Is(err, store.err) {
		t.Errorf("without a store: %v", err)
	}
}
