package storetest

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqlstore"
)

const (
	hookConcurrency = 4
	hookTrips       = 3
)

// Hook gives an organization a webhook.
func (in *Installation) Hook(t *testing.T, orgID string) custody.Webhook {
	t.Helper()
	now := custody.Now()
	w := custody.Webhook{OrgID: orgID, EndpointID: custody.NewID("whe"), URL: "https://hooks.example/", State: custody.WebhookActive, SecretID: custody.NewID("key"), CreatedAt: now, UpdatedAt: now}
	in.must(t, func(tx *sqlstore.Tx) error {
		if err := tx.EnsureOrganization(t.Context(), orgID, 1<<30); err != nil {
			return err
		}
		return tx.PutWebhook(t.Context(), w)
	})
	return w
}

func (in *Installation) carry(t *testing.T, orgID, lease string, limit int) (claims []custody.Delivery) {
	t.Helper()
	in.must(t, func(tx *sqlstore.Tx) (err error) {
		_, claims, err = tx.ClaimDeliveries(t.Context(), orgID, lease, limit, hookConcurrency, hookTrips)
		return err
	})
	return claims
}

func (in *Installation) finish(t *testing.T, d custody.Delivery, r custody.DeliveryResult) {
	t.Helper()
	r.At, r.Pause = custody.Now(), func(failures int) time.Duration {
		if failures < hookTrips {
			return 0
		}
		return time.Hour
	}
	in.must(t, func(tx *sqlstore.Tx) error { return tx.FinishDelivery(t.Context(), d, r) })
}

var (
	taken  = custody.DeliveryResult{DeliveryAttempt: custody.DeliveryAttempt{Outcome: custody.DeliveryAccepted, Status: 202, Latency: 7 * time.Millisecond}, State: custody.DeliveryDelivered}
	failed = custody.DeliveryResult{DeliveryAttempt: custody.DeliveryAttempt{Outcome: custody.DeliveryTimeout}, State: custody.DeliveryPending, Failed: true}
)

// Events are queued with the change they tell of, and only where somebody listens; those of an upload go one after the other.
func metadataOutbox(t *testing.T, in *Installation) {
	unheard := in.reserved(t, "acme", 64)
	in.Hook(t, "acme")
	if claims := in.carry(t, "acme", "l1", 9); len(claims) != 0 {
		t.Errorf("%d events from before the webhook are queued", len(claims))
	}
	a, b, other := in.reserved(t, "acme", 64), in.reserved(t, "acme", 64), in.reserved(t, "beta", 64)
	in.move(t, &a, custody.TriggerPartAccepted, custody.TriggerCompleted)
	in.move(t, &other, custody.TriggerPartAccepted)
	due, err := in.Store.DueWebhooks(t.Context())
	if err != nil || !slices.Equal(due, []string{"acme"}) {
		t.Errorf("due are %v, %v", due, err)
	}
	for sequence := int64(1); sequence <= 3; sequence++ {
		claims := in.carry(t, "acme", "l1", 9)
		want := 1
		if sequence == 1 {
			want = 2 // one of b, too
		}
		if len(claims) != want {
			t.Fatalf("%d deliveries at once, want %d", len(claims), want)
		}
		if again := in.carry(t, "acme", "l2", 9); len(again) != 0 {
			t.Errorf("%d deliveries are claimed twice, or before their turn", len(again))
		}
		for _, d := range claims {
			if d.UploadID != a.ID && d.UploadID != b.ID || d.UploadID == a.ID && (d.Event.Sequence != sequence || d.Event.ID != d.EventID || d.Event.Cause.TraceID == "") || d.Attempt != 1 {
				t.Errorf("claimed %+v", d)
			}
			in.finish(t, d, taken)
		}
	}
	list, next, err := in.Store.Deliveries(t.Context(), custody.DeliveryQuery{OrgID: "acme", State: custody.DeliveryDelivered, Limit: 3})
	if err != nil || len(list) != 3 || next != list[2].EventID || list[0].EventID < list[1].EventID || len(list[0].Attempts) != 1 || list[0].Attempts[0].Status != 202 {
		t.Errorf("the log is %+v, then %q, %v", list, next, err)
	}
	if list, next, err = in.Store.Deliveries(t.Context(), custody.DeliveryQuery{OrgID: "acme", Before: next, Limit: 3}); err != nil || len(list) != 1 || next != "" {
		t.Errorf("the rest of the log is %+v, then %q, %v", list, next, err)
	}
	err = in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error { return tx.FinishDelivery(t.Context(), list[0], taken) })
	wantErr(t, "finishing what is not held", err, custody.ErrLeaseLost)

	// Asked for, an upload's events come from the first one on.
	in.must(t, func(tx *sqlstore.Tx) error {
		n, err := tx.ReplayDeliveries(t.Context(), custody.WebhookReplay{OrgID: "acme", UploadID: unheard.ID})
		if n != 1 {
			t.Errorf("%d events of an upload from before are queued", n)
		}
		return err
	})
	// What could not be made is given back untried, for later.
	for _, delay := range []time.Duration{0, time.Hour} {
		claims := in.carry(t, "acme", "l1", 9)
		if len(claims) != 1 || claims[0].UploadID != unheard.ID || claims[0].Event.Sequence != 1 || claims[0].Attempt != 1 {
			t.Fatalf("claimed %+v", claims)
		}
		in.must(t, func(tx *sqlstore.Tx) error { return tx.ReleaseDelivery(t.Context(), claims[0], delay) })
	}
	if due, err := in.Store.DueWebhooks(t.Context()); err != nil || len(due) != 0 {
		t.Errorf("what was given back for an hour is due: %v, %v", due, err)
	}
	in.must(t, func(tx *sqlstore.Tx) error {
		discarded, err := tx.DeleteWebhook(t.Context(), "acme")
		if discarded != 1 {
			t.Errorf("%d deliveries are discarded", discarded)
		}
		return err
	})
	in.move(t, &b, custody.TriggerPartAccepted) // to nobody
	_, err = in.Store.Webhook(t.Context(), "acme")
	wantErr(t, "a deleted webhook", err, custody.ErrNotFound)
}

