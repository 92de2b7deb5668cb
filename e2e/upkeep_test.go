package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

func (s *service) resuming(org, uploadID, key string) call {
	return call{method: "POST", path: "/admin/uploads/" + uploadID + "/resume", bearer: adminToken, key: key, json: map[string]any{"org_id": org}}
}

func TestFailedUploadGoesOnWhereItFailed(t *testing.T) {
	t.Parallel()
	keeper := newGatekeeper(t)
	s := start(t, options{env: []string{"ACCESSION_CLAMD_ADDRESS=" + keeper.address}, flags: []string{"--gate-deadlines", "malware_scan=20s"}})
	p := s.partner("harbour")
	id := p.send("note.txt", "text/plain", note("second-wind"))
	failed := p.wantEnd(id, "FAILED", "malware_scan", "scanner_unavailable")
	db := s.database(t, "metadata.db")
	started := func(gate string) (at int64) {
		t.Helper()
		if err := db.QueryRow(`SELECT started_at FROM gates WHERE upload_id = ? AND name = ?`, id, gate).Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	quarantined, scanned := started("quarantine"), started("malware_scan")

	// Who may not, and what is not there.
	s.do(s.resuming("island", id, client.NewIdempotencyKey())).want(t, 404, "upload_not_found")
	stranger := s.resuming("harbour", id, client.NewIdempotencyKey())
	stranger.bearer, stranger.token = "", p.token
	s.do(stranger).want(t, 401, "credential_invalid")
	if st := p.status(id); st.Status != "FAILED" || st.Sequence != failed.Sequence {
		t.Fatalf("%+v", st)
	}

	// The deadline is a new one: with the reason still there the gate fails again, and tries before it does.
	first := s.do(s.resuming("harbour", id, "resume-once")).want(t, 200, "")
	if first.field(t, "status") != "PROCESSING" || first.field(t, "gate") != "malware_scan" || first.field(t, "sequence") != jsonNumber(failed.Sequence+1) || first.field(t, "pipeline_id") == "" {
		t.Errorf("resumed: %s", first.Raw)
	}
	again := p.wantEnd(id, "FAILED", "malware_scan", "scanner_unavailable")
	if at := started("malware_scan"); at < scanned+1000 {
		t.Errorf("the gate started at %d again, first at %d", at, scanned)
	}
	if again.Gates[2].Detail["attempts"] != float64(1) && again.Gates[2].Detail["attempts"] != float64(2) {
		t.Errorf("attempts: %v", again.Gates[2].Detail)
	}
	wantReplay(t, first, s.do(s.resuming("harbour", id, "resume-once"))) // and resumes nothing
	if st := p.status(id); st.Status != "FAILED" {
		t.Fatalf("%+v", st)
	}

	keeper.open()
	out, errs, exit := s.cli("", "resume", "--org", "harbour", id)
	if exit != 0 || !strings.Contains(out, "PROCESSING") || !strings.Contains(out, "malware_scan") {
		t.Fatalf("exit %d: %s%s", exit, out, errs)
	}
	p.wantReady(id)
	if at := started("quarantine"); at != quarantined {
		t.Errorf("quarantine, which had passed, started again at %d", at)
	}
	var events, last int64
	if err := db.QueryRow(`SELECT COUNT(*), MAX(sequence) FROM status_events WHERE upload_id = ?`, id).Scan(&events, &last); err != nil || events != last {
		t.Errorf("%d events up to sequence %d, %v", events, last, err)
	}
	s.context("harbour", s.issue("harbour", "ai_reader"), id).want(t, 200, "")
	s.do(s.resuming("harbour", id, client.NewIdempotencyKey())).want(t, 409, "upload_not_failed")
	if _, errs, exit := s.cli("", "resume", "--org", "harbour", id); exit != 5 || !strings.Contains(errs, "FAILED") {
		t.Errorf("exit %d: %s", exit, errs)
	}
}

func jsonNumber(n int64) string { b, _ := json.Marshal(n); return string(b) }

func TestConcurrentResumptionsAreOne(t *testing.T) {
	t.Parallel()
	keeper := newGatekeeper(t)
	s := start(t, options{env: []string{"ACCESSION_CLAMD_ADDRESS=" + keeper.address}, flags: []string{"--gate-deadlines", "malware_scan=20s"}})
	p := s.partner("harbour")
	id := p.send("note.txt", "text/plain", note("many-winds"))
	p.wantEnd(id, "FAILED", "malware_scan", "scanner_unavailable")
	replies, errs := make([]reply, 8), make([]error, 8)
	var all sync.WaitGroup
	for i := range replies {
		all.Go(func() { replies[i], errs[i] = s.try(s.resuming("harbour", id, client.NewIdempotencyKey())) })
	}
	all.Wait()
	won := 0
	for i, r := range replies {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if r.Status == http.StatusOK {
			won++
		} else if r.Code != "upload_not_failed" {
			t.Errorf("%d %s", r.Status, r.Raw)
		}
	}
	if won != 1 {
		t.Errorf("%d resumptions of one failure", won)
	}
	keeper.open()
	if st := p.follow(id); st.Status == "FAILED" { // the deadline of 1 s was over before the scanner answered
		s.do(s.resuming("harbour", id, client.NewIdempotencyKey())).want(t, 200, "")
	}
	p.wantReady(id)
}

// checked is what `accession fsck --json` prints.
type checked struct {
	Uploads  int
	Findings []client.StorageFinding
	Omitted  int
}

func (s *service) fsck(flags ...string) (c checked, exit int) {
	s.t.Helper()
	out, errs, exit := s.cli("", append([]string{"fsck", "--json"}, flags...)...)
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		s.t.Fatalf("exit %d: %v: %s%s", exit, err, out, errs)
	}
	return c, exit
}

