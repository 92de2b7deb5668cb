package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

const (
	faultRuns     = 24               // jobs at once: most of their time they wait to try again
	integrityEnd  = "20s"            // for what a store has lost; every other gate only has to try again, for as long as that takes
	faultPatience = 10 * time.Minute // no job needs as long
)

// faultsOf are what can go wrong with each call of a store; see internal/blobstore/misbehave_on.go.
var faultsOf = map[string][]string{
	"create": {"error", "full"}, "write": {"error", "full"}, "commit": {"error", "doubt", "vanish"}, "delete": {"error", "doubt", "pretend"},
	"open": {"error", "missing"}, "read": {"error", "flip", "short"}, "list": {"error", "omit"},
}

// storeCall is one call of a storage backend in an upload's life.
type storeCall struct {
	store, call, fault string // what went wrong, "" for nothing
}

// misled is one job on storage that fails or lies at one of its calls.
type misled struct {
	partner
	faults, reader string
	content        []byte
	id             string
}

// TestStorageThatFailsOrLies does the main job once for every call to storage and every way in which that call can go wrong, and
// for calls that fail until somebody mends the storage. What was acknowledged is there or the upload says that it is not; nobody
// is served anything but the document; withdrawal is confirmed when everything is gone, and not before.
func TestStorageThatFailsOrLies(t *testing.T) {
	armed := misbehavingBinary(t)
	faults := t.TempDir()
	sites := map[bool]*service{} // by whether a store loses what it took
	partners, readers := map[bool]partner{}, map[bool]string{}
	for loses, deadlines := range map[bool][]string{false: nil, true: {"--gate-deadlines", "integrity=" + integrityEnd}} {
		s := start(t, options{
			binary: armed, env: []string{"ACCESSION_STORE_FAULTS=" + faults}, flags: append([]string{"--part-size-bytes", "4096", "--rate-limits", "off"}, deadlines...),
		})
		sites[loses], partners[loses], readers[loses] = s, s.partner("harbour"), s.issue("harbour", "ai_reader")
	}
	job := func(t *testing.T, plan string) *misled {
		loses := strings.HasSuffix(plan, " vanish")
		content := make([]byte, 0, 6000)
		for n := 1; len(content) < 5500; n++ {
			content = fmt.Appendf(content, "Berth %d of the harbour was inspected on day %d and found in order. ", n, n*7%365)
		}
		j := &misled{partner: partners[loses].in(t), faults: faults, reader: readers[loses], content: content}
		j.id = j.initiate("berths.txt", "text/plain", len(content))
		if plan != "" {
			if err := os.WriteFile(filepath.Join(faults, j.id), []byte(plan), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return j
	}
	var golden string
	var calls []storeCall
	t.Run("undisturbed", func(t *testing.T) {
		j := job(t, "")
		golden = j.run("", "")
		if calls = j.calls(); len(calls) < 40 || golden == "" {
			t.Fatalf("%d calls, context %q", len(calls), golden)
		}
	})
	var plans []string
	first, nth := map[storeCall]bool{}, map[storeCall]int{}
	for _, c := range calls {
		nth[c]++
		call := fmt.Sprintf("%s %s %d", c.store, c.call, nth[c])
		for _, fault := range faultsOf[c.call] {
			plans = append(plans, call+" "+fault)
			if lasting := (storeCall{c.store, c.call, fault}); (fault == "error" || fault == "pretend") && !first[lasting] {
				first[lasting] = true
				plans = append(plans, call+"+ "+fault)
			}
		}
	}
	var (
		runs sync.WaitGroup
		next atomic.Int64
		mu   sync.Mutex
		seen = map[storeCall]int{}
	)
	for range faultRuns {
		runs.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(plans) {
					return
				}
				t.Run(plans[n], func(t *testing.T) {
					j := job(t, plans[n])
					j.run(plans[n], golden)
					mu.Lock()
					defer mu.Unlock()
					for _, c := range j.calls() {
						if c.fault != "" {
							seen[c]++
						}
					}
				})
			}
		})
	}
	runs.Wait()
	for _, c := range calls { // every call went wrong in every way, somewhere
		for _, fault := range faultsOf[c.call] {
			if c.fault = fault; seen[c] == 0 && !t.Failed() {
				t.Errorf("%+v never happened", c)
			}
		}
	}
	for _, s := range sites {
		s.wantNoObjects()
		s.kill()
		if n := count(t, (&site{o: options{data: s.data}}).database(t, "keys.db"), `SELECT COUNT(*) FROM data_keys`); n != 0 {
			t.Errorf("%d data keys outlived their receipts", n)
		}
	}
	t.Logf("an undisturbed job makes %d calls; %d jobs with faults, %d kinds of them", len(calls), len(plans), len(seen))
}

