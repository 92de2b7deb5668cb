package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqlstore"
)

// Ready makes a READY upload of one part of 64 bytes, with six gates, that these signatures passed.
func (in *Installation) Ready(t *testing.T, orgID, scannedWith string) custody.Upload {
	t.Helper()
	u := in.reserved(t, orgID, 64)
	in.move(t, &u, custody.TriggerPartAccepted, custody.TriggerCompleted)
	in.must(t, func(tx *sqlstore.Tx) error {
		return tx.SetGate(t.Context(), u.ID, custody.GateResult{Name: custody.GateMalwareScan, State: custody.GatePassed,
			StartedAt: custody.Now(), FinishedAt: custody.Now(), ScannedWith: scannedWith})
	})
	in.move(t, &u, custody.TriggerGatesPassed)
	return u
}

func (in *Installation) queueRescans(t *testing.T, scope custody.RescanScope, after string, limit int) (queued int, last string) {
	t.Helper()
	in.must(t, func(tx *sqlstore.Tx) (err error) {
		queued, last, err = tx.QueueRescans(t.Context(), scope, after, limit)
		return err
	})
	return queued, last
}

func (in *Installation) queueOutdated(t *testing.T, scannedWith string, limit int) (queued int64) {
	t.Helper()
	in.must(t, func(tx *sqlstore.Tx) (err error) {
		queued, err = tx.QueueOutdated(t.Context(), scannedWith, limit)
		return err
	})
	return queued
}

func (in *Installation) wantRescans(t *testing.T, scope custody.RescanScope, since time.Time, want custody.RescanState) {
	t.Helper()
	if got, err := in.Store.RescanState(t.Context(), scope, since); err != nil || got != want {
		t.Errorf("re-scans are %+v, %v; want %+v", got, err, want)
	}
}

func metadataRescanLane(t *testing.T, in *Installation) {
	began := custody.Now()
	u := in.Ready(t, "acme", "old")
	in.wantRescans(t, custody.RescanScope{}, began, custody.RescanState{})
	if n, last := in.queueRescans(t, custody.RescanScope{}, "", 10); n != 1 || last != u.ID {
		t.Fatalf("%d uploads queued, the last is %s", n, last)
	}
	for _, lane := range []custody.Lane{custody.LaneGates, custody.LaneDeletions} {
		if claims := in.claim(t, lane, 10); len(claims) != 0 {
			t.Errorf("a re-scan is in lane %v", lane)
		}
	}
	c := in.claimOne(t, custody.LaneRescans, u)
	in.wantRescans(t, custody.RescanScope{}, began, custody.RescanState{Waiting: 1})
	if n, _ := in.queueRescans(t, custody.RescanScope{}, "", 10); n != 0 {
		t.Error("what is being scanned was queued again")
	}
	in.must(t, func(tx *sqlstore.Tx) error { return tx.Postpone(t.Context(), c, time.Hour) })
	in.wantRescans(t, custody.RescanScope{}, began, custody.RescanState{Waiting: 1, Unanswered: 1})
	if kept := in.read(t, u); kept.Status != custody.StatusReady || kept.Sequence != u.Sequence {
		t.Errorf("without an answer the upload is %s, sequence %d", kept.Status, kept.Sequence)
	}
	if n, _ := in.queueRescans(t, custody.RescanScope{}, "", 10); n != 1 {
		t.Error("a request does not make what waits due at once")
	}
	c = in.claimOne(t, custody.LaneRescans, u)
	if c.Attempt != 1 {
		t.Errorf("attempt %d after a new request, want 1", c.Attempt)
	}
	in.must(t, func(tx *sqlstore.Tx) error { return tx.FinishRescan(t.Context(), c, "new", custody.Now()) })
	in.wantRescans(t, custody.RescanScope{}, began, custody.RescanState{Clean: 1})
	in.wantRescans(t, custody.RescanScope{}, custody.Now().Add(time.Minute), custody.RescanState{})
	if kept := in.read(t, u); kept.Sequence != u.Sequence || len(in.claim(t, custody.LaneRescans, 10)) != 0 {
		t.Errorf("a clean upload has sequence %d, before %d, or is still due", kept.Sequence, u.Sequence)
	}
	if n := in.queueOutdated(t, "new", 10); n != 0 {
		t.Error("what the newest signatures passed was queued")
	}

	in.queueRescans(t, custody.RescanScope{}, "", 10)
	c = in.claimOne(t, custody.LaneRescans, u)
	in.move(t, &u, custody.TriggerWithdrawal)
	for call, err := range in.holds(t, c) {
		wantErr(t, call+" after the withdrawal", err, custody.ErrLeaseLost)
	}
	wantErr(t, "clean after the withdrawal", in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
		return tx.FinishRescan(t.Context(), c, "new", custody.Now())
	}), custody.ErrLeaseLost)
	wantErr(t, "refused after the withdrawal", in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
		return tx.Transition(t.Context(), &c.Upload, custody.Change{Trigger: custody.TriggerRescanRefused})
	}), custody.ErrConflict)
	in.must(t, func(tx *sqlstore.Tx) error { return tx.Release(t.Context(), c) })
	in.claimOne(t, custody.LaneDeletions, u)
}

