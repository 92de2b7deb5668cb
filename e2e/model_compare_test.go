package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/accession/accession/internal/custody"
)

// compareSome is done after every step: the figures of all organizations, the records of one of them, in turn; of the uploads the
// one that the step was about and another, from both sides.
func (m *model) compareSome(t *rapid.T) {
	m.steps++
	m.compareFigures(t)
	m.compareRecords(t, m.orgs[m.steps%len(m.orgs)])
	all := m.uploads()
	if len(all) == 0 {
		return
	}
	next := all[m.steps%len(all)]
	if m.touched != nil && m.touched != next {
		m.compareStatus(t, m.touched)
	}
	m.compareStatus(t, next)
	m.compareIsolated(t, next)
}

// compareAll is done at the end of a sequence: everything, once all processing has ended.
func (m *model) compareAll(t *rapid.T) {
	for _, u := range m.uploads() {
		m.settle(t, u)
		m.compareIsolated(t, u)
		other := m.orgs[1-slices.Index(m.orgs, u.org)]
		m.readContext(t, u, other, other.observer, "key")
		m.readContext(t, u, u.org, u.org.observer, "key")
	}
	m.compareFigures(t)
	for _, o := range m.orgs {
		m.compareRecords(t, o)
		m.compareCredentials(t, o)
		m.compareAudit(t, o)
	}
}

// want asks as an observer or the administrator.
func (m *model) want(t *rapid.T, c call, status int, code string) reply {
	r := m.ask(t, c)
	if r.Status != status || r.Code != code {
		t.Fatalf("%s %s is answered %d %s, the model says %d %s: %s", c.method, c.path, r.Status, r.Code, status, code, r.Raw)
	}
	return r
}

func (m *model) compareFigures(t *rapid.T) {
	r := m.want(t, call{method: "GET", path: "/admin/organizations?limit=2&cursor=" + m.name, bearer: adminToken}, 200, "")
	var page struct{ Organizations []decoded }
	if err := json.Unmarshal(r.Data, &page); err != nil || len(page.Organizations) != len(m.orgs) {
		t.Fatalf("organizations: %v: %s", err, r.Raw)
	}
	for n, o := range m.orgs {
		active := 0
		for _, c := range m.credentials {
			if c.org == o && c.active {
				active++
			}
		}
		page.Organizations[n].want(t, map[string]any{"org_id": o.id, "active_credentials": active})
		o.wantFigures(t, page.Organizations[n])
	}
}

func (m *model) compareRecords(t *rapid.T, o *modelOrg) {
	r := m.want(t, call{method: "GET", path: "/api/v1/organizations/" + o.id + "/request-records?limit=100", token: o.observer.token}, 200, "")
	o.wantRecords(t, r, func(custody.Record) bool { return true })
}

// wantFigures compares quota figures with the organization's.
func (o *modelOrg) wantFigures(t *rapid.T, d decoded) {
	used, reserved, count := o.figures()
	for name, want := range map[string]int{"allowance_bytes": o.allowance, "used_bytes": used, "reserved_bytes": reserved, "available_bytes": o.available(), "upload_count": count} {
		if d.number(name) != int64(want) {
			t.Fatalf("%s of %s is %v, the model says %d: %v", name, o.id, d[name], want, d)
		}
	}
	if d.text("org_id") != o.id {
		t.Fatalf("the figures of %s are those of %v", o.id, d)
	}
}

// wantRecords compares the records of an answer, newest first, with those of the organization that pick takes.
func (o *modelOrg) wantRecords(t *rapid.T, r reply, pick func(custody.Record) bool) {
	var page struct {
		Records []struct {
			custody.Record
			RecalledAt *time.Time `json:"recalled_at"`
		}
	}
	if err := json.Unmarshal(r.Data, &page); err != nil {
		t.Fatalf("records: %v: %s", err, r.Raw)
	}
	var want, got []string
	line := func(r custody.Record, recalled bool) string {
		return fmt.Sprint(r.OrgID, " ", r.UploadID, " ", r.CredentialID, " ", r.RequestID, " ", r.Outcome, " ", r.ContextSHA256, " recalled: ", recalled)
	}
	for _, record := range slices.Backward(o.records) {
		if pick(record) {
			want = append(want, line(record, !record.RecalledAt.IsZero()))
		}
	}
	for _, record := range page.Records {
		got = append(got, line(record.Record, record.RecalledAt != nil))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("records of %s:\n%q\nthe model says\n%q", o.id, got, want)
	}
}

func (u *modelUpload) statusCall(by *modelCredential) call {
	return call{method: "GET", path: "/api/v1/organizations/" + u.org.id + "/partner-uploads/" + u.id, token: by.token}
}

func (m *model) compareStatus(t *rapid.T, u *modelUpload) {
	u.wantStatus(t, m, m.want(t, u.statusCall(u.org.observer), 200, ""))
}

