package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqlstore"
)

func metadataRetention(t *testing.T, in *Installation) {
	_, err := in.Store.Retention(t.Context(), "acme")
	wantErr(t, "the retention of nobody", err, custody.ErrNotFound)
	err = in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
		return tx.SetRetention(t.Context(), custody.Retention{OrgID: "acme", Days: 1})
	})
	wantErr(t, "a retention for nobody", err, custody.ErrConflict)
	set := func(orgID string, days int) {
		t.Helper()
		r := custody.Retention{OrgID: orgID, Days: days}
		in.must(t, func(tx *sqlstore.Tx) error { return tx.SetRetention(t.Context(), r) })
		if got, err := in.Store.Retention(t.Context(), orgID); err != nil || got != r {
			t.Fatalf("retention is %+v, %v", got, err)
		}
	}
	ended := func(limit int, want ...string) {
		t.Helper()
		found, err := in.Store.RetentionEnded(t.Context(), limit)
		var ids []string
		for _, e := range found {
			ids = append(ids, e.UploadID)
			if r, err := in.Store.EndedRetention(t.Context(), e.UploadID); err != nil || r.OrgID != e.OrgID || r.Days == 0 {
				t.Errorf("%+v: %+v, %v", e, r, err)
			}
		}
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("ended are %v, %v; want %v", ids, err, want)
		}
	}
	aged := func(orgID string, age time.Duration, triggers ...custody.Trigger) string {
		t.Helper()
		in.organization(t, orgID, 1<<40)
		u := newUpload(orgID, 64)
		u.CreatedAt = custody.Now().Add(-age)
		u = in.insert(t, u)
		in.move(t, &u, triggers...)
		return u.ID
	}
	const day = 24 * time.Hour
	old := aged("acme", 10*day, custody.TriggerPartAccepted, custody.TriggerCompleted, custody.TriggerGatesPassed)
	young := aged("acme", 2*day)
	lapsed := aged("acme", 5*day, custody.TriggerReservationLapsed)
	aged("acme", 20*day, custody.TriggerWithdrawal)
	aged("acme", 30*day, custody.TriggerWithdrawal, custody.TriggerDeletionConfirmed)
	other := aged("island", 40*day)
	if got, err := in.Store.Retention(t.Context(), "acme"); err != nil || got.Days != 0 {
		t.Errorf("a new organization's retention is %+v, %v", got, err)
	}
	ended(10)
	set("acme", 10)
	ended(10, old)
	set("acme", 1)
	ended(10, old, lapsed, young)
	ended(2, old, lapsed)
	set("island", 40)
	ended(10, other, old, lapsed, young)
	set("acme", 0)
	ended(10, other)
	set("island", 41)
	ended(10)
	_, err = in.Store.EndedRetention(t.Context(), other)
	wantErr(t, "an end that a setting took back", err, custody.ErrNotFound)
	for _, days := range []int{-1, custody.MaxRetentionDays + 1} {
		if err := in.Exec(t.Context(), fmt.Sprintf(`UPDATE organizations SET retention_days = %d`, days)); err == nil {
			t.Errorf("%d days were taken", days)
		}
	}
}

func metadataForgottenNames(t *testing.T, in *Installation) {
	kept, gone := in.reserved(t, "acme", 64), in.reserved(t, "acme", 64)
	answers := map[string]custody.Idempotency{}
	for name, u := range map[string]custody.Upload{"kept": kept, "gone": gone} {
		i := custody.Idempotency{CredentialID: "cred_1", Operation: custody.OpCustomerUpload, Key: "key-of-" + name, RequestHash: "hash", UploadID: u.ID}
		answers[name] = i
		in.must(t, func(tx *sqlstore.Tx) error {
			return tx.KeepAnswer(t.Context(), i, custody.Answer{Status: 201, Data: json.RawMessage(`{"upload_id":"` + u.ID + `","filename":"Gr\u00f6\u00dfe.txt","status":"READY"}`)})
		})
	}
	in.must(t, func(tx *sqlstore.Tx) error { return tx.ForgetNames(t.Context(), gone.ID, gone.Consent) })
	for name, want := range map[string]string{
		"kept": `{"upload_id":"` + kept.ID + `","filename":"Gr\u00f6\u00dfe.txt","status":"READY"}`, "gone": `{"upload_id":"` + gone.ID + `","filename":"","status":"READY"}`,
	} {
		if hash, a, err := in.Store.Answered(t.Context(), answers[name]); err != nil || hash != "hash" || a.Status != 201 || string(a.Data) != want {
			t.Errorf("%s: %d %s, %v; want %s", name, a.Status, a.Data, err, want)
		}
	}
	if u := in.read(t, gone); u.Filename != "" || u.Notes != "" || u.MaterialType != "" || u.Consent.ConsentingEmail != "" || u.Consent.ConsentingUserID != "" || u.Consent.AgreementVersion == "" {
		t.Errorf("left: %+v", u)
	}
	if u := in.read(t, kept); u.Filename == "" || u.Consent.ConsentingEmail == "" {
		t.Errorf("the other upload: %+v", u)
	}
}
