package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

func allowing(org string, bytes any, key string) call {
	return call{method: "PUT", path: "/admin/organizations/" + org + "/quota", bearer: adminToken, key: key, json: map[string]any{"allowance_bytes": bytes}}
}

// allow sets what an organization may keep and checks the figures of the answer.
func (s *service) allow(org string, bytes any, allowance, available int64) {
	s.t.Helper()
	a := decode[client.Allowance](s.t, s.do(allowing(org, bytes, client.NewIdempotencyKey())).want(s.t, 200, ""))
	if a.OrgID != org || a.AllowanceBytes != allowance || a.AvailableBytes != available || a.DefaultBytes != 1000 {
		s.t.Errorf("allowed %v: %+v", bytes, a)
	}
}

// What an operator allows is what the next upload of any kind meets; nothing that is there is touched.
func TestAllowanceIsTheOperatorsToSet(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"ACCESSION_QUOTA_BYTES=1000"}, flags: []string{"--rate-limits", "off"}})
	p, island := s.partner("harbour"), s.partner("island")
	reserve := func(size int) call { return p.reserving(client.NewIdempotencyKey(), size) }
	first := p.initiate("a.txt", "text/plain", 600)
	s.do(reserve(401)).want(t, 409, "quota_exceeded")
	s.allow("harbour", 1200, 1200, 600)
	s.do(reserve(601)).want(t, 409, "quota_exceeded")
	s.do(reserve(600)).want(t, 200, "") // to the last byte
	s.allow("harbour", 1000, 1000, 0)   // below what is reserved
	s.do(reserve(1)).want(t, 409, "quota_exceeded")
	s.do(p.submitting(client.NewIdempotencyKey(), text("The pump stands.", nil))).want(t, 409, "quota_exceeded")
	over := s.do(reserve(1)).want(t, 409, "quota_exceeded")
	if over.Details["allowance_bytes"] != 1000.0 || over.Details["available_bytes"] != 0.0 {
		t.Errorf("details %v", over.Details)
	}
	if q := s.quota("harbour", p.token); q.AllowanceBytes != 1000 || q.ReservedBytes != 1200 || q.AvailableBytes != 0 || q.UploadCount != 2 {
		t.Errorf("a tenant sees %+v", q)
	}
	if st := p.status(first); st.Status != "INITIATED" {
		t.Errorf("an upload under way is %s", st.Status)
	}
	p.wantWithdrawn(first, 600)
	s.do(reserve(401)).want(t, 409, "quota_exceeded")
	s.do(reserve(400)).want(t, 200, "") // what was withdrawn is room again
	s.allow("harbour", 0, 0, 0)
	s.do(reserve(1)).want(t, 409, "quota_exceeded")
	s.allow("harbour", nil, 1000, 0)
	island.initiate("b.txt", "text/plain", 1000) // another organization has its own

	first2 := s.do(allowing("harbour", 5000, "set-it-to-5000")).want(t, 200, "")
	s.allow("harbour", 6000, 6000, 5000)
	wantReplay(t, first2, s.do(allowing("harbour", 5000, "set-it-to-5000"))) // and changes nothing
	s.do(allowing("harbour", 6000, "set-it-to-5000")).want(t, 409, "idempotency_conflict")
	read := call{method: "GET", path: "/admin/organizations/harbour/quota", bearer: adminToken}
	if a := decode[client.Allowance](t, s.do(read).want(t, 200, "")); a.AllowanceBytes != 6000 || a.ReservedBytes != 1000 || a.AvailableBytes != 5000 || a.DefaultBytes != 1000 {
		t.Errorf("read: %+v", a)
	}

	// Bad requests say what to change; nobody else may.
	for _, bytes := range []any{-1, 1 << 53, 1.5, "5000", true} {
		s.do(allowing("harbour", bytes, client.NewIdempotencyKey())).want(t, 400, "invalid_request")
	}
	s.do(allowing("nobody", 1, client.NewIdempotencyKey())).want(t, 404, "organization_not_found")
	read.path = "/admin/organizations/nobody/quota"
	s.do(read).want(t, 404, "organization_not_found")
	s.wantOperatorsOnly(p.token, s.issue("harbour", "ai_reader"))
	if q := s.quota("harbour", p.token); q.AllowanceBytes != 6000 {
		t.Errorf("a tenant changed its allowance: %+v", q)
	}

	// The command line, and what the audit log says.
	if out, _ := s.wantCLI(0, "", "quota", "set", "harbour", "2KiB"); !strings.Contains(out, "2.0 KiB") || !strings.Contains(out, "1.0 KiB") {
		t.Error(out)
	}
	if _, errs := s.wantCLI(0, "", "quota", "set", "harbour", "10"); !strings.Contains(errs, "nothing is deleted") {
		t.Error(errs)
	}
	if out, _ := s.wantCLI(0, "", "quota", "set", "harbour", "default", "--json"); object(t, out)["allowance_bytes"] != 1000.0 {
		t.Error(out)
	}
	for _, args := range [][]string{{"harbour", "-1"}, {"harbour", "much"}, {"harbour", "9007199254740992"}, {"harbour"}} {
		s.wantCLI(2, "", append([]string{"quota", "set", "--"}, args...)...)
	}
	s.wantCLI(4, "", "quota", "set", "nobody", "1")
	if out, _ := s.wantCLI(0, p.token, "quota", "--org", "harbour"); !strings.Contains(out, "1000 B") {
		t.Error(out)
	}
	var said []string
	for _, l := range s.search(url.Values{"action": {"quota_set"}, "org_id": {"harbour"}}) {
		if l.CredentialID != "admin" || l.RequestID == "" {
			t.Errorf("an audit line is %+v", l)
		}
		said = append(said, strings.TrimPrefix(l.Detail, "allowance_bytes="))
	}
	slices.Reverse(said)
	if got := strings.Join(said, " "); got != "1200 1000 0 1000 5000 6000 2048 10 1000" {
		t.Errorf("audit lines: %s", got)
	}
}

