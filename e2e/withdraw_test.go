package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/accession/accession/client"
)

func TestEveryStatusCanBeWithdrawn(t *testing.T) {
	t.Parallel()
	keeper := newGatekeeper(t)
	held := start(t, options{env: []string{"ACCESSION_CLAMD_ADDRESS=" + keeper.address}, flags: []string{"--part-size-bytes", "4096"}}).partner("harbour")
	open := start(t, options{}).partner("harbour")
	dead := start(t, options{env: []string{"ACCESSION_CLAMD_ADDRESS=tcp:" + freeAddress(t)}, flags: []string{"--gate-deadlines", "malware_scan=20s"}}).partner("harbour")
	parts := cut(noise(2*partSize, 21), partSize)
	for _, c := range []struct {
		status string
		by     partner
		make   func(partner) (id string, freed int)
	}{
		{"INITIATED", held, func(p partner) (string, int) { return p.initiate("a.bin", "application/octet-stream", 500), 500 }},
		{"RECEIVING", held, func(p partner) (string, int) {
			id := p.initiate("a.bin", "application/octet-stream", 2*partSize)
			p.part(id, 1, parts[0]).want(p.t, 200, "")
			return id, 2 * partSize
		}},
		{"PROCESSING", held, func(p partner) (string, int) { // while the scanner holds the document
			id := p.send("note.txt", "text/plain", note("held-fast"))
			p.awaitGate(id, "malware_scan", "running")
			return id, len(note("held-fast"))
		}},
		{"READY", open, func(p partner) (string, int) {
			id := p.send("note.txt", "text/plain", note("all-well"))
			p.wantReady(id)
			return id, len(note("all-well"))
		}},
		{"REJECTED", open, func(p partner) (string, int) {
			id := p.send("note.txt", "text/plain", []byte(eicar()))
			p.wantEnd(id, "REJECTED", "malware_scan", "malware_found")
			return id, len(eicar())
		}},
		{"FAILED", dead, func(p partner) (string, int) {
			id := p.send("note.txt", "text/plain", note("no-watch"))
			p.wantEnd(id, "FAILED", "malware_scan", "scanner_unavailable")
			return id, len(note("no-watch"))
		}},
	} {
		t.Run(c.status, func(t *testing.T) {
			p := c.by.in(t)
			id, freed := c.make(p)
			if st := p.status(id); st.Status != c.status {
				t.Fatalf("status %s", st.Status)
			}
			receipt := p.wantWithdrawn(id, freed)
			p.wantNoObjects()
			if q := p.quota("harbour", p.token); q.ReservedBytes != 0 || q.UsedBytes != 0 || q.UploadCount != 0 {
				t.Errorf("quota: %+v", q)
			}
			if again := p.withdraw(id).want(t, 200, ""); again.field(t, "withdrawal_receipt_id") != receipt || again.field(t, "quota_bytes") != fmt.Sprint(freed) {
				t.Errorf("withdrawn again: %s", again.Raw)
			}
			p.part(id, 2, parts[1]).want(t, 409, "upload_not_receiving")
			p.complete(id, parts).want(t, 409, "upload_not_receiving")
			p.wantNoObjects()
		})
	}
}

func TestConcurrentWithdrawalsHaveOneReceipt(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	id := p.send("note.txt", "text/plain", note("ten-hands"))
	p.wantReady(id)
	before := p.status(id)
	const n = 10
	replies, errs := make([]reply, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		key := client.NewIdempotencyKey()
		if i%2 == 0 {
			key = "one-key-for-half-of-them"
		}
		all.Go(func() { replies[i], errs[i] = s.try(p.withdrawing(id, key, "moved out")) })
	}
	all.Wait()
	for i, r := range replies {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		r.want(t, 200, "")
		if r.field(t, "withdrawal_receipt_id") != replies[0].field(t, "withdrawal_receipt_id") {
			t.Errorf("another receipt: %s", r.Raw)
		}
	}
	if st := p.status(id); st.Status != "WITHDRAWN" || st.Sequence != before.Sequence+2 {
		t.Errorf("%+v, was %+v", st, before)
	}
}

