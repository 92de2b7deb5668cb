package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

const (
	chaosSeconds = 60 // unless ACCESSION_CHAOS_SECONDS says otherwise; a third of it replicas are killed and nothing else is wrong
	chaosClients = 4
)

// TestChaos has clients work on two replicas while these are killed, PostgreSQL and S3 restart, and the network between is slow,
// breaks, falls silent and refuses. In the end everything that was acknowledged holds, and nothing stalled for longer than
// chaosPatience: neither while replicas were killed and nothing else was wrong, nor after the last fault.
// ACCESSION_CHAOS_SECONDS asks for a longer run, ACCESSION_CHAOS_SEED for the same choices again.
func TestChaos(t *testing.T) {
	seed := number(t, "ACCESSION_CHAOS_SEED", uint64(time.Now().UnixNano()))
	lasts := time.Duration(number(t, "ACCESSION_CHAOS_SECONDS", chaosSeconds)) * time.Second
	t.Logf("ACCESSION_CHAOS_SEED=%d ACCESSION_CHAOS_SECONDS=%.0f", seed, lasts.Seconds())
	var moods sync.Mutex
	mood := rand.New(rand.NewPCG(seed, 1))
	hook := receive(t, func(posted) int {
		moods.Lock()
		defer moods.Unlock()
		if mood.IntN(10) == 0 {
			return http.StatusServiceUnavailable
		}
		return http.StatusAccepted
	})
	h := newChaosSite(t, rand.New(rand.NewPCG(seed, 2)), hook.URL)

	var clients []*chaosClient
	var working sync.WaitGroup
	for n := range chaosClients {
		c := &chaosClient{site: h, org: chaosOrgs[n%len(chaosOrgs)], random: rand.New(rand.NewPCG(seed, uint64(10+n)))}
		clients = append(clients, c)
		working.Go(func() {
			t.Run(fmt.Sprint("client ", n), func(t *testing.T) {
				c.t = t
				c.work()
			})
		})
	}
	through := make(chan struct{})
	go func() {
		working.Wait()
		close(through)
	}()
	h.killing(lasts / 3)
	killed := time.Now()
	kills := h.replicas[0].kills + h.replicas[1].kills
	done := h.disturb(lasts - lasts/3)
	took := h.settle(through)
	if t.Failed() {
		return
	}
	for _, c := range clients {
		c.t = t
	}
	h.replicas[0].current().awaitWebhook(chaosOrgs[0], func(w client.Webhook) bool { return w.Pending == 0 })
	h.checkWebhook(hook.until(t, "all", func([]posted) bool { return true }), chaosOrgs[0])
	h.check(clients)

	stalled, stalledAtAll := h.longest(killed), h.longest(time.Now())
	if s := stalled.done.Sub(stalled.began); s > chaosPatience {
		t.Errorf("%s took %s while replicas were killed", stalled.what, s)
	}
	mutations := 0
	for _, c := range clients {
		mutations += len(c.mutations)
	}
	if !h.proves() {
		t.Errorf("%d lost answers, %d refusals, %d times no allowance, %d uploads: this proves nothing", h.lost, h.unable, h.full, h.uploads)
	}
	t.Logf("%d uploads, %d mutations and %d other steps were acknowledged; %d answers lost, %d said not now; the allowance was used up %d times",
		h.uploads, mutations, len(h.steps)-mutations, h.lost, h.unable, h.full)
	t.Logf("%d kills with nothing else wrong: the longest step took %s (%s)", kills, stalled.done.Sub(stalled.began).Round(time.Millisecond), stalled.what)
	t.Logf("then %d kills beside %s: the longest step took %s (%s); all were through %s after the last fault", h.replicas[0].kills+h.replicas[1].kills-kills,
		counted(done), stalledAtAll.done.Sub(stalledAtAll.began).Round(time.Millisecond), stalledAtAll.what, took.Round(time.Millisecond))
}