// only returns the finding of a problem; there must be one.
func (c checked) only(t *testing.T, problem, uploadID, backend string) client.StorageFinding {
	t.Helper()
	for _, f := range c.Findings {
		if f.Problem == problem && f.UploadID == uploadID && f.Backend == backend {
			return f
		}
	}
	t.Errorf("no finding %s of %s in %s: %+v", problem, uploadID, backend, c.Findings)
	return client.StorageFinding{}
}

func TestFsckFindsWhatDisagreesAndDeletesOrphans(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	ids := map[string]string{}
	for _, name := range []string{"whole", "bytes", "copy", "cut", "key", "late"} {
		ids[name] = p.send("note.txt", "text/plain", note(name))
		p.wantReady(ids[name])
	}
	p.wantWithdrawn(ids["late"], len(note("late")))
	if c, exit := s.fsck("--repair"); exit != 0 || len(c.Findings) != 0 || c.Uploads != 6 {
		t.Fatalf("exit %d: %+v", exit, c)
	}
	if out, _, exit := s.cli("", "fsck"); exit != 0 || !strings.Contains(out, "6 uploads, 0 problems") {
		t.Errorf("exit %d: %s", exit, out)
	}

	folder := func(root, id string) string { return filepath.Join(s.data, root, "uploads", id, "parts") }
	one := func(folder string) string {
		t.Helper()
		found := files(t, folder)
		if len(found) != 1 {
			t.Fatalf("%q", found)
		}
		return found[0]
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(path string, age time.Duration) {
		t.Helper()
		must(os.MkdirAll(filepath.Dir(path), 0o700))
		must(os.WriteFile(path, []byte("sealed"), 0o600))
		then := time.Now().Add(-age)
		must(os.Chtimes(path, then, then))
	}
	must(os.Remove(one(folder("blobs", ids["bytes"]))))
	must(os.Remove(one(folder("quarantine", ids["copy"]))))
	must(os.Truncate(one(folder("blobs", ids["cut"])), 10))
	keys := s.database(t, "keys.db")
	orphanKey, youngKey := "upl_"+strings.Repeat("k", 26), "upl_"+strings.Repeat("y", 26)
	for id, made := range map[string]int64{orphanKey: 1, youngKey: time.Now().UnixMilli()} {
		mustExec(t, keys, `CREATE TEMP TABLE made AS SELECT * FROM data_keys LIMIT 1`)
		if _, err := keys.Exec(`UPDATE made SET upload_id = ?, created_at = ?`, id, made); err != nil {
			t.Fatal(err)
		}
		mustExec(t, keys, `INSERT INTO data_keys SELECT * FROM made`)
		mustExec(t, keys, `DROP TABLE made`)
	}
	mustExec(t, keys, `DELETE FROM data_keys WHERE upload_id = '`+ids["key"]+`'`)
	unknown := "upl_" + strings.Repeat("u", 26)
	orphan, young := filepath.Join(folder("blobs", ids["whole"]), "000007-old"), filepath.Join(folder("blobs", ids["whole"]), "000008-young")
	lost, youngLost := filepath.Join(folder("quarantine", unknown), "000001-old"), filepath.Join(folder("blobs", unknown), "000001-young")
	late := filepath.Join(folder("quarantine", ids["late"]), "000001-late")
	put(orphan, 3*time.Hour)
	put(young, time.Hour)
	put(lost, 3*time.Hour)
	put(youngLost, time.Hour)
	put(late, 0)

	wantMissing := func(c checked) {
		t.Helper()
		for _, want := range []struct{ problem, name, backend string }{
			{"missing_objects", "bytes", "staging"}, {"missing_copies", "copy", "quarantine"}, {"missing_objects", "cut", "staging"}, {"missing_key", "key", "key_store"},
		} {
			f := c.only(t, want.problem, ids[want.name], want.backend)
			if f.OrgID != "harbour" || f.Status != "READY" || f.Objects != 1 || f.Repaired {
				t.Errorf("%+v", f)
			}
		}
	}
	orphans := []struct{ problem, id, backend string }{
		{"orphan_objects", ids["whole"], "staging"}, {"orphan_objects", unknown, "quarantine"}, {"orphan_objects", ids["late"], "quarantine"}, {"orphan_key", orphanKey, "key_store"},
	}
	c, exit := s.fsck()
	if exit != 1 || len(c.Findings) != 8 {
		t.Errorf("exit %d, %d findings: %+v", exit, len(c.Findings), c)
	}
	wantMissing(c)
	for _, o := range orphans {
		if f := c.only(t, o.problem, o.id, o.backend); f.Objects != 1 || f.Repaired {
			t.Errorf("%+v", f)
		}
	}
	for _, path := range []string{orphan, young, lost, youngLost, late} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("a check deleted something: %v", err)
		}
	}

	c, exit = s.fsck("--repair")
	if exit != 1 {
		t.Errorf("exit %d though something is missing", exit)
	}
	wantMissing(c)
	for _, o := range orphans {
		if f := c.only(t, o.problem, o.id, o.backend); !f.Repaired {
			t.Errorf("%+v", f)
		}
	}
	for _, path := range []string{orphan, lost, late} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("left: %v", err)
		}
	}
	for _, path := range []string{young, youngLost} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("somebody might be about to publish it: %v", err)
		}
	}
	var left int
	if err := keys.QueryRow(`SELECT COUNT(*) FROM data_keys WHERE upload_id IN (?, ?)`, orphanKey, youngKey).Scan(&left); err != nil || left != 1 {
		t.Errorf("%d of the two keys are left, %v", left, err)
	}
	if c, exit = s.fsck(); exit != 1 || len(c.Findings) != 4 {
		t.Errorf("after the repair: exit %d, %+v", exit, c)
	}
	wantMissing(c)
	if out, errs, exit := s.cli("", "fsck"); exit != 1 || !strings.Contains(out, "missing_key") || !strings.Contains(out, "6 uploads, 4 problems, 4 remain") || !strings.Contains(errs, "4 problems remain") {
		t.Errorf("exit %d: %s%s", exit, out, errs)
	}
	var lines int
	if err := s.database(t, "metadata.db").QueryRow(`SELECT COUNT(*) FROM audit_lines WHERE action = 'storage_repaired' AND detail = 'orphans=4' AND credential_id = 'admin'`).Scan(&lines); err != nil || lines != 1 {
		t.Errorf("%d audit lines, %v", lines, err)
	}
	s.context("harbour", s.issue("harbour", "ai_reader"), ids["whole"]).want(t, 200, "")
	if strings.Contains(s.said.String(), s.data) {
		t.Error("an answer tells a path")
	}
	stranger := call{method: "POST", path: "/admin/fsck", token: p.token, key: client.NewIdempotencyKey(), json: map[string]any{"repair": true}}
	s.do(stranger).want(t, 401, "credential_invalid")
}

