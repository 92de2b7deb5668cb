package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqlstore"
)

func metadataQuotaRace(t *testing.T, in *Installation) {
	in.organization(t, "acme", 10*64+63) // the rest is too small for one more
	var reserved, refused atomic.Int64
	var group sync.WaitGroup
	for range 40 {
		group.Go(func() {
			u := newUpload("acme", 64)
			err := in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
				if err := tx.ReserveQuota(t.Context(), "acme", u.SizeBytes); err != nil {
					return err
				}
				return tx.InsertUpload(t.Context(), &u, custody.Cause{})
			})
			switch {
			case err == nil:
				reserved.Add(1)
			case errors.Is(err, custody.ErrQuota):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if reserved.Load() != 10 || refused.Load() != 30 {
		t.Errorf("%d reserved, %d refused; want 10 and 30", reserved.Load(), refused.Load())
	}
	if q, want := in.quota(t, "acme"), (custody.Quota{OrgID: "acme", AllowanceBytes: 703, ReservedBytes: 640, UploadCount: 10}); q != want {
		t.Errorf("quota is %+v, want %+v", q, want)
	}
	in.must(t, func(tx *sqlstore.Tx) error { return tx.ReserveQuota(t.Context(), "acme", 63) }) // to the last byte
	if q := in.quota(t, "acme"); q.AvailableBytes() != 0 {
		t.Errorf("%d bytes available, want 0", q.AvailableBytes())
	}
}

func metadataQuotaPaths(t *testing.T, in *Installation) {
	const size = 64
	received := []custody.Trigger{custody.TriggerPartAccepted}
	processing := []custody.Trigger{custody.TriggerPartAccepted, custody.TriggerCompleted}
	withdrawal := []custody.Trigger{custody.TriggerWithdrawal, custody.TriggerDeletionConfirmed}
	path := func(some ...any) (all []custody.Trigger) {
		for _, s := range some {
			switch s := s.(type) {
			case custody.Trigger:
				all = append(all, s)
			case []custody.Trigger:
				all = append(all, s...)
			}
		}
		return all
	}
	for name, triggers := range map[string][]custody.Trigger{
		"lapsed when initiated":       path(custody.TriggerReservationLapsed),
		"lapsed when receiving":       path(received, custody.TriggerReservationLapsed),
		"withdrawn when initiated":    path(withdrawal),
		"withdrawn when receiving":    path(received, withdrawal),
		"withdrawn when processing":   path(processing, custody.TriggerGateChanged, withdrawal),
		"withdrawn when ready":        path(processing, custody.TriggerGatesPassed, withdrawal),
		"withdrawn when rejected":     path(processing, custody.TriggerContentRejected, withdrawal),
		"withdrawn when failed":       path(processing, custody.TriggerGateExhausted, withdrawal),
		"withdrawn when resumed":      path(processing, custody.TriggerGateExhausted, custody.TriggerResumed, withdrawal),
		"withdrawn after it lapsed":   path(received, custody.TriggerReservationLapsed, withdrawal),
		"withdrawn, lapsed initiated": path(custody.TriggerReservationLapsed, withdrawal),
	} {
		org := custody.NewID("org")
		u := in.reserved(t, org, size)
		other := in.insert(t, newUpload(org, 1000)) // must not be touched
		if q := in.quota(t, org); q.ReservedBytes != 1000+size || q.UsedBytes != 0 || q.UploadCount != 2 {
			t.Errorf("%s: after the reservation %+v", name, q)
		}
		freed := int64(0)
		for _, trigger := range triggers {
			freed += in.move(t, &u, trigger)
			kept, q := in.read(t, u), in.quota(t, org)
			if kept.ReservedBytes != u.ReservedBytes || kept.UsedBytes != u.UsedBytes {
				t.Errorf("%s, %s: in hand %d reserved, %d used; kept %d, %d", name, trigger, u.ReservedBytes, u.UsedBytes, kept.ReservedBytes, kept.UsedBytes)
			}
			if q.ReservedBytes != 1000+kept.ReservedBytes || q.UsedBytes != kept.UsedBytes || kept.ReservedBytes+kept.UsedBytes+freed != size {
				t.Errorf("%s, %s: the organization has %+v, the upload %d reserved and %d used, freed %d", name, trigger, q, kept.ReservedBytes, kept.UsedBytes, freed)
			}
			if trigger == custody.TriggerCompleted && (kept.UsedBytes != size || kept.ReservedBytes != 0) {
				t.Errorf("%s: complete left %d used, %d reserved", name, kept.UsedBytes, kept.ReservedBytes)
			}
		}
		if freed != size {
			t.Errorf("%s: %d bytes freed, want %d", name, freed, size)
		}
		if q := in.quota(t, org); q.ReservedBytes != 1000 || q.UsedBytes != 0 || q.UploadCount != 1 {
			t.Errorf("%s: in the end %+v", name, q)
		}
		in.move(t, &other, withdrawal...)
		if q := in.quota(t, org); q.ReservedBytes != 0 || q.UsedBytes != 0 || q.UploadCount != 0 {
			t.Errorf("%s: an empty organization has %+v", name, q)
		}
	}
}

func metadataQuotaFloor(t *testing.T, in *Installation) {
	u := in.reserved(t, "acme", 64)
	stale := u
	in.must(t, func(tx *sqlstore.Tx) error {
		_, err := tx.FreeQuota(t.Context(), &u)
		return err
	})
	for what, again := range map[string]func(*sqlstore.Tx) error{
		"FreeQuota": func(tx *sqlstore.Tx) error { u := stale; _, err := tx.FreeQuota(t.Context(), &u); return err },
		"UseQuota":  func(tx *sqlstore.Tx) error { u := stale; return tx.UseQuota(t.Context(), &u) },
	} {
		if in.Store.InTx(t.Context(), again) == nil {
			t.Errorf("%s gave back what was given back before", what)
		}
	}
	if q := in.quota(t, "acme"); q.ReservedBytes != 0 || q.UsedBytes != 0 || q.UploadCount != 0 {
		t.Errorf("quota is %+v, want nothing held", q)
	}
}

func metadataIdempotency(t *testing.T, in *Installation) {
	in.organization(t, "acme", 1<<20)
	key := custody.Idempotency{CredentialID: "cred_1", Operation: custody.OpInitiateUpload, Key: "k-12345678", RequestHash: "hash"}
	_, _, err := in.Store.Answered(t.Context(), key)
	wantErr(t, "a fresh key", err, custody.ErrNotFound)
	var winner atomic.Pointer[string]
	var taken atomic.Int64
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			u := newUpload("acme", 64)
			err := in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
				if err := tx.ReserveQuota(t.Context(), "acme", u.SizeBytes); err != nil {
					return err
				}
				if err := tx.InsertUpload(t.Context(), &u, custody.Cause{}); err != nil {
					return err
				}
				return tx.KeepAnswer(t.Context(), key, custody.Answer{Status: 200, Data: json.RawMessage(fmt.Sprintf(`{"upload_id": %q}`, u.ID))})
			})
			switch {
			case err == nil && !winner.CompareAndSwap(nil, &u.ID):
				t.Error("the key was fresh twice")
			case errors.Is(err, custody.ErrTaken):
				taken.Add(1)
				_, err := in.Store.Upload(t.Context(), "acme", u.ID)
				wantErr(t, "the effect of a request that lost", err, custody.ErrNotFound)
			case err != nil:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if winner.Load() == nil || taken.Load() != 15 {
		t.Fatalf("winner %v, %d taken; want one and 15", winner.Load(), taken.Load())
	}
	if q := in.quota(t, "acme"); q.UploadCount != 1 || q.ReservedBytes != 64 {
		t.Errorf("quota is %+v, want one upload of 64 bytes", q)
	}
	hash, a, err := in.Store.Answered(t.Context(), key)
	if want := fmt.Sprintf(`{"upload_id": %q}`, *winner.Load()); err != nil || hash != "hash" || a.Status != 200 || string(a.Data) != want || !a.Replayed {
		t.Errorf("answered %q, %+v, %v; want %s byte for byte", hash, a, err, want)
	}
}

func metadataIdempotencyScope(t *testing.T, in *Installation) {
	key := custody.Idempotency{CredentialID: "cred_1", Operation: custody.OpInitiateUpload, Key: "k-12345678", RequestHash: "hash"}
	keep := func(i custody.Idempotency) error {
		return in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
			return tx.KeepAnswer(t.Context(), i, custody.Answer{Status: 200, Data: json.RawMessage(answerOf(i))})
		})
	}
	otherCredential, otherOperation, otherKey, otherRequest, none := key, key, key, key, key
	otherCredential.CredentialID = "cred_2"
	otherOperation.Operation = custody.OpCompleteUpload
	otherKey.Key = "K-12345678"
	otherRequest.RequestHash = "another hash"
	none.Key = ""
	scopes := map[string]custody.Idempotency{
		"key": key, "key of another credential": otherCredential, "key of another operation": otherOperation, "key in capitals": otherKey,
	}
	for what, i := range scopes {
		if err := keep(i); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, i := range scopes {
		if _, a, err := in.Store.Answered(t.Context(), i); err != nil || string(a.Data) != answerOf(i) {
			t.Errorf("%s: answered %s, %v; want %s", what, a.Data, err, answerOf(i))
		}
	}
	wantErr(t, "the key again", keep(key), custody.ErrTaken)
	wantErr(t, "the key for another request", keep(otherRequest), custody.ErrTaken)
	for range 2 { // nothing to remember it by
		if err := keep(none); err != nil {
			t.Errorf("no key: %v", err)
		}
	}
	_, _, err := in.Store.Answered(t.Context(), none)
	wantErr(t, "no key", err, custody.ErrNotFound)

	in.must(t, func(tx *sqlstore.Tx) error { return tx.ForgetAnswers(t.Context(), custody.Now().Add(-time.Hour)) })
	if _, _, err := in.Store.Answered(t.Context(), key); err != nil {
		t.Errorf("a young answer was forgotten: %v", err)
	}
	in.must(t, func(tx *sqlstore.Tx) error { return tx.ForgetAnswers(t.Context(), custody.Now().Add(time.Hour)) })
	_, _, err = in.Store.Answered(t.Context(), key)
	wantErr(t, "an old answer", err, custody.ErrNotFound)
}

func answerOf(i custody.Idempotency) string {
	return fmt.Sprintf(`[%q, %q, %q]`, i.CredentialID, i.Operation, i.Key)
}
