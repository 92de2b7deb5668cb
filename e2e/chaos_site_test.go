package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/accession/accession/internal/storetest/cluster"
)

const (
	// chaosPatience is how long anything may take once nothing is wrong any more, and while replicas are killed and nothing else is.
	chaosPatience = 3 * time.Minute
	// chaosAtMost is for how much longer than asked things go wrong where they have not all met yet what they are to meet: a slow
	// machine does less in its time.
	chaosAtMost = 5 * time.Minute
)

// chaosSite is one installation of two replicas, each with a wire of its own to PostgreSQL and to S3.
type chaosSite struct {
	t        *testing.T
	database *cluster.Cluster
	url      string // of the database, past the wires
	s3       inS3
	replicas [2]*mortal
	random   *rand.Rand // of the one who disturbs
	faulty   bool       // something is wrong now

	mu      sync.Mutex
	told    time.Time // since when nobody begins anything new; zero: not yet
	steps   []chaosStep
	lost    int // answers that never came
	unable  int // answers that said: not now
	full    int // that the allowance was used up
	uploads int
}

// mortal is a replica that is started again whenever it is gone.
type mortal struct {
	o         options
	wires     map[string]*wire // by store
	under     *service         // what runs or ran last
	disturbed bool             // a store was away while it started
	again     time.Time        // when to start it again; zero: it runs
	kills     int

	mu    sync.Mutex
	ready *service
}

// chaosStep is one thing a client wanted, from the first request to the answer that settled it.
type chaosStep struct {
	what        string
	began, done time.Time
}

func newChaosSite(t *testing.T, random *rand.Rand, hook string) *chaosSite {
	h := &chaosSite{t: t, random: random, database: cluster.Start(t), s3: newInS3(t, false)}
	h.url = h.database.Database(t)
	shared := t.TempDir()
	for n := range h.replicas {
		m := &mortal{wires: map[string]*wire{"postgres": newWire(t, h.database.Address()), "s3": newWire(t, h.s3.Address)}}
		through := func(url string) string {
			url = strings.ReplaceAll(url, h.database.Address(), m.wires["postgres"].address())
			return strings.ReplaceAll(url, h.s3.Address, m.wires["s3"].address())
		}
		m.o = options{
			data:  filepath.Join(shared, fmt.Sprint("replica-", n)),
			flags: hookFlags,
			env: append(h.s3.Env(), "ACCESSION_DATABASE="+through(h.url), "ACCESSION_KEYS="+filepath.Join(shared, "key-encryption.key"),
				"ACCESSION_BLOBS="+through(h.s3.URL(h.s3.buckets[0], "staging")), "ACCESSION_QUARANTINE="+through(h.s3.URL(h.s3.buckets[1], "")),
				"ACCESSION_BASE_URL=http://custody.example", "ACCESSION_RATE_LIMITS=off", fmt.Sprint("ACCESSION_PART_SIZE_BYTES=", partSize),
				fmt.Sprint("ACCESSION_QUOTA_BYTES=", chaosQuota)),
		}
		h.replicas[n] = m
		h.launch(m)
		for m.current() == nil { // the first makes the key file
			h.wait(20 * time.Millisecond)
		}
	}
	if hook != "" {
		h.replicas[0].ready.setWebhook(chaosOrgs[0], hook)
	}
	return h
}

func (h *chaosSite) launch(m *mortal) {
	m.under = launch(h.t, m.o)
	// A client that waits longer than any answer may take, and shares nothing with the other replica.
	m.under.http = &http.Client{Timeout: 45 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	m.again = time.Time{}
}

// tend starts what is gone and offers to clients what is ready. Called again and again, by the test alone.
func (h *chaosSite) tend() {
	for n, m := range h.replicas {
		if m == nil {
			continue
		}
		select {
		case <-m.under.done:
			m.offer(nil)
			switch status, _ := m.under.cmd.ProcessState.Sys().(syscall.WaitStatus); {
			case m.again.IsZero():
				if killed := status.Signaled() && status.Signal() == syscall.SIGKILL; !killed && !m.disturbed {
					h.t.Errorf("replica %d ended by itself: %v\n%s", n, m.under.err, m.under.log)
				}
				m.again = time.Now().Add(time.Duration(h.random.Int64N(int64(time.Second))))
			case time.Now().After(m.again):
				m.disturbed = h.faulty
				h.launch(m)
			}
		default:
			if m.current() == nil && m.under.saidURL() != "" {
				m.disturbed = false // a ready one has no excuse to end
				m.offer(m.under)
			}
		}
	}
}

// faults begin or end; what starts meanwhile may fail to.
func (h *chaosSite) faults(now bool) {
	h.faulty = now
	for _, m := range h.replicas {
		m.disturbed = m.disturbed || m.current() == nil
	}
}

func (m *mortal) offer(s *service) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready = s
}

func (m *mortal) current() *service {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ready
}

func (m *mortal) kill() {
	m.offer(nil)
	m.under.kill()
	m.kills++
}

// wait tends for so long.
func (h *chaosSite) wait(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		h.tend()
	}
}

// disturbance is something that goes wrong for a while.
type disturbance struct {
	name   string
	lasts  time.Duration // at most
	during func(wait func())
}