func metadataRescanRefused(t *testing.T, in *Installation) {
	began := custody.Now()
	u := in.Ready(t, "acme", "old")
	in.must(t, func(tx *sqlstore.Tx) error {
		return tx.PutArtifact(t.Context(), custody.Artifact{UploadID: u.ID, Name: "context", ObjectKey: "k"})
	})
	in.queueRescans(t, custody.RescanScope{}, "", 10)
	in.claimOne(t, custody.LaneRescans, u)
	in.must(t, func(tx *sqlstore.Tx) error { return tx.DropArtifacts(t.Context(), u.ID) })
	in.move(t, &u, custody.TriggerRescanRefused)
	if kept := in.read(t, u); kept.Status != custody.StatusRejected || kept.Failure == nil || kept.Failure.Code != "malware_found" {
		t.Errorf("refused, and it is %s for %+v", kept.Status, kept.Failure)
	}
	_, err := in.Store.Artifact(t.Context(), u.ID, "context")
	wantErr(t, "its context", err, custody.ErrNotFound)
	if parts, err := in.Store.Parts(t.Context(), u.ID); err != nil || len(parts) != 1 {
		t.Errorf("it has %d parts, %v", len(parts), err)
	}
	events, err := in.Store.Events(t.Context(), u.ID, 0)
	if err != nil || len(events) == 0 {
		t.Fatal(len(events), err)
	}
	if last := events[len(events)-1]; last.From != custody.StatusReady || last.Status != custody.StatusRejected ||
		last.Stage != custody.GateMalwareScan || last.GateState != custody.GateRejected || last.Sequence != int64(len(events)) {
		t.Errorf("the last event is %+v", last)
	}
	in.wantRescans(t, custody.RescanScope{UploadID: u.ID}, began, custody.RescanState{Found: 1})
	if err := in.Exec(t.Context(), `UPDATE uploads SET failure_code = 'content_unscannable'`); err != nil {
		t.Fatal(err)
	}
	in.wantRescans(t, custody.RescanScope{}, began, custody.RescanState{Unreadable: 1})
	if n, _ := in.queueRescans(t, custody.RescanScope{}, "", 10); n != 0 || in.queueOutdated(t, "new", 10) != 0 {
		t.Error("a rejected upload was queued")
	}
}

func metadataRescanScope(t *testing.T, in *Installation) {
	var mine []string
	for range 5 {
		mine = append(mine, in.Ready(t, "acme", "old").ID)
	}
	other := in.Ready(t, "island", "old")
	in.Processing(t)
	slices.Sort(mine)
	n, last := in.queueRescans(t, custody.RescanScope{OrgID: "acme"}, "", 3)
	if n != 3 || last != mine[2] {
		t.Errorf("the first batch is %d uploads to %s, want 3 to %s", n, last, mine[2])
	}
	if n, last = in.queueRescans(t, custody.RescanScope{OrgID: "acme"}, last, 3); n != 2 || last != mine[4] {
		t.Errorf("the second batch is %d uploads to %s, want 2 to %s", n, last, mine[4])
	}
	began := custody.Now()
	in.wantRescans(t, custody.RescanScope{OrgID: "acme"}, began, custody.RescanState{Waiting: 5})
	in.wantRescans(t, custody.RescanScope{OrgID: "island"}, began, custody.RescanState{})
	for _, scope := range []custody.RescanScope{{OrgID: "acme", UploadID: other.ID}, {UploadID: "upl_none"}, {OrgID: `' OR '1'='1`}} {
		if n, _ := in.queueRescans(t, scope, "", 10); n != 0 {
			t.Errorf("%+v queued %d uploads", scope, n)
		}
	}
	if n, last := in.queueRescans(t, custody.RescanScope{UploadID: other.ID}, "", 10); n != 1 || last != other.ID {
		t.Errorf("one upload by name queued %d, %s", n, last)
	}
	in.wantRescans(t, custody.RescanScope{}, began, custody.RescanState{Waiting: 6})
}

func metadataRescanOutdated(t *testing.T, in *Installation) {
	for _, scannedWith := range []string{"a", "b", "b", "c", ""} {
		in.Ready(t, "acme", scannedWith)
	}
	for i, want := range []int64{2, 1, 0} {
		if n := in.queueOutdated(t, "b", 2); n != want {
			t.Errorf("batch %d queued %d uploads, want %d", i+1, n, want)
		}
	}
	if claims := in.claim(t, custody.LaneRescans, 10); len(claims) != 3 {
		t.Errorf("%d uploads are due, want those of a, c and nobody", len(claims))
	}
}
