package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// hooked are the options of a replica that posts to this machine.
func (p premises) hooked(t testing.TB, flags ...string) options {
	o := p.options(filepath.Join(t.TempDir(), "data"), "all")
	o.flags = append([]string{"--webhook-private-addresses", "allow"}, flags...)
	databases.Store(o.data, p.url)
	return o
}

// A sender dies with deliveries in its hands: the other one makes them, in order, and nothing that was on record comes again.
func TestDeadSendersDeliveriesAreTakenOver(t *testing.T) {
	t.Parallel()
	shared := newPremises(t)
	var hangs atomic.Bool
	hook := receive(t, func(posted) int {
		if hangs.Load() {
			return 0
		}
		return http.StatusAccepted
	})
	a := start(t, shared.hooked(t, "--webhook-timeout", "1m"))
	p := a.partner("harbour")
	a.setWebhook("harbour", hook.URL)
	recorded := p.submit(text("The pump runs.", nil))
	a.awaitWebhook("harbour", func(w client.Webhook) bool { return w.Pending == 0 })
	before := len(hook.until(t, "the first upload", arrivedAs(recorded, "READY")))

	hangs.Store(true)
	ids := []string{recorded}
	for range tortureUnderWay {
		ids = append(ids, p.submit(text("The pump stands.", nil)))
	}
	held := hook.until(t, "what one sender may hold", func(seen []posted) bool { return len(seen) == before+tortureUnderWay })[before:]
	b := start(t, shared.hooked(t))
	db := b.database(t, "metadata.db")
	if n := count(t, db, `SELECT COUNT(DISTINCT lease) FROM webhook_deliveries WHERE lease <> ''`); n != 1 {
		t.Errorf("%d senders hold deliveries", n)
	}
	hangs.Store(false)
	a.kill()
	b.awaitWebhook("harbour", func(w client.Webhook) bool { return w.Pending == 0 })

	seen := hook.until(t, "all", func([]posted) bool { return true })
	wantInOrder(t, seen)
	posts, accepted := map[string]int{}, map[string]int{}
	for _, e := range seen {
		posts[e.ID]++
		if e.Answer == http.StatusAccepted {
			accepted[e.ID]++
		}
	}
	for _, e := range held {
		if posts[e.ID] != 2 {
			t.Errorf("%s, in the hands of the dead, came %d times", e.ID, posts[e.ID])
		}
		posts[e.ID]--
	}
	events := 0
	for _, id := range ids {
		events += count(t, db, `SELECT COUNT(*) FROM status_events WHERE upload_id = $1`, id)
	}
	if len(accepted) != events {
		t.Errorf("%d of %d events arrived", len(accepted), events)
	}
	for id, n := range posts {
		if n != 1 || accepted[id] != 1 {
			t.Errorf("%s came %d times and was accepted %d times", id, n, accepted[id])
		}
	}
}

