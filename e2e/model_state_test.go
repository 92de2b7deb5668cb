package e2e

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/accession/accession/internal/custody"
)

// The installation that the model is of.
const (
	modelPart      = 64
	modelAllowance = 1000
)

// model is what the contract says of an installation: two organizations, their credentials, uploads and records, and the answers
// given under keys. Its steps are in the files beside this one.
type model struct {
	s           *service
	name        string
	orgs        []*modelOrg
	credentials []*modelCredential
	answers     map[modelKey]*modelAnswer
	given       []*modelAnswer
	touched     *modelUpload // by the last step

	steps, requests, fresh int
}

type modelOrg struct {
	id        string
	allowance int
	uploads   []*modelUpload // oldest first
	records   []custody.Record
	audit     map[string]int   // lines of the audit log that belong to no upload, by action
	observer  *modelCredential // reads what is compared; nothing is done to it
}

type modelCredential struct {
	id, token string
	access    string // an OAuth access token; empty while none was asked for
	org       *modelOrg
	role      string
	scopes    []string
	active    bool
	revoked   bool
	admin     bool
}

type modelUpload struct {
	org        *modelOrg
	id         string
	kind       string
	content    []byte
	partSize   int
	next       int
	status     string
	sequence   int64
	pending    bool   // in processing: the status may be end already, and the sequence anything up to its
	end        string // READY, or REJECTED
	visibility string
	original   *modelUpload
	reviews    []string
	sum        string // of its context, once served
	receipt    string
	number     int      // of creation
	log        []string // of its changes, as the audit log has them
	otherLog   []string // nil, or what it may be instead
}

// name for the log of a sequence.
func (c *modelCredential) name() string {
	switch {
	case c == nil:
		return "nobody"
	case c.admin:
		return "the administrator"
	}
	return c.role + " " + c.id + " of " + c.org.id
}

// role names of the contract.
const (
	uploads = "solution_company_upload"
	reads   = "ai_reader"
)

var modelScopes = map[string][]string{
	uploads: {"customer_upload", "metadata_read", "ai_readiness", "correction", "external_reference"},
	reads:   {"ai_context", "metadata_read", "ai_readiness", "mcp"},
}

func newModel(t *rapid.T, s *service) *model {
	s.said = &tail{} // a long run would fill the memory
	m := &model{s: s, name: fmt.Sprintf("model-%09d", modelled.Add(1)), answers: map[modelKey]*modelAnswer{}}
	for _, side := range []string{"-a", "-b"} {
		o := &modelOrg{id: m.name + side, allowance: modelAllowance, audit: map[string]int{}}
		m.orgs = append(m.orgs, o)
		o.observer = m.issued(t, o, reads)
		m.credentials = append(m.credentials, m.issued(t, o, uploads), o.observer)
	}
	return m
}

// issued is a credential that every sequence begins with.
func (m *model) issued(t *rapid.T, o *modelOrg, role string) *modelCredential {
	r := m.ask(t, issuing(m.freshKey(), o.id, role))
	if r.Status != 201 {
		t.Fatalf("issue: %d %s", r.Status, r.Raw)
	}
	o.audit["credential_issued"]++
	d := dataOf(t, r)
	return &modelCredential{id: d.text("credential_id"), token: d.text("token"), org: o, role: role, scopes: modelScopes[role], active: true}
}

func (m *model) freshKey() string {
	m.fresh++
	return fmt.Sprintf("%s-fresh-%d", m.name, m.fresh)
}

func (m *model) uploads() (all []*modelUpload) {
	for _, o := range m.orgs {
		all = append(all, o.uploads...)
	}
	slices.SortFunc(all, func(a, b *modelUpload) int { return a.number - b.number })
	return all
}

// known is the upload with this id; nil where there is none.
func (m *model) known(id string) *modelUpload {
	for _, u := range m.uploads() {
		if u.id == id {
			return u
		}
	}
	return nil
}