// operatorCalls are the operations of an operator that take no tenant credential, of any organization.
var operatorCalls = []call{
	{method: "GET", path: "/admin/organizations"}, {method: "GET", path: "/admin/organizations/harbour/quota"}, {method: "GET", path: "/admin/state"}, {method: "GET", path: "/admin/audit"},
	{method: "GET", path: "/admin/audit?org_id=harbour"}, {method: "PUT", path: "/admin/organizations/harbour/quota", json: map[string]any{"allowance_bytes": 1}},
}

func (s *service) wantOperatorsOnly(tokens ...string) {
	s.t.Helper()
	for _, c := range operatorCalls {
		s.do(c).want(s.t, 401, "authentication_required")
		for _, token := range tokens {
			c.token, c.bearer = token, ""
			s.do(c).want(s.t, 401, "credential_invalid")
			c.token, c.bearer = "", token
			s.do(c).want(s.t, 401, "credential_invalid")
		}
	}
}

// Organizations come in pages, each with its own figures.
func TestOrganizationsAreListed(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"ACCESSION_QUOTA_BYTES=100000"}})
	p := s.partner("harbour")
	s.issue("harbour", "ai_reader")
	ready := p.send("note.txt", "text/plain", note("tide-table"))
	p.wantReady(ready)
	p.initiate("half.txt", "text/plain", 100)
	revoked := s.do(issuing(client.NewIdempotencyKey(), "harbour", "ai_reader")).want(t, 201, "").field(t, "credential_id")
	s.do(call{method: "POST", path: "/admin/tenant-keys/credentials/" + revoked + "/revoke", bearer: adminToken}).want(t, 200, "")
	s.do(s.retaining("harbour", 30, "retention-of-30-days")).want(t, 200, "")
	for i := range 4 {
		s.issue(fmt.Sprint("island & größer/", i), "ai_reader")
	}
	var found []client.Organization
	pages := 0
	for cursor := ""; ; pages++ {
		page := decode[client.OrganizationPage](t, s.do(call{method: "GET", path: "/admin/organizations?limit=2&cursor=" + url.QueryEscape(cursor), bearer: adminToken}).want(t, 200, ""))
		if found = append(found, page.Organizations...); page.NextCursor == "" {
			break
		}
		cursor = page.NextCursor
	}
	if len(found) != 5 || pages != 2 || found[4].OrgID != "island & größer/3" || found[4].ActiveCredentials != 1 {
		t.Fatalf("%d pages more: %+v", pages, found)
	}
	size := int64(len(note("tide-table")))
	o := found[0]
	if o.CreatedAt.IsZero() || time.Since(o.CreatedAt) > time.Hour {
		t.Errorf("it began at %s", o.CreatedAt)
	}
	o.CreatedAt = time.Time{}
	if want := (client.Organization{
		OrgID: "harbour", AllowanceBytes: 100000, UsedBytes: size, ReservedBytes: 100, AvailableBytes: 100000 - size - 100, UploadCount: 2, RetentionDays: 30, ActiveCredentials: 2,
	}); o != want {
		t.Errorf("harbour is %+v, want %+v", o, want)
	}
	out, _ := s.wantCLI(0, "", "organizations")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 6 || !strings.HasPrefix(lines[1], "harbour ") || !strings.Contains(lines[1], "30 days") || !strings.Contains(lines[5], "none") {
		t.Error(out)
	}
	if out, _ := s.wantCLI(0, "", "organizations", "--json"); len(object(t, out)["organizations"].([]any)) != 5 {
		t.Error(out)
	}
}

