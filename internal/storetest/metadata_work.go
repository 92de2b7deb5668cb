package storetest

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqlstore"
)

func (in *Installation) claim(t *testing.T, lane custody.Lane, limit int) (claims []custody.Claim) {
	t.Helper()
	in.must(t, func(tx *sqlstore.Tx) (err error) {
		claims, err = tx.ClaimDue(t.Context(), lane, limit)
		return err
	})
	return claims
}

// claimOne claims u, which is all that is due.
func (in *Installation) claimOne(t *testing.T, lane custody.Lane, u custody.Upload) custody.Claim {
	t.Helper()
	claims := in.claim(t, lane, 10)
	if len(claims) != 1 || claims[0].Upload.ID != u.ID {
		t.Fatalf("%d claims in lane %v, want the one upload", len(claims), lane)
	}
	return claims[0]
}

// Processing makes an upload of one part of 64 bytes whose gates are due.
func (in *Installation) Processing(t *testing.T) custody.Upload {
	t.Helper()
	u := in.reserved(t, "acme", 64)
	in.move(t, &u, custody.TriggerPartAccepted, custody.TriggerCompleted)
	return u
}

// lapse lets every lease run out, as a worker's death and three seconds do.
func (in *Installation) lapse(t *testing.T) {
	t.Helper()
	if err := in.Exec(t.Context(), `UPDATE uploads SET lease_until = 1 WHERE lease_until > 0`); err != nil {
		t.Fatal(err)
	}
}

// holds are the calls that only the worker who holds an upload may make.
func (in *Installation) holds(t *testing.T, c custody.Claim) map[string]error {
	t.Helper()
	errs := map[string]error{}
	for name, call := range map[string]func(*sqlstore.Tx) error{
		"Heartbeat": func(tx *sqlstore.Tx) error { return tx.Heartbeat(t.Context(), c) },
		"Hold":      func(tx *sqlstore.Tx) error { return tx.Hold(t.Context(), c) },
		"Postpone":  func(tx *sqlstore.Tx) error { return tx.Postpone(t.Context(), c, time.Hour) },
	} {
		errs[name] = in.Store.InTx(t.Context(), call)
	}
	return errs
}

func metadataClaims(t *testing.T, in *Installation) {
	const uploads = 40
	want := map[string]int{}
	for range uploads {
		want[in.Processing(t).ID] = 1
	}
	got, leases := map[string]int{}, map[string]bool{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for {
				var claims []custody.Claim
				if err := in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) (err error) {
					claims, err = tx.ClaimDue(t.Context(), custody.LaneGates, 3)
					return err
				}); err != nil {
					t.Error(err)
					return
				}
				if len(claims) == 0 {
					return
				}
				mu.Lock()
				if leases[claims[0].Lease] {
					t.Errorf("lease %s was given twice", claims[0].Lease)
				}
				leases[claims[0].Lease] = true
				for _, c := range claims {
					got[c.Upload.ID]++
					if c.Attempt != 1 || c.Upload.Status != custody.StatusProcessing || c.Cause != cause("completed") {
						t.Errorf("claim is %+v", c)
					}
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if !maps.Equal(got, want) {
		t.Errorf("%d uploads claimed, some not once: %v", len(got), got)
	}
	if due, err := in.Store.Due(t.Context(), custody.LaneGates); err != nil || due {
		t.Errorf("held work is due: %v, %v", due, err)
	}
}

func metadataClaimOrder(t *testing.T, in *Installation) {
	var order []string
	for i := range 4 {
		u := in.Processing(t)
		order = append(order, u.ID)
		if err := in.Exec(t.Context(), `UPDATE uploads SET due_at = $1 WHERE upload_id = $2`, 1000-i, u.ID); err != nil {
			t.Fatal(err)
		}
	}
	slices.Reverse(order) // the youngest is due longest
	withdrawing := in.reserved(t, "acme", 64)
	in.move(t, &withdrawing, custody.TriggerWithdrawal)
	for _, want := range [][]string{order[:1], order[1:3], order[3:], nil} {
		var got []string
		for _, c := range in.claim(t, custody.LaneGates, 2-len(want)%2) {
			got = append(got, c.Upload.ID)
		}
		slices.Sort(got)
		want = slices.Clone(want)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("claimed %v, want %v", got, want)
		}
	}
	if claims := in.claim(t, custody.LaneDeletions, 0); len(claims) != 0 {
		t.Errorf("limit 0 gave %d claims", len(claims))
	}
	in.claimOne(t, custody.LaneDeletions, withdrawing)
}

