package e2e

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/accession/accession/client"
	"github.com/accession/accession/internal/custody"
)

// wantVerified runs accession audit verify and fails the test unless exactly these findings come out, as "org chain problem position".
func (s *service) wantVerified(want []string, args ...string) (chains []client.ChainReport) {
	s.t.Helper()
	stdout, stderr, exit := s.cli("", append([]string{"audit", "verify", "--json"}, args...)...)
	var said struct {
		Chains   []client.ChainReport
		Findings int
	}
	if err := json.Unmarshal([]byte(stdout), &said); err != nil {
		s.t.Fatalf("%v: exit %d: %s%s", err, exit, stdout, stderr)
	}
	var found []string
	for _, c := range said.Chains {
		if c.Finding != nil {
			found = append(found, fmt.Sprint(c.OrgID, " ", c.Chain, " ", c.Finding.Problem, " ", c.Finding.Position))
		}
	}
	if strings.Join(found, "\n") != strings.Join(want, "\n") || said.Findings != len(want) || (exit == 0) != (len(want) == 0) || exit > 1 {
		s.t.Errorf("verify %v: exit %d, found %q, want %q\n%s%s", args, exit, found, want, stdout, stderr)
	}
	return said.Chains
}

// evidenced is a service with chains of three organizations, the installation's among them.
func evidenced(t *testing.T, o options) *service {
	s := start(t, o)
	s.do(call{method: "POST", path: "/admin/tenant-keys/signing-keys/rotate", bearer: adminToken, key: client.NewIdempotencyKey(), json: map[string]any{"purpose": "oauth"}}).want(t, 201, "")
	for _, org := range []string{"harbour", "island"} {
		p, reader := s.partner(org), s.issue(org, "ai_reader")
		id := p.submit(text("The pump runs in "+org+".", nil))
		for range 4 {
			s.context(org, reader, id).want(t, 200, "")
		}
	}
	return s
}

