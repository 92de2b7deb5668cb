package e2e

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// clock is how far a service's clock is ahead of the machine's; see internal/custody/clock_on.go.
type clock struct {
	t    testing.TB
	file string
}

func newClock(t testing.TB) clock { return clock{t, filepath.Join(t.TempDir(), "clock")} }

func (c clock) env() string { return "ACCESSION_CLOCK=" + c.file }

// ahead sets it, from one moment to the next.
func (c clock) ahead(by time.Duration) {
	c.t.Helper()
	err := os.WriteFile(c.file+".new", []byte(by.String()), 0o600)
	if err == nil {
		err = os.Rename(c.file+".new", c.file)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// lateScanner is a scanner that refuses to be asked until it is opened.
func lateScanner(t *testing.T) (setting string, open func()) {
	address := freeAddress(t)
	return "tcp:" + address, func() {
		t.Helper()
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		var guests sync.WaitGroup
		guests.Go(func() {
			for {
				guest, err := l.Accept()
				if err != nil {
					return
				}
				guests.Go(func() {
					defer guest.Close()
					pass(guest)
				})
			}
		})
		t.Cleanup(func() {
			l.Close()
			guests.Wait()
		})
	}
}

// awaitAttempts returns once a gate was tried in vain for the n-th time.
func (p partner) awaitAttempts(uploadID string, gate, n int) {
	p.t.Helper()
	for began := time.Now(); time.Since(began) < faultPatience; {
		st := decode[status](p.t, p.do(call{method: "GET", path: p.path("/partner-uploads/" + uploadID), token: p.token, header: map[string]string{"Prefer": "wait=1"}}).want(p.t, 200, ""))
		if st.Failure != nil {
			p.t.Fatalf("%s: %+v", st.Status, st.Failure)
		}
		if tried, _ := st.Gates[gate].Detail["attempts"].(float64); int(tried) >= n {
			return
		}
	}
	p.t.Fatalf("the gate was not tried %d times", n)
}

// TestClockThatIsSet sets the clock while no scanner answers and a webhook is left alone, by more than either has time for: forward, also while
// the service is stopped, and back. That takes no time away from the gate, and what waits to be tried again does not wait for the old time to
// come.
func TestClockThatIsSet(t *testing.T) {
	t.Parallel()
	scan := slices.Index(gateNames, "malware_scan")
	for name, set := range map[string]func(p *partner, o options, now clock, id string){
		"put forward": func(p *partner, _ options, now clock, id string) {
			now.ahead(3 * time.Hour)
			p.awaitAttempts(id, scan, 3) // it is tried again, and does not fail
		},
		"put forward, and started again": func(p *partner, o options, now clock, _ string) {
			p.stop()
			now.ahead(3 * time.Hour)
			o.data = p.data
			p.service = start(p.t, o)
		},
		"put back": func(p *partner, _ options, now clock, id string) {
			db := p.database(p.t, "metadata.db")
			waits := func() bool {
				return count(p.t, db, `SELECT COUNT(*) FROM uploads WHERE upload_id = $1 AND lease = '' AND attempt > 0`, id) == 1
			}
			for began := time.Now(); ; now.ahead(0) { // while nobody is at it: until the old time comes, nobody will be
				for !waits() && time.Since(began) < faultPatience {
					p.status(id)
				}
				if now.ahead(-3 * time.Hour); waits() || time.Since(began) > faultPatience {
					break
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := newClock(t)
			scanner, open := lateScanner(t)
			o := options{binary: misbehavingBinary(t), env: []string{now.env(), "ACCESSION_CLAMD_ADDRESS=" + scanner},
				flags: []string{"--rate-limits", "off", "--gate-deadlines", "malware_scan=2h",
					"--webhook-private-addresses", "allow", "--webhook-retry-delays", "1h", "--webhook-timeout", "1m"}}
			s := start(t, o)
			p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
			var answer atomic.Int64
			answer.Store(503)
			hook := receive(t, func(posted) int { return int(answer.Load()) })
			s.setWebhook("harbour", hook.URL)
			id := p.send("note.txt", "text/plain", note("leap-hour"))
			for range 4 { // with the first, as many events that fail as open the circuit: of one upload they come in turn
				p.initiate("note.txt", "text/plain", 64)
			}
			s.awaitWebhook("harbour", func(w client.Webhook) bool { return w.Failures == 5 })
			answer.Store(202)
			p.awaitAttempts(id, scan, 1)
			set(&p, o, now, id)
			open()
			p.wantReady(id)
			p.context("harbour", reader, id).want(t, 200, "")
			hook.until(t, "what the webhook missed", arrivedAs(id, "READY"))
			// Whoever comes after is served as before: credentials, reservations, gates, deletion.
			p.wantReady(p.send("note.txt", "text/plain", note("next-hour")))
			p.wantWithdrawn(id, len(note("leap-hour")))
		})
	}
}
