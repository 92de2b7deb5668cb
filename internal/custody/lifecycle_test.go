package custody_test

import (
	"slices"
	"testing"

	"github.com/accession/accession/internal/custody"
)

// contractStatuses is the list of the contract decisions, "Statuses, stages, gates".
var contractStatuses = []custody.Status{
	"INITIATED", "RECEIVING", "PROCESSING", "READY", "REJECTED", "FAILED", "EXPIRED", "WITHDRAWING", "WITHDRAWN",
}

func TestEveryStatusIsReachable(t *testing.T) {
	reached := map[custody.Status]bool{}
	for todo := []custody.Status{""}; len(todo) > 0; {
		from := todo[0]
		todo = todo[1:]
		for _, row := range custody.Transitions {
			if row.From == from && !reached[row.To] {
				reached[row.To] = true
				todo = append(todo, row.To)
			}
		}
	}
	for _, s := range contractStatuses {
		if !reached[s] {
			t.Errorf("%s cannot be reached", s)
		}
	}
	if len(reached) != len(contractStatuses) {
		t.Errorf("the table reaches %d statuses, the contract has %d", len(reached), len(contractStatuses))
	}
}

func TestEveryStatusCanBeWithdrawnOnce(t *testing.T) {
	for _, s := range contractStatuses {
		to, ok := custody.Next(s, custody.TriggerWithdrawal)
		if want := s != custody.StatusWithdrawing && s != custody.StatusWithdrawn; ok != want {
			t.Errorf("withdrawal of %s: possible %v, want %v", s, ok, want)
		}
		if ok && to != custody.StatusWithdrawing {
			t.Errorf("withdrawal of %s leads to %s", s, to)
		}
	}
}

func TestNothingLeavesWithdrawn(t *testing.T) {
	for _, row := range custody.Transitions {
		if row.From == custody.StatusWithdrawn {
			t.Errorf("%s leads from WITHDRAWN to %s", row.Trigger, row.To)
		}
		if row.From == custody.StatusWithdrawing && row.To != custody.StatusWithdrawn {
			t.Errorf("%s leads from WITHDRAWING back to %s", row.Trigger, row.To)
		}
	}
}

// One trigger leads from one status to one other: Next finds every row, and nothing else.
func TestNextIsTheTable(t *testing.T) {
	triggers := map[custody.Trigger]bool{}
	for _, row := range custody.Transitions {
		triggers[row.Trigger] = true
		if to, ok := custody.Next(row.From, row.Trigger); !ok || to != row.To {
			t.Errorf("Next(%q, %s) = %q, %v; the table says %s", row.From, row.Trigger, to, ok, row.To)
		}
	}
	found := 0
	for _, from := range append([]custody.Status{""}, contractStatuses...) {
		for trigger := range triggers {
			if _, ok := custody.Next(from, trigger); ok {
				found++
			}
		}
	}
	if found != len(custody.Transitions) {
		t.Errorf("Next knows %d steps, the table has %d rows", found, len(custody.Transitions))
	}
	if _, ok := custody.Next(custody.StatusReady, "stolen"); ok {
		t.Error("an unknown trigger leads somewhere")
	}
}

func TestTerminalStatusesAreTheContracts(t *testing.T) {
	terminal := []custody.Status{"READY", "REJECTED", "FAILED", "EXPIRED", "WITHDRAWN"}
	if !slices.Equal(custody.TerminalStatuses, terminal) {
		t.Errorf("terminal statuses are %v, want %v", custody.TerminalStatuses, terminal)
	}
	for _, s := range contractStatuses {
		if s.Terminal() != slices.Contains(terminal, s) {
			t.Errorf("%s.Terminal() = %v", s, s.Terminal())
		}
	}
}

func TestSixGatesInTheContractsOrder(t *testing.T) {
	want := []custody.GateName{"integrity", "quarantine", "malware_scan", "extraction", "controlled_summary", "ai_context"}
	var got []custody.GateName
	for _, g := range custody.Gates {
		got = append(got, g.Name)
		if g.Attempt <= 0 || g.Attempt >= g.Deadline {
			t.Errorf("gate %s: one attempt (%s) must fit into its deadline (%s) more than once", g.Name, g.Attempt, g.Deadline)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("gates are %v, want %v", got, want)
	}
}

// A worker takes up exactly the statuses whose row waits for one, each in one lane.
func TestLanesCoverTheWork(t *testing.T) {
	lanes := map[custody.Status]int{}
	for _, lane := range []custody.Lane{custody.LaneGates, custody.LaneDeletions} {
		for _, s := range lane {
			lanes[s]++
		}
	}
	for _, s := range contractStatuses {
		want := 1
		if s.Terminal() {
			want = 0
		}
		if lanes[s] != want {
			t.Errorf("%s is in %d lanes, want %d", s, lanes[s], want)
		}
	}
}