func metadataTakeover(t *testing.T, in *Installation) {
	u := in.Processing(t)
	first := in.claimOne(t, custody.LaneGates, u)
	if claims := in.claim(t, custody.LaneGates, 10); len(claims) != 0 {
		t.Fatal("a live lease was taken over")
	}
	in.lapse(t)
	in.must(t, func(tx *sqlstore.Tx) error { return tx.Heartbeat(t.Context(), first) }) // late, but nobody else has it
	if claims := in.claim(t, custody.LaneGates, 10); len(claims) != 0 {
		t.Fatal("a heartbeat did not renew the lease")
	}
	in.lapse(t)
	if due, err := in.Store.Due(t.Context(), custody.LaneGates); err != nil || !due {
		t.Fatalf("an expired lease is not due: %v, %v", due, err)
	}
	second := in.claimOne(t, custody.LaneGates, u)
	if second.Lease == first.Lease || second.Attempt != 2 {
		t.Errorf("taken over with lease %s (before: %s), attempt %d", second.Lease, first.Lease, second.Attempt)
	}
	for call, err := range in.holds(t, first) {
		wantErr(t, call+" after the takeover", err, custody.ErrLeaseLost)
	}
	wantErr(t, "RestartAttempts after the takeover", in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error { return tx.RestartAttempts(t.Context(), first) }), custody.ErrLeaseLost)
	in.must(t, func(tx *sqlstore.Tx) error { return tx.Release(t.Context(), first) }) // must not touch the second's
	if claims := in.claim(t, custody.LaneGates, 10); len(claims) != 0 {
		t.Error("the first worker released the second's lease")
	}
	// A gate's change is the worker's own: it keeps the hold.
	in.must(t, func(tx *sqlstore.Tx) error {
		if err := tx.Hold(t.Context(), second); err != nil {
			return err
		}
		return tx.Transition(t.Context(), &second.Upload, custody.Change{Trigger: custody.TriggerGateChanged, Stage: custody.GateIntegrity, GateState: custody.GatePassed})
	})
	in.must(t, func(tx *sqlstore.Tx) error { return tx.RestartAttempts(t.Context(), second) })
	if claims := in.claim(t, custody.LaneGates, 10); len(claims) != 0 {
		t.Error("a gate's change gave the upload away")
	}
	in.must(t, func(tx *sqlstore.Tx) error { return tx.Heartbeat(t.Context(), second) })
	in.lapse(t)
	if third := in.claimOne(t, custody.LaneGates, u); third.Attempt != 2 {
		t.Errorf("attempt %d after attempts began again, want 2", third.Attempt)
	}
}

func metadataPostpone(t *testing.T, in *Installation) {
	u := in.Processing(t)
	for attempt := 1; attempt <= 3; attempt++ {
		c := in.claimOne(t, custody.LaneGates, u)
		if c.Attempt != attempt {
			t.Errorf("attempt %d, want %d", c.Attempt, attempt)
		}
		in.must(t, func(tx *sqlstore.Tx) error { return tx.Postpone(t.Context(), c, 0) })
		wantErr(t, "a heartbeat after giving back", in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error { return tx.Heartbeat(t.Context(), c) }), custody.ErrLeaseLost)
	}
	c := in.claimOne(t, custody.LaneGates, u)
	in.must(t, func(tx *sqlstore.Tx) error { return tx.Release(t.Context(), c) }) // a stop, not a failure
	c = in.claimOne(t, custody.LaneGates, u)
	if c.Attempt != 4 {
		t.Errorf("a released attempt counts: attempt %d, want 4 again", c.Attempt)
	}
	in.must(t, func(tx *sqlstore.Tx) error { return tx.Postpone(t.Context(), c, time.Hour) })
	in.lapse(t)
	if due, err := in.Store.Due(t.Context(), custody.LaneGates); err != nil || due {
		t.Errorf("postponed by an hour, due now: %v, %v", due, err)
	}
	if claims := in.claim(t, custody.LaneGates, 10); len(claims) != 0 {
		t.Error("postponed work was claimed")
	}
}

func metadataWithdrawalLease(t *testing.T, in *Installation) {
	for _, letGo := range []string{"released", "expired"} {
		u := in.Processing(t)
		worker := in.claimOne(t, custody.LaneGates, u)
		in.move(t, &u, custody.TriggerWithdrawal)
		for call, err := range in.holds(t, worker) {
			wantErr(t, fmt.Sprintf("%s after the withdrawal (%s)", call, letGo), err, custody.ErrLeaseLost)
		}
		err := in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
			return tx.Transition(t.Context(), &worker.Upload, custody.Change{Trigger: custody.TriggerGatesPassed})
		})
		wantErr(t, "READY after the withdrawal", err, custody.ErrConflict)
		for _, lane := range []custody.Lane{custody.LaneGates, custody.LaneDeletions} {
			if claims := in.claim(t, lane, 10); len(claims) != 0 {
				t.Errorf("%s: deletion began beside a running gate", letGo)
			}
		}
		if letGo == "released" {
			in.must(t, func(tx *sqlstore.Tx) error { return tx.Release(t.Context(), worker) })
		} else {
			in.lapse(t)
		}
		c := in.claimOne(t, custody.LaneDeletions, u)
		if c.Attempt != 1 || c.Cause != cause("withdrawal_accepted") || c.Upload.Status != custody.StatusWithdrawing {
			t.Errorf("%s: the deletion is %+v", letGo, c)
		}
		in.must(t, func(tx *sqlstore.Tx) error { return tx.Hold(t.Context(), c) })
		in.move(t, &u, custody.TriggerDeletionConfirmed)
	}
}