func TestEvidenceHolds(t *testing.T) {
	t.Parallel()
	s := evidenced(t, options{})
	folder := t.TempDir()
	first := filepath.Join(folder, "first.json")
	if stdout, stderr := s.wantCLI(0, "", "audit", "heads", "-o", first); stdout != "" || !strings.Contains(stderr, "SHA-256 "+hexSum(content(t, first))) {
		t.Errorf("%s%s", stdout, stderr)
	}
	s.issue("harbour", "ai_reader") // the chains go on
	s.wantCLI(2, "", "audit", "heads", "-o", first)
	second, _ := s.wantCLI(0, "", "audit", "heads")
	third, _ := s.wantCLI(0, "", "audit", "heads", "--data", s.data)
	if at := strings.Index(second, `"heads"`); at < 0 || second[at:] != third[at:] || strings.Count(second, "\n") != 1 {
		t.Errorf("heads of the service and of its folder:\n%s%s", second, third)
	}
	for _, from := range [][]string{nil, {"--data", s.data}} {
		chains := s.wantVerified(nil, append(from, "--heads", first, "--heads", written(t, "second.json", []byte(second)))...)
		if len(chains) != 6 || chains[0].OrgID != "" || chains[2].OrgID != "harbour" || chains[2].Lines < 6 || chains[3].Lines != 4 || chains[5].Lines != 4 {
			t.Errorf("chains: %+v", chains)
		}
		for _, c := range chains {
			if c.Head.Position != c.Lines || !strings.Contains(second, c.Head.Hash) {
				t.Errorf("%+v is not in %s", c, second)
			}
		}
		if chains := s.wantVerified(nil, append(from, "--org", "island")...); len(chains) != 2 || chains[1].OrgID != "island" {
			t.Errorf("of one: %+v", chains)
		}
	}
	table, aside := s.wantCLI(0, "", "audit", "verify")
	if strings.Count(table, "\n") != 7 || strings.Count(table, "  ok\n") != 6 || !strings.Contains(table, "(installation)") || !strings.Contains(aside, "without --heads") {
		t.Errorf("%s%s", table, aside)
	}
	s.wantCLI(4, "", "audit", "verify", "--org", "nowhere")
	s.wantCLI(2, "", "audit", "verify", "--heads", first+".gone")
	s.wantCLI(2, "", "audit", "verify", "--heads", written(t, "bad.json", []byte("{}")))
	s.wantCLI(2, "", "audit", "verify", "--data", folder)

	shown, _ := s.wantCLI(0, "", "audit", "show", "--org", "harbour")
	if !strings.HasPrefix(shown, "POSITION  AT") || !strings.Contains(shown, "credential_issued") || !strings.Contains(shown, "gates_passed") {
		t.Errorf("%s", shown)
	}
	lines, _ := s.wantCLI(0, "", "audit", "show", "--org", "island", "--chain", "records", "--json", "--after", "1", "--limit", "2")
	if split := strings.Split(lines, "\n"); len(split) != 3 || !strings.Contains(split[0], `"position":2`) || !strings.Contains(split[1], `"record":{"record_id":"rec_`) {
		t.Errorf("%s", lines)
	}
	if house, _ := s.wantCLI(0, "", "audit", "show", "--org", ""); !strings.Contains(house, "signing_key") {
		t.Errorf("of the installation: %s", house)
	}
	// Anybody else is told nothing.
	reader := s.issue("harbour", "ai_reader")
	for _, path := range []string{"/admin/evidence?chain=audit&org_id=harbour", "/admin/evidence/heads"} {
		for _, c := range []call{{}, {token: reader}, {bearer: reader}, {token: adminToken}} {
			c.method, c.path = "GET", path
			if r := s.do(c); r.Status != 401 || strings.Contains(string(r.Raw), "island") {
				t.Errorf("%d %s", r.Status, r.Raw)
			}
		}
	}
	// Withdrawal leaves it all in place.
	p := partner{s, "harbour", s.issue("harbour", "solution_company_upload")}
	p.wantWithdrawn(p.submit(text("The pump stands.", nil)), len("The pump stands."))
	s.wantVerified(nil, "--heads", first)
}

