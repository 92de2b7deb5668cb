package e2e

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	crashRuns    = 4    // runs at once: a run waits most of its time, for a dead worker's lease to end or a disk to sync
	mostPoints   = 1000 // no job passes as many
	defaultKills = 30   // random kills, unless ACCESSION_CRASH_KILLS says otherwise
)

// TestCrashAtEveryPoint ends the service at the first crash point of a main job, at the second, and so on until a job is
// through before its point is reached. After each death the client goes on, and nothing that was acknowledged is missing.
func TestCrashAtEveryPoint(t *testing.T) {
	armed := armedBinary(t)
	var counted []string
	t.Run("counting", func(t *testing.T) {
		h, _ := crashOnce(t, armed, "0")
		if counted = hits(h.now); len(counted) == 0 {
			t.Fatal("the run passed no crash point; is the binary built with them?")
		}
	})
	var (
		runs    sync.WaitGroup
		next    atomic.Int64
		through atomic.Bool // some run was not reached by its point: there is no later one
		mu      sync.Mutex
		died    = map[string]int{}
	)
	for range crashRuns {
		runs.Go(func() {
			for !through.Load() && !t.Failed() {
				n := int(next.Add(1))
				if n > mostPoints {
					return
				}
				t.Run(strconv.Itoa(n), func(t *testing.T) {
					_, deaths := crashOnce(t, armed, strconv.Itoa(n))
					mu.Lock()
					defer mu.Unlock()
					if len(deaths) == 0 {
						through.Store(true)
						return
					}
					died[deaths[0]]++
				})
			}
		})
	}
	runs.Wait()
	if t.Failed() || len(counted) == 0 { // without a count, -run chose single points
		return
	}
	if !through.Load() {
		t.Errorf("no job got through before crash point %d", mostPoints)
	}
	total := 0
	for _, name := range slices.Compact(slices.Sorted(slices.Values(counted))) {
		if died[name] == 0 { // a slow machine renews leases in between, and the points of that run are not those counted
			t.Run(name, func(t *testing.T) {
				if _, deaths := crashOnce(t, armed, name); !slices.Equal(deaths, []string{name}) {
					t.Errorf("died at %q", deaths)
				}
			})
			died[name]++
		}
		total += died[name]
		t.Logf("%3d deaths at %s", died[name], name)
	}
	t.Logf("%d deaths in all; an undisturbed job passes %d points", total, len(counted))
}

// crashOnce does one job at a fresh site whose service dies at its n-th crash point, or at the first of a name (0: lives).
func crashOnce(t *testing.T, armed, at string) (h *site, deaths []string) {
	h = newSite(t, armed, "ACCESSION_CRASH_AT="+at)
	d := newDeposit(t, h, "harbour")
	d.run()
	deaths = h.died()
	if len(deaths) > 1 || len(deaths) == 1 && deaths[0] == "" {
		t.Errorf("deaths: %q", deaths)
	}
	inspect(t, h, d)
	return h, deaths
}

// inspect ends the service and looks at what it leaves once everything is withdrawn.
func inspect(t *testing.T, h *site, deposits ...*deposit) {
	t.Helper()
	h.kill()
	if left := h.objects(t); len(left) > 0 {
		t.Errorf("objects after withdrawal: %q", left)
	}
	metadata, keys := h.database(t, "metadata.db"), h.database(t, "keys.db")
	for _, d := range deposits {
		d.audit(metadata)
		if n := count(t, keys, `SELECT COUNT(*) FROM data_keys WHERE upload_id = $1`, d.uploadID); n != 0 {
			t.Errorf("the data key of %s outlived its receipt", d.uploadID)
		}
	}
	for _, chain := range []string{"audit_lines", "request_records"} {
		if gaps := count(t, metadata, `SELECT COALESCE(SUM(n <> last), 0) FROM (SELECT COUNT(*) AS n, MAX(position) AS last FROM `+chain+` GROUP BY org_id)`); gaps != 0 {
			t.Errorf("%s has gaps", chain)
		}
	}
}

