package e2e

import (
	"database/sql"
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

// sending is what the database knows of the posts of one event.
type sending struct {
	claims  int    // a sender posts once under each
	answers int    // of those claims, on record
	silent  int    // of the claims that are not, or ended by the sender's timeout: their posts may arrive at any time
	outcome string // of the answer that ended it
	ended   int64  // when that was known, in Unix milliseconds, rounded down twice
}

// sendings are those of every event. It fails the test unless each ended once, under its last claim: then nothing is sent any more. And
// none was posted without a claim. A sender that stands still for longer than its lease loses its claims; so they are counted, not posts.
func sendings(t *testing.T, db *sql.DB, seen []posted) map[string]sending {
	t.Helper()
	all := map[string]sending{}
	rows, err := db.Query(`SELECT d.event_id, d.attempts, d.state, COALESCE(a.attempt, 0), COALESCE(a.outcome, ''), COALESCE(a.at + a.latency_ms, 0)
		FROM webhook_deliveries d LEFT JOIN webhook_attempts a ON a.event_id = d.event_id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, state, outcome string
		var claims, claim int
		var at int64
		if err := rows.Scan(&id, &claims, &state, &claim, &outcome, &at); err != nil {
			t.Fatal(err)
		}
		s := all[id]
		if s.claims = claims; outcome != "" && outcome != "timeout" {
			s.answers++
		}
		if slices.Contains([]string{"accepted", "duplicate", "refused"}, outcome) {
			if s.outcome != "" || claim != claims || (state == "dead") != (outcome == "refused") || state == "pending" {
				t.Errorf("%s ended %s, %s, with claim %d of %d, and before %q", id, outcome, state, claim, claims, s.outcome)
			}
			s.outcome, s.ended = outcome, at
		}
		s.silent = s.claims - s.answers
		all[id] = s
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	posts := map[string]int{}
	for _, p := range seen {
		posts[p.ID]++
	}
	for id, n := range posts {
		if n > all[id].claims {
			t.Errorf("%s came %d times under %d claims", id, n, all[id].claims)
		}
	}
	for id, s := range all {
		if s.outcome == "" || posts[id] == 0 {
			t.Errorf("%s came %d times and ended %q", id, posts[id], s.outcome)
		}
	}
	return all
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
	held := hook.until(t, "what one sender may hold", func(seen []posted) bool { return len(seen) >= before+tortureUnderWay })[before:]
	b := start(t, shared.hooked(t))
	db := b.database(t, "metadata.db")
	// What was claimed again was let go of before, by a sender that stood still.
	if n := count(t, db, `SELECT COUNT(DISTINCT lease) FROM webhook_deliveries WHERE lease <> '' AND attempts = 1`); n > 1 {
		t.Errorf("%d senders hold deliveries", n)
	}
	hangs.Store(false)
	a.kill()
	b.awaitWebhook("harbour", func(w client.Webhook) bool { return w.Pending == 0 })

	seen := hook.until(t, "all", func([]posted) bool { return true })
	wantInOrder(t, seen)
	sent := sendings(t, db, seen)
	for _, e := range held {
		if sent[e.ID].claims < 2 || sent[e.ID].outcome != "accepted" {
			t.Errorf("%s, in the hands of the dead: %+v", e.ID, sent[e.ID])
		}
	}
	events := 0
	for _, id := range ids {
		events += count(t, db, `SELECT COUNT(*) FROM status_events WHERE upload_id = $1`, id)
	}
	if len(sent) != events {
		t.Errorf("%d of %d events arrived", len(sent), events)
	}
	silent := 0
	for id, s := range sent {
		if silent += s.silent; s.outcome != "accepted" || s.answers != 1 {
			t.Errorf("%s: %+v", id, s)
		}
	}
	// The dead one's, and what two senders had under way that stood still for longer than a lease.
	if silent < tortureUnderWay || silent > 3*tortureUnderWay {
		t.Errorf("%d claims came to nothing, of %d events", silent, events)
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
	flags := []string{"--webhook-retry-delays", "5ms,20ms", "--webhook-timeout", "1s"}
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
	sent, refused := sendings(t, db, seen), 0
	for id, s := range sent {
		if s.outcome == "refused" {
			refused++
		}
		if s.silent == 0 && dead[id] != (s.outcome == "refused") {
			t.Errorf("%s: %+v; the receiver refused it: %t", id, s, dead[id])
		}
	}
	if n := len(s.deliveries("harbour", "dead").Deliveries); n != refused {
		t.Errorf("%d events are dead, %d were refused", n, refused)
	}
	late := map[string]int{}
	for i, p := range seen {
		if arrivals[i] > sent[p.ID].ended+2 {
			late[p.ID]++
		}
	}
	for id, n := range late { // what nobody waited for any more may have been on its way
		if n > sent[id].silent {
			t.Errorf("%s came %d times after its end was on record: %+v", id, n, sent[id])
		}
	}
	attempts := count(t, db, `SELECT COUNT(*) FROM webhook_attempts`)
	const kills = tortureLives - 1
	if len(seen)-attempts > kills*tortureUnderWay {
		t.Errorf("%d posts, %d of them on record, over %d kills", len(seen), attempts, kills)
	}
	t.Logf("%d posts of %d events over %d kills, %d not on record, %d refused", len(seen), len(sent), kills, len(seen)-attempts, refused)
}

// What a re-scan takes back is recalled from those that it was served to.
func TestRefusedContextIsRecalled(t *testing.T) {
	t.Parallel()
	known := newSignatureFolder(t)
	known.age(time.Hour)
	s := start(t, options{env: known.managed(), flags: append([]string{"--signatures-check-every", "1h"}, hookFlags...)})
	s.awaitClamd()
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
	order, came := map[string][]string{}, map[string]bool{}
	for _, e := range hook.until(t, "all", func([]posted) bool { return true }) {
		if came[e.ID] { // the answer took too long, and it came again
			continue
		}
		came[e.ID] = true
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