func content(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const untied = `DROP TRIGGER audit_lines_keep; DROP TRIGGER audit_lines_stay; DROP TRIGGER request_records_keep; DROP TRIGGER request_records_stay; PRAGMA foreign_keys = OFF;`

// Whoever can write the database of a stopped service is found, by the service and without it.
func TestTamperedEvidenceIsFound(t *testing.T) {
	t.Parallel()
	s := evidenced(t, options{})
	heads := filepath.Join(t.TempDir(), "heads.json")
	s.wantCLI(0, "", "audit", "heads", "-o", heads)
	s.stop()
	for name, c := range map[string]struct {
		do      string
		alone   []string // found without exported heads
		outside []string // and with them
	}{
		"nothing": {"", nil, nil},
		"a field": {`UPDATE audit_lines SET credential_id = 'cred_0' WHERE org_id = 'harbour' AND position = 3`,
			[]string{"harbour audit changed 3"}, []string{"harbour audit changed 3"}},
		"a field of a record": {`UPDATE request_records SET bytes = bytes + 1 WHERE org_id = 'island' AND position = 2`,
			[]string{"island records changed 2"}, []string{"island records changed 2"}},
		"a line in the middle": {`DELETE FROM request_records WHERE org_id = 'harbour' AND position = 2`,
			[]string{"harbour records missing 2"}, []string{"harbour records missing 2"}},
		"two lines swapped": {`UPDATE request_records SET position = 1000 WHERE org_id = 'harbour' AND position = 2;
			UPDATE request_records SET position = 2 WHERE org_id = 'harbour' AND position = 3; UPDATE request_records SET position = 3 WHERE org_id = 'harbour' AND position = 1000`,
			[]string{"harbour records misplaced 2"}, []string{"harbour records misplaced 2"}},
		"the last line": {`DELETE FROM request_records WHERE org_id = 'harbour' AND position = 4`,
			[]string{"harbour records cut_off 4"}, []string{"harbour records cut_off 4"}},
		"the last line, and the head": {`DELETE FROM request_records WHERE org_id = 'harbour' AND position = 4;
			UPDATE organizations SET record_position = 3, record_hash = (SELECT record_hash FROM request_records WHERE org_id = 'harbour' AND position = 3) WHERE org_id = 'harbour'`,
			nil, []string{"harbour records cut_off 4"}},
		"the head, put back": {`UPDATE organizations SET record_position = 3, record_hash = (SELECT record_hash FROM request_records WHERE org_id = 'harbour' AND position = 3) WHERE org_id = 'harbour'`,
			[]string{"harbour records head_behind 4"}, []string{"harbour records head_behind 4"}},
		"all lines of an organization": {`DELETE FROM audit_lines WHERE org_id = 'island'; DELETE FROM request_records WHERE org_id = 'island'`,
			[]string{"island audit cut_off 1", "island records cut_off 1"}, []string{"island audit cut_off 1", "island records cut_off 1"}},
		"an organization altogether": {`DELETE FROM audit_lines WHERE org_id = 'island'; DELETE FROM request_records WHERE org_id = 'island'; DELETE FROM organizations WHERE org_id = 'island'`,
			nil, []string{"island audit cut_off 1", "island records cut_off 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			if err := os.CopyFS(data, os.DirFS(s.data)); err != nil {
				t.Fatal(err)
			}
			forge(t, data, c.do)
			tampered := launch(t, options{data: data})
			tampered.awaitReady()
			tampered.wantVerified(c.alone)
			tampered.wantVerified(c.outside, "--heads", heads)
			tampered.wantVerified(c.alone, "--data", data) // beside the service
			tampered.stop()
			tampered.wantVerified(c.alone, "--data", data)
			tampered.wantVerified(c.outside, "--data", data, "--heads", heads)
		})
	}
	t.Run("a chain linked again", func(t *testing.T) {
		t.Parallel()
		data := filepath.Join(t.TempDir(), "data")
		if err := os.CopyFS(data, os.DirFS(s.data)); err != nil {
			t.Fatal(err)
		}
		forge(t, data, `UPDATE request_records SET credential_id = 'cred_0' WHERE org_id = 'harbour' AND position = 2`)
		relink(t, data, "harbour")
		offline := &service{t: t, data: data}
		offline.wantVerified(nil, "--data", data)
		offline.wantVerified([]string{"harbour records rewritten 4"}, "--data", data, "--heads", heads)
	})
}

