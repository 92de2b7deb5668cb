package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
	"github.com/accession/accession/internal/storetest/cluster"
)

// moving is an installation in a folder, and the stores that it moves to.
type moving struct {
	*service
	s3  inS3
	url string // of the target's database
}

func newMoving(t *testing.T, s *service) moving {
	return moving{s, newInS3(t, false), cluster.Database(t)}
}

// target are the settings of serve after the move.
func (m moving) target() []string {
	return append(m.s3.Env(), "ACCESSION_ADMIN_TOKEN="+adminToken, "ACCESSION_DATABASE="+m.url, "ACCESSION_BASE_URL=http://custody.example",
		"ACCESSION_BLOBS="+m.s3.URL(m.s3.buckets[0], "staging"), "ACCESSION_QUARANTINE="+m.s3.URL(m.s3.buckets[1], ""))
}

// migrate runs accession migrate-store.
func (m moving) migrate(program string, env []string, flags ...string) (said string, exit int) {
	m.t.Helper()
	cmd := exec.Command(program, append([]string{"migrate-store", "--data", m.data}, flags...)...)
	cmd.Env = append([]string{"HOME=" + m.t.TempDir()}, env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		m.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (m moving) wantMigrated(flags ...string) (said string) {
	m.t.Helper()
	said, exit := m.migrate(binary, m.target(), flags...)
	if exit != 0 {
		m.t.Fatalf("migrate-store %v: exit %d: %s", flags, exit, said)
	}
	return said
}

// wantRefused starts a service, which must not start, and say why.
func wantRefused(t *testing.T, o options, want string) {
	t.Helper()
	s := launch(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if s.log.await(ctx, s.done, "accession is ready at") || ctx.Err() != nil {
		t.Fatalf("it was not refused; want %q", want)
	}
	if !strings.Contains(s.log.String(), want) || s.cmd.ProcessState.ExitCode() == 0 {
		t.Errorf("exit %d, said %s; want %q", s.cmd.ProcessState.ExitCode(), s.log, want)
	}
}

// started serves the target, as another machine would that has the key file.
func (m moving) started() *service {
	m.t.Helper()
	data := filepath.Join(m.t.TempDir(), "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		m.t.Fatal(err)
	}
	placed(m.t, m.data, data, keyFile)
	databases.Store(data, m.url)
	return start(m.t, options{data: data, env: m.target(), flags: []string{"--part-size-bytes", "4096"}})
}

func TestMovedInstallationServesOn(t *testing.T) {
	t.Parallel()
	misbehaving := misbehavingBinary(t)
	named := []string{"--part-size-bytes", "4096", "--base-url", "http://custody.example"}
	s := start(t, options{flags: named})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	other, otherReader := s.partner("island"), s.issue("island", "ai_reader")
	ids := map[string]string{}
	content := []byte(strings.Repeat("The pump station stands at the harbour. ", 400))
	parts := cut(content, 4096)
	deposit := func(p partner) string {
		id := p.initiate("note.txt", "text/plain", len(content))
		for i, part := range parts {
			p.part(id, i+1, part).want(t, 200, "")
		}
		p.complete(id, parts).want(t, 202, "")
		return id
	}
	ids["READY"] = deposit(p)
	p.wantReady(ids["READY"])
	theirs := other.submit(text("The island has a crane.", nil))
	ids["REJECTED"] = p.send("note.txt", "text/plain", []byte(eicar()))
	p.wantEnd(ids["REJECTED"], "REJECTED", "malware_scan", "malware_found")
	ids["WITHDRAWN"] = p.send("note.txt", "text/plain", note("gone"))
	p.wantReady(ids["WITHDRAWN"])
	receiptID := p.wantWithdrawn(ids["WITHDRAWN"], len(note("gone")))
	receipt := s.receipt("harbour", p.token, receiptID).want(t, 200, "").Data
	ids["INITIATED"] = p.initiate("note.txt", "text/plain", len(content))
	ids["RECEIVING"] = p.initiate("note.txt", "text/plain", len(content))
	p.part(ids["RECEIVING"], 1, parts[0]).want(t, 200, "")
	key := client.NewIdempotencyKey()
	reserved := s.do(p.reserving(key, 77)).want(t, 200, "").field(t, "upload_id")
	keys, was := s.keySet(), []string{s.served("harbour", reader, ids["READY"]), s.served("island", otherReader, theirs)}
	again := func(o options) { // the same folder, served in another way
		if s.stop() != 0 {
			t.Fatal("the service did not stop")
		}
		o.data, o.flags = s.data, append(slices.Clone(named), o.flags...)
		s = start(t, o)
		p, other = partner{s, "harbour", p.token}, partner{s, "island", other.token}
	}
	nobody := "ACCESSION_CLAMD_ADDRESS=tcp:" + freeAddress(t)
	again(options{flags: []string{"--reservation-lifetime", "1s"}})
	ids["EXPIRED"] = p.initiate("note.txt", "text/plain", 10)
	p.follow(ids["EXPIRED"])
	faults := t.TempDir()
	again(options{env: []string{nobody}, flags: []string{"--gate-deadlines", "malware_scan=20s"}})
	ids["FAILED"] = p.send("note.txt", "text/plain", note("failed"))
	p.wantEnd(ids["FAILED"], "FAILED", "malware_scan", "scanner_unavailable")
	again(options{binary: misbehaving, env: []string{nobody, "ACCESSION_STORE_FAULTS=" + faults}})
	ids["PROCESSING"] = p.send("note.txt", "text/plain", note("waiting")) // for a scanner that is not there
	p.awaitGate(ids["PROCESSING"], "malware_scan", "running")
	ids["WITHDRAWING"] = p.initiate("note.txt", "text/plain", len(content))
	p.part(ids["WITHDRAWING"], 1, parts[0]).want(t, 200, "")
	if err := os.WriteFile(filepath.Join(faults, ids["WITHDRAWING"]), []byte("staging delete 1+ error"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.withdraw(ids["WITHDRAWING"]).want(t, 502, "deletion_not_confirmed")
	statuses, quota := map[string]string{}, p.quota("harbour", p.token)
	for want, id := range ids {
		if statuses[id] = p.status(id).Status; statuses[id] != want {
			t.Fatalf("%s is %s", want, statuses[id])
		}
	}
	m := newMoving(t, s)
	if said, exit := m.migrate(binary, m.target()); exit != 1 || !strings.Contains(said, "another accession uses the data folder") {
		t.Errorf("beside the service: exit %d: %s", exit, said)
	}
	s.kill()
	before := digests(t, s.data)

	said := m.wantMigrated()
	for _, want := range []string{"examined", "staging", "quarantine", "keys", "metadata", "--finish"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in %s", want, said)
		}
	}
	for name, sum := range digests(t, filepath.Join(s.data, "blobs")) {
		if before[filepath.Join("blobs", name)] != sum {
			t.Errorf("%s was changed in the source", name)
		}
	}
	if said := m.wantMigrated(); !strings.Contains(said, "already") {
		t.Errorf("again: %s", said)
	}
	wantRefused(t, options{data: s.data, flags: named}, "this installation was moved to")

	foreign := filepath.Join(t.TempDir(), "foreign")
	if err := errors.Join(os.Mkdir(foreign, 0o700), os.WriteFile(filepath.Join(foreign, keyFile), []byte(base64.StdEncoding.EncodeToString(noise(32, 7))), 0o600)); err != nil {
		t.Fatal(err)
	}
	databases.Store(foreign, m.url)
	wantRefused(t, options{data: foreign, env: m.target()}, "bring the key file that belongs to it")

	now := m.started()
	q, island := partner{now, "harbour", p.token}, partner{now, "island", other.token}
	if string(now.keySet()) != string(keys) {
		t.Error("other signing keys")
	}
	if got := now.receipt("harbour", q.token, receiptID).want(t, 200, "").Data; !bytes.Equal(got, receipt) {
		t.Errorf("receipt %s, was %s", got, receipt)
	}
	kept := filepath.Join(t.TempDir(), "receipt.jws")
	now.wantCLI(0, q.token, "receipt", "show", "harbour", receiptID, "-o", kept)
	now.wantCLI(0, "", "receipt", "verify", kept)
	for i, got := range []string{now.served("harbour", reader, ids["READY"]), now.served("island", otherReader, theirs)} {
		if got != was[i] {
			t.Errorf("served %q, was %q", got, was[i])
		}
	}
	now.context("harbour", otherReader, ids["READY"]).wantNot(t, 200)
	if replayed := now.do(q.reserving(key, 77)).want(t, 200, ""); replayed.field(t, "upload_id") != reserved || replayed.Header.Get("Idempotent-Replayed") == "" {
		t.Errorf("the key had another effect: %s", replayed.Raw)
	}
	for status, id := range ids {
		switch status {
		case "INITIATED", "RECEIVING": // goes on where it was
			next := q.status(id).NextPartNumber
			for i, part := range parts[next-1:] {
				q.part(id, next+i, part).want(t, 200, "")
			}
			q.complete(id, parts).want(t, 202, "")
			q.wantReady(id)
		case "PROCESSING":
			q.wantReady(id)
		case "WITHDRAWING":
			if st := q.follow(id); st.Status != "WITHDRAWN" {
				t.Errorf("the withdrawal ended %s", st.Status)
			}
		default:
			if got := q.status(id).Status; got != statuses[id] {
				t.Errorf("%s became %s", statuses[id], got)
			}
		}
	}
	if c, exit := now.fsck(); exit != 0 || len(c.Findings) != 0 {
		t.Errorf("fsck: exit %d, %+v", exit, c)
	}
	now.wantVerified(nil)
	newer := deposit(q)
	q.wantReady(newer)
	q.wantWithdrawn(ids["READY"], len(content))
	if got := q.quota("harbour", q.token); got.AllowanceBytes != quota.AllowanceBytes {
		t.Errorf("quota %+v, was %+v", got, quota)
	}

	targetKeys := postgres(t, m.url, "keys.db")
	mustExec(t, targetKeys, `CREATE TABLE aside AS SELECT * FROM data_keys WHERE upload_id = '`+theirs+`'`)
	mustExec(t, targetKeys, `DELETE FROM data_keys WHERE upload_id = '`+theirs+`'`)
	if said, exit := m.migrate(binary, m.target(), "--finish"); exit != 1 || !strings.Contains(said, "data key of "+theirs+": the target lacks it; nothing was destroyed") {
		t.Errorf("--finish while the target lacks a key: exit %d: %s", exit, said)
	}
	if !there(t, filepath.Join(s.data, "keys.db")) {
		t.Fatal("the old key store was destroyed")
	}
	mustExec(t, targetKeys, `INSERT INTO data_keys SELECT * FROM aside`)
	mustExec(t, targetKeys, `DROP TABLE aside`)
	m.wantMigrated("--finish")
	for _, left := range []string{"keys.db", "keys.db-wal", "metadata.db", "metadata.db-wal"} {
		if there(t, filepath.Join(s.data, left)) {
			t.Errorf("%s is still there", left)
		}
	}
	s.wantNoObjects()
	wantRefused(t, options{data: s.data, flags: named}, "this installation was moved to")
	if got := now.served("island", otherReader, theirs); got != was[1] {
		t.Errorf("after --finish served %q, was %q", got, was[1])
	}
	for _, id := range append([]string{newer}, ids["RECEIVING"], ids["INITIATED"], ids["REJECTED"], ids["FAILED"], ids["PROCESSING"], reserved) {
		q.withdraw(id).want(t, 200, "")
	}
	now.do(call{method: "POST", path: island.path("/partner-uploads/" + theirs + "/withdraw"), token: island.token, key: client.NewIdempotencyKey(), json: map[string]any{}}).want(t, 200, "")
	if left := m.s3.objects(t); len(left) != 0 {
		t.Errorf("%d objects after all withdrawals", len(left))
	}
	now.wantVerified(nil)
}

// What is damaged is found by its name before anything moves; and a target that somebody uses is not touched.
func TestDamageAndStrangersAreNotMoved(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p := s.partner("harbour")
	id := p.send("note.txt", "text/plain", note("quay"))
	p.wantReady(id)
	if s.stop() != 0 {
		t.Fatal("the service did not stop")
	}
	m := newMoving(t, s)
	stored := append(files(t, filepath.Join(s.data, "blobs")), files(t, filepath.Join(s.data, "quarantine"))...)
	if len(stored) != 5 {
		t.Fatalf("%d objects", len(stored))
	}
	for _, path := range stored {
		whole := readFile(t, path)
		flipped := bytes.Clone(whole)
		flipped[len(flipped)/2] ^= 1
		if err := os.WriteFile(path, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		said, exit := m.migrate(binary, m.target())
		root := "staging"
		if strings.Contains(path, "quarantine/uploads") {
			root = "quarantine"
		}
		name := path[strings.Index(path, "uploads/"):]
		if exit != 1 || !strings.Contains(said, root+" object "+name) || !strings.Contains(said, id) || !strings.Contains(said, "1 damages; nothing was moved") {
			t.Errorf("%s: exit %d: %s", name, exit, said)
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if left := m.s3.objects(t); len(left) != 0 || there(t, filepath.Join(s.data, "moved.json")) {
		t.Errorf("something was moved: %d objects", len(left))
	}
	audit := s.database(t, "metadata.db")
	mustExec(t, audit, `DROP TRIGGER audit_lines_keep`)
	mustExec(t, audit, `UPDATE audit_lines SET detail = detail || ' ' WHERE org_id = 'harbour' AND position = 1`)
	if said, exit := m.migrate(binary, m.target()); exit != 1 || !strings.Contains(said, "audit of harbour") {
		t.Errorf("a forged audit line: exit %d: %s", exit, said)
	}
	mustExec(t, audit, `UPDATE audit_lines SET detail = substr(detail, 1, length(detail) - 1) WHERE org_id = 'harbour' AND position = 1`)

	used := filepath.Join(t.TempDir(), "used")
	databases.Store(used, m.url)
	stranger := start(t, options{data: used, env: m.target()})
	theirs := stranger.partner("island")
	strange := theirs.send("note.txt", "text/plain", note("reef"))
	theirs.wantReady(strange)
	if said, exit := m.migrate(binary, m.target()); exit != 1 || !strings.Contains(said, "other rows than the source") {
		t.Errorf("into a target that is used: exit %d: %s", exit, said)
	}
	if st := theirs.status(strange); st.Status != "READY" {
		t.Errorf("the stranger's upload is %s", st.Status)
	}
	wantRefused(t, options{data: s.data}, "the move is not complete")
	stranger.kill()
	for _, schema := range []string{"accession", "accession_keys"} {
		mustExec(t, postgres(t, m.url, "metadata.db"), `DROP SCHEMA `+schema+` CASCADE`)
	}
	m.wantMigrated("--abandon")
	q := partner{start(t, options{data: s.data}), "harbour", p.token}
	if st := q.status(id); st.Status != "READY" {
		t.Errorf("after --abandon it is %s", st.Status)
	}
}

// Storage alone moves, too; the database stays where it is.
func TestStorageMovesAlone(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	id := p.send("note.txt", "text/plain", note("quay"))
	p.wantReady(id)
	was := s.served("harbour", reader, id)
	if s.stop() != 0 {
		t.Fatal("the service did not stop")
	}
	m := newMoving(t, s)
	storage := append(m.s3.Env(), "ACCESSION_BLOBS="+m.s3.URL(m.s3.buckets[0], ""), "ACCESSION_QUARANTINE="+m.s3.URL(m.s3.buckets[1], ""))
	for _, flags := range [][]string{nil, {"--finish"}} {
		if flags != nil {
			for path, whole := range m.s3.objects(t) { // --finish looks again, at every object
				flipped := bytes.Clone(whole)
				flipped[len(flipped)/2] ^= 1
				if err := os.WriteFile(path, flipped, 0o600); err != nil {
					t.Fatal(err)
				}
				if said, exit := m.migrate(binary, storage, flags...); exit != 1 || !strings.Contains(said, "the target lacks it; nothing was destroyed") {
					t.Errorf("--finish with %s flipped: exit %d: %s", path, exit, said)
				}
				if err := os.WriteFile(path, whole, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if left := s.objects(); len(left) != 5 {
				t.Fatalf("%d objects in the old place", len(left))
			}
		}
		if said, exit := m.migrate(binary, storage, flags...); exit != 0 {
			t.Fatalf("%v: exit %d: %s", flags, exit, said)
		}
		wantRefused(t, options{data: s.data}, "this storage was moved to s3://")
	}
	s.wantNoObjects()
	now := start(t, options{data: s.data, env: storage})
	if got := now.served("harbour", reader, id); got != was {
		t.Errorf("served %q, was %q", got, was)
	}
	partner{now, "harbour", p.token}.wantWithdrawn(id, len(note("quay")))
	if left := m.s3.objects(t); len(left) != 0 {
		t.Errorf("%d objects left", len(left))
	}
}