// A live service never disagrees with itself, whatever is on its way.
func TestFsckOfALiveServiceFindsNothing(t *testing.T) {
	t.Parallel()
	s := start(t, smallParts())
	p := s.partner("harbour")
	const leastRounds = 3
	var rounds atomic.Int64
	ended := make(chan struct{})
	var uploaders sync.WaitGroup
	for seed := range uint32(2) {
		uploaders.Go(func() {
			defer func() {
				if seed == 0 {
					close(ended)
				}
			}()
			for round := 0; round < 8 || rounds.Load() < leastRounds && !t.Failed(); round++ {
				parts := cut(append(note("live-mark"), noise(3*partSize, seed)...), partSize)
				id := p.initiate("a.bin", "application/octet-stream", len(whole(parts)))
				for i, part := range parts {
					p.part(id, i+1, part)
				}
				p.complete(id, parts)
				if round%2 == 0 {
					p.follow(id)
				}
				p.withdraw(id)
			}
		})
	}
	for going := true; going; rounds.Add(1) {
		select {
		case <-ended:
			going = false
		default:
		}
		if c, exit := s.fsck("--repair"); exit != 0 || len(c.Findings) > 0 {
			t.Errorf("round %d: exit %d, %+v", rounds.Load(), exit, c)
		}
	}
	uploaders.Wait()
	if n := rounds.Load(); n < leastRounds {
		t.Errorf("%d rounds: this proves nothing", n)
	}
	s.wantNoObjects()
}
