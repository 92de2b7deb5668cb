package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/accession/accession/internal/custody"
)

// someTime stands for any.
var someTime = time.Unix(1, 0)

const submissionClaim = "This submission has been verified by this service."

// submit hands in a customer's text.
func (m *model) submit(t *rapid.T) {
	org := m.drawOrg(t)
	m.sendText(t, "submit", org, nil)
}

// correct corrects any upload, which has to be a customer's and READY.
func (m *model) correct(t *rapid.T) {
	u := m.drawUpload(t)
	m.sendText(t, "correct", m.drawPath(t, u), u)
}

func (m *model) sendText(t *rapid.T, op string, org *modelOrg, original *modelUpload) {
	by := m.drawBy(t, org, uploads)
	content := string(pumpNote(rapid.SampledFrom([]int{20, 60, 120, 400}).Draw(t, "text")))
	visibility := rapid.SampledFrom([]string{"ai_readable_controlled", "private_summary_public", "internal_only", "public_profile"}).Draw(t, "visibility")
	change := map[string]any{"visibility": visibility}
	form := modelOutcome{}
	switch rapid.SampledFrom([]string{"", "", "", "", "", "", "infected", "claim", "no access"}).Draw(t, "wrong") {
	case "infected":
		content = eicar()
	case "claim":
		content, form = submissionClaim, modelOutcome{400, "verification_claim_forbidden"}
	case "no access":
		change["customer_workspace_access"], form = "not_granted", modelOutcome{403, "workspace_access_required"}
	}
	p, key := partner{m.s, org.id, ""}, m.drawKey(t)
	c, of := p.submitting(key, text(content, change)), ""
	if original != nil {
		of = original.id
		c = p.correcting(of, key, text(content, change))
	}
	r := m.do(t, modelRequest{
		op: op, by: by, how: drawHow(t), org: org, call: c, key: key, same: fmt.Sprint(org.id, of, content, change),
		early: func() modelOutcome { return form },
		judge: func() []modelOutcome {
			switch {
			case original != nil && !original.customersReady(org):
				return one(404, "upload_not_found")
			case len(content) > org.available():
				return one(409, "quota_exceeded")
			case infected([]byte(content)):
				return one(400, "content_refused")
			}
			return one(201, "")
		},
		apply: func(t *rapid.T, r reply) {
			d := dataOf(t, r)
			d.want(t, map[string]any{"org_id": org.id, "status": "READY", "sequence": 9, "filename": "note.txt", "evaluation_status": "not_evaluated"})
			u := &modelUpload{org: org, id: d.text("upload_id"), kind: "customer", content: []byte(content), partSize: custody.MaxPayloadBytes, next: 2,
				status: "READY", sequence: 9, visibility: visibility, log: []string{"reserved", "part_accepted", "completed", "gates_passed"}}
			if original != nil {
				u.kind, u.original = "correction", original
				d.want(t, map[string]any{"original_upload_id": original.id})
			}
			m.add(u)
		},
	})
	if r.Code == "content_refused" { // an upload without a name, which lapsed at once
		org.audit["reserved"]++
		org.audit["reservation_lapsed"]++
	}
}

// customersReady tells whether u can be corrected and reviewed under org's path.
func (u *modelUpload) customersReady(org *modelOrg) bool {
	return u.org == org && u.kind != "partner" && u.status == "READY"
}

// review attaches a reference to any upload.
func (m *model) review(t *rapid.T) {
	u := m.drawUpload(t)
	org := m.drawPath(t, u)
	id := fmt.Sprintf("review-%d", rapid.IntRange(1, 3).Draw(t, "review"))
	body := map[string]any{"review_id": id}
	form := modelOutcome{}
	if rapid.IntRange(0, 7).Draw(t, "claim") == 7 {
		body["notes"], form = submissionClaim, modelOutcome{400, "verification_claim_forbidden"}
	}
	p := partner{m.s, org.id, ""}
	m.do(t, modelRequest{
		op: "review", by: m.drawBy(t, org, uploads), how: drawHow(t), org: org, call: p.reviewing(u.id, "", body), key: m.drawKey(t),
		same:  fmt.Sprint(org.id, u.id, body),
		early: func() modelOutcome { return form },
		judge: func() []modelOutcome {
			if !u.customersReady(org) {
				return one(404, "upload_not_found")
			}
			return one(200, "")
		},
		apply: func(t *rapid.T, r reply) {
			dataOf(t, r).want(t, map[string]any{"upload_id": u.id, "review_id": id, "evaluation_status": "not_evaluated"})
			u.reviews = append(u.reviews, id)
			org.audit["external_review_attached"]++
		},
	})
}

// context reads what AI readers get of any upload.
func (m *model) context(t *rapid.T) {
	u := m.drawUpload(t)
	org := m.drawPath(t, u)
	m.readContext(t, u, org, m.drawBy(t, org, reads), drawHow(t))
}

