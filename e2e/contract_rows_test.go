package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// row is one row of the contract, in our own words. (testdata/contract/rows.json)
type row struct {
	ID  string `json:"id"` // table or section, and the row in it
	Row string `json:"row"`
}

func (r row) section() string { section, _, _ := strings.Cut(r.ID, " "); return section }

// proof fails its test unless the row holds for the running service.
type proof func(t *testing.T, w witness)

// proofs of rows by id.
type proofs map[string]proof

// rowsPerSection holds the row list to the contract: a row cannot go missing together with its proof.
var rowsPerSection = map[string]int{
	"2.1": 3, "2.2": 5, "2.3": 8, "2.4": 9, "2.5": 6, "2.6": 6, "2.7": 13, "3": 7, "4.1": 7, "4.2": 5, "4.3": 2, "4.4": 5,
	"4.5": 3, "4.6": 11, "4.7": 2, "5": 10, "6": 13, "7": 7, "8": 14, "9": 6,
}

// contractRows reads the row list.
func contractRows(t *testing.T) (rows []row) {
	t.Helper()
	file, err := os.Open("testdata/contract/rows.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	list := json.NewDecoder(file)
	list.DisallowUnknownFields()
	if err := list.Decode(&rows); err != nil {
		t.Fatal(err)
	}
	found, seen := map[string]int{}, map[string]bool{}
	for _, r := range rows {
		if seen[r.ID] || r.Row == "" {
			t.Errorf("row %q stands twice, or says nothing", r.ID)
		}
		seen[r.ID] = true
		found[r.section()]++
	}
	if !maps.Equal(found, rowsPerSection) {
		t.Errorf("rows per section: %v, want %v", found, rowsPerSection)
	}
	return rows
}

// contractProofs joins the proofs.
func contractProofs(t *testing.T) proofs {
	t.Helper()
	all := proofs{}
	for _, some := range []proofs{
		envelopeProofs, errorProofs, consentProofs, submissionProofs, uploadRecordProofs, partnerAnswerProofs, resourceProofs, stateProofs,
		discoveryProofs, sandboxProofs, tokenProofs, issueProofs, customerProofs, partnerProofs, readingProofs,
		authenticationProofs, callbackProofs, statusProofs, limitProofs, versionProofs,
	} {
		for id, p := range some {
			if all[id] != nil {
				t.Errorf("%q has two proofs", id)
			}
			all[id] = p
		}
	}
	return all
}

// Every row of the contract has its proof on the running service, and every proof its row.
func TestContract(t *testing.T) {
	t.Parallel()
	rows := contractRows(t)
	all := contractProofs(t)
	w := summon(t)
	for _, r := range rows {
		if all[r.ID] == nil {
			t.Errorf("%q has no test", r.ID)
			continue
		}
		t.Run(r.ID, func(t *testing.T) {
			t.Log(r.Row)
			defer func() { // an answer of another form fails its row alone
				if p := recover(); p != nil {
					t.Errorf("%v\n%s", p, debug.Stack())
				}
			}()
			all[r.ID](t, w.in(t))
		})
		delete(all, r.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		t.Errorf("the test of %q proves no row", id)
	}
}
