package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

const chaosQuota = 30_000 // bytes; a handful of uploads, so that the allowance is fought over

var chaosOrgs = []string{"harbour", "island"}

// chaosClient is one of an organization's. It goes from replica to replica, repeats under one key what had no answer, and keeps
// a ledger of everything that was acknowledged.
type chaosClient struct {
	t                     testing.TB
	site                  *chaosSite
	random                *rand.Rand
	org, uploader, reader string // the last two are tokens
	turn                  int

	uploads   []*chaosUpload
	mutations []mutation // acknowledged, in order
	revoked   []string   // tokens
}

// chaosUpload is what was acknowledged of an upload.
type chaosUpload struct {
	id        string
	content   []byte
	customer  bool
	infected  bool
	accepted  int // parts
	completed bool
	withdrawn string // id of the receipt
	sequence  int64  // newest that a status said
	statuses  map[int64]string
	records   []string // of served contexts
}

// next is a replica that is ready, another one than the last time where there is one.
func (c *chaosClient) next() partner {
	for began := time.Now(); ; {
		for range c.site.replicas {
			c.turn++
			if s := c.site.replicas[c.turn%len(c.site.replicas)].current(); s != nil {
				return partner{s.in(c.t), c.org, c.uploader}
			}
		}
		c.patience(began, "a replica that is ready")
		time.Sleep(20 * time.Millisecond) // as a balancer asks
	}
}

// patience ends the client where something that began then stalls with nothing wrong any more.
func (c *chaosClient) patience(began time.Time, what string) {
	if since, ending := c.site.ending(began); ending && since > chaosPatience {
		c.t.Fatalf("%s is not there after %s without a fault", what, since.Round(time.Second))
	}
}

// insist repeats a request until it is answered for good, each time at another replica.
func (c *chaosClient) insist(what string, request func(p partner) call) reply {
	c.t.Helper()
	step := chaosStep{what: what, began: time.Now()}
	key := client.NewIdempotencyKey()
	for {
		p := c.next()
		r, settled := c.once(p, request(p), key)
		if settled {
			step.done = time.Now()
			c.site.mu.Lock()
			defer c.site.mu.Unlock()
			c.site.steps = append(c.site.steps, step)
			return r
		}
		c.patience(step.began, what+" ("+string(r.Raw)+")")
		time.Sleep(time.Duration(20+c.random.IntN(150)) * time.Millisecond) // a client is no hammer
	}
}

// once sends a request; it is settled unless there was no answer, or one that says to repeat it.
func (c *chaosClient) once(p partner, request call, key string) (r reply, settled bool) {
	if request.key == "" && request.method != http.MethodGet {
		request.key = key
	}
	r, err := p.try(request)
	switch {
	case err != nil:
		c.site.mu.Lock()
		c.site.lost++
		c.site.mu.Unlock()
		return r, false
	case r.Status >= 500 || r.Code == "idempotency_in_progress":
		c.site.mu.Lock()
		c.site.unable++
		c.site.mu.Unlock()
		if r.Code == "internal_error" {
			c.t.Errorf("%s %s: %s", request.method, request.path, r.Raw)
		}
		return r, false
	}
	return r, true
}

// mutate is insist for what changes something; its answer goes into the ledger. Now and then both replicas get it at once.
func (c *chaosClient) mutate(what string, status int, request func(p partner) call) reply {
	c.t.Helper()
	key := client.NewIdempotencyKey()
	keyed := func(p partner) call {
		r := request(p)
		r.key = key
		return r
	}
	if c.random.IntN(4) == 0 {
		p, also := c.next(), c.next()
		var beside sync.WaitGroup
		beside.Go(func() { _, _ = also.try(keyed(also)) }) // what it is answered is asked again below
		_, _ = p.try(keyed(p))
		beside.Wait()
	}
	r := c.insist(what, keyed)
	if r.Status != status {
		return r
	}
	c.mutations = append(c.mutations, mutation{keyed(c.next()), status, r.Data})
	return r
}

// ack notes the status that an answer gives a sequence; no other answer may ever differ.
func (c *chaosClient) ack(u *chaosUpload, sequence int64, status string) {
	c.t.Helper()
	if before, ok := u.statuses[sequence]; ok && before != status {
		c.t.Errorf("upload %s: sequence %d was acknowledged as %s, now it is %s", u.id, sequence, before, status)
	}
	u.statuses[sequence] = status
}

