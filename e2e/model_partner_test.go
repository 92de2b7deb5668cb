package e2e

import (
	"bytes"
	"fmt"
	"slices"

	"pgregory.net/rapid"
)

// initiate reserves room for a document.
func (m *model) initiate(t *rapid.T) {
	org := m.drawOrg(t)
	by := m.drawBy(t, org, uploads)
	content := drawDocument(t)
	size := len(content)
	if rapid.IntRange(0, 9).Draw(t, "size") == 9 {
		size = 0
	}
	p := partner{m.s, org.id, ""}
	m.do(t, modelRequest{
		op: "initiate", by: by, how: drawHow(t), org: org, call: p.reserving("", size), key: m.drawKey(t), same: fmt.Sprint(org.id, size),
		early: func() modelOutcome {
			if size == 0 {
				return modelOutcome{400, "invalid_request"}
			}
			return modelOutcome{}
		},
		judge: m.roomFor(org, size, 200),
		apply: func(t *rapid.T, r reply) {
			d := dataOf(t, r)
			d.want(t, map[string]any{"status": "INITIATED", "part_size_bytes": modelPart})
			m.add(&modelUpload{org: org, id: d.text("upload_id"), kind: "partner", content: content, partSize: modelPart, next: 1, status: "INITIATED",
				sequence: 1, log: []string{"reserved"}, visibility: "ai_readable_controlled"})
		},
	})
}

// roomFor is success where the quota holds size bytes more.
func (m *model) roomFor(org *modelOrg, size, success int) func() []modelOutcome {
	return func() []modelOutcome {
		if size > org.available() {
			return one(409, "quota_exceeded")
		}
		return one(success, "")
	}
}

func (m *model) add(u *modelUpload) {
	u.number = len(m.uploads())
	u.org.uploads = append(u.org.uploads, u)
	m.touched = u
}

// drawDocument has one part, two or more, whole or not; or is one that a scanner refuses.
func drawDocument(t *rapid.T) []byte {
	n := rapid.SampledFrom([]int{40, 64, 90, 128, 150, 300, 0}).Draw(t, "document")
	if n == 0 {
		return []byte(eicar())
	}
	return pumpNote(n)
}

// part sends any part of any upload, right or wrong.
func (m *model) part(t *rapid.T) {
	u := m.drawUpload(t)
	org := m.drawPath(t, u)
	number := max(1, u.next+rapid.IntRange(-2, 1).Draw(t, "which"))
	parts := u.parts()
	body := parts[min(number, len(parts))-1]
	switch rapid.SampledFrom([]string{"right", "right", "other", "short", "long", "too long"}).Draw(t, "bytes") {
	case "other":
		body = bytes.Repeat([]byte("x"), len(body))
	case "short":
		body = body[:len(body)-1]
	case "long":
		body = append(slices.Clone(body), 'x')
	case "too long":
		body = bytes.Repeat([]byte("x"), modelPart+1)
	}
	m.sendPart(t, u, org, m.drawBy(t, org, uploads), number, body)
}

// nextPart goes on with an upload as its owner does.
func (m *model) nextPart(t *rapid.T) {
	u := m.drawUpload(t)
	if u.next <= len(u.parts()) {
		m.sendPart(t, u, u.org, m.drawBy(t, u.org, uploads), u.next, u.parts()[u.next-1])
	}
}

