package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
	"github.com/accession/accession/internal/sqlstore"
)

// words are the statuses and triggers of the table.
func words() (statuses []custody.Status, triggers []custody.Trigger) {
	for _, row := range custody.Transitions {
		if !slices.Contains(statuses, row.To) {
			statuses = append(statuses, row.To)
		}
		if !slices.Contains(triggers, row.Trigger) {
			triggers = append(triggers, row.Trigger)
		}
	}
	return statuses, triggers
}

// Every (from, trigger, to) there is, against the engine's own CHECK: listed ones are accepted, all others refused.
func metadataLifecycle(t *testing.T, in *Installation) {
	u := in.reserved(t, "acme", 64)
	statuses, triggers := words()
	statuses = append(statuses, "", "ARCHIVED")
	triggers = append(triggers, "", "stolen")
	takeBack := errors.New("take back")
	accepted := 0
	for _, from := range statuses {
		for _, trigger := range triggers {
			for _, to := range statuses {
				err := in.DB.InTx(t.Context(), func(q sqldb.Querier) error {
					if _, err := q.Exec(t.Context(), `INSERT INTO status_events (event_id, upload_id, org_id, sequence, from_status, cause, status, stage, gate_state, occurred_at, credential_id, request_id, trace_id)
						VALUES ('evt_try', $1, 'acme', 1000, $2, $3, $4, '', '', 1, '', '', '')`, u.ID, from, trigger, to); err != nil {
						return err
					}
					return takeBack
				})
				listed := slices.Contains(custody.Transitions, custody.Transition{From: from, Trigger: trigger, To: to})
				if got := errors.Is(err, takeBack); got != listed {
					t.Errorf("%q %s %q: accepted by the database %v, listed %v (%v)", from, trigger, to, got, listed, err)
				} else if got {
					accepted++
				}
			}
		}
	}
	if accepted != len(custody.Transitions) {
		t.Errorf("the database accepts %d changes, the table has %d", accepted, len(custody.Transitions))
	}
	for _, status := range statuses {
		known := status != "" && status != "ARCHIVED"
		err := in.DB.InTx(t.Context(), func(q sqldb.Querier) error {
			if _, err := q.Exec(t.Context(), `UPDATE uploads SET status = $1, due_at = 0 WHERE upload_id = $2`, status, u.ID); err != nil {
				return err
			}
			return takeBack
		})
		if errors.Is(err, takeBack) != known {
			t.Errorf("status %q: %v", status, err)
		}
	}
}

func metadataUnlisted(t *testing.T, in *Installation) {
	u := in.reserved(t, "acme", 64)
	before := in.read(t, u)
	for _, trigger := range []custody.Trigger{custody.TriggerReserved, custody.TriggerCompleted, custody.TriggerGatesPassed, custody.TriggerDeletionConfirmed, "stolen"} {
		u := u
		if in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error { return tx.Transition(t.Context(), &u, custody.Change{Trigger: trigger}) }) == nil {
			t.Errorf("%s took an INITIATED upload to %s", trigger, u.Status)
		}
	}
	stale, lying := u, u
	stale.Sequence = 7
	lying.Status = custody.StatusReady
	for _, u := range []custody.Upload{stale, lying} {
		err := in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
			return tx.Transition(t.Context(), &u, custody.Change{Trigger: custody.TriggerWithdrawal})
		})
		wantErr(t, "a change of what is no longer so", err, custody.ErrConflict)
	}
	if after := in.read(t, u); after.Sequence != before.Sequence || after.Status != before.Status {
		t.Errorf("a refused change left %s, sequence %d", after.Status, after.Sequence)
	}
	if events, err := in.Store.Events(t.Context(), u.ID, 0); err != nil || len(events) != 1 {
		t.Errorf("refused changes left %d events, %v", len(events), err)
	}
}