// forge changes the database of a stopped service as its administrator could.
func forge(t *testing.T, data, statements string) {
	t.Helper()
	db := (&service{t: t, data: data}).database(t, "metadata.db")
	db.SetMaxOpenConns(1)
	mustExec(t, db, untied+statements)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// relink gives every record of an organization the hashes that it should have had, and the head.
func relink(t *testing.T, data, org string) {
	t.Helper()
	db := (&service{t: t, data: data}).database(t, "metadata.db")
	db.SetMaxOpenConns(1)
	rows, err := db.Query(`SELECT position, record_id, request_id, trace_id, org_id, upload_id, credential_id, surface, outcome, context_sha256, bytes, served_at FROM request_records WHERE org_id = ? ORDER BY position`, org)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var records []custody.Record
	for rows.Next() {
		var r custody.Record
		var position, at int64
		if err := rows.Scan(&position, &r.ID, &r.RequestID, &r.TraceID, &r.OrgID, &r.UploadID, &r.CredentialID, &r.Surface, &r.Outcome, &r.ContextSHA256, &r.Bytes, &at); err != nil {
			t.Fatal(err)
		}
		r.ServedAt = time.UnixMilli(at).UTC()
		records = append(records, r)
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	previous := custody.FirstHash
	for i := range records {
		r := &records[i]
		r.Link(previous)
		previous = r.Hash
		if _, err := db.Exec(`UPDATE request_records SET previous_hash = ?, record_hash = ? WHERE record_id = ?`, r.PreviousHash, r.Hash, r.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(`UPDATE organizations SET record_hash = ? WHERE org_id = ?`, previous, org); err != nil || len(records) == 0 {
		t.Fatal(len(records), err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// A long chain is verified in the memory that a short one takes.
func TestLongChainsAreVerifiedPageByPage(t *testing.T) {
	t.Parallel()
	const many = 100_000
	s := start(t, options{})
	s.issue("island", "ai_reader")
	lengthen(t, s.database(t, "metadata.db"), "island", many)
	used := func(args ...string) int64 {
		t.Helper()
		var out bytes.Buffer
		cmd := exec.Command(binary, append([]string{"audit", "verify", "--json"}, args...)...)
		cmd.Env = []string{"HOME=" + t.TempDir(), "ACCESSION_URL=" + s.url, "ACCESSION_ADMIN_TOKEN=" + adminToken}
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %s", err, &out)
		}
		if long := !strings.Contains(strings.Join(args, " "), "house"); long != strings.Contains(out.String(), fmt.Sprint(`"lines": `, many)) {
			t.Errorf("verify %v: %s", args, &out)
		}
		return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss // KiB
	}
	s.issue("house", "ai_reader")
	short := used("--org", "house")
	for _, args := range [][]string{{"--org", "island"}, {"--org", "island", "--data", s.data}} {
		long := used(args...)
		if t.Logf("%v: %d KiB, one line %d KiB", args, long, short); long > short+40<<10 {
			t.Errorf("verify %v used %d KiB, for one line %d", args, long, short)
		}
	}
}

// lengthen writes records to the chain of an organization, as the service does, until there are so many.
func lengthen(t *testing.T, db *sql.DB, org string, records int64) {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	insert, err := tx.Prepare(`INSERT INTO request_records (org_id, position, record_id, request_id, trace_id, upload_id, credential_id, surface, outcome, context_sha256, bytes, served_at, previous_hash, record_hash)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		t.Fatal(err)
	}
	previous := custody.FirstHash
	for n := range records {
		r := custody.Record{ID: fmt.Sprint("rec_", n), RequestID: fmt.Sprint("req_", n), TraceID: strings.Repeat("a", 32), OrgID: org, UploadID: missing, CredentialID: "cred_1",
			Surface: "rest", Outcome: "served", ContextSHA256: strings.Repeat("b", 64), Bytes: n, ServedAt: time.UnixMilli(1_800_000_000_000 + n).UTC()}
		r.Link(previous)
		if _, err := insert.Exec(org, n+1, r.ID, r.RequestID, r.TraceID, r.UploadID, r.CredentialID, r.Surface, r.Outcome, r.ContextSHA256, r.Bytes, r.ServedAt.UnixMilli(), r.PreviousHash, r.Hash); err != nil {
			t.Fatal(err)
		}
		previous = r.Hash
	}
	if _, err := tx.Exec(`UPDATE organizations SET record_position = ?, record_hash = ? WHERE org_id = ?`, records, previous, org); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// No audit line, no change: with an audit log that cannot be written everything stays as it is.
func TestNothingChangesWithoutItsAuditLine(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	stored := p.submit(text("The pump runs.", nil))
	begun := p.initiate("note.txt", "text/plain", len(note("tern")))
	open := p.initiate("note.txt", "text/plain", len(note("tern")))
	p.part(open, 1, note("tern")).want(t, 200, "")
	credential := s.do(issuing(client.NewIdempotencyKey(), "harbour", "ai_reader")).want(t, 201, "").field(t, "credential_id")
	db := s.database(t, "metadata.db")
	state := func() (all string) {
		t.Helper()
		for _, query := range []string{
			`SELECT group_concat(upload_id || status || sequence || received_bytes || reserved_bytes || used_bytes) FROM uploads`, `SELECT count(*) || '' FROM status_events`,
			`SELECT count(*) || ' ' || sum(revoked_at) || ' ' || sum(expires_at) FROM credentials`, `SELECT count(*) || '' FROM withdrawals`, `SELECT count(*) || '' FROM parts`,
			`SELECT count(*) || '' FROM external_references`, `SELECT count(*) || '' FROM revoked_tokens`, `SELECT count(*) || '' FROM idempotency_keys`,
			`SELECT group_concat(org_id || allowance_bytes || audit_position || audit_hash || reserved_bytes || used_bytes || upload_count) FROM organizations`,
		} {
			var part string
			if err := db.QueryRow(query).Scan(&part); err != nil {
				t.Fatal(query, err)
			}
			all += part + "\n"
		}
		return all
	}
	changes := map[string]call{
		"initiate": {method: "POST", path: p.path("/partner-uploads/initiate"), token: p.token,
			json: map[string]any{"filename": "note.txt", "content_type": "text/plain", "size_bytes": 7, "consent": consent()}},
		"the first part": {method: "PUT", path: p.path("/partner-uploads/" + begun + "/parts/1"), token: p.token, body: note("tern")},
		"complete": {method: "POST", path: p.path("/partner-uploads/" + open + "/complete"), token: p.token,
			json: map[string]any{"client_file_sha256": hexSum(note("tern")), "parts": []any{map[string]any{"part_number": 1, "size_bytes": len(note("tern")), "sha256": hexSum(note("tern"))}}}},
		"a text":       p.submitting("", text("The pump stands.", nil)),
		"a correction": p.correcting(stored, "", text("The pump stands.", nil)),
		"a review":     p.reviewing(stored, "", map[string]any{"review_id": "rev-1"}),
		"withdraw":     {method: "POST", path: p.path("/partner-uploads/" + stored + "/withdraw"), token: p.token},
		"issue":        issuing("", "harbour", "ai_reader"),
		"revoke":       {method: "POST", path: "/admin/tenant-keys/credentials/" + credential + "/revoke", bearer: adminToken},
		"rotate":       {method: "POST", path: "/admin/tenant-keys/credentials/" + credential + "/rotate", bearer: adminToken},
		"quota":        allowing("harbour", 1<<30, ""),
	}
	before := state()
	mustExec(t, db, `CREATE TRIGGER refuse BEFORE INSERT ON audit_lines BEGIN SELECT RAISE(ABORT, 'disk on fire'); END`)
	for name, c := range changes {
		c.key = "key-of " + name
		c.key = strings.ReplaceAll(c.key, " ", "-")
		refused := s.do(c).want(t, 503, "service_unavailable")
		if refused.Header.Get("Retry-After") == "" || strings.Contains(string(refused.Raw), "fire") {
			t.Errorf("%s: %v %s", name, refused.Header, refused.Raw)
		}
		if after := state(); after != before {
			t.Errorf("%s changed something:\n%s\nwas\n%s", name, after, before)
		}
	}
	s.context("harbour", reader, stored).want(t, 200, "") // reading is not stopped by it; it has a record of its own
	mustExec(t, db, `DROP TRIGGER refuse`)
	for _, name := range []string{"initiate", "the first part", "complete", "a text", "a correction", "a review", "withdraw", "issue", "rotate", "revoke", "quota"} {
		c := changes[name]
		c.key = strings.ReplaceAll("key-of "+name, " ", "-")
		if r := s.do(c); r.Status >= 300 || r.Header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s again: %d %s", name, r.Status, r.Raw)
		}
	}
	s.wantVerified(nil)
}