func (m *model) sendPart(t *rapid.T, u *modelUpload, org *modelOrg, by *modelCredential, number int, body []byte) {
	p := partner{m.s, org.id, ""}
	m.do(t, modelRequest{
		op: "part", by: by, how: drawHow(t), org: org, call: p.put(drawForm(t), u.id, number, "", body), key: m.drawKey(t),
		same: fmt.Sprint(u.id, number, hexSum(body)),
		early: func() modelOutcome {
			switch {
			case len(body) > 2*modelPart: // not even read
				return modelOutcome{413, "body_too_large"}
			case org != u.org:
				return modelOutcome{404, "upload_not_found"}
			case len(body) > u.partSize:
				return modelOutcome{400, "part_length_invalid"}
			}
			return modelOutcome{}
		},
		judge: func() []modelOutcome {
			parts := u.parts()
			switch {
			case u.status == "WITHDRAWN":
				return one(409, "upload_not_receiving")
			case number < u.next && bytes.Equal(body, parts[number-1]):
				return one(200, "")
			case number < u.next:
				return one(409, "part_conflict")
			case u.status != "INITIATED" && u.status != "RECEIVING":
				return one(409, "upload_not_receiving")
			case number > u.next, number > len(parts):
				return one(409, "part_out_of_order")
			case len(body) != len(parts[number-1]):
				return one(400, "part_length_invalid")
			}
			return one(200, "")
		},
		apply: func(t *rapid.T, r reply) {
			if number == u.next {
				u.next++
				// What was sent is the document, whatever it should have been.
				u.content = bytes.Clone(u.content)
				copy(u.content[(number-1)*u.partSize:], body)
				if u.status == "INITIATED" {
					u.status, u.sequence, u.log = "RECEIVING", 2, append(u.log, "part_accepted")
				}
			}
			d := dataOf(t, r)
			d.want(t, map[string]any{"upload_id": u.id, "part_number": number})
			m.wantStanding(t, u, d)
		},
	})
}

func drawForm(t *rapid.T) form { return rapid.SampledFrom([]form{byPath, byQuery}).Draw(t, "form") }

// wantStanding compares the status and sequence that an answer says with the upload's.
func (m *model) wantStanding(t *rapid.T, u *modelUpload, d decoded) {
	status, sequence := d.text("status"), d.number("sequence")
	if !u.pending {
		d.want(t, map[string]any{"status": u.status, "sequence": u.sequence})
		return
	}
	if status == u.end {
		u.settled()
		d.want(t, map[string]any{"sequence": u.sequence})
		return
	}
	last := *u
	last.settled()
	if status != "PROCESSING" || sequence < u.sequence || sequence >= last.sequence {
		t.Fatalf("%s is %s at %d, the model says PROCESSING from %d, before %s at %d", u.id, status, sequence, u.sequence, last.status, last.sequence)
	}
	u.sequence = sequence
}

// complete hands any upload to the gates, with a ledger that is right or wrong.
func (m *model) complete(t *rapid.T) {
	u := m.drawUpload(t)
	org := m.drawPath(t, u)
	wrong := rapid.SampledFrom([]string{"", "", "", "digest", "part", "size", "missing"}).Draw(t, "wrong")
	m.sendComplete(t, u, org, m.drawBy(t, org, uploads), wrong)
}

// finish sends what is left of an upload, completes it, and may wait for its end.
func (m *model) finish(t *rapid.T) {
	u := m.drawUpload(t)
	wait := rapid.Bool().Draw(t, "wait")
	by := m.drawBy(t, u.org, uploads)
	for by != nil && by.active && by.role == uploads && u.next <= len(u.parts()) && (u.status == "INITIATED" || u.status == "RECEIVING") {
		before := u.next
		m.sendPart(t, u, u.org, by, u.next, u.parts()[u.next-1])
		if u.next == before { // refused: by has not the scope, or the key is taken
			break
		}
	}
	m.sendComplete(t, u, u.org, by, "")
	if wait {
		m.settle(t, u)
	}
}