// calls are the calls to storage about the upload so far.
func (j *misled) calls() (calls []storeCall) {
	j.t.Helper()
	for line := range strings.Lines(string(readFile(j.t, filepath.Join(j.faults, j.id+".calls")))) {
		fields := append(strings.Fields(line), "")
		calls = append(calls, storeCall{fields[0], fields[1], fields[3]})
	}
	return calls
}

// mend takes the fault away.
func (j *misled) mend() {
	j.t.Helper()
	if err := os.Remove(filepath.Join(j.faults, j.id)); err != nil && !os.IsNotExist(err) {
		j.t.Fatal(err)
	}
}

// patiently repeats a request under one key while the service says that it could not do it now; the storage is mended after
// the second refusal.
func (j *misled) patiently(c call) reply {
	j.t.Helper()
	if c.key == "" {
		c.key = client.NewIdempotencyKey()
	}
	var r reply
	for n, began := 1, time.Now(); time.Since(began) < faultPatience; n++ {
		if r = j.do(c); r.Status < 500 {
			return r
		}
		if strings.Contains(string(r.Raw), "injected") || strings.Contains(string(r.Raw), j.data) {
			j.t.Errorf("the refusal tells too much: %s", r.Raw)
		}
		if n == 2 {
			j.mend()
		}
	}
	j.t.Fatalf("it stays refused: %s", r.Raw)
	return r
}

// run does the whole job and returns what readers were served. golden is what they have to be served, where anything is.
func (j *misled) run(plan, golden string) (served string) {
	j.t.Helper()
	parts := cut(j.content, partSize)
	for i, part := range parts {
		j.patiently(j.put(byPath, j.id, i+1, client.NewIdempotencyKey(), part)).want(j.t, 200, "")
	}
	j.patiently(j.closing(byPath, j.id, client.NewIdempotencyKey(), parts)).want(j.t, 202, "")
	lasting := strings.Contains(plan, "+")
	st := j.status(j.id)
	for began := time.Now(); !slices.Contains([]string{"READY", "REJECTED", "FAILED"}, st.Status) && time.Since(began) < faultPatience; {
		st = j.later()
		for _, g := range st.Gates {
			if lasting && g.Detail["last_error"] != nil {
				j.mend()
			}
		}
	}
	fault := plan[strings.LastIndex(plan, " ")+1:]
	switch {
	case st.Status == "READY":
		r := j.patiently(call{method: "GET", path: "/api/v1/organizations/harbour/ai-context/" + j.id, token: j.reader}).want(j.t, 200, "")
		c := decode[servedContext](j.t, r)
		if served = c.text(); golden != "" && served != golden || c.Context.Source.SHA256 != hexSum(j.content) {
			j.t.Errorf("served is not the document: %s", r.Raw)
		}
	case st.Status == "FAILED" && st.Failure.Gate == "integrity" && fault == "vanish": // the store lost an acknowledged part: the upload says so
	case st.Status == "REJECTED" && st.Failure.Code == "stored_bytes_differ" && (fault == "flip" || fault == "short"):
	default:
		j.t.Errorf("%s ends %s: %+v", plan, st.Status, st.Failure)
	}
	if st.Status != "READY" {
		j.do(call{method: "GET", path: "/api/v1/organizations/harbour/ai-context/" + j.id, token: j.reader}).want(j.t, 404, "context_not_ready")
	}

	gone := j.patiently(j.withdrawing(j.id, client.NewIdempotencyKey(), "fault test")).want(j.t, 200, "")
	if gone.field(j.t, "status") != "WITHDRAWN" || gone.field(j.t, "withdrawal_receipt_id") == "" {
		j.t.Errorf("withdrawn: %s", gone.Raw)
	}
	for _, root := range []string{"blobs", "quarantine"} {
		folder := filepath.Join(j.data, root, "uploads", j.id)
		if _, err := os.Stat(folder); err == nil && len(files(j.t, folder)) > 0 {
			j.t.Errorf("%s: confirmed as deleted, and there: %v", plan, files(j.t, folder))
		}
	}
	return served
}

// later reads the status again, after its next event or a second.
func (j *misled) later() status {
	j.t.Helper()
	r := j.do(call{method: "GET", path: j.path("/partner-uploads/" + j.id), token: j.token, header: map[string]string{"Prefer": "wait=1"}})
	return decode[status](j.t, r.want(j.t, 200, ""))
}