// settle waits for the end of processing, and compares the status.
func (m *model) settle(t *rapid.T, u *modelUpload) {
	if u.pending {
		deadline := time.Now().Add(2 * time.Minute)
		for u.pending && time.Now().Before(deadline) {
			c := u.statusCall(u.org.observer)
			c.header = map[string]string{"Prefer": "wait=20"}
			m.wantStanding(t, u, dataOf(t, m.want(t, c, 200, "")))
		}
		if u.pending {
			t.Fatalf("%s stays in processing", u.id)
		}
	}
	m.compareStatus(t, u)
}

func (u *modelUpload) wantStatus(t *rapid.T, m *model, r reply) {
	d := dataOf(t, r)
	m.wantStanding(t, u, d)
	d.want(t, map[string]any{"upload_id": u.id, "evaluation_status": "not_evaluated"})
	if u.status != "WITHDRAWN" {
		d.want(t, map[string]any{"size_bytes": len(u.content), "received_bytes": u.received(), "next_part_number": u.next, "filename": "note.txt"})
	}
	states := map[string]int{}
	gates, _ := d["gates"].([]any)
	for _, g := range gates {
		gate, _ := g.(map[string]any)
		states[decoded(gate).text("state")]++
	}
	want := map[string]int{"pending": 6}
	switch u.status {
	case "PROCESSING", "WITHDRAWN":
		return
	case "READY":
		want = map[string]int{"passed": 6}
	case "REJECTED":
		want = map[string]int{"passed": 2, "rejected": 1, "pending": 3}
		failure, _ := d["failure"].(map[string]any)
		decoded(failure).want(t, map[string]any{"gate": "malware_scan", "code": "malware_found"})
	}
	if !maps.Equal(states, want) {
		t.Fatalf("gates of %s are %v, the model says %v: %s", u.id, states, want, r.Raw)
	}
}

// compareIsolated asks for an upload as the other organization does: under its own path, or under the owner's.
func (m *model) compareIsolated(t *rapid.T, u *modelUpload) {
	other := m.orgs[1-slices.Index(m.orgs, u.org)]
	c := u.statusCall(other.observer)
	if m.steps%2 == 0 {
		c.path = strings.Replace(c.path, u.org.id, other.id, 1)
	}
	m.want(t, c, 404, "upload_not_found")
}

func (m *model) compareCredentials(t *rapid.T, o *modelOrg) {
	r := m.want(t, call{method: "GET", path: "/admin/tenant-keys/credentials?limit=100&include_ended=true&org_id=" + o.id, bearer: adminToken}, 200, "")
	var page struct{ Credentials []decoded }
	if err := json.Unmarshal(r.Data, &page); err != nil {
		t.Fatalf("credentials: %v: %s", err, r.Raw)
	}
	states := map[string]any{}
	for _, c := range page.Credentials {
		states[c.text("credential_id")] = c.text("state")
	}
	for _, c := range m.credentials {
		if c.org != o {
			continue
		}
		want := "active"
		switch {
		case c.revoked:
			want = "revoked"
		case !c.active:
			want = "expired"
		}
		if states[c.id] != want {
			t.Fatalf("credential %s is %v, the model says %s: %s", c.id, states[c.id], want, r.Raw)
		}
		delete(states, c.id)
	}
	if len(states) > 0 {
		t.Fatalf("credentials of %s that the model does not know: %v", o.id, states)
	}
}

// compareAudit compares the audit log: one line for each change of each upload but those of gates, one for each thing the
// administrator did, each linked to the one before.
func (m *model) compareAudit(t *rapid.T, o *modelOrg) {
	byUpload, others, after, hash := map[string][]string{}, map[string]int{}, 0, custody.FirstHash
	known := map[string]bool{}
	for _, u := range o.uploads {
		known[u.id] = true
	}
	for more := true; more; more = after > 0 {
		r := m.want(t, call{method: "GET", path: fmt.Sprintf("/admin/evidence?chain=audit&limit=1000&after=%d&org_id=%s", after, o.id), bearer: adminToken}, 200, "")
		var page struct {
			Lines []struct{ Audit custody.AuditLine }
			Next  int `json:"next_after"`
		}
		if err := json.Unmarshal(r.Data, &page); err != nil {
			t.Fatalf("audit: %v: %s", err, r.Raw)
		}
		for _, l := range page.Lines {
			linked := l.Audit
			linked.Link(hash)
			if linked != l.Audit {
				t.Fatalf("a line of the audit log is not linked to the one before: %+v", l.Audit)
			}
			hash = l.Audit.Hash
			if known[l.Audit.UploadID] && l.Audit.Action != "external_review_attached" {
				byUpload[l.Audit.UploadID] = append(byUpload[l.Audit.UploadID], l.Audit.Action)
			} else {
				others[l.Audit.Action]++
			}
		}
		after = page.Next
	}
	if !maps.Equal(others, o.audit) {
		t.Fatalf("audit log of %s: %v, the model says %v", o.id, others, o.audit)
	}
	for _, u := range o.uploads {
		if got := byUpload[u.id]; !slices.Equal(got, u.log) && !slices.Equal(got, u.otherLog) {
			t.Fatalf("audit log of %s: %v, the model says %v", u.id, got, u.log)
		}
	}
}
