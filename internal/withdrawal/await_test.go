package withdrawal

import (
	"context"
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
