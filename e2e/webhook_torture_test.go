package e2e

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

const (
	tortureLives    = 8 // of the service; each but the last ends by kill -9
	tortureUnderWay = 8 // posts to one endpoint at once
	tortureHangs    = 3 // posts of a run that are never answered: each holds up the events of its upload for as long as a receiver may take
)

// whims answer whatever comes into their head, one post at a time, and 202 once they are kind.
func whims(random *rand.Rand, kind *atomic.Bool) func(posted) int {
	return func(posted) int {
		if kind.Load() {
			return http.StatusAccepted
		}
		switch n := random.IntN(100); {
		case n < 50:
			return http.StatusAccepted
		case n < 58:
			return http.StatusConflict
		case n < 63:
			return http.StatusBadRequest
		case n < 75:
			return http.StatusInternalServerError
		case n < 80:
			return http.StatusFound
		case n < 83:
			return 0
		default:
			return -1
		}
	}
}

// wantInOrder fails the test where an event came before every earlier one of its upload was accepted or refused. It returns the
// sequences that were, by upload, and the events whose last word was a refusal.
func wantInOrder(t *testing.T, seen []posted) (final map[string]map[int64]bool, dead map[string]bool) {
	t.Helper()
	final, dead = map[string]map[int64]bool{}, map[string]bool{}
	for _, p := range seen {
		if final[p.UploadID] == nil {
			final[p.UploadID] = map[int64]bool{}
		}
		for earlier := int64(1); earlier < p.Sequence; earlier++ {
			if !final[p.UploadID][earlier] {
				t.Errorf("%s: %d came before %d was done", p.UploadID, p.Sequence, earlier)
			}
		}
		switch p.Answer {
		case http.StatusAccepted, http.StatusConflict:
			final[p.UploadID][p.Sequence] = true
			delete(dead, p.ID)
		case http.StatusBadRequest:
			final[p.UploadID][p.Sequence], dead[p.ID] = true, true
		}
	}
	return final, dead
}

// A receiver that does whatever comes into its head, and a service that dies again and again: every event arrives, in order per
// upload, and none comes twice that was accepted by the service's own knowledge. ACCESSION_TORTURE_SEED asks for the same choices.
func TestWebhookTorture(t *testing.T) {
	t.Parallel()
	seed := number(t, "ACCESSION_TORTURE_SEED", uint64(time.Now().UnixNano()))
	t.Logf("ACCESSION_TORTURE_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	var kind atomic.Bool // the receiver comes to its senses
	whim, hangs := whims(rand.New(rand.NewPCG(seed, 2)), &kind), 0
	hook := receive(t, func(p posted) int {
		answer := whim(p)
		if answer == 0 {
			if hangs++; hangs > tortureHangs {
				return -1
			}
		}
		return answer
	})
	h := newSite(t, binary)
	// An answer that a busy machine holds up must not be given up: the sender would not know that it was accepted.
	h.o.flags = append(h.o.flags, "--webhook-private-addresses", "allow", "--webhook-retry-delays", "5ms,20ms", "--webhook-timeout", "10s", "--rate-limits", "off")
	var uploads []string
	kills := 0
	var token string
	for range tortureLives {
		s, err := h.service()
		if err != nil {
			t.Fatal(err)
		}
		if token == "" {
			token = s.issue("harbour", "solution_company_upload")
			s.setWebhook("harbour", hook.URL)
		}
		before := 0
		hook.until(t, "nothing", func(seen []posted) bool { before = len(seen); return true })
		for range 2 {
			uploads = append(uploads, partner{s, "harbour", token}.submit(text("The pump runs.", nil)))
		}
		enough := before + 5 + random.IntN(15)
		hook.until(t, "posts of a life", func(seen []posted) bool { return len(seen) >= enough })
		if len(uploads) < 2*tortureLives {
			h.kill()
			kills++
		}
	}
	s, err := h.service()
	if err != nil {
		t.Fatal(err)
	}
	s = s.in(t)
	s.awaitWebhook("harbour", func(w client.Webhook) bool { return w.Pending == 0 })
	seen := hook.until(t, "all", func([]posted) bool { return true })

	want := map[string]int{}
	db := s.database(t, "metadata.db")
	for _, id := range uploads {
		want[id] = count(t, db, `SELECT COUNT(*) FROM status_events WHERE upload_id = $1`, id)
	}
	final, dead := wantInOrder(t, seen)
	sent, accepted := sendings(t, db, seen), map[string]bool{}
	for _, p := range seen {
		// Only a claim that came to nothing excuses another post: its sender died, or nobody waited for the answer any more.
		if accepted[p.ID] && sent[p.ID].silent == 0 {
			t.Errorf("%s came again after the service knew that it was accepted: %+v", p.ID, sent[p.ID])
		}
		if p.Answer == http.StatusAccepted || p.Answer == http.StatusConflict {
			accepted[p.ID] = true
		}
	}
	for _, id := range uploads {
		if want[id] < 5 || len(final[id]) != want[id] {
			t.Errorf("%s: %d of %d events were done", id, len(final[id]), want[id])
		}
	}
	list := map[string]bool{}
	for _, d := range s.deliveries("harbour", "dead").Deliveries {
		list[d.EventID] = true
	}
	for id := range sent { // a post whose sender died may have been answered after that of the next one
		if sent[id].silent == 0 && list[id] != dead[id] {
			t.Errorf("%s: dead %t, refused %t", id, list[id], dead[id])
		}
	}

	kind.Store(true)
	s.do(call{method: "POST", path: webhookOf("harbour") + "/replay", bearer: adminToken, key: client.NewIdempotencyKey()}).want(t, 200, "")
	s.awaitWebhook("harbour", func(w client.Webhook) bool { return w.Pending == 0 })
	for _, p := range hook.until(t, "all", func([]posted) bool { return true }) {
		if slices.Contains([]int{http.StatusAccepted, http.StatusConflict}, p.Answer) {
			accepted[p.ID] = true
		}
	}
	if all := count(t, db, `SELECT COUNT(*) FROM status_events`); len(accepted) != all {
		t.Errorf("%d of %d events arrived", len(accepted), all)
	}
	t.Logf("%d posts of %d events over %d kills, %d refused", len(seen), len(accepted), kills, len(dead))
}