// figures of an organization's quota.
func (o *modelOrg) figures() (used, reserved, count int) {
	for _, u := range o.uploads {
		switch {
		case u.status == "WITHDRAWN":
			continue
		case u.status == "INITIATED" || u.status == "RECEIVING":
			reserved += len(u.content)
		default:
			used += len(u.content)
		}
		count++
	}
	return used, reserved, count
}

func (o *modelOrg) available() int {
	used, reserved, _ := o.figures()
	return max(0, o.allowance-used-reserved)
}

func (u *modelUpload) parts() [][]byte { return cut(u.content, u.partSize) }

// received is how many bytes of the document are there.
func (u *modelUpload) received() int { return min(len(u.content), (u.next-1)*u.partSize) }

// corrections of u and of its corrections, oldest first, without those that were withdrawn.
func (u *modelUpload) corrections() (ids []string) {
	for _, c := range u.org.uploads {
		for o := c.original; o != nil; o = o.original {
			if o == u && c.status != "WITHDRAWN" {
				ids = append(ids, c.id)
			}
		}
	}
	return ids
}

// settled notes what processing came to.
func (u *modelUpload) settled() {
	if !u.pending {
		return
	}
	// Two events of each gate, and the last of them is the end.
	u.pending, u.status, u.sequence = false, u.end, 3+2*6
	if u.end == "REJECTED" {
		u.sequence = 3 + 2*3 // at the malware scan
	}
	u.log = append(slices.Clone(u.log), u.ending())
}

// ending is the name of the change that ends processing.
func (u *modelUpload) ending() string {
	if u.end == "REJECTED" {
		return "content_rejected"
	}
	return "gates_passed"
}

// infected tells whether a scanner finds something in content.
func infected(content []byte) bool { return strings.HasPrefix(string(content), eicar()) }

// pumpNote is a text of n bytes.
func pumpNote(n int) []byte {
	return []byte(strings.Repeat("The harbour office keeps this note of the pumps. ", n/40+1)[:n])
}

// modelRow is a row of the table "Authentication per operation" of the contract.
type modelRow struct {
	role, scope string
	admin       bool // may do it too
	wrong       modelOutcome
}

var modelRows = map[string]modelRow{
	"initiate": {uploads, "customer_upload", false, modelOutcome{401, "credential_not_bound"}},
	"part":     {uploads, "customer_upload", false, modelOutcome{401, "credential_not_bound"}},
	"complete": {uploads, "customer_upload", false, modelOutcome{401, "credential_not_bound"}},
	"status":   {"", "metadata_read", false, modelOutcome{404, "upload_not_found"}},
	"withdraw": {uploads, "customer_upload", true, modelOutcome{403, "access_denied"}},
	"receipt":  {"", "metadata_read", true, modelOutcome{404, "receipt_not_found"}},
	"quota":    {"", "metadata_read", false, modelOutcome{403, "access_denied"}},
	"context":  {reads, "ai_context", false, modelOutcome{403, "access_denied"}},
	"records":  {reads, "ai_context", false, modelOutcome{403, "access_denied"}},
	"submit":   {"", "customer_upload", false, modelOutcome{403, "access_denied"}},
	"correct":  {"", "correction", false, modelOutcome{403, "access_denied"}},
	"review":   {"", "external_reference", false, modelOutcome{403, "access_denied"}},
}

// refusalOf is how the contract refuses by to do op for org; the zero outcome where it does not.
func refusalOf(op string, by *modelCredential, org *modelOrg) modelOutcome {
	switch {
	case by == nil:
		return modelOutcome{401, "authentication_required"}
	case !by.admin && !by.active:
		return modelOutcome{401, "credential_invalid"}
	}
	row, tenants := modelRows[op]
	switch {
	case !tenants && !by.admin:
		return modelOutcome{401, "credential_invalid"}
	case !tenants, by.admin && row.admin:
		return modelOutcome{}
	case by.admin, by.org != org, row.role != "" && by.role != row.role:
		return row.wrong
	case !slices.Contains(by.scopes, row.scope):
		return modelOutcome{403, "insufficient_scope"}
	}
	return modelOutcome{}
}