// Whoever claims at the same time, no delivery has two carriers and no endpoint more than it may.
func metadataOutboxRace(t *testing.T, in *Installation) {
	in.Hook(t, "acme")
	for range 12 {
		in.reserved(t, "acme", 64)
	}
	var mu sync.Mutex
	var working sync.WaitGroup
	claimed := map[string]int{}
	for _, lease := range []string{"l1", "l2", "l3", "l4", "l5", "l6", "l7", "l8"} {
		working.Go(func() {
			claims := in.carry(t, "acme", lease, 3)
			mu.Lock()
			defer mu.Unlock()
			for _, d := range claims {
				claimed[d.EventID]++
			}
		})
	}
	working.Wait()
	if len(claimed) != hookConcurrency {
		t.Errorf("%d deliveries are under way, want %d", len(claimed), hookConcurrency)
	}
	for id, n := range claimed {
		if n != 1 {
			t.Errorf("%s has %d carriers", id, n)
		}
	}
	in.must(t, func(tx *sqlstore.Tx) error { return tx.ReleaseDeliveries(t.Context()) })
	if claims := in.carry(t, "acme", "l9", 99); len(claims) != hookConcurrency || claims[0].Attempt != 2 {
		t.Errorf("after the carriers died: %+v", claims)
	}
}

// An endpoint that fails is left alone; one delivery probes it, and then all go on.
func metadataCircuit(t *testing.T, in *Installation) {
	in.Hook(t, "acme")
	for range 5 {
		in.reserved(t, "acme", 64)
	}
	claims := in.carry(t, "acme", "l1", 3)
	for _, d := range claims {
		r := failed
		r.Delay = 24 * time.Hour
		in.finish(t, d, r)
	}
	w, err := in.Store.Webhook(t.Context(), "acme")
	if err != nil || w.Failures != 3 || !w.RetryAt.After(custody.Now()) {
		t.Errorf("after three failures: %+v, %v", w, err)
	}
	if due, err := in.Store.DueWebhooks(t.Context()); err != nil || len(due) != 0 || len(in.carry(t, "acme", "l1", 9)) != 0 {
		t.Errorf("an open circuit is due: %v, %v", due, err)
	}
	if err := in.Exec(t.Context(), `UPDATE webhook_endpoints SET retry_at = 1`); err != nil {
		t.Fatal(err)
	}
	probe := in.carry(t, "acme", "l1", 9)
	if len(probe) != 1 || len(in.carry(t, "acme", "l2", 9)) != 0 {
		t.Fatalf("%d probes", len(probe))
	}
	in.finish(t, probe[0], taken)
	if claims := in.carry(t, "acme", "l1", 9); len(claims) != 4 {
		t.Errorf("%d deliveries go on, want all four: none waits out its delay", len(claims))
	}
}

