package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

const day = 24 * time.Hour

func (s *service) retaining(org string, days any, key string) call {
	return call{method: "PUT", path: "/admin/organizations/" + org + "/retention", bearer: adminToken, key: key, json: map[string]any{"retention_days": days}}
}

// age makes an upload older, as only time can.
func (s *service) age(uploadID string, by time.Duration) {
	s.t.Helper()
	mustExec(s.t, s.database(s.t, "metadata.db"), fmt.Sprintf(`UPDATE uploads SET created_at = created_at - %d WHERE upload_id = '%s'`, by.Milliseconds(), uploadID))
}

// lapse ends every reservation, as only time can.
func (s *service) lapse(t testing.TB) {
	t.Helper()
	db := s.database(t, "metadata.db")
	if _, ok := databases.Load(s.data); !ok {
		mustExec(t, db, `PRAGMA secure_delete = ON`) // as the service writes
	}
	mustExec(t, db, `UPDATE uploads SET expires_at = created_at, due_at = created_at WHERE status IN ('INITIATED', 'RECEIVING')`)
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// awaitRetention returns once the retention of an upload is noticed: its withdrawal has begun.
func (s *service) awaitRetention(uploadID string) {
	s.t.Helper()
	s.awaitLog(`the upload is withdrawn","upload_id":"` + uploadID + `"`)
}

// Uploads of every kind and status are withdrawn once their organization's retention ends, those from before the setting too, and
// nobody else's.
func TestRetentionWithdrawsByItself(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, island, reader := s.partner("harbour"), s.partner("island"), s.issue("harbour", "ai_reader")
	ready := p.send("note.txt", "text/plain", note("tide-table"))
	p.wantReady(ready)
	s.context("harbour", reader, ready).want(t, 200, "")
	kept := p.submit(text("The tide table is kept.", nil))
	begun, young := p.initiate("half.txt", "text/plain", 100), p.submit(text("The tide table is new.", nil))
	rejected := p.send("note.txt", "text/plain", []byte(eicar()))
	p.wantEnd(rejected, "REJECTED", "malware_scan", "malware_found")
	theirs := island.submit(text("The tide table is theirs.", nil))
	old := []string{ready, kept, begun, rejected}
	for _, id := range append([]string{theirs}, old...) {
		s.age(id, 31*day)
	}
	if st := p.status(ready); st.Status != "READY" || !st.RetainedUntil.IsZero() {
		t.Errorf("without a retention: %+v", st)
	}

	set := s.do(s.retaining("harbour", 30, "retention-of-30-days")).want(t, 200, "")
	if set.field(t, "retention_days") != "30" || set.field(t, "org_id") != "harbour" {
		t.Errorf("set: %s", set.Raw)
	}
	for _, id := range old {
		s.awaitRetention(id)
		if st := p.follow(id); st.Status != "WITHDRAWN" || !st.RetainedUntil.IsZero() {
			t.Errorf("%s: %+v", id, st)
		}
	}
	for who, id := range map[partner]string{p: young, island: theirs} {
		st := who.status(id)
		if st.Status != "READY" || (who == p) != st.RetainedUntil.Equal(st.CreatedAt.Add(30*day)) {
			t.Errorf("%s of %s: %+v", id, who.org, st)
		}
	}
	s.context("harbour", reader, ready).want(t, 404, "context_not_ready")

	receipt := s.receipt("harbour", p.token, p.withdraw(ready).want(t, 200, "").field(t, "withdrawal_receipt_id")).want(t, 200, "")
	signed, err := client.VerifyReceipt(receipt.field(t, "signed_receipt"), s.keySet())
	if err != nil || signed.RequestedBy != "retention" || signed.Reason != "retention of 30 days" || len(signed.Deletions) != 3 || len(signed.Recalled) != 1 ||
		!signed.RetainedUntil.Equal(p.status(ready).CreatedAt.Add(30*day)) || signed.KeyDestroyedAt.IsZero() {
		t.Errorf("receipt: %+v, %v", signed, err)
	}

	// It is durable: the next start finds what became due while nothing ran.
	s.kill()
	s.age(young, 30*day)
	q := partner{start(t, options{data: s.data}), "harbour", p.token}
	q.awaitRetention(young)
	if st := q.follow(young); st.Status != "WITHDRAWN" {
		t.Errorf("after a restart: %+v", st)
	}
	q.wantCLI(0, "", "audit", "verify", "--org", "harbour")
}

func TestRetentionIsTheAdministratorsToSet(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	path := "/admin/organizations/harbour/retention"
	for _, method := range []string{"GET", "PUT"} {
		c := call{method: method, path: path, bearer: p.token}
		if method == "PUT" {
			c.json = map[string]any{"retention_days": 1}
		}
		s.do(c).want(t, 401, "credential_invalid")
	}
	for _, days := range []any{-1, 36501, 1.5, "30", nil} {
		s.do(s.retaining("harbour", days, "")).want(t, 400, "invalid_request")
	}
	s.do(s.retaining("nobody", 30, "")).want(t, 404, "organization_not_found")
	s.do(call{method: "GET", path: "/admin/organizations/nobody/retention", bearer: adminToken}).want(t, 404, "organization_not_found")

	first := s.do(s.retaining("harbour", 7, "set-it-to-a-week")).want(t, 200, "")
	s.do(s.retaining("harbour", 8, "set-it-to-8-days")).want(t, 200, "")
	wantReplay(t, first, s.do(s.retaining("harbour", 7, "set-it-to-a-week"))) // and changes nothing
	s.do(s.retaining("harbour", 9, "set-it-to-a-week")).want(t, 409, "idempotency_conflict")
	if out, _ := s.wantCLI(0, "", "retention", "show", "--org", "harbour"); !strings.Contains(out, "8 days") {
		t.Error(out)
	}
	id := p.initiate("note.txt", "text/plain", 100)
	before := p.do(call{method: "GET", path: p.path("/partner-uploads/" + id), token: p.token}).want(t, 200, "").Header.Get("ETag")
	if out, _ := s.wantCLI(0, "", "retention", "set", "--org", "harbour", "none"); !strings.Contains(out, "none") {
		t.Error(out)
	}
	changed := p.do(call{method: "GET", path: p.path("/partner-uploads/" + id), token: p.token, header: map[string]string{"If-None-Match": before}}).want(t, 200, "")
	if strings.Contains(string(changed.Raw), "retained_until") {
		t.Errorf("retained for ever: %s", changed.Raw)
	}
	for _, args := range [][]string{{"set", "--org", "harbour", "0"}, {"set", "--org", "harbour", "soon"}, {"set", "30"}, {"show"}} {
		s.wantCLI(2, "", append([]string{"retention"}, args...)...)
	}
	var said []string
	rows, err := s.database(t, "metadata.db").Query(`SELECT detail FROM audit_lines WHERE org_id = 'harbour' AND action = 'retention_set' AND credential_id = 'admin' ORDER BY position`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var detail string
		if err := rows.Scan(&detail); err != nil {
			t.Fatal(err)
		}
		said = append(said, detail)
	}
	if got := strings.Join(said, " "); got != "retention_days=7 retention_days=8 retention_days=0" {
		t.Errorf("audit lines: %s", got)
	}
}

// A withdrawal takes the file's name out of answers that can be repeated; the key stays used, so nothing is created anew.
func TestWithdrawnNameIsInNoRepeatedAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	body := text("The rope was sold.", map[string]any{"filename": "Größe of the rope & \"more\".txt"})
	first := p.do(p.submitting("rope-1-of-harbour", body)).want(t, 201, "")
	id := first.field(t, "upload_id")
	wantReplay(t, first, p.do(p.submitting("rope-1-of-harbour", body)))
	p.withdraw(id).want(t, 200, "")
	again := p.do(p.submitting("rope-1-of-harbour", body)).want(t, 201, "")
	if again.Header.Get("Idempotent-Replayed") != "true" || again.field(t, "upload_id") != id || again.field(t, "filename") != "" || !strings.Contains(string(again.Raw), "captured") {
		t.Errorf("repeated: %s", again.Raw)
	}
	p.do(p.submitting("rope-1-of-harbour", text("Another rope.", nil))).want(t, 409, "idempotency_conflict")
	s.stop()
	if found := showing(t, s.data, "of the rope"); len(found) > 0 {
		t.Errorf("the name stays in %v", found)
	}
}

