package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqlstore"
)

func metadataSessions(t *testing.T, in *Installation) {
	now := custody.Now()
	company := custody.Seat{Role: custody.RoleSolutionCompanyUpload, CredentialID: "cred_1", OrgID: "acme", CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	house := custody.Seat{Role: custody.AdminSeat, CredentialID: custody.AdminCredentialID, AdminProof: "proof", CreatedAt: now.Add(-time.Minute), ExpiresAt: now.Add(time.Minute)}
	in.must(t, func(tx *sqlstore.Tx) error {
		return errors.Join(tx.InsertSeat(t.Context(), "one", company), tx.InsertSeat(t.Context(), "one", house), tx.InsertSeat(t.Context(), "two", company))
	})
	if err := in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error { return tx.InsertSeat(t.Context(), "one", company) }); err == nil {
		t.Error("a session has two seats of one role")
	}
	want := func(what, session string, at time.Time, want ...custody.Seat) {
		t.Helper()
		got, err := in.Store.Seats(t.Context(), session, at)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%s: %+v, %v", what, got, err)
		}
		for i, seat := range got {
			w := want[i]
			if seat.Role != w.Role || seat.CredentialID != w.CredentialID || seat.OrgID != w.OrgID || seat.AdminProof != w.AdminProof ||
				!seat.CreatedAt.Equal(w.CreatedAt) || !seat.ExpiresAt.Equal(w.ExpiresAt) {
				t.Errorf("%s: %+v, want %+v", what, seat, w)
			}
		}
	}
	want("two seats, oldest first", "one", now, house, company)
	want("one has expired", "one", house.ExpiresAt, company)
	want("nobody's", "none", now)
	var taken []custody.Seat
	in.must(t, func(tx *sqlstore.Tx) (err error) {
		taken, err = tx.TakeSeats(t.Context(), "one", house.ExpiresAt)
		return err
	})
	if len(taken) != 1 || taken[0].Role != company.Role {
		t.Errorf("taken: %+v", taken)
	}
	want("taken", "one", now)
	want("another's stays", "two", now, company)
	in.must(t, func(tx *sqlstore.Tx) error {
		return tx.ForgetSessions(t.Context(), company.ExpiresAt.Add(-time.Millisecond))
	})
	want("not yet", "two", now, company)
	in.must(t, func(tx *sqlstore.Tx) error { return tx.ForgetSessions(t.Context(), company.ExpiresAt) })
	want("forgotten", "two", now)
}
