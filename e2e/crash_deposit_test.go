package e2e

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// crashPartSize in bytes: one whole O_DIRECT block. Documents are small, so that a run is mostly writes.
const crashPartSize = 4096

// deposit is one main job at a site whose service dies now and then: issue, initiate, parts, complete, gates, context,
// withdraw. It acts as a client does that got no answer: reads the status, repeats the request under the same key, goes on at
// next_part_number. Everything the service ever acknowledged is in its ledger, and is looked for after every death.
type deposit struct {
	t       testing.TB
	site    *site
	org     string
	content []byte

	uploader, reader string // tokens
	uploadID         string

	acceptedParts int              // highest part acknowledged
	next          int              // next_part_number as the status said last
	sequence      int64            // newest that the status said
	statuses      map[int64]string // acknowledged status by sequence
	mutations     []mutation       // acknowledged, in order
	records       []string         // request records acknowledged by a served context
	lost          int              // answers that never came
}

// mutation is an acknowledged request with its answer.
type mutation struct {
	call
	status int
	data   json.RawMessage
}

func newDeposit(t testing.TB, s *site, org string) *deposit {
	var text bytes.Buffer
	for n := 1; text.Len() < 2*crashPartSize+crashPartSize/3; n++ {
		fmt.Fprintf(&text, "Berth %d of the harbour was inspected on day %d and its bollards were found in order. ", n, n*7%365)
	}
	return &deposit{t: t, site: s, org: org, content: text.Bytes(), statuses: map[int64]string{}}
}

func (d *deposit) path(rest string) string { return "/api/v1/organizations/" + d.org + rest }

// send makes a request until a service lives long enough to answer it; again tells that it was sent more than once.
func (d *deposit) send(c call) (r reply, again bool) {
	d.t.Helper()
	for {
		s, err := d.site.service()
		if err != nil {
			d.t.Fatal(err)
		}
		if again && d.uploadID != "" {
			if err := d.look(s); err != nil {
				d.awaitDeath(s, err)
				continue
			}
		}
		if r, err = s.try(c); err == nil {
			select {
			case d.site.answered <- struct{}{}:
			default:
			}
			return r, again
		}
		d.lost++
		again = true
		d.awaitDeath(s, err)
	}
}

// awaitDeath: a request without an answer is excused by the death of the service alone.
func (d *deposit) awaitDeath(s *service, cause error) {
	d.t.Helper()
	select {
	case <-s.done:
	case <-time.After(time.Minute):
		d.t.Fatalf("no answer from a service that lives: %v\n%s", cause, s.log)
	}
}

// look reads the status after a death: whatever was acknowledged must be there, and nothing is served that is not ready.
func (d *deposit) look(s *service) error {
	d.t.Helper()
	r, err := s.try(call{method: "GET", path: d.path("/partner-uploads/" + d.uploadID), token: d.uploader})
	if err != nil {
		return err
	}
	st := d.saw(r)
	d.next = st.NextPartNumber
	if d.next != d.acceptedParts+1 && d.next != d.acceptedParts+2 { // one may be in flight
		d.t.Errorf("part %d was acknowledged, next_part_number is %d after a crash", d.acceptedParts, d.next)
	}
	if want := int64(min((d.next-1)*crashPartSize, len(d.content))); st.ReceivedBytes != want {
		d.t.Errorf("next_part_number is %d and received_bytes %d after a crash, want %d", d.next, st.ReceivedBytes, want)
	}
	if st.Status == "PROCESSING" || st.Status == "READY" { // it may be served by now; read compares what is
		return nil
	}
	r, err = s.try(call{method: "GET", path: d.path("/ai-context/" + d.uploadID), token: d.reader})
	if err == nil && r.Status < 400 {
		d.t.Errorf("a context is served at %s: %s", st.Status, r.Raw)
	}
	return err
}

// saw notes a status answer and holds it against what was acknowledged before.
func (d *deposit) saw(r reply) status {
	d.t.Helper()
	st := decode[status](d.t, r.want(d.t, 200, ""))
	d.ack(st.Sequence, st.Status)
	if st.Sequence < d.sequence {
		d.t.Errorf("the status was %s at sequence %d, now it is %s at %d", d.statuses[d.sequence], d.sequence, st.Status, st.Sequence)
	}
	d.sequence = st.Sequence
	return st
}