// What nobody takes is given up, shown, and can be had again; what was delivered is forgotten in time.
func metadataDead(t *testing.T, in *Installation) {
	in.Hook(t, "acme")
	in.reserved(t, "acme", 64)
	in.reserved(t, "acme", 64)
	claims := in.carry(t, "acme", "l1", 1)
	r := failed
	r.Delay = time.Hour
	in.finish(t, claims[0], r)
	expire := func(before time.Time) (n int64) {
		in.must(t, func(tx *sqlstore.Tx) (err error) {
			n, err = tx.ExpireDeliveries(t.Context(), before)
			return err
		})
		return n
	}
	if n := expire(custody.Now().Add(-time.Hour)); n != 0 {
		t.Errorf("%d are given up before their time", n)
	}
	if n := expire(custody.Now().Add(time.Hour)); n != 2 { // the endpoint failed, so the untried one goes too
		t.Errorf("%d are given up, want 2", n)
	}
	hooks, _, err := in.Store.Webhooks(t.Context(), custody.WebhookQuery{Limit: 9})
	if err != nil || len(hooks) != 1 || hooks[0].Dead != 2 || hooks[0].Pending != 0 {
		t.Errorf("webhooks are %+v, %v", hooks, err)
	}
	replay := func(q custody.WebhookReplay) (n int64) {
		in.must(t, func(tx *sqlstore.Tx) (err error) {
			n, err = tx.ReplayDeliveries(t.Context(), q)
			return err
		})
		return n
	}
	if n := replay(custody.WebhookReplay{OrgID: "beta"}); n != 0 {
		t.Errorf("%d of somebody else's are replayed", n)
	}
	if n := replay(custody.WebhookReplay{OrgID: "acme", EventID: claims[0].EventID}); n != 1 {
		t.Errorf("%d replayed, want the one", n)
	}
	if n := replay(custody.WebhookReplay{OrgID: "acme"}); n != 1 {
		t.Errorf("%d replayed, want the other", n)
	}
	for _, d := range in.carry(t, "acme", "l1", 9) {
		if d.Attempt != 1 {
			t.Errorf("a replayed delivery counts from %d", d.Attempt)
		}
		in.finish(t, d, taken)
	}
	prune := func(before time.Time, keep int) {
		in.must(t, func(tx *sqlstore.Tx) error { return tx.PruneDeliveries(t.Context(), before, before, keep) })
	}
	kept := func() int {
		list, _, err := in.Store.Deliveries(t.Context(), custody.DeliveryQuery{OrgID: "acme", Limit: 9})
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	prune(custody.Now().Add(-time.Hour), 2)
	if n := kept(); n != 2 {
		t.Errorf("%d are kept of what is new", n)
	}
	if prune(custody.Now().Add(-time.Hour), 1); kept() > 2 || kept() < 1 {
		t.Errorf("%d are kept of many", kept())
	}
	prune(custody.Now().Add(time.Hour), 9)
	if n := kept(); n != 0 {
		t.Errorf("%d are kept of what is old", n)
	}
}

// A change that takes a served context back is followed by a recall; one of what nobody was served is not.
func metadataContextRecalled(t *testing.T, in *Installation) {
	in.Hook(t, "acme")
	served, refused, unserved := in.Ready(t, "acme", "clamav 1"), in.Ready(t, "acme", "clamav 1"), in.Ready(t, "acme", "clamav 1")
	for _, u := range []custody.Upload{served, refused, served} {
		in.must(t, func(tx *sqlstore.Tx) error { return tx.AppendRecord(t.Context(), newRecord("acme", u.ID, "req_1")) })
	}
	in.move(t, &served, custody.TriggerWithdrawal)
	in.move(t, &refused, custody.TriggerRescanRefused)
	for then := time.Now().UnixMilli(); time.Now().UnixMilli() <= then; { // the log has no order within a millisecond
	}
	in.move(t, &refused, custody.TriggerWithdrawal)
	in.move(t, &unserved, custody.TriggerWithdrawal)
	for u, want := range map[string][]string{served.ID: {custody.RecallWithdrawn}, refused.ID: {custody.RecallRejected, custody.RecallWithdrawn}, unserved.ID: nil} {
		list, _, err := in.Store.Deliveries(t.Context(), custody.DeliveryQuery{OrgID: "acme", UploadID: u, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		var reasons []string
		for _, d := range slices.Backward(list) {
			var recall custody.ContextRecall
			if d.Kind != custody.EventContextRecalled {
				continue
			}
			if err := json.Unmarshal(d.Payload, &recall); err != nil || recall.EventID != d.EventID || recall.Servings == 0 || len(recall.CredentialIDs) != 1 || len(recall.ContextSHA256s) != 1 {
				t.Errorf("recall %s, %v", d.Payload, err)
			}
			reasons = append(reasons, recall.Reason)
		}
		if !slices.Equal(reasons, want) {
			t.Errorf("recalled as %v, want %v", reasons, want)
		}
	}
}
