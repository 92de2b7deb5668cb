package e2e

import (
	"bytes"
	"fmt"
	"maps"
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

// workerFaults are what can go wrong with a worker, by what it is for; see internal/extract/misbehave_process.go. What a member worker
// or Tesseract may say anyway, in a sound state, nobody can tell from the truth.
var workerFaults = map[string][]string{
	"text":    {"refuse", "exit", "killed", "mute", "silent", "garbage", "half", "nothing", "cut", "lost", "lingers"},
	"members": {"refuse", "exit", "killed", "mute", "silent", "garbage", "half", "nothing", "cut", "lost", "lingers"},
	"ocr":     {"refuse", "exit", "killed", "mute", "silent", "cut", "lost"},
}

const (
	engineSeed     = 20261122        // chooses the same few calls in every run: a failure of one of them is no flake
	enginePatience = 3 * time.Minute // no request may take longer, whatever is silent
	engineDeadline = 20 * time.Second
)

// engineCall is one call of an engine, or of a receiver of webhooks, in a job: the n-th of its engine; of a worker, of its kind.
type engineCall struct {
	engine string // scanner, worker, receiver
	n      int
	fault  string // what goes wrong, "-" for nothing
	what   string // the scanner's command, or the worker's kind
}

func (c engineCall) String() string {
	return fmt.Sprintf("%s call %d %s %s", c.engine, c.n, c.fault, c.what)
}

// faultyEngines is a service beside engines that fail at one call of a job, which it does one after the other.
type faultyEngines struct {
	faulty
	program  string // path of its binary, which nobody else runs
	hasty    bool   // a gate has no time left after an engine that was silent
	scanner  *faultyScanner
	receiver *faultyReceiver
	workers  string            // folder of plans
	temp     string            // where the service would leave temporary files
	golden   map[string]string // what readers have to be served, by document
	jobs     int
}

// engineDocument is a document of a job, and how it ends.
type engineDocument struct {
	name, mediaType string
	content         []byte
	infected        bool
}

// TestEnginesThatFail does a job once for every call to the scanner, the workers and a receiver of webhooks, and every way in which
// that call can go wrong. Each document ends as it does undisturbed: what is infected is never served, what is served is the document,
// every event is delivered in its order, no request hangs, and nothing is left of quota, keys, objects, temporary files and
// processes. ACCESSION_ENGINE_FAULTS=all takes all calls, and not a few by chance; ACCESSION_TORTURE_SEED chooses others.
func TestEnginesThatFail(t *testing.T) {
	t.Parallel()
	services, few, silent := 1, 1, 1
	if os.Getenv("ACCESSION_ENGINE_FAULTS") == "all" {
		services, few, silent = 3, 1<<20, 1<<20
	}
	seed := number(t, "ACCESSION_TORTURE_SEED", engineSeed)
	t.Logf("ACCESSION_TORTURE_SEED=%d", seed)
	golden := map[string]string{}
	sites := map[bool][]*faultyEngines{} // by whether they are hasty
	for range services {
		for _, hasty := range []bool{false, true} {
			sites[hasty] = append(sites[hasty], startFaultyEngines(t, hasty, golden))
		}
	}
	chance := rand.New(rand.NewPCG(seed, 0))
	plans := map[bool][]string{} // silences of engines are for the hasty
	var hushed []string
	calls, possible := 0, 0
	for _, engine := range []string{"scanner", "worker", "receiver"} {
		var of []string
		for _, c := range sites[false][0].job(t, engine, engineCall{}) {
			calls++
			for _, c.fault = range faultsOfEngine(c) {
				if c.fault == "silent" && engine != "receiver" {
					hushed = append(hushed, c.String())
				} else {
					of = append(of, c.String())
				}
			}
		}
		possible += len(of)
		plans[false] = append(plans[false], chosen(chance, of, few)...)
	}
	possible += len(hushed)
	plans[true] = chosen(chance, hushed, silent)
	if calls < 50 || len(golden) < 4 || t.Failed() {
		t.Fatalf("%d calls, %d texts", calls, len(golden))
	}
	var (
		runs  sync.WaitGroup
		mu    sync.Mutex
		fired = map[string]int{} // calls that went wrong, by engine, fault and what they are for
		done  int
	)
	for hasty, queue := range plans {
		todo := make(chan string, len(queue))
		for _, plan := range queue {
			todo <- plan
		}
		close(todo)
		for _, d := range sites[hasty] {
			runs.Go(func() {
				for plan := range todo {
					t.Run(plan, func(t *testing.T) {
						for _, c := range d.disturbed(t, plan) {
							mu.Lock()
							fired[c.kind()]++
							done++
							mu.Unlock()
						}
					})
				}
			})
		}
	}
	runs.Wait()
	for _, all := range sites {
		for _, d := range all {
			d.wantNothingLeft(t)
		}
	}
	jobs := append(plans[false], plans[true]...)
	// On a busy machine one job may ask an engine once more than another does, so not each plan has a call to go wrong.
	if done == 0 {
		t.Errorf("no call went wrong in %d jobs", len(jobs))
	}
	for _, plan := range jobs {
		if kind := planned(t, plan).kind(); len(jobs) == possible && fired[kind] == 0 && !t.Failed() {
			t.Errorf("this never happened: %s", kind)
		}
	}
	t.Logf("%d calls make up the undisturbed jobs; %d jobs of %d possible ones, %d calls went wrong", calls, len(jobs), possible, done)
}

func faultsOfEngine(c engineCall) []string {
	switch c.engine {
	case "scanner":
		return scannerFaults
	case "worker":
		return workerFaults[c.what]
	}
	return receiverFaults
}

func startFaultyEngines(t *testing.T, hasty bool, golden map[string]string) *faultyEngines {
	d := &faultyEngines{hasty: hasty, workers: t.TempDir(), temp: t.TempDir(), program: filepath.Join(t.TempDir(), "accession"), golden: golden}
	if err := os.Link(misbehavingBinary(t), d.program); err != nil {
		t.Fatal(err)
	}
	d.scanner, d.receiver = newFaultyScanner(t), newFaultyReceiver(t)
	flags := []string{"--rate-limits", "off", "--webhook-private-addresses", "allow", "--webhook-retry-delays", "20ms,50ms", "--webhook-timeout", "5s"}
	if hasty {
		flags = append(flags, "--gate-deadlines", fmt.Sprintf("malware_scan=%s,extraction=%s", engineDeadline, engineDeadline))
	}
	d.faulty = faulty{start(t, options{
		binary: d.program, flags: flags,
		env: []string{"ACCESSION_CLAMD_ADDRESS=" + d.scanner.address, "ACCESSION_WORKER_FAULTS=" + d.workers, "TMPDIR=" + d.temp},
	})}
	d.http = &http.Client{Timeout: enginePatience} // whoever waits longer hangs
	return d
}

// planned is the call that a plan names.
func planned(t *testing.T, plan string) (c engineCall) {
	t.Helper()
	if _, err := fmt.Sscanf(plan, "%s call %d %s %s", &c.engine, &c.n, &c.fault, &c.what); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c engineCall) kind() string { return c.engine + " " + c.fault + " " + c.what }

// disturbed does the job that a plan is about, and returns what went wrong in it.
func (d *faultyEngines) disturbed(t *testing.T, plan string) []engineCall {
	c := planned(t, plan)
	return slices.DeleteFunc(d.job(t, c.engine, c), func(c engineCall) bool { return c.fault == "-" })
}

// engineJobs are what is taken in to have an engine at work. Tesseract is the slowest: it works for the workers' sake alone.
func engineJobs(t *testing.T, engine string) (documents []engineDocument, texts []engineDocument) {
	tern := engineDocument{"tern.zip", "application/zip", zipped(t, "tern.txt", string(note("sooty-tern"))), false}
	record := engineDocument{"record.zip", "application/zip", zipped(t, "tern.txt", string(note("sooty-tern")), "record.pdf",
		string(textPDF("The harbour office keeps this record.", "Its mark is black-tern."))), false}
	picture := engineDocument{"note.png", "image/png", readFile(t, "../internal/extract/testdata/note.png"), false}
	infected := engineDocument{"bad.txt", "text/plain", append(note("storm-petrel"), eicar()...), true}
	packed := engineDocument{"bad.zip", "application/zip", zipped(t, "note.txt", string(note("leach-petrel")), "bad.com", eicar()), true}
	marked := engineDocument{"a text with markup", "text/html", []byte("<p>The pump of the <b>slow-ferry</b> runs. Nobody needs to act on it before spring.</p>"), false}
	badText := engineDocument{"an infected text", "text/plain", []byte("x " + eicar()), true}
	switch engine {
	case "worker":
		return []engineDocument{record, picture, packed}, []engineDocument{marked}
	case "receiver":
		return []engineDocument{infected}, []engineDocument{marked}
	}
	return []engineDocument{tern, infected, packed}, []engineDocument{marked, badText}
}

// job takes in what has the engine at work, for an organization of its own, has it served and withdrawn, and returns the calls that
// were made to the engine.
func (d *faultyEngines) job(t *testing.T, engine string, plan engineCall) (calls []engineCall) {
	d.jobs++
	s := d.in(t)
	org := fmt.Sprint("job-", d.jobs)
	p, reader := partner{s, org, s.issue(org, "solution_company_upload")}, s.issue(org, "ai_reader")
	if engine == "receiver" {
		s.setWebhook(org, d.receiver.URL)
	}
	documents, submitted := engineJobs(t, engine)
	end := d.disturb(t, org, plan)
	for _, doc := range documents {
		d.document(t, p, reader, doc, plan)
	}
	for _, text := range submitted {
		d.text(t, p, reader, text, plan)
	}
	if engine == "receiver" {
		d.wantDelivered(t, s, org)
	}
	for _, c := range end() {
		if c.engine == engine {
			calls = append(calls, c)
		}
	}
	if q := s.quota(org, p.token); q.UsedBytes != 0 || q.ReservedBytes != 0 {
		t.Errorf("quota: %+v", q)
	}
	s.wantNoObjects()
	if n := count(t, s.database(t, "keys.db"), `SELECT COUNT(*) FROM data_keys`); n != 0 {
		t.Errorf("%d data keys are left", n)
	}
	for began := time.Now(); ; time.Sleep(lookAgain) {
		left := append(processesOf(t, d.program, "worker"), files(t, d.temp)...)
		if left = append(left, childrenOf(t, s.cmd.Process.Pid)...); len(left) == 0 {
			return calls
		}
		if time.Since(began) > enginePatience {
			t.Fatalf("left behind: %q", left)
		}
	}
}

// disturb begins a job; end returns all calls since.
func (d *faultyEngines) disturb(t *testing.T, id string, plan engineCall) (end func() []engineCall) {
	for _, c := range []*nth{&d.scanner.nth, &d.receiver.nth} {
		c.begin(plan)
	}
	d.receiver.taken()
	words := id + " - 0 -"
	if plan.engine == "worker" {
		words = fmt.Sprintf("%s %s %d %s", id, plan.what, plan.n, plan.fault)
	}
	path := filepath.Join(d.workers, "plan")
	if err := os.WriteFile(path+".new", []byte(words), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return func() []engineCall {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
		calls := append(d.scanner.end(), d.receiver.end()...)
		counted, err := os.ReadFile(filepath.Join(d.workers, id+".calls"))
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
		for line := range strings.Lines(string(counted)) {
			c := engineCall{engine: "worker"}
			if _, err := fmt.Sscan(line, &c.what, &c.n, &c.fault); err != nil {
				t.Error(err)
			}
			calls = append(calls, c)
		}
		return calls
	}
}

// document takes a partner's document in, and withdraws it.
func (d *faultyEngines) document(t *testing.T, p partner, reader string, doc engineDocument, plan engineCall) {
	t.Helper()
	id := p.send(doc.name, doc.mediaType, doc.content)
	st := p.follow(id)
	for n := 0; d.hasty && st.Status == "FAILED" && n < 10; n++ { // nothing is wrong any more but that the machine may be busy
		if st.Failure.Gate != "malware_scan" && st.Failure.Gate != "extraction" {
			t.Errorf("%s: %+v", doc.name, st.Failure)
		}
		p.do(call{method: "GET", path: p.path("/ai-context/" + id), token: reader}).want(t, 404, "context_not_ready")
		p.do(p.resuming(p.org, id, client.NewIdempotencyKey())).want(t, 200, "")
		st = p.follow(id)
	}
	switch {
	case st.Status == "READY" && !doc.infected:
		d.wantServed(t, p, reader, id, doc)
	case st.Status == "REJECTED" && st.Failure.Gate == "malware_scan" && (doc.infected && st.Failure.Code == "malware_found" || plan.unscannable(st.Failure.Code)):
	default:
		t.Errorf("%s ends %s: %+v", doc.name, st.Status, st.Failure)
	}
	if st.Status != "READY" {
		p.do(call{method: "GET", path: p.path("/ai-context/" + id), token: reader}).want(t, 404, "context_not_ready")
	}
	d.withdraw(t, p, reader, id)
}

// unscannable tells whether content may have been refused for the scanner's word that it cannot look into it.
func (c engineCall) unscannable(code string) bool {
	return code == "content_unscannable" && c.fault == "limit"
}

// text does the same for a customer's text.
func (d *faultyEngines) text(t *testing.T, p partner, reader string, doc engineDocument, plan engineCall) {
	t.Helper()
	r := d.insist(t, p.submitting(client.NewIdempotencyKey(), text(string(doc.content), map[string]any{"content_type": doc.mediaType})))
	switch code, _ := r.Details["gate_code"].(string); {
	case r.Status == 201 && !doc.infected:
		id := r.field(t, "upload_id")
		d.wantServed(t, p, reader, id, doc)
		d.withdraw(t, p, reader, id)
	case r.Status == 400 && r.Code == "content_refused" && (doc.infected && code == "malware_found" || plan.unscannable(code)):
	default:
		t.Errorf("%s ends so: %d %s", doc.name, r.Status, r.Raw)
	}
}

func (d *faultyEngines) wantServed(t *testing.T, p partner, reader, id string, doc engineDocument) {
	t.Helper()
	served := d.read(t, p, reader, id)
	if plain := d.golden[doc.name]; plain == "" {
		d.golden[doc.name] = served.text()
	} else if plain != served.text() {
		t.Errorf("%s: served is not the document: %+v", doc.name, served)
	}
	if served.text() == "" || served.Context.Source.SHA256 != hexSum(doc.content) {
		t.Errorf("%s: %+v", doc.name, served)
	}
}

// wantDelivered waits until nothing is to be delivered any more: every event was taken, in the order of its upload, each time the same.
func (d *faultyEngines) wantDelivered(t *testing.T, s *service, org string) {
	t.Helper()
	s.awaitWebhook(org, func(w client.Webhook) bool { return w.Pending == 0 })
	if dead := s.deliveries(org, "dead").Deliveries; len(dead) > 0 {
		t.Errorf("given up: %+v", dead)
	}
	metadata := s.database(t, "metadata.db")
	mine := texts(t, metadata, `SELECT upload_id FROM uploads WHERE org_id = $1`, org)
	seen := slices.DeleteFunc(d.receiver.taken(), func(e posted) bool { return !slices.Contains(mine, e.UploadID) }) // a late post of another job
	taken, bodies := map[string]bool{}, map[string][]byte{}
	for _, e := range seen {
		taken[e.ID] = taken[e.ID] || e.Answer == http.StatusAccepted
		if bodies[e.ID] == nil {
			bodies[e.ID] = e.Body
		}
		if !bytes.Equal(bodies[e.ID], e.Body) {
			t.Errorf("%s says %s, and then %s", e.ID, bodies[e.ID], e.Body)
		}
	}
	for _, id := range texts(t, metadata, `SELECT event_id FROM status_events WHERE org_id = $1`, org) {
		if !taken[id] {
			t.Errorf("event %s was not delivered", id)
		}
		delete(taken, id)
	}
	wantInOrder(t, slices.DeleteFunc(seen, func(e posted) bool {
		recall := e.Event == "contextRecalled" // comes when its upload has ended
		if recall {
			delete(taken, e.ID)
		}
		return recall
	}))
	if len(taken) > 0 {
		t.Errorf("nobody knows these: %v", slices.Collect(maps.Keys(taken)))
	}
}