func metadataSequence(t *testing.T, in *Installation) {
	u := in.reserved(t, "acme", 64)
	in.move(t, &u, custody.TriggerPartAccepted, custody.TriggerCompleted)
	const rounds = 10
	for range rounds {
		var winners atomic.Int64
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				u := u // all eight have read the same
				err := in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
					return tx.Transition(t.Context(), &u, custody.Change{
						Trigger: custody.TriggerGateChanged, Stage: custody.GateExtraction, GateState: custody.GateRunning, Cause: cause(fmt.Sprint(i)),
					})
				})
				if err == nil {
					winners.Add(1)
				} else if !errors.Is(err, custody.ErrConflict) {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if winners.Load() != 1 {
			t.Fatalf("%d of 8 changes won", winners.Load())
		}
		u = in.read(t, u)
	}
	events, err := in.Store.Events(t.Context(), u.ID, 0)
	if err != nil || len(events) != 3+rounds || u.Sequence != int64(len(events)) {
		t.Fatalf("%d events, %v; the upload is at %d", len(events), err, u.Sequence)
	}
	for i, e := range events {
		if e.Sequence != int64(i+1) {
			t.Errorf("event %d has sequence %d", i+1, e.Sequence)
		}
		if i > 0 && e.From != events[i-1].Status {
			t.Errorf("event %d comes from %s, the one before left %s", i+1, e.From, events[i-1].Status)
		}
	}
	if last := events[len(events)-1]; last.Stage != custody.GateExtraction || last.GateState != custody.GateRunning || last.Cause.TraceID == "" {
		t.Errorf("the last event is %+v", last)
	}
	if after, err := in.Store.Events(t.Context(), u.ID, 5); err != nil || len(after) != len(events)-5 || after[0] != events[5] {
		t.Errorf("events after 5 begin with %+v, %v", after, err)
	}
}

func metadataFailure(t *testing.T, in *Installation) {
	u := in.reserved(t, "acme", 64)
	in.move(t, &u, custody.TriggerPartAccepted, custody.TriggerCompleted, custody.TriggerGateExhausted)
	want := custody.Failure{Gate: custody.GateExtraction, Code: "extractor_unavailable", Message: "No answer."}
	if kept := in.read(t, u); kept.Failure == nil || *kept.Failure != want || u.Failure == nil || *u.Failure != want {
		t.Errorf("failure is %+v, want %+v", kept.Failure, want)
	}
	resumed := in.read(t, u)
	in.move(t, &resumed, custody.TriggerResumed)
	if kept := in.read(t, u); kept.Failure != nil || resumed.Failure != nil || kept.Status != custody.StatusProcessing {
		t.Errorf("a resumed upload is %s with failure %+v, in hand %+v", kept.Status, kept.Failure, resumed.Failure)
	}
	in.move(t, &resumed, custody.TriggerContentRejected, custody.TriggerWithdrawal)
	if kept := in.read(t, u); kept.Failure == nil || kept.Failure.Code != "malware_found" {
		t.Errorf("the withdrawal forgot why the upload was rejected: %+v", kept.Failure)
	}
}

func metadataEvidence(t *testing.T, in *Installation) {
	u := in.reserved(t, "acme", 64)
	in.must(t, func(tx *sqlstore.Tx) error {
		return tx.AppendRecord(t.Context(), newRecord("acme", u.ID, "req_1"))
	})
	for _, statement := range []string{
		`UPDATE status_events SET status = 'READY'`,
		`UPDATE status_events SET occurred_at = occurred_at`,
		`DELETE FROM status_events`,
		`UPDATE audit_lines SET detail = 'nothing happened'`,
		`DELETE FROM audit_lines WHERE org_id = 'acme'`,
		`UPDATE request_records SET bytes = bytes + 1`,
		`DELETE FROM request_records`,
	} {
		if err := in.Exec(t.Context(), statement); err == nil {
			t.Errorf("accepted: %s", statement)
		}
	}
	for table, want := range map[string]int{"status_events": 1, "audit_lines": 1, "request_records": 1} {
		var n int
		if err := in.DB.Row(t.Context(), `SELECT COUNT(*) FROM `+table, nil, &n); err != nil || n != want {
			t.Errorf("%s has %d rows, %v; want %d", table, n, err, want)
		}
	}
}