func TestWhoMayWithdraw(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	id := p.initiate("note.txt", "text/plain", 100)
	request := func(change func(*call)) call {
		c := p.withdrawing(id, client.NewIdempotencyKey(), "moved out")
		c.token = ""
		change(&c)
		return c
	}
	s.do(request(func(c *call) { c.token = s.issue("harbour", "ai_reader") })).want(t, 403, "access_denied")
	s.do(request(func(c *call) { c.token = s.issue("island", "solution_company_upload") })).want(t, 403, "access_denied")
	s.do(request(func(c *call) { c.token = p.token; c.json = map[string]any{"reason": strings.Repeat("r", 501)} })).want(t, 400, "invalid_request")
	s.do(request(func(c *call) { c.token = p.token; c.json = map[string]any{"because": "x"} })).want(t, 400, "invalid_request")
	s.do(request(func(c *call) { c.token, c.path = p.token, strings.Replace(c.path, id, missing, 1) })).want(t, 404, "upload_not_found")
	if st := p.status(id); st.Status != "INITIATED" {
		t.Fatalf("status %s", st.Status)
	}
	s.do(request(func(c *call) { c.bearer = adminToken })).want(t, 200, "")
	second := s.partner("harbour") // another upload credential of the organization
	other := p.initiate("note.txt", "text/plain", 100)
	bare := second.withdrawing(other, client.NewIdempotencyKey(), "")
	bare.json = nil // the body is optional
	s.do(bare).want(t, 200, "")
}

// A backend that keeps something must not be reported as deleted; once the cause is gone the deletion confirms itself.
func TestWithdrawalIsConfirmedByEveryBackendOrNotAtAll(t *testing.T) {
	t.Parallel()
	for name, breaking := range map[string]func(t *testing.T, s *service, id string) (mend func()){
		"quarantine storage": func(t *testing.T, s *service, id string) func() {
			// No object has such a name, so no delete reaches it; the listing tells of it.
			stray := filepath.Join(s.data, "quarantine", "uploads", id, "NOT OURS")
			if err := os.WriteFile(stray, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := os.Remove(stray); err != nil {
					t.Fatal(err)
				}
			}
		},
		"key store": func(t *testing.T, s *service, id string) func() {
			db := s.database(t, "keys.db")
			mustExec(t, db, `CREATE TRIGGER refuse BEFORE DELETE ON data_keys BEGIN SELECT RAISE(ABORT, 'disk on fire'); END`)
			return func() { mustExec(t, db, `DROP TRIGGER refuse`) }
		},
		"every backend": func(t *testing.T, s *service, id string) func() { // what is not noted is not deleted: object and key are there, the status alone bars them
			metadata, keys := s.database(t, "metadata.db"), s.database(t, "keys.db")
			mustExec(t, metadata, `CREATE TRIGGER refuse BEFORE INSERT ON withdrawal_objects BEGIN SELECT RAISE(ABORT, 'disk on fire'); END`)
			mustExec(t, keys, `CREATE TRIGGER refuse BEFORE DELETE ON data_keys BEGIN SELECT RAISE(ABORT, 'disk on fire'); END`)
			return func() {
				mustExec(t, keys, `DROP TRIGGER refuse`)
				mustExec(t, metadata, `DROP TRIGGER refuse`)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, options{})
			p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
			id := p.send("note.txt", "text/plain", note("stuck-hatch"))
			p.wantReady(id)
			s.context("harbour", reader, id).want(t, 200, "")
			mend := breaking(t, s, id)

			key := client.NewIdempotencyKey()
			refused := s.do(p.withdrawing(id, key, "moved out")).want(t, 502, "deletion_not_confirmed")
			if strings.Contains(string(refused.Raw), s.data) || strings.Contains(string(refused.Raw), "NOT OURS") || refused.Header.Get("Retry-After") == "" {
				t.Errorf("refusal: %s", refused.Raw)
			}
			if st := p.status(id); st.Status != "WITHDRAWING" {
				t.Fatalf("status %s", st.Status)
			}
			s.context("harbour", reader, id).want(t, 404, "context_not_ready") // unreadable from the first moment
			if q := s.quota("harbour", p.token); q.UsedBytes == 0 {
				t.Error("quota came back before the deletion was confirmed")
			}
			mend()
			if st := p.follow(id); st.Status != "WITHDRAWN" {
				t.Fatalf("status %s", st.Status)
			}
			s.do(p.withdrawing(id, key, "moved out")).want(t, 200, "") // the refusal did not burn the key
			s.wantNoObjects()
			s.wantUnseen("stuck-hatch")
			if q := s.quota("harbour", p.token); q.UsedBytes != 0 {
				t.Errorf("quota: %+v", q)
			}
		})
	}
}