// ack notes the status that an answer gives a sequence; no other answer may ever differ.
func (d *deposit) ack(sequence int64, status string) {
	d.t.Helper()
	if before, ok := d.statuses[sequence]; ok && before != status {
		d.t.Errorf("sequence %d was acknowledged as %s, now it is %s", sequence, before, status)
	}
	d.statuses[sequence] = status
}

// mutate sends a request that changes something and notes its answer.
func (d *deposit) mutate(c call, status int) (r reply, again bool) {
	d.t.Helper()
	c.key = client.NewIdempotencyKey()
	r, again = d.send(c)
	r.want(d.t, status, "")
	d.mutations = append(d.mutations, mutation{c, status, r.Data})
	return r, again
}

// run does the whole job.
func (d *deposit) run() {
	for _, c := range []struct {
		role  string
		token *string
	}{{"solution_company_upload", &d.uploader}, {"ai_reader", &d.reader}} {
		r, _ := d.mutate(call{method: "POST", path: "/admin/tenant-keys/issue", bearer: adminToken,
			json: map[string]any{"org_id": d.org, "role": c.role}}, 201)
		*c.token = r.field(d.t, "token")
	}
	r, _ := d.mutate(call{method: "POST", path: d.path("/partner-uploads/initiate"), token: d.uploader, json: map[string]any{
		"filename": "berths.txt", "content_type": "text/plain", "size_bytes": len(d.content), "consent": consent()}}, 200)
	d.ack(1, r.field(d.t, "status"))
	d.uploadID = r.field(d.t, "upload_id")
	d.sendParts()
	d.complete()
	d.awaitReady()
	d.read()
	d.withdraw()
	d.replayAll()
}

func (d *deposit) part(number int) []byte {
	return d.content[(number-1)*crashPartSize : min(number*crashPartSize, len(d.content))]
}

func (d *deposit) sendParts() {
	last := (len(d.content) + crashPartSize - 1) / crashPartSize
	for number := 1; number <= last; {
		r, again := d.mutate(call{method: "PUT", path: d.path("/partner-uploads/" + d.uploadID + "/parts/" + strconv.Itoa(number)),
			token: d.uploader, body: d.part(number)}, 200)
		sequence, err := strconv.ParseInt(r.field(d.t, "sequence"), 10, 64)
		if err != nil || r.field(d.t, "part_number") != strconv.Itoa(number) {
			d.t.Fatalf("part %d: %s", number, r.Raw)
		}
		d.ack(sequence, r.field(d.t, "status"))
		d.acceptedParts = number
		number++
		if again { // resume as the contract says it
			if replayed := r.Header.Get("Idempotent-Replayed") == "true"; replayed != (d.next == number) {
				d.t.Errorf("part %d repeated at next_part_number %d: replayed is %t", number-1, d.next, replayed)
			}
			r, _ := d.send(call{method: "GET", path: d.path("/partner-uploads/" + d.uploadID), token: d.uploader})
			if next := d.saw(r).NextPartNumber; next != number {
				d.t.Fatalf("part %d was acknowledged, next_part_number is %d", number-1, next)
			}
		}
	}
}

func (d *deposit) complete() {
	var ledger []map[string]any
	for n := 1; n <= d.acceptedParts; n++ {
		ledger = append(ledger, map[string]any{"part_number": n, "sha256": hexSum(d.part(n)), "size_bytes": len(d.part(n))})
	}
	r, _ := d.mutate(call{method: "POST", path: d.path("/partner-uploads/complete"), token: d.uploader,
		json: map[string]any{"upload_id": d.uploadID, "parts": ledger, "client_file_sha256": hexSum(d.content)}}, 202)
	sequence, err := strconv.ParseInt(r.field(d.t, "sequence"), 10, 64)
	if err != nil || r.field(d.t, "sha256") != hexSum(d.content) || r.field(d.t, "status") != "PROCESSING" {
		d.t.Fatalf("complete: %s", r.Raw)
	}
	d.ack(sequence, "PROCESSING")
}

func (d *deposit) awaitReady() {
	etag := ""
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); {
		r, _ := d.send(call{method: "GET", path: d.path("/partner-uploads/" + d.uploadID), token: d.uploader,
			header: map[string]string{"Prefer": "wait=5", "If-None-Match": etag}})
		if r.Status == http.StatusNotModified {
			continue
		}
		st := d.saw(r)
		switch st.Status {
		case "READY":
			return
		case "PROCESSING":
		default:
			d.t.Fatalf("the gates ended with %s", r.Raw)
		}
		etag = r.Header.Get("ETag")
	}
	d.t.Fatalf("the pipeline does not go on after sequence %d", d.sequence)
}