// A worker deletes what has lapsed by the database's clock. Whoever completes an upload may have another clock: were it accepted, its bytes
// would be gone.
func metadataLapsed(t *testing.T, in *Installation) {
	u := in.reserved(t, "acme", 64)
	in.move(t, &u, custody.TriggerPartAccepted)
	if err := in.Exec(t.Context(), fmt.Sprintf(`UPDATE uploads SET expires_at = %d`, custody.Now().Add(-time.Minute).UnixMilli())); err != nil {
		t.Fatal(err)
	}
	err := in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
		if err := tx.UseQuota(t.Context(), &u); err != nil {
			return err
		}
		return tx.Transition(t.Context(), &u, custody.Change{Trigger: custody.TriggerCompleted})
	})
	if !errors.Is(err, custody.ErrConflict) {
		t.Errorf("completed after it had lapsed: %v", err)
	}
	if got := in.read(t, u); got.Status != custody.StatusReceiving || got.ReservedBytes != 64 || got.UsedBytes != 0 {
		t.Errorf("it is %s, with %d bytes reserved and %d used", got.Status, got.ReservedBytes, got.UsedBytes)
	}
}

// The status says who acts next; a worker's lane shows the row as due exactly then.
func metadataDue(t *testing.T, in *Installation) {
	future, past := custody.Now().Add(time.Hour), custody.Now().Add(-time.Hour)
	receiving := []custody.Trigger{custody.TriggerPartAccepted}
	processing := append(slices.Clone(receiving), custody.TriggerCompleted)
	then := func(more ...custody.Trigger) []custody.Trigger { return append(slices.Clone(processing), more...) }
	for _, c := range []struct {
		name             string
		expires          time.Time
		triggers         []custody.Trigger
		gates, deletions bool
	}{
		{"initiated", future, nil, false, false},
		{"initiated, lapsed", past, nil, false, true},
		{"receiving", future, receiving, false, false},
		{"receiving, lapsed", past, receiving, false, true},
		{"processing", past, processing, true, false},
		{"ready", past, then(custody.TriggerGateChanged, custody.TriggerGatesPassed), false, false},
		{"rejected", past, then(custody.TriggerContentRejected), false, false},
		{"rejected when ready", past, then(custody.TriggerGatesPassed, custody.TriggerRescanRefused), false, false},
		{"failed", past, then(custody.TriggerGateExhausted), false, false},
		{"resumed", past, then(custody.TriggerGateExhausted, custody.TriggerResumed), true, false},
		{"expired", past, []custody.Trigger{custody.TriggerReservationLapsed}, false, false},
		{"withdrawing", future, []custody.Trigger{custody.TriggerWithdrawal}, false, true},
		{"withdrawing when ready", future, then(custody.TriggerGatesPassed, custody.TriggerWithdrawal), false, true},
		{"withdrawn", past, []custody.Trigger{custody.TriggerWithdrawal, custody.TriggerDeletionConfirmed}, false, false},
	} {
		in.organization(t, "acme", 1<<40)
		u := newUpload("acme", 64)
		completed := slices.Contains(c.triggers, custody.TriggerCompleted)
		if u.ExpiresAt = c.expires; completed { // before it lapses
			u.ExpiresAt = future
		}
		u = in.insert(t, u)
		in.move(t, &u, c.triggers...)
		if completed {
			if err := in.Exec(t.Context(), fmt.Sprintf(`UPDATE uploads SET expires_at = %d WHERE upload_id = '%s'`, c.expires.UnixMilli(), u.ID)); err != nil {
				t.Fatal(err)
			}
		}
		for _, lane := range []struct {
			statuses custody.Lane
			want     bool
		}{{custody.LaneGates, c.gates}, {custody.LaneDeletions, c.deletions}} {
			due, err := in.Store.Due(t.Context(), lane.statuses)
			if err != nil || due != lane.want {
				t.Errorf("%s: due in lane %v: %v, %v; want %v", c.name, lane.statuses, due, err, lane.want)
			}
			in.must(t, func(tx *sqlstore.Tx) error {
				claims, err := tx.ClaimDue(t.Context(), lane.statuses, 10)
				if (len(claims) == 1 && claims[0].Upload.ID == u.ID) != lane.want || len(claims) > 1 {
					t.Errorf("%s: lane %v gave %d claims", c.name, lane.statuses, len(claims))
				}
				return err
			})
		}
		if err := in.Exec(t.Context(), `UPDATE uploads SET due_at = 0`); err != nil { // the next case has the lanes to itself
			t.Fatal(err)
		}
	}
}
