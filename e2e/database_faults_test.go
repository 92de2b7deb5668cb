package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// databaseFaultsOf are what can go wrong with each call of a database; see internal/sqldb/misbehave_on.go. slow comes apart: it takes
// as long as a database may.
var databaseFaultsOf = map[string][]string{
	"begin": {"error"}, "exec": {"error"}, "row": {"error"}, "each": {"error", "cut"}, "commit": {"error", "lost", "doubt"}, "scrub": {"error"},
}

// databaseSeed chooses the same few calls in every run: a failure of one of them is no flake.
const databaseSeed = 20261122

// databaseCall is one call of a database in a job: the n-th of its kind.
type databaseCall struct {
	database, call string
	n              int
	fault          string // what went wrong, "-" for nothing
	what           string // the statement, or who asked
}

func (c databaseCall) plan() string {
	return fmt.Sprintf("%s %s %d %s %s", c.database, c.call, c.n, c.fault, c.what)
}

// faulty is a service that something goes wrong with, or around, while somebody works with it who repeats what is refused.
type faulty struct{ *service }

// faultyDatabase is a service whose databases fail at one call of a job, which it does one after the other.
type faultyDatabase struct {
	faulty
	faults string
	jobs   int
	golden string // what readers of the document have to be served
}

// TestDatabaseThatFails does the service's whole work once for every call to its databases and every way in which that call can go
// wrong. Whoever repeats what was refused comes to the end. What was acknowledged is there, nothing is served without its record or
// after its withdrawal, and nothing is left of quota, keys and objects once reservations have lapsed and the sweeper was there.
// ACCESSION_DATABASE_FAULTS=all takes all calls, and not a few by chance; ACCESSION_TORTURE_SEED chooses others.
func TestDatabaseThatFails(t *testing.T) {
	t.Parallel()
	services, few, slow := 2, 10, 1
	if os.Getenv("ACCESSION_DATABASE_FAULTS") == "all" {
		services, few, slow = 6, 1<<20, 1<<20
	}
	seed := number(t, "ACCESSION_TORTURE_SEED", databaseSeed)
	t.Logf("ACCESSION_TORTURE_SEED=%d", seed)
	var all []*faultyDatabase
	for range services {
		all = append(all, startFaulty(t))
	}
	first := map[string]bool{}
	var plans, slowest []string
	all[0].job(t, "") // makes what a service makes once
	calls := all[0].job(t, "")
	for _, c := range calls {
		for _, c.fault = range databaseFaultsOf[c.call] {
			plans = append(plans, c.plan())
		}
		if kind := c.database + c.call + c.what; !first[kind] {
			first[kind] = true
			c.fault = "slow"
			slowest = append(slowest, c.plan())
		}
	}
	if len(calls) < 100 || t.Failed() {
		t.Fatalf("%d calls", len(calls))
	}
	chance := rand.New(rand.NewPCG(seed, 0))
	possible := len(plans) + len(slowest)
	plans = append(chosen(chance, slowest, slow), chosen(chance, plans, few)...)

	var (
		runs  sync.WaitGroup
		mu    sync.Mutex
		fired = map[string]bool{} // kinds of calls that went wrong
		next  int
		done  int
	)
	for _, d := range all {
		d.golden = all[0].golden
		runs.Go(func() {
			for {
				mu.Lock()
				n := next
				next++
				mu.Unlock()
				if n >= len(plans) {
					return
				}
				t.Run(fmt.Sprintf("%.60s", plans[n]), func(t *testing.T) {
					t.Log(plans[n])
					for _, c := range d.job(t, plans[n]) {
						if c.fault != "-" {
							mu.Lock()
							fired[c.database+c.call+c.fault+c.what] = true
							done++
							mu.Unlock()
						}
					}
				})
			}
		})
	}
	runs.Wait()
	for _, d := range all {
		d.wantNothingLeft(t)
	}
	// A worker may look into the database less often in one job than in another, so not each plan has a call to go wrong.
	if done == 0 {
		t.Errorf("no call went wrong in %d jobs", len(plans))
	}
	if len(plans) == possible && !t.Failed() {
		for _, plan := range plans {
			if words := strings.SplitN(plan, " ", 5); !fired[words[0]+words[1]+words[3]+words[4]] {
				t.Errorf("this never happened: %s", plan)
			}
		}
	}
	t.Logf("an undisturbed job makes %d calls of %d kinds; %d jobs of %d possible ones, %d calls went wrong", len(calls), len(first), len(plans), possible, done)
}

// chosen are n of all, by chance: of each statement the first that comes, as long as there are others.
func chosen(chance *rand.Rand, all []string, n int) (some []string) {
	chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var rest []string
	seen := map[string]bool{}
	for _, plan := range all {
		what := strings.SplitN(plan, " ", 5)[4]
		if seen[what] {
			rest = append(rest, plan)
		} else {
			some = append(some, plan)
		}
		seen[what] = true
	}
	some = append(some, rest...)
	return some[:min(n, len(some))]
}

