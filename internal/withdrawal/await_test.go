package withdrawal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accession/accession/internal/custody"
)

// elsewhere is metadata in which another process writes the receipt, and nobody passes on that it did.
type elsewhere struct {
	Store
	done time.Time
}

func (e elsewhere) Changed() <-chan struct{} { return nil }

func (e elsewhere) Receipt(context.Context, string) (custody.Receipt, error) {
	if time.Now().Before(e.done) {
		return custody.Receipt{}, custody.ErrNotFound
	}
	return custody.Receipt{ID: "rct_1"}, nil
}

func (e elsewhere) Withdrawing(context.Context, string) (custody.Withdrawing, error) {
	return custody.Withdrawing{}, nil
}

func TestReceiptOfAnotherProcessIsFoundWithoutWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := New(elsewhere{done: begun.Add(2500 * time.Millisecond)}, nil, Config{})
		receipt, err := s.await(t.Context(), "up_1")
		if took := time.Since(begun); err != nil || receipt.ID != "rct_1" || took != 3*time.Second {
			t.Errorf("%+v, %v after %s", receipt, err, took)
		}
		begun = time.Now()
		s = New(elsewhere{done: begun.Add(time.Hour)}, nil, Config{})
		if _, err := s.await(t.Context(), "up_1"); err == nil || time.Since(begun) != patience {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}

// interrupted is a vault under which the process stops, or else a backend that fails.
type interrupted struct{ stop context.CancelFunc }

func (interrupted) Backends() []string { return []string{"staging"} }

func (v interrupted) DestroyNoting(context.Context, string, func([]custody.StoredObject) error) ([]custody.Deletion, error) {
	v.stop()
	return nil, errors.New("stopped in the middle")
}

// counting is metadata that counts transactions; it has none to give.
type counting struct {
	elsewhere
	transactions *int
}

func (c counting) InTx(context.Context, func(Tx) error) error { *c.transactions++; return nil }

// A worker that is interrupted has no backend's answer: whoever waits for the deletion is not told that it failed. One that is not has.
func TestInterruptedDeletionIsNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		interrupted bool
		attempts    int
	}{"interrupted": {true, 0}, "a backend fails": {false, 1}} {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		if !c.interrupted {
			stop = func() {}
		}
		attempts := 0
		s := New(counting{transactions: &attempts}, interrupted{stop}, Config{})
		if err := s.Finish(ctx, custody.Claim{Upload: custody.Upload{ID: "upl_1"}}); err == nil || attempts != c.attempts {
			t.Errorf("%s: %v, %d attempts counted, want %d", name, err, attempts, c.attempts)
		}
	}
}