func (m *model) readContext(t *rapid.T, u *modelUpload, org *modelOrg, by *modelCredential, how string) {
	r := m.do(t, modelRequest{
		op: "context", by: by, how: how, org: org, call: call{method: "GET", path: "/api/v1/organizations/" + org.id + "/ai-context/" + u.id},
		judge: func() []modelOutcome {
			notYet := modelOutcome{404, "context_not_ready"}
			switch {
			case org != u.org:
				return one(404, "upload_not_found")
			case u.pending && u.end == "READY":
				return []modelOutcome{notYet, {200, ""}}
			case u.status != "READY":
				return []modelOutcome{notYet}
			case u.visibility == "internal_only":
				return one(403, "visibility_denied")
			}
			return one(200, "")
		},
		apply: func(t *rapid.T, r reply) {
			u.settled()
			u.wantContext(t, r)
		},
	})
	switch {
	case r.Status == 200:
		m.recorded(u, by, r, "served")
	case r.Code == "visibility_denied":
		m.recorded(u, by, r, "refused_visibility")
	}
}

func (m *model) recorded(u *modelUpload, by *modelCredential, r reply, outcome string) {
	record := custody.Record{OrgID: u.org.id, UploadID: u.id, CredentialID: by.id, RequestID: r.RequestID, Outcome: outcome}
	if outcome == "served" {
		record.ContextSHA256 = u.sum
	}
	u.org.records = append(u.org.records, record)
}

// wantContext compares a served context with the upload.
func (u *modelUpload) wantContext(t *rapid.T, r reply) {
	var c servedContext
	var more struct {
		OrgID      string `json:"org_id"`
		UploadID   string `json:"upload_id"`
		Visibility string `json:"visibility"`
		Context    struct {
			References []struct {
				ReviewID string `json:"review_id"`
			} `json:"external_references"`
		} `json:"context"`
	}
	if err := json.Unmarshal(r.Data, &c); err != nil {
		t.Fatalf("context: %v", err)
	}
	if err := json.Unmarshal(r.Data, &more); err != nil {
		t.Fatalf("context: %v", err)
	}
	var reviews []string
	for _, reference := range more.Context.References {
		reviews = append(reviews, reference.ReviewID)
	}
	summary := u.visibility == "private_summary_public"
	if more.OrgID != u.org.id || more.UploadID != u.id || more.Visibility != u.visibility || c.Context.Source.SHA256 != hexSum(u.content) || c.Context.Source.SizeBytes != int64(len(u.content)) ||
		c.Context.EvaluationStatus != "not_evaluated" || c.Context.ContentTrust != "untrusted" || summary && len(c.Context.Excerpts) > 0 ||
		!slices.Equal(c.Context.Corrections, u.corrections()) || !slices.Equal(reviews, u.reviews) || u.sum != "" && u.sum != c.Context.ContextSHA256 {
		t.Fatalf("the context is not that of %+v, corrected by %v: %s", u, u.corrections(), r.Raw)
	}
	if len(u.content) >= 60 && strings.HasPrefix(string(u.content), "The harbour") && !strings.Contains(c.text(), "harbour office") {
		t.Fatalf("the context does not tell of its text: %s", r.Raw)
	}
	u.sum = c.Context.ContextSHA256
}

// read asks for something that changes nothing, as anybody.
func (m *model) read(t *rapid.T) {
	u := m.drawUpload(t)
	org := m.drawPath(t, u)
	base := "/api/v1/organizations/" + org.id
	q := modelRequest{by: m.drawBy(t, org, reads), how: drawHow(t), org: org, judge: simply(200)}
	there := func() []modelOutcome {
		if org != u.org {
			return one(404, "upload_not_found")
		}
		return one(200, "")
	}
	switch q.op = rapid.SampledFrom([]string{"status", "quota", "records", "receipt"}).Draw(t, "what"); q.op {
	case "status":
		q.call, q.judge = call{method: "GET", path: base + "/partner-uploads/" + u.id}, there
		q.apply = func(t *rapid.T, r reply) { m.wantStanding(t, u, dataOf(t, r)) }
	case "quota":
		q.call = call{method: "GET", path: base + "/quota"}
		q.apply = func(t *rapid.T, r reply) { org.wantFigures(t, dataOf(t, r)) }
	case "records":
		q.call = call{method: "GET", path: base + "/request-records?limit=100&upload_id=" + u.id}
		q.apply = func(t *rapid.T, r reply) {
			org.wantRecords(t, r, func(record custody.Record) bool { return record.UploadID == u.id })
		}
	case "receipt":
		receipt := u.receipt
		if receipt == "" {
			receipt = "rct_00000000000000000000000000"
		}
		q.call = call{method: "GET", path: base + "/withdrawals/" + receipt}
		q.judge = func() []modelOutcome {
			if u.receipt == "" || org != u.org {
				return one(404, "receipt_not_found")
			}
			return one(200, "")
		}
		q.apply = func(t *rapid.T, r reply) {
			dataOf(t, r).want(t, map[string]any{"upload_id": u.id, "org_id": org.id, "quota_bytes": len(u.content), "withdrawal_receipt_id": u.receipt})
		}
	}
	m.do(t, q)
}