func startFaulty(t *testing.T) *faultyDatabase {
	d := &faultyDatabase{faults: t.TempDir()}
	d.faulty = faulty{start(t, options{
		binary: misbehavingBinary(t), env: []string{"ACCESSION_DATABASE_FAULTS=" + d.faults},
		flags: []string{"--part-size-bytes", "4096", "--rate-limits", "off"},
	})}
	d.http = &http.Client{Timeout: faultPatience} // whoever waits longer hangs
	return d
}

// insist repeats a request under one key while the service says that it could not do it now.
func (d faulty) insist(t *testing.T, c call) reply {
	t.Helper()
	if c.key == "" && c.method != "GET" {
		c.key = client.NewIdempotencyKey()
	}
	for range 50 {
		r := d.in(t).do(c)
		if r.Status < 500 {
			return r
		}
		if (r.Code != "service_unavailable" && r.Code != "deletion_not_confirmed") || r.Header.Get("Retry-After") == "" {
			t.Errorf("%s %s is refused so: %d %s", c.method, c.path, r.Status, r.Raw)
		}
		if strings.Contains(string(r.Raw), "injected") || strings.Contains(string(r.Raw), d.data) {
			t.Errorf("the refusal tells too much: %s", r.Raw)
		}
	}
	t.Fatalf("%s %s stays refused", c.method, c.path)
	return reply{}
}

// job does all that the service is for, for an organization of its own, and returns the calls that it made.
func (d *faultyDatabase) job(t *testing.T, plan string) (calls []databaseCall) {
	d.jobs++
	id := fmt.Sprint("job-", d.jobs)
	if plan == "" {
		plan = "- - 0 - -"
	}
	path := filepath.Join(d.faults, "plan")
	if err := os.WriteFile(path+".new", []byte(id+" "+plan), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(string(readFile(t, filepath.Join(d.faults, id+".calls")))) {
			var c databaseCall
			fields := append(strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 5), "")
			c.database, c.call, c.fault, c.what = fields[0], fields[1], fields[3], fields[4]
			if _, err := fmt.Sscan(fields[2], &c.n); err != nil {
				t.Error(err)
			}
			calls = append(calls, c)
		}
	}()
	issued := func(role string) reply {
		return d.insist(t, issuing(client.NewIdempotencyKey(), id, role)).want(t, 201, "")
	}
	spare := issued("ai_reader")
	p, reader := partner{d.service, id, issued("solution_company_upload").field(t, "token")}, issued("ai_reader").field(t, "token")
	d.document(t, p, reader)
	d.text(t, p, reader)

	revoke := call{method: "POST", path: "/admin/tenant-keys/credentials/" + spare.field(t, "credential_id") + "/revoke", bearer: adminToken}
	d.insist(t, revoke).want(t, 200, "")
	d.insist(t, call{method: "GET", path: p.path("/quota"), token: spare.field(t, "token")}).want(t, 401, "credential_invalid")
	q := decode[client.Quota](t, d.insist(t, call{method: "GET", path: p.path("/quota"), token: p.token}).want(t, 200, ""))
	if q.UsedBytes != 0 { // what a refused text reserved may stay until it lapses
		t.Errorf("quota: %+v", q)
	}
	return calls
}

// document takes a document of two parts in, serves it and withdraws it.
func (d *faultyDatabase) document(t *testing.T, p partner, reader string) {
	content := make([]byte, 0, 6000)
	for n := 1; len(content) < 5500; n++ {
		content = fmt.Appendf(content, "Berth %d of the harbour was inspected on day %d and found in order. ", n, n*7%365)
	}
	parts := cut(content, partSize)
	reserving := p.reserving(client.NewIdempotencyKey(), len(content))
	reserved := d.insist(t, reserving).want(t, 200, "")
	id := reserved.field(t, "upload_id")
	asking := call{method: "GET", path: p.path("/partner-uploads/" + id), token: p.token, header: map[string]string{"Prefer": "wait=1"}}
	reading := call{method: "GET", path: p.path("/ai-context/" + id), token: reader}
	for i, part := range parts {
		d.insist(t, p.put(byPath, id, i+1, client.NewIdempotencyKey(), part)).want(t, 200, "")
	}
	if st := decode[status](t, d.insist(t, asking).want(t, 200, "")); st.ReceivedBytes != int64(len(content)) || st.Status != "RECEIVING" {
		t.Errorf("after its parts: %+v", st)
	}
	d.insist(t, reading).want(t, 404, "context_not_ready")
	closing := p.closing(byPath, id, client.NewIdempotencyKey(), parts)
	completed := d.insist(t, closing).want(t, 202, "")
	var st status
	for began := time.Now(); !slices.Contains([]string{"READY", "REJECTED", "FAILED"}, st.Status) && time.Since(began) < faultPatience; {
		st = decode[status](t, d.insist(t, asking).want(t, 200, ""))
	}
	if st.Status != "READY" {
		t.Fatalf("no call fails more than once, and it ends %s: %+v", st.Status, st.Failure)
	}
	for _, g := range st.Gates {
		if g.State != "passed" {
			t.Errorf("READY, and gate %s is %s", g.Name, g.State)
		}
	}
	served := d.read(t, p, reader, id)
	if d.golden == "" {
		d.golden = served.text()
	}
	if served.text() != d.golden || served.Context.Source.SHA256 != hexSum(content) {
		t.Errorf("served is not the document: %+v", served)
	}
	sameBut(t, reserved, d.insist(t, reserving)) // the first may be a replay too, of an answer that was in doubt
	sameBut(t, completed, d.insist(t, closing))
	d.withdraw(t, p, reader, id)
}