// look reads a status and holds it against what was acknowledged.
func (c *chaosClient) look(u *chaosUpload, wait int) status {
	c.t.Helper()
	r := c.insist("status", func(p partner) call {
		return call{method: "GET", path: p.path("/partner-uploads/" + u.id), token: c.uploader, header: map[string]string{"Prefer": fmt.Sprint("wait=", wait)}}
	})
	st := decode[status](c.t, r.want(c.t, 200, ""))
	c.ack(u, st.Sequence, st.Status)
	if st.Sequence < u.sequence {
		c.t.Errorf("upload %s was at sequence %d (%s), now it is at %d (%s)", u.id, u.sequence, u.statuses[u.sequence], st.Sequence, st.Status)
	}
	if st.NextPartNumber <= u.accepted && !u.completed && u.withdrawn == "" {
		c.t.Errorf("upload %s: part %d was acknowledged, next_part_number is %d", u.id, u.accepted, st.NextPartNumber)
	}
	if (st.Status == "WITHDRAWN" || st.Status == "WITHDRAWING") != (u.withdrawn != "") {
		c.t.Errorf("upload %s: the status is %s, acknowledged was receipt %q", u.id, st.Status, u.withdrawn)
	}
	u.sequence = st.Sequence
	return st
}

// work does one thing after another until there is to be nothing new.
func (c *chaosClient) work() {
	c.uploader, c.reader = c.issue("solution_company_upload"), c.issue("ai_reader")
	for {
		if _, ending := c.site.ending(time.Now()); ending {
			return
		}
		switch n := c.random.IntN(20); {
		case n < 12:
			c.upload()
		case n < 14:
			c.submit()
		case n < 16:
			c.revoke()
		case n < 18:
			c.replay()
		default:
			if kept := c.kept(); len(kept) > 0 {
				c.withdraw(kept[c.random.IntN(len(kept))])
			}
		}
	}
}

// keep notes an upload that was acknowledged.
func (c *chaosClient) keep(u *chaosUpload) {
	c.uploads = append(c.uploads, u)
	c.site.mu.Lock()
	defer c.site.mu.Unlock()
	c.site.uploads++
}

func (c *chaosClient) kept() (kept []*chaosUpload) {
	for _, u := range c.uploads {
		if u.withdrawn == "" {
			kept = append(kept, u)
		}
	}
	return kept
}

func (c *chaosClient) issue(role string) (token string) {
	return c.mutate("issue", 201, func(partner) call { return issuing("", c.org, role) }).want(c.t, 201, "").field(c.t, "token")
}

// full tells whether a refusal is the allowance's, and makes room then.
func (c *chaosClient) full(r reply) bool {
	if r.Code != "quota_exceeded" {
		return false
	}
	c.site.mu.Lock()
	c.site.full++
	c.site.mu.Unlock()
	if used := r.Details["used_bytes"].(float64) + r.Details["reserved_bytes"].(float64); used > chaosQuota {
		c.t.Errorf("%v bytes of %d are used", used, chaosQuota)
	}
	if kept := c.kept(); len(kept) > 0 {
		c.withdraw(kept[0])
	}
	return true
}

// upload takes a document of a few parts through the main job, or gives it up on the way.
func (c *chaosClient) upload() {
	u := &chaosUpload{infected: c.random.IntN(10) == 0, statuses: map[int64]string{}}
	for n, size := 1, 500+c.random.IntN(3*partSize); len(u.content) < size; n++ {
		u.content = fmt.Appendf(u.content, "Berth %d of the %s was inspected on day %d and found in order. ", n, c.org, c.random.IntN(365))
	}
	if u.infected {
		u.content = []byte(eicar())
	}
	r := c.mutate("initiate", 200, func(p partner) call { return p.reserving("", len(u.content)) })
	if c.full(r) {
		return
	}
	u.id = r.want(c.t, 200, "").field(c.t, "upload_id")
	c.ack(u, 1, "INITIATED")
	c.keep(u)
	parts := cut(u.content, partSize)
	for n, part := range parts {
		if c.random.IntN(12) == 0 {
			return // given up: it stays as it is, or is withdrawn later
		}
		r := c.mutate("part", 200, func(p partner) call { return p.put(byPath, u.id, n+1, "", part) }).want(c.t, 200, "")
		u.accepted = n + 1
		u.ackReply(c, r)
		if c.random.IntN(6) == 0 { // the same bytes again are the same part; others are another
			c.insist("part again", func(p partner) call { return p.put(byQuery, u.id, n+1, "", part) }).want(c.t, 200, "")
			c.insist("another part", func(p partner) call {
				return p.put(byQuery, u.id, n+1, "", bytes.Replace(part, part[:1], []byte("~"), 1))
			}).want(c.t, 409, "part_conflict")
		}
		if c.random.IntN(4) == 0 {
			c.look(u, 0)
		}
	}
	r = c.mutate("complete", 202, func(p partner) call { return p.closing(byPath, u.id, "", parts) }).want(c.t, 202, "")
	u.completed = true
	u.ackReply(c, r)
	if c.random.IntN(5) == 0 { // beside its gates
		c.withdraw(u)
		return
	}
	c.await(u)
	if !u.infected {
		c.read(u)
	}
	if c.random.IntN(3) > 0 {
		c.withdraw(u)
	}
}

func (u *chaosUpload) ackReply(c *chaosClient, r reply) {
	answer := decode[struct {
		Sequence int64
		Status   string
	}](c.t, r)
	c.ack(u, answer.Sequence, answer.Status)
}