func TestWithdrawingUploadIsFinishedByTheNextStart(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	id := p.send("note.txt", "text/plain", note("left-over"))
	p.wantReady(id)
	db := s.database(t, "keys.db")
	mustExec(t, db, `CREATE TRIGGER refuse BEFORE DELETE ON data_keys BEGIN SELECT RAISE(ABORT, 'disk on fire'); END`)
	p.withdraw(id).want(t, 502, "deletion_not_confirmed")
	s.kill()
	mustExec(t, db, `DROP TRIGGER refuse`)
	again := partner{start(t, options{data: s.data}), "harbour", p.token}
	if st := again.follow(id); st.Status != "WITHDRAWN" {
		t.Fatalf("status %s", st.Status)
	}
	again.wantNoObjects()
}

// A part that is on its way while its upload is withdrawn is never acknowledged and never stays.
func TestPartInFlightDuringWithdrawalLeavesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, options{flags: []string{"--part-size-bytes", "4194304"}})
	p := s.partner("harbour")
	body := noise(4<<20, 33)
	id := p.initiate("a.bin", "application/octet-stream", 8<<20)
	conn := p.rawPart(id, 1, client.NewIdempotencyKey(), len(body), body[:3<<20])
	s.awaitObject(id)
	p.wantWithdrawn(id, 8<<20)
	if _, err := conn.Write(body[3<<20:]); err != nil {
		t.Fatal(err)
	}
	answer := readResponse(t, conn)
	if answer.Status != 409 || answer.Code != "upload_not_receiving" {
		t.Errorf("part: %d %s", answer.Status, answer.Raw)
	}
	s.wantNoObjects()

	for round := range 8 { // and at moments nobody chose
		id := p.initiate("a.bin", "application/octet-stream", 8<<20)
		var sent, withdrawn reply
		var sendErr, withdrawErr error
		var both sync.WaitGroup
		both.Go(func() { sent, sendErr = s.try(p.put(byPath, id, 1, client.NewIdempotencyKey(), body)) })
		both.Go(func() {
			for range round { // some work, so that the rounds differ
				_, _ = s.try(call{method: "GET", path: p.path("/partner-uploads/" + id), token: p.token})
			}
			withdrawn, withdrawErr = s.try(p.withdrawing(id, client.NewIdempotencyKey(), "race"))
		})
		both.Wait()
		// Refused before its bytes are in, a part may lose the answer with its connection, if the sender is held up.
		if cut := errors.Is(sendErr, syscall.ECONNRESET) || errors.Is(sendErr, syscall.EPIPE); sendErr != nil && !cut || withdrawErr != nil {
			t.Fatal(sendErr, withdrawErr)
		}
		withdrawn.want(t, 200, "")
		if sendErr == nil && sent.Status != http.StatusOK && sent.Code != "upload_not_receiving" {
			t.Errorf("round %d: part %d %s", round, sent.Status, sent.Raw)
		}
		if st := p.status(id); st.Status != "WITHDRAWN" {
			t.Errorf("round %d: status %s", round, st.Status)
		}
		s.wantNoObjects()
	}
}