// disturbances are everything that can go wrong but the death of a replica. A fault is one replica's or all's.
func (h *chaosSite) disturbances() (all []disturbance) {
	for _, store := range []string{"postgres", "s3"} {
		whose := func() []*wire {
			n := h.random.IntN(3)
			if n == 2 {
				return []*wire{h.replicas[0].wires[store], h.replicas[1].wires[store]}
			}
			return []*wire{h.replicas[n].wires[store]}
		}
		toggled := func(set func(w *wire, on bool)) func(func()) {
			return func(wait func()) {
				wires := whose()
				for _, w := range wires {
					set(w, true)
				}
				wait()
				for _, w := range wires {
					set(w, false)
				}
			}
		}
		if store == "postgres" {
			all = append(all, disturbance{"postgres loses commits", 4 * time.Second, toggled((*wire).lose)})
		}
		all = append(all,
			disturbance{store + " slow", 4 * time.Second, func(wait func()) {
				delay := time.Duration(1+h.random.IntN(60)) * time.Millisecond
				toggled(func(w *wire, on bool) {
					if w.slow(0); on {
						w.slow(delay)
					}
				})(wait)
			}},
			disturbance{store + " resets", time.Second, func(wait func()) { // again and again, with much under way
				wires := whose()
				for range 4 + h.random.IntN(8) {
					for _, w := range wires {
						w.slow(20 * time.Millisecond)
						w.reset()
					}
					h.wait(time.Duration(h.random.Int64N(int64(300 * time.Millisecond))))
				}
				for _, w := range wires {
					w.slow(0)
				}
				wait()
			}},
			disturbance{store + " half open", 4 * time.Second, toggled((*wire).halfOpen)},
			disturbance{store + " refuses", 4 * time.Second, toggled((*wire).refuse)},
		)
	}
	return append(all,
		disturbance{"postgres restarts", time.Second, func(wait func()) {
			if err := h.database.Down(); err != nil {
				h.t.Fatal(err)
			}
			wait()
			if err := h.database.Up(); err != nil {
				h.t.Fatal(err)
			}
		}},
		disturbance{"replica pauses", 7 * time.Second, func(wait func()) { // and then goes on as if nothing had been
			s := h.replicas[h.random.IntN(2)].under
			_ = s.cmd.Process.Signal(syscall.SIGSTOP) // it may be gone
			wait()
			_ = s.cmd.Process.Signal(syscall.SIGCONT)
		}},
		disturbance{"s3 restarts", time.Second, func(wait func()) {
			h.s3.Stop()
			wait()
			h.s3.Start(h.t)
		}})
}

// killing kills replicas at random moments for so long, now and then both.
func (h *chaosSite) killing(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		h.wait(time.Duration(h.random.Int64N(int64(3 * time.Second))))
		h.replicas[h.random.IntN(2)].kill()
		if h.random.IntN(8) == 0 {
			h.wait(time.Duration(h.random.Int64N(int64(time.Second))))
			for _, m := range h.replicas {
				m.kill()
			}
		}
	}
}

// proves tells whether enough was done, and enough of it went wrong.
func (h *chaosSite) proves() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost > 0 && h.unable > 0 && h.full > 0 && h.uploads >= 10
}

// disturb does whatever can go wrong in turns, for so long and each at least once, and kills replicas meanwhile. It returns how
// often each was done.
func (h *chaosSite) disturb(d time.Duration) map[string]int {
	done, all := map[string]int{}, h.disturbances()
	end := time.Now().Add(d)
	over := func() bool {
		return len(done) == len(all) && time.Now().After(end) && (h.proves() || time.Now().After(end.Add(chaosAtMost)))
	}
	for !over() {
		h.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, next := range slices.Clone(all) {
			if over() {
				break
			}
			h.t.Logf("%s: %s", time.Now().Format("05.000"), next.name)
			h.faults(true)
			next.during(func() {
				lasts := time.Duration(h.random.Int64N(int64(next.lasts)))
				h.wait(lasts / 2)
				if h.random.IntN(4) == 0 {
					h.replicas[h.random.IntN(2)].kill()
				}
				h.wait(lasts / 2)
			})
			h.faults(false)
			done[next.name]++
			h.wait(time.Duration(h.random.Int64N(int64(1500 * time.Millisecond))))
		}
	}
	return done
}

// settle lets everything be well again, tells the clients, and returns when all of them are through.
func (h *chaosSite) settle(through <-chan struct{}) (took time.Duration) {
	h.mu.Lock()
	h.told = time.Now()
	h.mu.Unlock()
	for {
		h.tend()
		select {
		case <-through:
			for h.replicas[0].current() == nil || h.replicas[1].current() == nil {
				h.tend()
				time.Sleep(20 * time.Millisecond) // a replica says in its log when it is ready
			}
			return time.Since(h.told)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ending tells for how long nothing has been wrong during what began then, and whether nobody is to begin anything new.
func (h *chaosSite) ending(began time.Time) (since time.Duration, ending bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return min(time.Since(h.told), time.Since(began)), !h.told.IsZero()
}

// sweep has what arrived in storage after its upload was withdrawn deleted, as each start does: a replica that is paused for longer
// than its lease lasts may send an object on when it wakes.
func (h *chaosSite) sweep(late func() bool) {
	if !late() {
		return
	}
	h.t.Log("objects arrived after their upload was withdrawn; a start has to delete them")
	m := h.replicas[0]
	for m.kill(); m.current() == nil; h.wait(20 * time.Millisecond) {
	}
	for deadline := time.Now().Add(chaosPatience); late() && time.Now().Before(deadline); {
		h.wait(20 * time.Millisecond)
	}
}

// longest is how long the longest step took of those that ended before.
func (h *chaosSite) longest(before time.Time) (longest chaosStep) {
	for _, s := range h.steps {
		if s.done.Before(before) && s.done.Sub(s.began) > longest.done.Sub(longest.began) {
			longest = s
		}
	}
	return longest
}

func counted(done map[string]int) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(done)) {
		words = append(words, fmt.Sprintf("%s %d", name, done[name]))
	}
	return strings.Join(words, ", ")
}