// await follows an upload through its gates.
func (c *chaosClient) await(u *chaosUpload) {
	step := chaosStep{what: "gates", began: time.Now()}
	want := "READY"
	if u.infected {
		want = "REJECTED"
	}
	for {
		st := c.look(u, 2)
		switch st.Status {
		case want:
			step.done = time.Now()
			c.site.mu.Lock()
			defer c.site.mu.Unlock()
			c.site.steps = append(c.site.steps, step)
			return
		case "PROCESSING":
			c.patience(step.began, "the end of the gates of "+u.id)
		default:
			c.t.Fatalf("the gates of %s ended %s: %+v", u.id, st.Status, st)
		}
	}
}

func (c *chaosClient) read(u *chaosUpload) {
	r := c.insist("context", func(p partner) call { return call{method: "GET", path: p.path("/ai-context/" + u.id), token: c.reader} })
	served := decode[servedContext](c.t, r.want(c.t, 200, ""))
	if served.Context.Source.SHA256 != hexSum(u.content) || served.RecordID == "" {
		c.t.Errorf("the context of %s is another's: %s", u.id, r.Raw)
	}
	u.records = append(u.records, served.RecordID)
}

// submit hands in a text, whose gates run inside the request.
func (c *chaosClient) submit() {
	u := &chaosUpload{customer: true, completed: true, statuses: map[int64]string{}}
	u.content = fmt.Appendf(nil, "The pump of the %s was serviced on day %d. It runs again.", c.org, c.random.IntN(365))
	r := c.mutate("text", 201, func(p partner) call { return p.submitting("", text(string(u.content), nil)) })
	if c.full(r) {
		return
	}
	u.id = r.want(c.t, 201, "").field(c.t, "upload_id")
	c.keep(u)
	c.look(u, 0)
	c.read(u)
}

// withdraw takes an upload back; from its answer on nobody can read it anywhere.
func (c *chaosClient) withdraw(u *chaosUpload) {
	r := c.mutate("withdraw", 200, func(p partner) call { return p.withdrawing(u.id, "", "chaos") }).want(c.t, 200, "")
	u.withdrawn = r.field(c.t, "withdrawal_receipt_id")
	if r.field(c.t, "status") != "WITHDRAWN" || u.withdrawn == "" || r.field(c.t, "quota_bytes") != fmt.Sprint(len(u.content)) {
		c.t.Errorf("withdrawal of %s, %d bytes: %s", u.id, len(u.content), r.Raw)
	}
	if st := c.look(u, 0); st.Status != "WITHDRAWN" {
		c.t.Errorf("upload %s was withdrawn and is %s", u.id, st.Status)
	}
	c.insist("context of nothing", func(p partner) call { return call{method: "GET", path: p.path("/ai-context/" + u.id), token: c.reader} }).
		want(c.t, 404, "context_not_ready")
}

// revoke ends a credential at one replica; it is dead at every other with the next request.
func (c *chaosClient) revoke() {
	issued := c.mutate("issue", 201, func(partner) call { return issuing("", c.org, "ai_reader") }).want(c.t, 201, "")
	token := issued.field(c.t, "token")
	c.insist("use", func(p partner) call { return call{method: "GET", path: p.path("/quota"), token: token} }).want(c.t, 200, "")
	path := "/admin/tenant-keys/credentials/" + issued.field(c.t, "credential_id") + "/revoke"
	c.mutate("revoke", 200, func(partner) call { return call{method: "POST", path: path, bearer: adminToken} }).want(c.t, 200, "")
	c.revoked = append(c.revoked, token)
	c.wantRevoked(token)
}

func (c *chaosClient) wantRevoked(token string) {
	for range c.site.replicas {
		c.insist("use of what was revoked", func(p partner) call { return call{method: "GET", path: p.path("/quota"), token: token} }).want(c.t, 401, "credential_invalid")
	}
}

// replay sends an acknowledged mutation again: its answer was as durable as its effect.
func (c *chaosClient) replay() {
	if len(c.mutations) > 0 {
		c.wantReplayed(c.mutations[c.random.IntN(len(c.mutations))])
	}
}

func (c *chaosClient) wantReplayed(m mutation) {
	r := c.insist("replay", func(partner) call { return m.call })
	if r.Status != m.status || !bytes.Equal(nameless(r.Data), nameless(m.data)) || r.Header.Get("Idempotent-Replayed") != "true" {
		c.t.Errorf("%s %s was acknowledged with %d %s, its replay is %s %d %s", m.method, m.path, m.status, m.data, r.Header.Get("Idempotent-Replayed"), r.Status, r.Raw)
	}
}

// nameless is an answer without the filename, which a withdrawal takes out of kept answers.
func nameless(data json.RawMessage) []byte {
	return bytes.Replace(data, []byte(`"filename":"note.txt"`), []byte(`"filename":""`), 1)
}