func (m *model) sendComplete(t *rapid.T, u *modelUpload, org *modelOrg, by *modelCredential, wrong string) {
	declared := cut(bytes.Clone(u.content), u.partSize)
	switch wrong {
	case "part":
		declared[0] = bytes.Repeat([]byte("y"), len(declared[0]))
	case "size":
		declared[len(declared)-1] = append(declared[len(declared)-1], 'y')
	case "missing":
		declared = append(declared, []byte("y"))
	}
	p := partner{m.s, org.id, ""}
	f := drawForm(t)
	c := p.closing(f, u.id, "", declared)
	body := c.json.(map[string]any)
	if body["client_file_sha256"] = hexSum(u.content); wrong == "digest" {
		body["client_file_sha256"] = hexSum([]byte("another"))
	}
	m.do(t, modelRequest{
		op: "complete", by: by, how: drawHow(t), org: org, call: c, key: m.drawKey(t),
		same: fmt.Sprint(org.id, u.id, body["client_file_sha256"], body["parts"]),
		judge: func() []modelOutcome {
			switch {
			case org != u.org:
				return one(404, "upload_not_found")
			case u.status == "WITHDRAWN":
				return one(409, "upload_not_receiving")
			case u.received() < len(u.content):
				return one(409, "part_ledger_mismatch")
			case hexSum(whole(declared)) != hexSum(u.content):
				return one(409, "part_ledger_mismatch")
			case body["client_file_sha256"] != hexSum(u.content):
				return one(409, "digest_mismatch")
			case u.status == "RECEIVING":
				return one(202, "")
			}
			return one(200, "")
		},
		apply: func(t *rapid.T, r reply) {
			if r.Status == 202 {
				u.status, u.sequence, u.pending, u.end = "PROCESSING", 3, true, "READY"
				u.log = append(u.log, "completed")
				if infected(u.content) {
					u.end = "REJECTED"
				}
			}
			d := dataOf(t, r)
			d.want(t, map[string]any{"upload_id": u.id, "sha256": hexSum(u.content)})
			m.wantStanding(t, u, d)
		},
	})
}

// withdraw takes any upload out.
func (m *model) withdraw(t *rapid.T) {
	u := m.drawUpload(t)
	org := m.drawPath(t, u)
	p := partner{m.s, org.id, ""}
	reason := rapid.SampledFrom([]string{"moved out", "mistake"}).Draw(t, "reason")
	c := p.withdrawing(u.id, "", reason)
	m.do(t, modelRequest{
		op: "withdraw", by: m.drawBy(t, org, uploads), how: drawHow(t), org: org, call: c, key: m.drawKey(t), same: fmt.Sprint(org.id, u.id, reason),
		judge: func() []modelOutcome {
			if org != u.org {
				return one(404, "upload_not_found")
			}
			return one(200, "")
		},
		apply: func(t *rapid.T, r reply) {
			d := dataOf(t, r)
			d.want(t, map[string]any{"upload_id": u.id, "status": "WITHDRAWN", "deleted": true, "quota_bytes": len(u.content)})
			if u.status == "WITHDRAWN" {
				d.want(t, map[string]any{"withdrawal_receipt_id": u.receipt})
				return
			}
			m.withdrawn(t, u)
			u.receipt = d.text("withdrawal_receipt_id")
			if u.receipt == "" {
				t.Fatalf("no receipt: %s", r.Raw)
			}
			for n, record := range u.org.records { // what was served is called back
				if record.UploadID == u.id {
					u.org.records[n].RecalledAt = someTime
				}
			}
		},
	})
}

// withdrawn notes that u is: two events more. Where it was in processing, only its status tells how far that came.
func (m *model) withdrawn(t *rapid.T, u *modelUpload) {
	first, last := u.sequence+2, u.sequence+2
	gone := []string{"withdrawal_accepted", "deletion_confirmed"}
	if u.pending {
		end := *u
		end.settled()
		last = end.sequence + 2
		u.otherLog = append(end.log, gone...)
	}
	u.log = append(u.log, gone...)
	u.status, u.pending, u.sequence = "WITHDRAWN", false, first
	if first != last {
		u.sequence = dataOf(t, m.want(t, u.statusCall(u.org.observer), 200, "")).number("sequence")
	}
	if u.sequence < first || u.sequence > last {
		t.Fatalf("%s is withdrawn at %d, the model says %d to %d", u.id, u.sequence, first, last)
	}
}
