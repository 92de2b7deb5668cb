package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// signatureFolder is a copy of the test signatures that a test may change, and how it does.
type signatureFolder struct {
	t    testing.TB
	path string
}

func newSignatureFolder(t testing.TB) signatureFolder {
	t.Helper()
	path := t.TempDir()
	if err := os.Chmod(path, 0o755); err != nil { // clamd gives up root's rights
		t.Fatal(err)
	}
	if err := os.CopyFS(path, os.DirFS(signatures())); err != nil {
		t.Fatal(err)
	}
	return signatureFolder{t, path}
}

// managed lets a service run a clamd of its own on these signatures.
func (f signatureFolder) managed() []string {
	return []string{"ACCESSION_CLAMD_ADDRESS=", "ACCESSION_CLAMAV_DATABASE=" + f.path}
}

// learn adds a signature for a text.
func (f signatureFolder) learn(text string) {
	f.t.Helper()
	line := fmt.Sprintf("Accession.Test.Learnt:0:*:%x\n", text)
	if err := os.WriteFile(filepath.Join(f.path, "learnt.ndb"), []byte(line), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// age makes all signatures this old.
func (f signatureFolder) age(by time.Duration) {
	f.t.Helper()
	then := time.Now().Add(-by)
	for _, path := range files(f.t, f.path) {
		if err := os.Chtimes(path, then, then); err != nil {
			f.t.Fatal(err)
		}
	}
}

// wantNoPath fails the test where an answer tells where the signatures lie.
func (s *service) wantNoPath(f signatureFolder) {
	s.t.Helper()
	for _, told := range []string{f.path, "learnt.ndb"} {
		if strings.Contains(s.said.String(), told) {
			s.t.Errorf("an answer tells %q", told)
		}
	}
}

// stored lists the objects of an upload in the staging storage: parts, and what was derived.
func (s *service) stored(uploadID string) (parts, derived int) {
	s.t.Helper()
	for _, path := range files(s.t, filepath.Join(s.data, "blobs")) {
		switch {
		case strings.Contains(path, uploadID+"/parts/"):
			parts++
		case strings.Contains(path, uploadID+"/derived/"):
			derived++
		}
	}
	return parts, derived
}

// wantRefusedLater fails the test unless an upload that was READY is withdrawn from its readers, and only from them.
func (p partner) wantRefusedLater(reader, uploadID string, ready status) {
	p.t.Helper()
	st := p.status(uploadID)
	if st.Status != "REJECTED" || st.Sequence != ready.Sequence+1 || st.Failure == nil || st.Failure.Gate != "malware_scan" || st.Failure.Code != "malware_found" {
		p.t.Fatalf("after the re-scan: %+v %+v", st, st.Failure)
	}
	scan := st.Gates[2]
	if scan.State != "rejected" || scan.Detail["signature"] == "" || scan.Detail["rescan"] != true || scan.Detail["engine"] != "ClamAV" ||
		scan.Detail["engine_version"] == "" || scan.Detail["signature_date"] == nil || scan.Detail["signature_date"] == ready.Gates[2].Detail["signature_date"] {
		p.t.Errorf("malware_scan is %s: %v, before %v", scan.State, scan.Detail, ready.Gates[2].Detail)
	}
	p.context(p.org, reader, uploadID).want(p.t, 404, "context_not_ready")
	if parts, derived := p.stored(uploadID); parts != 1 || derived != 0 {
		p.t.Errorf("%d parts and %d derived objects are stored, want 1 and 0", parts, derived)
	}
	db := p.database(p.t, "metadata.db")
	var events, audited, artifacts int
	if err := db.QueryRow(`SELECT count(*) FROM status_events WHERE upload_id = ? AND sequence = ? AND from_status = 'READY' AND cause = 'rescan_refused'
		AND status = 'REJECTED' AND stage = 'malware_scan' AND gate_state = 'rejected' AND credential_id = '' AND trace_id <> ''`, uploadID, st.Sequence).Scan(&events); err != nil || events != 1 {
		p.t.Errorf("%d events tell of it, %v", events, err)
	}
	if err := db.QueryRow(`SELECT count(*) FROM audit_lines WHERE upload_id = ? AND action = 'rescan_refused' AND status = 'REJECTED'`, uploadID).Scan(&audited); err != nil || audited != 1 {
		p.t.Errorf("%d audit lines tell of it, %v", audited, err)
	}
	if err := db.QueryRow(`SELECT count(*) FROM artifacts WHERE upload_id = ?`, uploadID).Scan(&artifacts); err != nil || artifacts != 0 {
		p.t.Errorf("%d derived objects are named, %v", artifacts, err)
	}
}

func TestRescanWithdrawsWhatIsNowFound(t *testing.T) {
	t.Parallel()
	known := newSignatureFolder(t)
	known.age(time.Hour)
	s := start(t, options{env: known.managed(), flags: []string{"--signatures-check-every", "1h"}})
	p, island := s.partner("harbour"), s.partner("island")
	reader, islander := s.issue("harbour", "ai_reader"), s.issue("island", "ai_reader")
	ids := map[string]string{"document": p.send("note.txt", "text/plain", note("quiet-otter"))}
	before := map[string]status{"document": p.wantReady(ids["document"])}
	ids["text"] = p.submit(text("The pump stands beside the quiet-otter.", nil))
	ids["correction"] = p.correct(ids["text"], "The pump never stood beside the quiet-otter.")
	for _, name := range []string{"text", "correction"} {
		before[name] = p.status(ids[name])
	}
	clean, elsewhere := p.send("note.txt", "text/plain", note("calm-seal")), island.send("note.txt", "text/plain", note("quiet-otter"))
	cleanBefore, elsewhereBefore := p.wantReady(clean), island.wantReady(elsewhere)
	for _, id := range ids {
		s.context("harbour", reader, id).want(t, 200, "")
	}

	known.learn("quiet-otter")
	stdout, stderr, exit := s.cli("", "rescan", "--org", "harbour", "--wait")
	if exit != 6 || !strings.Contains(stdout, "clean       1\n") || !strings.Contains(stdout, "found       3\n") || !strings.Contains(stdout, "unanswered  0\n") ||
		!strings.Contains(stderr, "4 uploads queued") {
		t.Fatalf("rescan: exit %d\n%s\n%s", exit, stdout, stderr)
	}
	for name, id := range ids {
		s.context("harbour", reader, id).want(t, 404, "context_not_ready")
		s.awaitLog(`"derived objects of a refused upload are deleted","upload_id":"` + id)
		p.wantRefusedLater(reader, id, before[name])
	}
	if st := p.status(clean); st.Status != "READY" || st.Sequence != cleanBefore.Sequence {
		t.Errorf("what is clean changed: %+v", st)
	}
	s.context("harbour", reader, clean).want(t, 200, "")
	s.context("island", islander, elsewhere).want(t, 200, "") // not asked for, yet

	if stdout, stderr, exit = s.cli("", "rescan", "--upload", elsewhere, "--wait", "--json"); exit != 6 || !strings.Contains(stdout, `"found": 1`) {
		t.Fatalf("rescan of one: exit %d\n%s\n%s", exit, stdout, stderr)
	}
	s.awaitLog(`"derived objects of a refused upload are deleted","upload_id":"` + elsewhere)
	island.wantRefusedLater(islander, elsewhere, elsewhereBefore)
	if stdout, stderr, exit = s.cli("", "rescan"); exit != 0 || !strings.Contains(stdout, "queued      1\n") {
		t.Errorf("rescan of all: exit %d\n%s\n%s", exit, stdout, stderr)
	}
	for _, id := range ids {
		p.withdraw(id).want(t, 200, "")
	}
	s.wantNoPath(known)
}

func TestNewSignaturesRescanByThemselves(t *testing.T) {
	t.Parallel()
	known := newSignatureFolder(t)
	known.age(time.Hour)
	s := start(t, options{env: known.managed(), flags: []string{"--signatures-check-every", "1s"}})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	id := p.send("note.txt", "text/plain", note("quiet-otter"))
	ready := p.wantReady(id)
	s.context("harbour", reader, id).want(t, 200, "")
	known.learn("quiet-otter")
	s.awaitLog(`"derived objects of a refused upload are deleted","upload_id":"` + id)
	p.wantRefusedLater(reader, id, ready)
	p.wantWithdrawn(id, len(note("quiet-otter")))
	s.wantNoObjects()
}

// A scanner that is away withdraws nothing; what is to be scanned again is not forgotten, whatever restarts.
func TestRescanWithoutAnAnswerChangesNothingAndStaysDue(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	s := start(t, options{data: data})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	id := p.send("note.txt", "text/plain", note("quiet-otter"))
	ready := p.wantReady(id)
	s.stop()
	away := []string{"ACCESSION_CLAMD_ADDRESS=tcp:" + freeAddress(t)}
	for range 2 {
		s = start(t, options{data: data, env: away})
		p.service = s
		if waiting := s.rescans().Waiting; waiting == 0 { // the first time
			queue := call{method: "POST", path: "/admin/rescans", bearer: adminToken, key: client.NewIdempotencyKey()}
			first := s.do(queue).want(t, 202, "")
			if again := s.do(queue).want(t, 202, ""); string(again.Data) != string(first.Data) || again.Header.Get("Idempotent-Replayed") != "true" || first.field(t, "queued") != "1" {
				t.Errorf("the same request again: %s, first %s", again.Raw, first.Raw)
			}
			s.awaitLog("a re-scan has no answer and stays due")
		} else if waiting != 1 {
			t.Errorf("%d uploads wait after a restart", waiting)
		}
		if st := p.status(id); st.Status != "READY" || st.Sequence != ready.Sequence {
			t.Errorf("without an answer: %+v", st)
		}
		s.context("harbour", reader, id).want(t, 200, "")
		s.stop()
	}
	known := newSignatureFolder(t)
	known.learn("quiet-otter")
	s = start(t, options{data: data, env: known.managed(), flags: []string{"--signatures-check-every", "1s"}})
	p.service = s
	s.awaitLog(`"derived objects of a refused upload are deleted","upload_id":"` + id)
	p.wantRefusedLater(reader, id, ready)
}

// awaitClamd returns once the scanner answers: one that a service runs itself starts beside it.
func (s *service) awaitClamd() {
	s.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); ; <-tick.C {
		r := s.do(call{method: "GET", path: "/readyz"})
		if r.Status == 200 && decode[struct{ Checks map[string]string }](s.t, r).Checks["scanner"] == "ok" {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the scanner does not answer: %s", r.Raw)
		}
	}
}

func (s *service) rescans() client.RescanState {
	s.t.Helper()
	return decode[client.RescanState](s.t, s.do(call{method: "GET", path: "/admin/rescans", bearer: adminToken}).want(s.t, 200, ""))
}

func TestOldSignaturesHoldTheMalwareGate(t *testing.T) {
	t.Parallel()
	known := newSignatureFolder(t)
	known.age(30 * 24 * time.Hour)
	s := start(t, options{env: known.managed(), flags: []string{"--signatures-max-age", "168h", "--signatures-check-every", "1s"}})
	p := s.partner("harbour")
	id := p.send("note.txt", "text/plain", note("stale-bread"))
	s.awaitLog("signatures_outdated")
	s.awaitLog("malware signatures are older than 7 days: run freshclam")
	if st := p.status(id); st.Status != "PROCESSING" || st.Gates[2].State != "running" {
		t.Errorf("held: %+v", st)
	}
	refused := p.do(p.submitting(client.NewIdempotencyKey(), text("The bread is old.", nil))).want(t, 503, "service_unavailable")
	if refused.Header.Get("Retry-After") == "" {
		t.Errorf("no Retry-After: %v", refused.Header)
	}
	known.age(0)
	p.wantReady(id)
	p.submit(text("The bread is fresh.", nil))
	s.wantNoPath(known)
}

func TestTheAgeOfSignaturesIsUnknownOrTooHigh(t *testing.T) {
	t.Parallel()
	old := newSignatureFolder(t)
	old.age(30 * 24 * time.Hour)
	for name, env := range map[string][]string{
		"too high":                         old.managed(),
		"unknown: a clamd without a daily": {"ACCESSION_CLAMD_ADDRESS=" + clamd},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := append([]string{"ACCESSION_SIGNATURES_MAX_AGE=168h"}, env...)
			o := options{env: env, flags: []string{"--rate-limits", "off"}}
			s := start(t, o)
			s.awaitClamd() // else the gate has another reason at first
			p := s.partner("harbour")
			id := p.send("note.txt", "text/plain", note("stale-bread"))
			p.awaitGate(id, "malware_scan", "running")
			for deadline := time.Now().Add(2 * time.Minute); p.status(id).Gates[2].Detail["last_error"] == nil; {
				if time.Now().After(deadline) {
					t.Fatalf("the gate gives no reason: %+v", p.status(id))
				}
			}
			s.stop()
			o.data, o.flags = s.data, append(o.flags, "--gate-deadlines", "malware_scan=1ms") // it is past that
			p.service = start(t, o)
			st := p.wantEnd(id, "FAILED", "malware_scan", "signatures_outdated")
			if !strings.Contains(st.Failure.Message, "freshclam") {
				t.Errorf("the failure does not say what to do: %s", st.Failure.Message)
			}
			exit, said := doctor(t, env)
			if exit == 0 || !strings.Contains(said, "the malware gate holds every upload") || !strings.Contains(said, "freshclam") {
				t.Errorf("doctor: exit %d: %s", exit, said)
			}
		})
	}
	exit, said := doctor(t, old.managed())
	if exit != 0 || !strings.Contains(said, "30 days old") || !strings.Contains(said, "freshclam") {
		t.Errorf("doctor, of any age: exit %d: %s", exit, said)
	}
}