func (d *deposit) read() {
	r, _ := d.send(call{method: "GET", path: d.path("/ai-context/" + d.uploadID), token: d.reader})
	served := decode[struct {
		RecordID string `json:"record_id"`
		Context  struct {
			Source struct {
				SHA256 string `json:"sha256"`
			} `json:"source"`
		} `json:"context"`
	}](d.t, r.want(d.t, 200, ""))
	if served.Context.Source.SHA256 != hexSum(d.content) || served.RecordID == "" {
		d.t.Errorf("context: %s", r.Raw)
	}
	d.records = append(d.records, served.RecordID)
	r, _ = d.send(call{method: "GET", path: d.path("/request-records?limit=100&upload_id=" + d.uploadID), token: d.reader})
	if !bytes.Contains(r.want(d.t, 200, "").Data, []byte(served.RecordID)) {
		d.t.Errorf("the record of a served context is not there: %s", r.Raw)
	}
}

func (d *deposit) withdraw() {
	r, _ := d.mutate(call{method: "POST", path: d.path("/partner-uploads/" + d.uploadID + "/withdraw"), token: d.uploader,
		json: map[string]any{"reason": "crash test"}}, 200)
	if r.field(d.t, "status") != "WITHDRAWN" || r.field(d.t, "withdrawal_receipt_id") == "" || r.field(d.t, "quota_bytes") != strconv.Itoa(len(d.content)) {
		d.t.Errorf("withdraw: %s", r.Raw)
	}
	r, _ = d.send(call{method: "GET", path: d.path("/partner-uploads/" + d.uploadID), token: d.uploader})
	if st := d.saw(r); st.Status != "WITHDRAWN" {
		d.t.Errorf("after the receipt: %s", r.Raw)
	}
	r, _ = d.send(call{method: "GET", path: d.path("/quota"), token: d.uploader})
	for _, figure := range []string{"used_bytes", "reserved_bytes", "upload_count"} {
		if got := r.want(d.t, 200, "").field(d.t, figure); got != "0" {
			d.t.Errorf("quota after the receipt: %s is %s", figure, got)
		}
	}
}

// replayAll sends every acknowledged mutation again: each answer must have been as durable as its effect.
func (d *deposit) replayAll() {
	for _, m := range d.mutations {
		r, _ := d.send(m.call)
		if r.Status != m.status || !bytes.Equal(r.Data, m.data) || r.Header.Get("Idempotent-Replayed") != "true" {
			d.t.Errorf("%s %s was acknowledged with %d %s, its replay is %s %d %s", m.method, m.path, m.status, m.data,
				r.Header.Get("Idempotent-Replayed"), r.Status, r.Raw)
		}
	}
}

// audit compares the ledger with the metadata that a dead service left.
func (d *deposit) audit(db *sql.DB) {
	rows, err := db.Query(`SELECT sequence, status FROM status_events WHERE upload_id = $1 ORDER BY sequence`, d.uploadID)
	if err != nil {
		d.t.Fatal(err)
	}
	defer rows.Close()
	events := map[int64]string{}
	for next := int64(1); rows.Next(); next++ {
		var sequence int64
		var status string
		if err := rows.Scan(&sequence, &status); err != nil {
			d.t.Fatal(err)
		}
		if sequence != next {
			d.t.Errorf("event %d follows event %d", sequence, next-1)
		}
		events[sequence] = status
	}
	if err := rows.Err(); err != nil {
		d.t.Fatal(err)
	}
	for sequence, status := range d.statuses {
		if events[sequence] != status {
			d.t.Errorf("sequence %d was acknowledged as %s, its event says %q", sequence, status, events[sequence])
		}
	}
	if events[int64(len(events))] != "WITHDRAWN" {
		d.t.Errorf("the last event is %q", events[int64(len(events))])
	}
	for _, id := range d.records {
		if count(d.t, db, `SELECT COUNT(*) FROM request_records WHERE record_id = $1 AND upload_id = $2`, id, d.uploadID) != 1 {
			d.t.Errorf("record %s of a served context is not there", id)
		}
	}
	if n := count(d.t, db, `SELECT COUNT(*) FROM receipts WHERE upload_id = $1`, d.uploadID); n != 1 {
		d.t.Errorf("%d receipts", n)
	}
	d.auditReceipt(db)
	if n := count(d.t, db, `SELECT COUNT(*) FROM parts WHERE upload_id = $1`, d.uploadID); n != 0 {
		d.t.Errorf("%d parts are still in the ledger", n)
	}
}