func (s *service) state() client.ServiceState {
	s.t.Helper()
	return decode[client.ServiceState](s.t, s.do(call{method: "GET", path: "/admin/state", bearer: adminToken}).want(s.t, 200, ""))
}

// awaitScanner returns the state once it says that the scanner is well: on a busy machine that may not prove itself in the two seconds that
// it has for it.
func (s *service) awaitScanner() client.ServiceState {
	s.t.Helper()
	for limit := time.Now().Add(2 * time.Minute); ; {
		st := s.state()
		if st.Scanner.OK {
			return st
		}
		if time.Now().After(limit) {
			s.t.Fatalf("the scanner is %+v", st.Scanner)
		}
	}
}

// The state tells of the upload that waits for the scanner, of the one that gave up, and of the scanner itself.
func TestStateTellsWhatIsStuck(t *testing.T) {
	t.Parallel()
	away := options{env: []string{"ACCESSION_CLAMD_ADDRESS=tcp:" + freeAddress(t)}, flags: []string{"--gate-deadlines", "malware_scan=20s", "--rate-limits", "off"}}
	s := start(t, away)
	p := s.partner("harbour")
	failed := p.send("note.txt", "text/plain", note("no-wind"))
	p.wantEnd(failed, "FAILED", "malware_scan", "scanner_unavailable")
	s.stop()
	away.data, away.flags = s.data, away.flags[2:] // from now on the gate tries for long
	s = start(t, away)
	p.service = s
	held := p.send("note.txt", "text/plain", note("late-wind"))
	st := s.state()
	for limit := time.Now().Add(2 * time.Minute); st.Uploads.Held == 0; st = s.state() { // until the first attempt has ended
		if time.Now().After(limit) {
			t.Fatalf("nothing is held: %+v; the upload is %+v", st, p.status(held))
		}
	}
	if st.Uploads.Failed != 1 || len(st.Uploads.Listed) != 2 {
		t.Fatalf("%+v", st.Uploads)
	}
	for i, want := range []client.StuckUpload{{UploadID: held, Status: "PROCESSING"}, {UploadID: failed, Status: "FAILED"}} {
		got := st.Uploads.Listed[i]
		if got.UploadID != want.UploadID || got.Status != want.Status || got.OrgID != "harbour" || got.Gate != "malware_scan" || got.Code != "scanner_unavailable" || got.Message == "" || got.Since.IsZero() {
			t.Errorf("stuck is %+v", got)
		}
	}
	if st.Scanner.OK || st.Scanner.Engine != "" || !strings.Contains(st.Scanner.Sentence, "wait") || strings.Contains(st.Scanner.Sentence, "127.0.0.1") {
		t.Errorf("the scanner is %+v", st.Scanner)
	}
	if st.Process.Version == "" || strings.Join(st.Process.Roles, " ") != "api worker" || st.Process.StartedAt.After(st.At) || len(st.Queues) != 3 || st.Queues[0].Lane != "gates" {
		t.Errorf("%+v %+v", st.Process, st.Queues)
	}
	out, errs := s.wantCLI(1, "", "state")
	for _, want := range []string{"1 held, 1 FAILED", held, failed, "malware_scan", "wait"} {
		if !strings.Contains(out, want) {
			t.Errorf("the command does not tell %q:\n%s%s", want, out, errs)
		}
	}

	s.stop()
	s = start(t, options{data: s.data, flags: away.flags}) // with a scanner that answers
	p.service = s
	p.wantReady(held)
	st = s.awaitScanner()
	if st.Uploads.Held != 0 || st.Uploads.Failed != 1 || len(st.Uploads.Listed) != 1 || st.Queues[0].Waiting+st.Queues[0].Running != 0 {
		t.Errorf("%+v %+v", st.Uploads, st.Queues)
	}
	if sc := st.Scanner; sc.Engine != "ClamAV" || sc.EngineVersion == "" || !strings.Contains(sc.Sentence, "freshclam") { // it has test signatures
		t.Errorf("the scanner is %+v", sc)
	}
	s.do(s.resuming("harbour", failed, client.NewIdempotencyKey())).want(t, 200, "")
	p.wantReady(failed)
	if st = s.state(); st.Uploads.Failed != 0 || len(st.Uploads.Listed) != 0 {
		t.Errorf("%+v", st.Uploads)
	}
	for limit := time.Now().Add(2 * time.Minute); ; { // as awaitScanner
		out, errs, exit := s.cli("", "state", "--json")
		if ok := object(t, out)["scanner"].(map[string]any)["ok"] == true; ok && exit == 0 {
			break
		} else if ok || exit != 1 || time.Now().After(limit) {
			t.Fatalf("exit %d: %s%s", exit, out, errs)
		}
	}
	s.wantOperatorsOnly(p.token)
}