// TestCrashAtRandomMoments kills the service again and again while two uploaders take documents through the main job.
// ACCESSION_CRASH_KILLS asks for more kills, ACCESSION_CRASH_SEED for the same choices again.
func TestCrashAtRandomMoments(t *testing.T) {
	seed := number(t, "ACCESSION_CRASH_SEED", uint64(time.Now().UnixNano()))
	kills := int(number(t, "ACCESSION_CRASH_KILLS", defaultKills))
	t.Logf("ACCESSION_CRASH_SEED=%d ACCESSION_CRASH_KILLS=%d", seed, kills)
	random := rand.New(rand.NewPCG(seed, seed))

	h := newSite(t, binary)
	deposits := disturbed(t, h, []string{"harbour", "lighthouse"}, func(through <-chan struct{}) {
		for range kills {
			h.awaitMoment(random, through)
			h.kill()
		}
	})
	if t.Failed() {
		return
	}
	lost := lostAnswers(deposits)
	if len(deposits) < 2 || lost == 0 {
		t.Errorf("%d jobs and %d lost answers: this proves nothing", len(deposits), lost)
	}
	inspect(t, h, deposits...)
	t.Logf("%d kills, %d lost answers, %d jobs through; the slowest of all starts took %s", kills, lost, len(deposits), h.slowest.Round(time.Millisecond))
	h.wantPromptStarts(kills > defaultKills)
}

// promptStart is how long a service may take to be ready after a death. Only long runs ask, which have the machine for themselves.
const promptStart = 5 * time.Second

func (h *site) wantPromptStarts(judged bool) {
	if judged && h.slowest > promptStart {
		h.t.Errorf("a start took %s, want %s at most", h.slowest, promptStart)
	}
}

// awaitMoment returns at a moment of random's choice: some answers first, so that every life gets a little further; then a moment inside
// whatever comes next.
func (h *site) awaitMoment(random *rand.Rand, through <-chan struct{}) {
	h.awaitAnswers(random.IntN(8), through)
	select {
	case <-time.After(time.Duration(random.Int64N(int64(60 * time.Millisecond)))):
	case <-through:
	}
}

func (h *site) awaitAnswers(n int, through <-chan struct{}) {
	for range n {
		select {
		case <-h.answered:
		case <-through: // only a failed uploader ends early
		}
	}
}

// disturbed has an uploader of each organization take documents through the main job, one after the other, until disturb is done; then
// each ends its last.
func disturbed(t *testing.T, h *site, orgs []string, disturb func(through <-chan struct{})) (deposits []*deposit) {
	t.Helper()
	var (
		uploaders sync.WaitGroup
		stop      = make(chan struct{}) // the jobs under way are the last
		mu        sync.Mutex
	)
	for _, org := range orgs {
		uploaders.Go(func() {
			t.Run(org, func(t *testing.T) {
				for {
					select {
					case <-stop:
						return
					default:
					}
					d := newDeposit(t, h, org)
					d.run()
					mu.Lock()
					deposits = append(deposits, d)
					mu.Unlock()
				}
			})
		})
	}
	through := make(chan struct{})
	go func() {
		uploaders.Wait()
		close(through)
	}()
	defer func() { // also where disturb ends the test
		close(stop)
		<-through
		for _, d := range deposits {
			d.t = t
		}
	}()
	disturb(through)
	return deposits
}

func lostAnswers(deposits []*deposit) (lost int) {
	for _, d := range deposits {
		lost += d.lost
	}
	return lost
}

// A release knows nothing of crash points.
func TestReleaseHasNoCrashPoints(t *testing.T) {
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(program, []byte("ACCESSION_CRASH_AT")) {
		t.Error("the released binary can be told to crash")
	}
}

func number(t *testing.T, variable string, fallback uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s must be a whole number", variable)
	}
	return n
}
