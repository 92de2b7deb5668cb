package e2e

import (
	"database/sql"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// together sends n requests at the same time, each to the next replica.
func together(t *testing.T, replicas []*service, n int, request func(i int) call) []reply {
	t.Helper()
	replies, errs := make([]reply, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { replies[i], errs[i] = replicas[i%len(replicas)].try(request(i)) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return replies
}

// trying sends a request and lets its answer come; one without an answer has no status, and a message.
func (s *service) trying(c call) <-chan reply {
	answer := make(chan reply, 1)
	go func() {
		r, err := s.try(c)
		if err != nil {
			r.Message = err.Error()
		}
		answer <- r
	}()
	return answer
}

// awaitCount returns once a query that counts says n.
func awaitCount(t *testing.T, db *sql.DB, n int, query string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); count(t, db, query) != n; {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d, want %d", query, count(t, db, query), n)
		}
	}
}

// One request with one key, at two replicas at once: one effect, and its answer for everybody who is not told to wait.
func TestOneKeyAtTwoReplicasHasOneEffect(t *testing.T) {
	t.Parallel()
	r := replicas(t, 2, options{flags: []string{"--rate-limits", "off"}})
	db := r[0].database(t, "metadata.db")
	once := func(what string, status int, request call) reply {
		t.Helper()
		request.key = client.NewIdempotencyKey()
		var first []reply
		replies := together(t, r, 12, func(int) call { return request })
		for _, a := range replies {
			switch {
			case a.Status == status && a.Header.Get("Idempotent-Replayed") == "":
				first = append(first, a)
			case a.Status != status:
				a.want(t, 409, "idempotency_in_progress")
			}
		}
		if len(first) != 1 {
			t.Fatalf("%s: %d answers were first", what, len(first))
		}
		for _, s := range r {
			replies = append(replies, s.do(request).want(t, status, ""))
		}
		for _, a := range replies {
			if a.Status == status {
				sameBut(t, first[0], a)
			}
		}
		return first[0]
	}
	p := partner{r[0], "harbour", once("issue", 201, issuing("", "harbour", "solution_company_upload")).field(t, "token")}
	content := note("four-hands")
	id := once("initiate", 200, p.reserving("", len(content))).field(t, "upload_id")
	once("part", 200, p.put(byPath, id, 1, "", content))
	once("complete", 202, p.closing(byPath, id, "", [][]byte{content}))
	p.wantReady(id)
	submitted := once("text", 201, p.submitting("", text("The pump runs.", nil))).field(t, "upload_id")
	once("correction", 201, p.correcting(submitted, "", text("The pump runs again.", nil)))
	once("review", 200, p.reviewing(submitted, "", fields{"review_id": "rev-1"}))
	once("withdrawal", 200, p.withdrawing(id, "", "moved out"))
	once("retention", 200, r[0].retaining("harbour", 30, ""))
	for what, want := range map[string]int{
		`uploads WHERE status IN ('READY', 'WITHDRAWN')`:                3,
		`uploads WHERE status NOT IN ('READY', 'WITHDRAWN', 'EXPIRED')`: 0, // what lost at its end lapses at once
		`uploads WHERE status = 'EXPIRED' AND filename <> ''`:           0,
		`credentials`:         1,
		`external_references`: 1,
		`receipts`:            1,
	} {
		if n := count(t, db, `SELECT COUNT(*) FROM `+what); n != want {
			t.Errorf("%d %s, want %d", n, what, want)
		}
	}
	if q := r[1].quota("harbour", p.token); q.ReservedBytes != 0 || q.UsedBytes != int64(len("The pump runs.")+len("The pump runs again.")) || q.UploadCount != 2 {
		t.Errorf("quota: %+v", q)
	}
}

// A text is still at its gates at one replica when it comes again, with its key, to the other one, which is faster.
func TestTextThatRunsAtAnotherReplicaIsTakenOnce(t *testing.T) {
	t.Parallel()
	site := newPremises(t)
	slow, fast := newGatekeeper(t), newGatekeeper(t)
	fast.open()
	a := start(t, site.options("", "all", "ACCESSION_CLAMD_ADDRESS="+slow.address))
	b := start(t, site.options("", "all", "ACCESSION_CLAMD_ADDRESS="+fast.address))
	databases.Store(b.data, site.url)
	p := a.partner("harbour")
	request := p.submitting(client.NewIdempotencyKey(), text("The pump runs.", nil))
	at := a.trying(request)
	db := b.database(t, "metadata.db")
	awaitCount(t, db, 1, `SELECT COUNT(*) FROM uploads`)
	a.do(request).want(t, 409, "idempotency_in_progress")
	other := request
	other.json = text("The pump stands.", nil)
	first := b.do(request).want(t, 201, "")
	b.do(other).want(t, 409, "idempotency_conflict")
	slow.open()
	wantReplay(t, first, <-at)
	if n := count(t, db, `SELECT COUNT(*) FROM uploads WHERE status = 'READY'`); n != 1 {
		t.Errorf("%d uploads are READY", n)
	}
	if q := b.quota("harbour", p.token); q.ReservedBytes != 0 || q.UsedBytes != int64(len("The pump runs.")) || q.UploadCount != 1 {
		t.Errorf("quota: %+v", q)
	}
	if n := count(t, db, `SELECT COUNT(*) FROM status_events e JOIN uploads u ON u.upload_id = e.upload_id WHERE u.status = 'EXPIRED'`); n != 2 {
		t.Errorf("%d events of the slower one, want that it came and went", n)
	}
}

// A replica dies with a text at its gates. The same request is taken by another one at once, and what the dead one began lapses.
func TestTextOfADeadReplicaIsTakenByAnother(t *testing.T) {
	t.Parallel()
	site := newPremises(t)
	a := start(t, site.options("", "all", "ACCESSION_CLAMD_ADDRESS="+newGatekeeper(t).address))
	b := start(t, site.options("", "all"))
	databases.Store(b.data, site.url)
	p := b.partner("harbour")
	request := p.submitting(client.NewIdempotencyKey(), text("The pump runs.", nil))
	cut := a.trying(request)
	db := b.database(t, "metadata.db")
	awaitCount(t, db, 1, `SELECT COUNT(*) FROM uploads`)
	a.kill()
	if r := <-cut; r.Status != 0 {
		t.Errorf("the dead replica answered %d %s", r.Status, r.Raw)
	}
	first := b.do(request).want(t, 201, "")
	wantReplay(t, first, b.do(request))
	b.lapse(t)
	awaitCount(t, db, 1, `SELECT COUNT(*) FROM uploads WHERE status = 'EXPIRED'`)
	if q := b.quota("harbour", p.token); q.ReservedBytes != 0 || q.UsedBytes != int64(len("The pump runs.")) || q.UploadCount != 1 {
		t.Errorf("quota: %+v", q)
	}
	for _, path := range files(t, site.shared) {
		if strings.Contains(path, "upl_") && !strings.Contains(path, first.field(t, "upload_id")) {
			t.Errorf("%s is left", path)
		}
	}
}

// To the last byte, whoever is asked.
func TestQuotaHoldsOverReplicas(t *testing.T) {
	t.Parallel()
	r := replicas(t, 2, options{env: []string{"ACCESSION_QUOTA_BYTES=1000", "ACCESSION_RATE_LIMITS=off"}})
	p := r[0].partner("harbour")
	taken := 0
	var ids []string
	for _, a := range together(t, r, 40, func(i int) call {
		if i%4 < 2 {
			return p.submitting(client.NewIdempotencyKey(), text(strings.Repeat("pump ", 14), nil)) // 70 bytes
		}
		return p.reserving(client.NewIdempotencyKey(), 70)
	}) {
		if a.Status >= 400 {
			a.want(t, 409, "quota_exceeded")
			continue
		}
		taken++
		ids = append(ids, a.field(t, "upload_id"))
	}
	for _, s := range r {
		if q := s.quota("harbour", p.token); taken != 14 || q.UsedBytes+q.ReservedBytes != 980 || q.UploadCount != 14 {
			t.Errorf("%d taken: %+v", taken, q)
		}
	}
	withdrawn := together(t, r, len(ids), func(i int) call { return p.withdrawing(ids[i], client.NewIdempotencyKey(), "moved out") })
	for _, a := range withdrawn {
		a.want(t, 200, "")
	}
	if q := r[0].quota("harbour", p.token); q.UsedBytes != 0 || q.ReservedBytes != 0 || q.UploadCount != 0 {
		t.Errorf("after all were withdrawn: %+v", q)
	}
}

// A key that was used meanwhile is looked for before its request is refused: there is room for its effect once.
func TestKeyIsAskedBeforeTheQuota(t *testing.T) {
	t.Parallel()
	r := replicas(t, 2, options{env: []string{"ACCESSION_QUOTA_BYTES=1000", "ACCESSION_RATE_LIMITS=off"}})
	for n := range 8 {
		p := r[n%2].partner(fmt.Sprint("harbour-", n))
		key := client.NewIdempotencyKey()
		for _, a := range together(t, r, 6, func(int) call { return p.reserving(key, 600) }) {
			a.want(t, 200, "")
		}
	}
}

// Whoever waits at one replica hears of what happens at the other.
func TestWaitingAtAnotherReplica(t *testing.T) {
	t.Parallel()
	r := replicas(t, 2, options{flags: []string{"--rate-limits", "off"}})
	p := r[0].partner("harbour")
	content := note("long-wait")
	id := p.initiate("note.txt", "text/plain", len(content))
	path := p.path("/partner-uploads/" + id)
	etag := r[1].get(path, p.token).want(t, 200, "").Header.Get("ETag")
	for _, step := range []struct {
		status string
		act    func()
	}{
		{"RECEIVING", func() { p.part(id, 1, content).want(t, 200, "") }},
		{"WITHDRAWING WITHDRAWN", func() { p.withdraw(id).want(t, 200, "") }},
	} {
		heard := r[1].trying(call{method: "GET", path: path, token: p.token, header: map[string]string{"Prefer": "wait=30", "If-None-Match": etag}})
		step.act()
		a := <-heard // 304 where it waited to the end and heard nothing
		if a.Status != 200 || !strings.Contains(step.status, a.field(t, "status")) {
			t.Fatalf("waiting for %s: %d %s %s", step.status, a.Status, a.Message, a.Raw)
		}
		etag = a.Header.Get("ETag")
	}
}

// Tokens that one replica gives away are good at the other, also while their keys rotate; a revocation ends them at both.
func TestTokensAreGoodAtEveryReplica(t *testing.T) {
	t.Parallel()
	r := replicas(t, 2, options{flags: []string{"--rate-limits", "off"}})
	known := r[0].oauthClient("harbour", "ai_reader")
	identity := func(s *service, token string) reply {
		return s.do(call{method: "GET", path: "/oauth/identity", bearer: token})
	}
	header := func(token string) string {
		named, _, _ := strings.Cut(token, ".")
		b, err := base64.RawURLEncoding.DecodeString(named)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	within := func(what string, is func() bool) { // what a replica knows is at most 15 s old
		t.Helper()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(2 * time.Minute); !is(); <-tick.C {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	old := r[0].accessToken(known)
	for _, s := range r {
		identity(s, old).want(t, 200, "")
	}
	r[0].do(call{method: "POST", path: "/admin/tenant-keys/signing-keys/rotate", bearer: adminToken, key: client.NewIdempotencyKey(), json: map[string]any{"purpose": "oauth"}}).want(t, 201, "")
	within("the other replica does not publish the new key", func() bool { return strings.Count(string(r[1].keySet()), `"RS256"`) == 2 })
	mustExec(t, r[0].database(t, "keys.db"), `UPDATE signing_keys SET created_at = created_at - 121000 WHERE purpose = 'oauth'`)
	var fresh string
	within("the new key does not sign", func() bool { fresh = r[0].accessToken(known); return header(fresh) != header(old) })
	for _, s := range r {
		identity(s, fresh).want(t, 200, "")
		identity(s, old).want(t, 200, "")
	}
	trial := r[0].do(call{method: "POST", path: "/api/v1/sandbox/keys"}).want(t, 201, "").field(t, "token")
	for _, s := range r {
		s.do(call{method: "POST", path: "/api/v1/sandbox/echo", token: trial, json: map[string]any{"input": "ahoy"}}).want(t, 200, "")
	}
	r[1].revokeCredential(known.id)
	for _, s := range r {
		identity(s, fresh).want(t, 401, "credential_invalid")
	}
}

// A limit is one limit, however many replicas hold it.
func TestRateLimitsHoldOverReplicas(t *testing.T) {
	t.Parallel()
	r := replicas(t, 2, options{env: []string{"ACCESSION_RATE_LIMITS=sandbox=0.001/7,write=off"}})
	passed := 0
	for _, a := range together(t, r, 20, func(int) call { return call{method: "GET", path: "/api/v1/sandbox"} }) {
		if a.Status == 200 {
			passed++
			continue
		}
		if a.want(t, 429, "rate_limited"); a.Header.Get("Retry-After") == "" || a.Header.Get("RateLimit-Remaining") != "0" {
			t.Errorf("headers %v", a.Header)
		}
	}
	if passed != 7 {
		t.Errorf("%d of 20 passed, want 7", passed)
	}
}

// Two replicas come up and find the same uploads past their retention: each is withdrawn once.
func TestRetentionOverReplicasWithdrawsOnce(t *testing.T) {
	t.Parallel()
	site := newPremises(t)
	where := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	databases.Store(where[0], site.url)
	s := start(t, site.options(where[0], "all"))
	p := s.partner("harbour")
	var ids []string
	for range 40 {
		ids = append(ids, p.initiate("note.txt", "text/plain", 100))
	}
	s.do(s.retaining("harbour", 30, "")).want(t, 200, "")
	s.kill()
	db := s.database(t, "metadata.db")
	mustExec(t, db, fmt.Sprintf(`UPDATE uploads SET created_at = created_at - %d`, (31*day).Milliseconds()))
	both := []*service{launch(t, site.options(where[0], "all")), launch(t, site.options(where[1], "all"))}
	for _, s := range both {
		s.awaitReady()
	}
	for i, id := range ids {
		s := both[i%2]
		partner{s, "harbour", p.token}.awaitStatus(id, "WITHDRAWN")
	}
	for what, want := range map[string]int{
		`SELECT COUNT(*) FROM status_events WHERE status = 'WITHDRAWING'`: 40,
		`SELECT COUNT(*) FROM status_events WHERE status = 'WITHDRAWN'`:   40,
		`SELECT COUNT(*) FROM receipts`:                                   40,
	} {
		if n := count(t, db, what); n != want {
			t.Errorf("%s: %d, want %d", what, n, want)
		}
	}
	both[0].wantCLI(0, "", "audit", "verify", "--org", "harbour")
	by := map[string]int{}
	for n, s := range both {
		s.stop() // the line comes after the commit; now all are here
		by[fmt.Sprint("replica ", n)] = len(s.log.lines("the upload is withdrawn"))
	}
	if all := slices.Sorted(maps.Values(by)); all[0]+all[1] != 40 {
		t.Errorf("withdrawals began: %v", by)
	}
	t.Log(by)
}

// A text goes through its gates at the door while a worker works elsewhere: its events leave by the worker.
func TestTextAtTheDoorOfAnotherWorker(t *testing.T) {
	t.Parallel()
	site := newPremises(t)
	private := "ACCESSION_WEBHOOK_PRIVATE_ADDRESSES=allow"
	door, hand := start(t, site.options("", "api", private)), start(t, site.options("", "worker", private))
	hook := receive(t, nil)
	p, reader := door.partner("harbour"), door.issue("harbour", "ai_reader")
	door.setWebhook("harbour", hook.URL)
	id := p.submit(text("The pump stands at the harbour.", nil))
	door.context("harbour", reader, id).want(t, 200, "")
	wantInOrder(t, hook.until(t, "text", arrivedAs(id, "READY")))
	p.withdraw(id).want(t, 200, "")
	hook.until(t, "withdrawal", arrivedAs(id, "WITHDRAWN"))
	refused := p.do(p.submitting(client.NewIdempotencyKey(), text(eicar(), nil))).want(t, 400, "content_refused")
	if refused.Details["gate"] != "malware_scan" {
		t.Errorf("refused: %s", refused.Raw)
	}
	if q := door.quota("harbour", p.token); q.UsedBytes != 0 || q.ReservedBytes != 0 {
		t.Errorf("quota: %+v", q)
	}
	if exit := hand.stop(); exit != 0 {
		t.Errorf("worker: exit %d", exit)
	}
}

// The reservation of a text lapses, by a worker's hand, while the text is at its gates at the door: nothing of it stays.
func TestTextWhoseReservationAWorkerEnds(t *testing.T) {
	t.Parallel()
	site := newPremises(t)
	slow := newGatekeeper(t)
	door := start(t, site.options("", "api", "ACCESSION_CLAMD_ADDRESS="+slow.address))
	start(t, site.options("", "worker"))
	databases.Store(door.data, site.url)
	p := door.partner("harbour")
	answer := door.trying(p.submitting(client.NewIdempotencyKey(), text("The pump stands at the harbour.", nil)))
	door.awaitScan(site.shared)
	door.lapse(t)
	awaitCount(t, door.database(t, "metadata.db"), 1, `SELECT COUNT(*) FROM uploads WHERE status = 'EXPIRED'`)
	slow.open()
	if r := <-answer; r.Status != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s %s", r.Status, r.Message, r.Raw)
	}
	for _, folder := range []string{"blobs", "quarantine"} {
		if left := files(t, filepath.Join(site.shared, folder)); len(left) != 0 {
			t.Errorf("%s holds %v", folder, left)
		}
	}
	if q := door.quota("harbour", p.token); q.UsedBytes != 0 || q.ReservedBytes != 0 || q.UploadCount != 0 {
		t.Errorf("quota: %+v", q)
	}
}

// awaitScan returns once a process has the only document of its storage scanned: the copy in quarantine is whole, since nobody writes
// or reads it any more, and what was received is open. Only the process's files tell.
func (s *service) awaitScan(storage string) {
	s.t.Helper()
	open := func() (received, copied bool) {
		held, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.cmd.Process.Pid))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, fd := range held {
			path, _ := os.Readlink(fd) // it may be closed meanwhile
			received = received || strings.HasPrefix(path, filepath.Join(storage, "blobs", "uploads"))
			copied = copied || strings.HasPrefix(path, filepath.Join(storage, "quarantine", "uploads"))
		}
		return received, copied
	}
	for deadline := time.Now().Add(2 * time.Minute); ; runtime.Gosched() {
		if len(files(s.t, filepath.Join(storage, "quarantine"))) == 1 {
			if received, copied := open(); received && !copied {
				return
			}
		}
		if time.Now().After(deadline) {
			s.t.Fatal("nothing is scanned")
		}
	}
}