// Two senders, either of which dies again and again, and a receiver that does whatever comes into its head: every event arrives, in
// order per upload, and none is sent once its end is on record. ACCESSION_TORTURE_SEED asks for the same choices.
func TestWebhookTortureOfTwoSenders(t *testing.T) {
	t.Parallel()
	seed := number(t, "ACCESSION_TORTURE_SEED", uint64(time.Now().UnixNano()))
	t.Logf("ACCESSION_TORTURE_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	var kind atomic.Bool
	whim := whims(rand.New(rand.NewPCG(seed, 2)), &kind)
	var arrivals []int64 // of what was seen, in Unix milliseconds; guarded by the receiver
	hook := receive(t, func(p posted) int {
		arrivals = append(arrivals, time.Now().UnixMilli())
		return whim(p)
	})
	shared := newPremises(t)
	flags := []string{"--webhook-retry-delays", "5ms,20ms", "--webhook-timeout", "200ms"}
	replicas := []options{shared.hooked(t, flags...), shared.hooked(t, flags...)}
	running := []*service{start(t, replicas[0]), start(t, replicas[1])}
	s := running[0]
	token := s.issue("harbour", "solution_company_upload")
	s.setWebhook("harbour", hook.URL)
	var uploads []string
	for life := range tortureLives {
		before := len(hook.until(t, "nothing", func([]posted) bool { return true }))
		for _, s := range running {
			uploads = append(uploads, partner{s, "harbour", token}.submit(text("The pump runs.", nil)))
		}
		enough := before + 5 + random.IntN(15)
		hook.until(t, "posts of a life", func(seen []posted) bool { return len(seen) >= enough })
		if life < tortureLives-1 {
			n := random.IntN(2)
			running[n].kill()
			running[n] = start(t, replicas[n])
		}
	}
	s = running[0]
	s.awaitWebhook("harbour", func(w client.Webhook) bool { return w.Pending == 0 })

	seen := hook.until(t, "all", func([]posted) bool { return true })
	final, dead := wantInOrder(t, seen)
	db := s.database(t, "metadata.db")
	for _, id := range uploads {
		if want := count(t, db, `SELECT COUNT(*) FROM status_events WHERE upload_id = $1`, id); want < 5 || len(final[id]) != want {
			t.Errorf("%s: %d of %d events were done", id, len(final[id]), want)
		}
	}
	if n := len(s.deliveries("harbour", "dead").Deliveries); n != len(dead) {
		t.Errorf("%d events are dead, %d were refused", n, len(dead))
	}

	rows, err := db.Query(`SELECT event_id, outcome, at + latency_ms FROM webhook_attempts`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	attempts, ended := 0, map[string]int64{} // when an event's end was known
	for rows.Next() {
		var id, outcome string
		var at int64
		if err := rows.Scan(&id, &outcome, &at); err != nil {
			t.Fatal(err)
		}
		attempts++
		if slices.Contains([]string{"accepted", "duplicate", "refused"}, outcome) {
			if ended[id] != 0 {
				t.Errorf("%s ended twice", id)
			}
			ended[id] = at
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for i, p := range seen {
		if at, is := ended[p.ID]; !is || arrivals[i] > at+2 { // both parts of at are rounded down
			t.Errorf("%s came %d ms after its end was on record (%t)", p.ID, arrivals[i]-at, is)
		}
	}
	const kills = tortureLives - 1
	if len(seen)-attempts > kills*tortureUnderWay {
		t.Errorf("%d posts, %d of them on record, over %d kills", len(seen), attempts, kills)
	}
	t.Logf("%d posts of %d events over %d kills, %d not on record, %d refused", len(seen), len(ended), kills, len(seen)-attempts, len(dead))
}

// What a re-scan takes back is recalled from those that it was served to.
func TestRefusedContextIsRecalled(t *testing.T) {
	t.Parallel()
	known := newSignatureFolder(t)
	known.age(time.Hour)
	s := start(t, options{env: known.managed(), flags: append([]string{"--signatures-check-every", "1h"}, hookFlags...)})
	hook := receive(t, nil)
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	secret := s.setWebhook("harbour", hook.URL)
	served, unread := p.submit(text("The pump stands beside the quiet-otter.", nil)), p.submit(text("Nobody reads of the quiet-otter.", nil))
	was := decode[servedContext](t, s.context("harbour", reader, served).want(t, 200, ""))
	s.context("harbour", reader, served).want(t, 200, "")
	known.learn("quiet-otter")
	s.wantCLI(6, "", "rescan", "--org", "harbour", "--wait")
	for _, id := range []string{served, unread} {
		hook.until(t, "refusal", arrivedAs(id, "REJECTED"))
		p.withdraw(id).want(t, 200, "")
		hook.until(t, "withdrawal", arrivedAs(id, "WITHDRAWN"))
	}
	order := map[string][]string{}
	for _, e := range hook.until(t, "all", func([]posted) bool { return true }) {
		if e.Event == "" {
			order[e.UploadID] = append(order[e.UploadID], e.Status)
			continue
		}
		var recall client.ContextRecalled
		if err := json.Unmarshal(e.Body, &recall); err != nil || recall.OrgID != "harbour" || recall.Servings != 2 || len(recall.CredentialIDs) != 1 ||
			!slices.Equal(recall.ContextSHA256s, []string{was.Context.ContextSHA256}) {
			t.Errorf("recall %s: %v", e.Body, err)
		}
		wantSigned(t, secret, e)
		order[e.UploadID] = append(order[e.UploadID], e.Event+":"+recall.Reason)
	}
	for id, want := range map[string]string{
		served: "READY REJECTED contextRecalled:rejected WITHDRAWING contextRecalled:withdrawn WITHDRAWN",
		unread: "READY REJECTED WITHDRAWING WITHDRAWN",
	} {
		if got := strings.Join(order[id], " "); !strings.HasSuffix(got, want) {
			t.Errorf("it came as %q, want %q", got, want)
		}
	}
}