// What a client sees says until when each status lasts, and why.
func TestEveryStatusTellsItsEndAndWhy(t *testing.T) {
	t.Parallel()
	late := start(t, options{env: []string{"ACCESSION_RESERVATION_LIFETIME=1h"}}).partner("harbour")
	lapsing := late.initiate("wharf plan.txt", "text/plain", 100)
	if st := late.status(lapsing); st.Status != "INITIATED" || !st.ExpiresAt.Equal(st.CreatedAt.Add(time.Hour)) {
		t.Errorf("INITIATED: %+v", st)
	}
	late.lapse(t)
	if st := late.follow(lapsing); st.Status != "EXPIRED" || st.ExpiresAt.IsZero() || st.Failure == nil || st.Failure.Code != "reservation_expired" || st.Failure.Gate != "" || st.Failure.Message == "" {
		t.Errorf("EXPIRED: %+v", st)
	}
	late.service.stop()
	if found := showing(t, late.data, "wharf plan", "consenting"); len(found) > 0 {
		t.Errorf("a lapsed reservation leaves names in %v", found)
	}

	away := options{env: []string{"ACCESSION_CLAMD_ADDRESS=tcp:" + freeAddress(t)}, flags: []string{"--gate-deadlines", "malware_scan=1h", "--rate-limits", "off"}}
	s := start(t, away)
	p := s.partner("harbour")
	id := p.send("note.txt", "text/plain", note("no-watch"))
	var waiting map[string]any
	for waiting["last_error"] == nil { // a status, and then the next change
		st := p.status(id)
		if st.Status != "PROCESSING" {
			t.Fatalf("it ended before it could be seen: %+v", st)
		}
		if g := st.Gates[2]; g.State == "running" {
			waiting = g.Detail
		}
	}
	deadline, err := time.Parse(time.RFC3339, fmt.Sprint(waiting["deadline_at"]))
	if err != nil || time.Until(deadline) > time.Hour || waiting["last_error"] != "scanner_unavailable" || waiting["last_message"] == "" || waiting["next_attempt_at"] == nil {
		t.Errorf("a gate without an answer: %v, %v", waiting, err)
	}
	s.stop()
	away.data, away.flags[1] = s.data, "malware_scan=1ms" // it is past that
	s = start(t, away)
	p.service = s
	if st := p.wantEnd(id, "FAILED", "malware_scan", "scanner_unavailable"); !strings.Contains(st.Failure.Message, "1ms") {
		t.Errorf("FAILED: %+v", st.Failure)
	}

	db := s.database(t, "keys.db")
	mustExec(t, db, `CREATE TRIGGER refuse BEFORE DELETE ON data_keys BEGIN SELECT RAISE(ABORT, 'disk on fire'); END`)
	p.withdraw(id).want(t, 502, "deletion_not_confirmed")
	st := p.status(id)
	if w := st.Withdrawal; st.Status != "WITHDRAWING" || w == nil || w.Attempts < 1 || strings.Join(w.Unconfirmed, " ") != "key_store" || w.UnconfirmedSince.Before(w.RequestedAt) {
		t.Errorf("WITHDRAWING: %+v %+v", st, w)
	}
	if out, _ := s.wantCLI(0, p.token, "status", "harbour", id); !strings.Contains(out, "key_store since") || strings.Contains(out, "fire") {
		t.Error(out)
	}
	mustExec(t, db, `DROP TRIGGER refuse`)
	if st := p.follow(id); st.Status != "WITHDRAWN" || st.Withdrawal != nil {
		t.Errorf("WITHDRAWN: %+v", st)
	}
}