// search reads every page of what fits.
func (s *service) search(filters url.Values) (found []client.AuditLine) {
	s.t.Helper()
	filters.Set("limit", "3")
	for {
		page := decode[client.AuditPage](s.t, s.do(call{method: "GET", path: "/admin/audit?" + filters.Encode(), bearer: adminToken}).want(s.t, 200, ""))
		for _, l := range page.Lines {
			found = append(found, *l.Audit)
		}
		if page.NextCursor == "" {
			return found
		}
		filters.Set("cursor", page.NextCursor)
	}
}

func actions(lines []client.AuditLine) string {
	var all []string
	for _, l := range lines {
		all = append(all, l.Action)
	}
	return strings.Join(all, " ")
}

// What was done is found by whom, to what and when; a withdrawal takes nothing out of it.
func TestAuditIsSearched(t *testing.T) {
	t.Parallel()
	s := start(t, options{flags: []string{"--rate-limits", "off"}})
	owner := s.oauthClient("harbour", "solution_company_upload")
	p, island := partner{s, "harbour", owner.secret}, s.partner("island")
	theirs := island.submit(text("The crane stands.", nil))
	id := p.send("note.txt", "text/plain", note("salt-marsh"))
	p.wantReady(id)
	before := s.search(url.Values{"upload_id": {id}})
	if got := actions(before); got != "gates_passed completed part_accepted reserved" {
		t.Fatalf("about the upload: %s", got)
	}
	p.withdraw(id).want(t, 200, "")
	after := s.search(url.Values{"upload_id": {id}})
	if got := actions(after); got != "deletion_confirmed withdrawal_accepted "+actions(before) {
		t.Errorf("once it is withdrawn: %s", got)
	}
	if !slices.Equal(after[2:], before) {
		t.Errorf("lines changed: %+v, then %+v", before, after)
	}
	for _, l := range after {
		if l.OrgID != "harbour" || l.UploadID != id || l.AuditID == "" || l.LineHash == "" || l.At.IsZero() {
			t.Errorf("a line is %+v", l)
		}
	}
	if got := s.search(url.Values{"credential_id": {owner.id}, "action": {"withdrawal_accepted"}}); len(got) != 1 || got[0].UploadID != id {
		t.Errorf("by credential and action: %+v", got)
	}
	if got := s.search(url.Values{"org_id": {"harbour"}, "upload_id": {theirs}}); len(got) != 0 {
		t.Errorf("another's upload: %+v", got)
	}
	if got := actions(s.search(url.Values{"org_id": {"island"}, "credential_id": {"admin"}})); got != "credential_issued" {
		t.Errorf("the administrator at island: %s", got)
	}
	all := s.search(url.Values{})
	if !slices.IsSortedFunc(all, func(a, b client.AuditLine) int { return b.At.Compare(a.At) }) || len(all) < len(after)+3 {
		t.Errorf("%d lines in all, newest first", len(all))
	}
	withdrawn := after[1].At
	since := s.search(url.Values{"upload_id": {id}, "since": {withdrawn.Format(time.RFC3339Nano)}})
	until := s.search(url.Values{"upload_id": {id}, "until": {withdrawn.Format(time.RFC3339Nano)}})
	if len(since)+len(until) != len(after) || len(since) < 2 || since[len(since)-1].At.Before(withdrawn) || !until[0].At.Before(withdrawn) {
		t.Errorf("since: %s; until: %s", actions(since), actions(until))
	}
	s.do(call{method: "GET", path: "/admin/audit?cursor=aud_1", bearer: adminToken}).want(t, 400, "invalid_request")
	s.do(call{method: "GET", path: "/admin/audit?since=2026-11-20T00:00:00Z&until=2026-11-19T00:00:00Z", bearer: adminToken}).want(t, 400, "invalid_request")

	out, _ := s.wantCLI(0, "", "audit", "search", "--upload", id, "--since", "1h", "--limit", "0")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != len(after)+1 || !strings.Contains(lines[1], "deletion_confirmed") {
		t.Error(out)
	}
	out, errs := s.wantCLI(0, "", "audit", "search", "--org", "harbour", "--limit", "2", "--json")
	var line client.EvidenceLine
	if first, _, _ := strings.Cut(out, "\n"); json.Unmarshal([]byte(first), &line) != nil || line.Position == 0 || line.Audit.Action != "deletion_confirmed" || strings.Count(out, "\n") != 2 || !strings.Contains(errs, "there are more") {
		t.Error(out, errs)
	}
	if out, errs := s.wantCLI(0, "", "audit", "search", "--action", "nothing_of_the_kind"); out != "" || !strings.Contains(errs, "no audit line fits") {
		t.Error(out, errs)
	}
	s.wantCLI(2, "", "audit", "search", "--since", "yesterday")
	s.wantCLI(2, "", "audit", "search", "--limit", "-1")
	s.wantOperatorsOnly(p.token, island.token)
}