// text does the same for a customer's text.
func (d *faultyDatabase) text(t *testing.T, p partner, reader string) {
	content := string(note("slow-ferry"))
	submitting := p.submitting(client.NewIdempotencyKey(), text(content, nil))
	accepted := d.insist(t, submitting).want(t, 201, "")
	id := accepted.field(t, "upload_id")
	if served := d.read(t, p, reader, id); accepted.field(t, "status") != "READY" || !strings.Contains(served.text(), "slow-ferry") {
		t.Errorf("served is not the text: %+v", served)
	}
	sameBut(t, accepted, d.insist(t, submitting))
	d.withdraw(t, p, reader, id)
}

// read reads a context, which must have its record.
func (d faulty) read(t *testing.T, p partner, reader, id string) servedContext {
	t.Helper()
	served := decode[servedContext](t, d.insist(t, call{method: "GET", path: p.path("/ai-context/" + id), token: reader}).want(t, 200, ""))
	found := d.insist(t, call{method: "GET", path: p.path("/request-records?upload_id=" + id), token: reader}).want(t, 200, "")
	var page struct {
		Records []struct {
			ID     string `json:"record_id"`
			SHA256 string `json:"context_sha256"`
		}
	}
	if err := json.Unmarshal(found.Data, &page); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range page.Records {
		if r.ID == served.RecordID && r.SHA256 == served.Context.ContextSHA256 {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d records of what was served: %s", n, found.Raw)
	}
	return served
}

// withdraw takes an upload back: nothing of it is left when that is answered.
func (d faulty) withdraw(t *testing.T, p partner, reader, id string) {
	t.Helper()
	gone := d.insist(t, p.withdrawing(id, "", "fault test")).want(t, 200, "")
	receipt := gone.field(t, "withdrawal_receipt_id")
	if gone.field(t, "status") != "WITHDRAWN" || receipt == "" {
		t.Errorf("withdrawn: %s", gone.Raw)
	}
	d.insist(t, call{method: "GET", path: p.path("/withdrawals/" + receipt), token: p.token}).want(t, 200, "")
	d.insist(t, call{method: "GET", path: p.path("/ai-context/" + id), token: reader}).want(t, 404, "context_not_ready")
	for _, root := range []string{"blobs", "quarantine"} {
		if left := files(t, filepath.Join(d.data, root, "uploads", id)); len(left) > 0 {
			t.Errorf("confirmed as deleted, and there: %v", left)
		}
	}
	if n := count(t, d.in(t).database(t, "keys.db"), `SELECT COUNT(*) FROM data_keys WHERE upload_id = $1`, id); n != 0 {
		t.Error("the data key outlives its receipt")
	}
}

// wantNothingLeft holds the rows against each other, and looks for what is left when reservations have lapsed and the sweeper was there.
func (d faulty) wantNothingLeft(t *testing.T) {
	if exit := d.stop(); exit != 0 {
		t.Errorf("exit %d", exit)
	}
	clock := written(t, "clock", []byte("50h"))
	later := start(t, options{data: d.data, binary: misbehavingBinary(t), env: []string{"ACCESSION_CLOCK=" + clock}, flags: []string{"--part-size-bytes", "4096"}})
	metadata, keys := later.database(t, "metadata.db"), later.database(t, "keys.db")
	// A database server has a clock of its own, by which no reservation lapses yet.
	mustExec(t, metadata, `UPDATE uploads SET due_at = 1 WHERE status IN ('INITIATED', 'RECEIVING')`)
	left := func() string {
		return fmt.Sprint(count(t, keys, `SELECT COUNT(*) FROM data_keys`), " keys, ",
			count(t, metadata, `SELECT CAST(COALESCE(SUM(used_bytes + reserved_bytes), 0) AS BIGINT) FROM organizations`), " bytes, ", len(later.objects()), " objects")
	}
	for began := time.Now(); left() != "0 keys, 0 bytes, 0 objects"; time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > faultPatience {
			t.Errorf("left behind: %s, %q", left(), later.objects())
			break
		}
	}
	for what, query := range wrongRows {
		if found := texts(t, metadata, query); len(found) > 0 {
			t.Errorf("%s: %q", what, found)
		}
	}
	later.wantVerified(nil)
}
