package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// balancer knows which replicas say that they are ready, as a real one does: by asking them, again and again.
type balancer struct {
	mu       sync.Mutex
	replicas []*service
	in       map[*service]bool
	turn     int
	probed   chan struct{} // closed at the next answer of any
}

// probe asks a replica until asked to stop.
func (b *balancer) probe(s *service, ended <-chan struct{}) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	asks := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		resp, err := asks.Get(s.url + "/readyz")
		ready := err == nil && resp.StatusCode == http.StatusOK
		if err == nil {
			resp.Body.Close()
		}
		b.mu.Lock()
		b.in[s] = ready
		close(b.probed)
		b.probed = make(chan struct{})
		b.mu.Unlock()
		select {
		case <-tick.C:
		case <-s.done:
			return
		case <-ended:
			return
		}
	}
}

// pick is one of those that are in, each in its turn. While none is it waits, as a real one queues: on a busy machine a check of
// readiness may have no answer in time. nil: none came.
func (b *balancer) pick() *service {
	patience := time.After(2 * time.Minute)
	for {
		b.mu.Lock()
		for range b.replicas {
			b.turn++
			if s := b.replicas[b.turn%len(b.replicas)]; b.in[s] {
				b.mu.Unlock()
				return s
			}
		}
		probed := b.probed
		b.mu.Unlock()
		select {
		case <-probed:
		case <-patience:
			return nil
		}
	}
}

// replace puts a replica where another was.
func (b *balancer) replace(old, replica *service) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.in, old)
	b.replicas[slices.Index(b.replicas, old)] = replica
}

// Two replicas are restarted one after the other while clients upload through a balancer: no request is refused, none is cut,
// and whatever was acknowledged is so in the end.
func TestRollingRestartIsNotNoticed(t *testing.T) {
	t.Parallel()
	site := newPremises(t)
	launching := func() *service {
		o := site.options("", "all")
		// What the balancer needs to notice and requests to end, on a machine that stands still for seconds.
		o.flags = []string{"--drain-delay", "10s", "--drain-time", "2m"}
		return start(t, o)
	}
	ended := make(chan struct{})
	b := &balancer{replicas: []*service{launching(), launching()}, in: map[*service]bool{}, probed: make(chan struct{})}
	var probes, clients sync.WaitGroup
	for _, s := range b.replicas {
		b.in[s] = true
		probes.Go(func() { b.probe(s, ended) })
	}
	token := b.replicas[0].issue("harbour", "solution_company_upload")

	type outcome struct {
		id        string
		withdrawn bool
	}
	var mu sync.Mutex
	var sent []outcome
	stopped := make(chan struct{})
	for n := range 3 {
		clients.Go(func() {
			pace := time.NewTicker(300 * time.Millisecond) // others need the processor, too
			defer pace.Stop()
			for i := 0; ; i++ {
				select {
				case <-stopped:
					return
				case <-pace.C:
				}
				var problem error
				do := func(status int, c func(partner) call) (r reply) { // each request may come to another replica
					if problem != nil {
						return r
					}
					s := b.pick()
					if s == nil {
						problem = fmt.Errorf("no replica is ready")
						return r
					}
					if r, problem = s.try(c(partner{s, "harbour", token})); problem == nil && r.Status != status {
						problem = fmt.Errorf("%d, want %d: %s", r.Status, status, r.Raw)
					}
					return r
				}
				content := note(fmt.Sprintf("rolling-%d-%d", n, i))
				r := do(200, func(p partner) call { return p.reserving(client.NewIdempotencyKey(), len(content)) })
				if problem != nil {
					t.Errorf("initiate: %v", problem)
					return
				}
				o := outcome{id: r.field(t, "upload_id"), withdrawn: i%3 == 2}
				do(200, func(p partner) call { return p.put(byPath, o.id, 1, client.NewIdempotencyKey(), content) })
				do(202, func(p partner) call { return p.closing(byPath, o.id, client.NewIdempotencyKey(), [][]byte{content}) })
				if o.withdrawn {
					do(200, func(p partner) call { return p.withdrawing(o.id, client.NewIdempotencyKey(), "changed our mind") })
				}
				if problem != nil {
					t.Errorf("upload %s: %v", o.id, problem)
					return
				}
				mu.Lock()
				sent = append(sent, o)
				mu.Unlock()
			}
		})
	}
	for _, old := range slices.Clone(b.replicas) {
		if exit := old.stop(); exit != 0 {
			t.Errorf("exit %d", exit)
		}
		replica := launching()
		b.replace(old, replica)
		probes.Go(func() { b.probe(replica, ended) })
	}
	close(stopped)
	clients.Wait()
	close(ended)
	probes.Wait()
	if len(sent) < 3 {
		t.Fatalf("%d uploads only", len(sent))
	}
	p := partner{b.replicas[0], "harbour", token}
	for _, o := range sent {
		want := "READY"
		if o.withdrawn {
			want = "WITHDRAWN"
		}
		if st := p.follow(o.id); st.Status != want {
			t.Errorf("upload %s, acknowledged, is %s and not %s", o.id, st.Status, want)
		}
	}
	t.Logf("%d uploads", len(sent))
}