// A change of the allowance holds at the other replica with the next request, and nothing goes past it however many ask at once.
func TestAllowanceHoldsOverReplicas(t *testing.T) {
	t.Parallel()
	r := replicas(t, 2, options{flags: []string{"--quota-bytes", "100000", "--rate-limits", "off"}})
	p := r[0].partner("harbour")
	r[1].do(allowing("harbour", 250, client.NewIdempotencyKey())).want(t, 200, "")
	accepted := 0
	for _, reply := range together(t, r, 12, func(int) call { return p.reserving(client.NewIdempotencyKey(), 100) }) {
		switch {
		case reply.Status == 200:
			accepted++
		case reply.Code != "quota_exceeded":
			t.Errorf("%d %s", reply.Status, reply.Raw)
		}
	}
	if accepted != 2 {
		t.Errorf("%d uploads of 100 bytes were accepted, 250 are allowed", accepted)
	}
	r[0].do(allowing("harbour", 300, client.NewIdempotencyKey())).want(t, 200, "")
	r[1].do(p.reserving(client.NewIdempotencyKey(), 101)).want(t, 409, "quota_exceeded")
	r[1].do(p.reserving(client.NewIdempotencyKey(), 100)).want(t, 200, "")
	for i, s := range r {
		if got := s.search(url.Values{"action": {"quota_set"}}); len(got) != 2 || got[0].Detail != "allowance_bytes=300" {
			t.Errorf("replica %d finds %+v", i, got)
		}
		if st := s.state(); st.Uploads.Failed != 0 || len(st.Queues) != 3 {
			t.Errorf("replica %d: %+v", i, st)
		}
	}
}
