package e2e

import (
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// wrongRows are queries that find rows only where the metadata contradicts itself.
var wrongRows = map[string]string{
	"a sequence has a gap, or an event twice": `SELECT upload_id FROM status_events GROUP BY upload_id HAVING COUNT(*) <> MAX(sequence) OR MIN(sequence) <> 1`,
	"an upload is not where its last event left it": `SELECT u.upload_id FROM uploads u JOIN status_events e ON e.upload_id = u.upload_id AND e.sequence = u.sequence
		WHERE e.status <> u.status OR u.sequence <> (SELECT MAX(sequence) FROM status_events l WHERE l.upload_id = u.upload_id)`,
	"an event does not follow the one before": `SELECT e.upload_id FROM status_events e JOIN status_events b ON b.upload_id = e.upload_id AND b.sequence = e.sequence - 1 WHERE e.from_status <> b.status`,
	"a gate has two outcomes, and was not resumed": `SELECT e.upload_id || ' ' || e.stage FROM status_events e WHERE e.gate_state IN ('passed', 'rejected', 'failed') GROUP BY e.upload_id, e.stage
		HAVING COUNT(*) > 1 + (SELECT COUNT(*) FROM status_events r WHERE r.upload_id = e.upload_id AND r.from_status = 'FAILED' AND r.status = 'PROCESSING')`,
	"an allowance is not the sum of its uploads": `SELECT o.org_id FROM organizations o WHERE o.org_id <> '' AND
		(o.used_bytes <> (SELECT COALESCE(SUM(used_bytes), 0) FROM uploads u WHERE u.org_id = o.org_id)
		OR o.reserved_bytes <> (SELECT COALESCE(SUM(reserved_bytes), 0) FROM uploads u WHERE u.org_id = o.org_id) OR o.used_bytes + o.reserved_bytes > o.allowance_bytes)`,
	"a withdrawn upload has something left": `SELECT u.upload_id FROM uploads u WHERE u.status = 'WITHDRAWN' AND (u.used_bytes <> 0 OR u.reserved_bytes <> 0
		OR EXISTS (SELECT 1 FROM parts p WHERE p.upload_id = u.upload_id) OR EXISTS (SELECT 1 FROM artifacts a WHERE a.upload_id = u.upload_id)
		OR NOT EXISTS (SELECT 1 FROM receipts r WHERE r.upload_id = u.upload_id))`,
	"an upload is still under way, or has no end that chaos gives it": `SELECT upload_id || ' ' || status || ' ' || failure_code FROM uploads WHERE status IN ('PROCESSING', 'WITHDRAWING', 'FAILED')`,
	"an event has no audit line": `SELECT e.upload_id || ' ' || e.status FROM status_events e WHERE e.from_status <> e.status
		AND NOT EXISTS (SELECT 1 FROM audit_lines a WHERE a.upload_id = e.upload_id AND a.status = e.status)`,
}

// check holds the final state against itself and against everything that was acknowledged.
func (h *chaosSite) check(clients []*chaosClient) {
	t := h.t
	metadata, keys := postgres(t, h.url, "metadata.db"), postgres(t, h.url, "keys.db")
	for what, query := range wrongRows {
		if found := texts(t, metadata, query); len(found) > 0 {
			t.Errorf("%s: %q", what, found)
		}
	}
	h.replicas[0].current().wantVerified(nil) // the chains

	var objects map[string][]string
	h.sweep(func() (late bool) {
		objects = h.uploadsWithObjects(t)
		for _, c := range clients {
			for _, u := range c.uploads {
				if u.withdrawn != "" && objects[u.id] != nil {
					late = true
					wantLate(t, metadata, u.id, objects[u.id])
				}
			}
		}
		return late
	})
	sealed := texts(t, keys, `SELECT upload_id FROM data_keys`)
	var partners int
	used, reserved := map[string]int{}, map[string]int{}
	for _, c := range clients {
		for _, u := range c.uploads {
			if !u.customer {
				partners++
			}
			c.checkUpload(metadata, u)
			switch {
			case u.withdrawn != "":
				if objects[u.id] != nil || slices.Contains(sealed, u.id) {
					t.Errorf("upload %s was withdrawn; its objects %q, its data key %t are there", u.id, objects[u.id], slices.Contains(sealed, u.id))
				}
			case u.completed:
				used[c.org] += len(u.content)
			default:
				reserved[c.org] += len(u.content)
			}
			if u.withdrawn == "" && !slices.Contains(sealed, u.id) {
				t.Errorf("upload %s has no data key", u.id)
			}
		}
		for _, token := range c.revoked {
			c.wantRevoked(token)
		}
		for _, m := range c.mutations {
			c.wantReplayed(m)
		}
	}
	if n := count(t, metadata, `SELECT COUNT(*) FROM uploads WHERE kind = 'partner'`); n != partners {
		t.Errorf("%d partner uploads, %d were acknowledged", n, partners)
	}
	for _, org := range chaosOrgs {
		// What a text reserved in a request that died is given back when the reservation lapses.
		lapsing := count(t, metadata, `SELECT COALESCE(SUM(reserved_bytes), 0) FROM uploads WHERE org_id = $1 AND kind <> 'partner'`, org)
		got := [2]int{count(t, metadata, `SELECT used_bytes FROM organizations WHERE org_id = $1`, org), count(t, metadata, `SELECT reserved_bytes FROM organizations WHERE org_id = $1`, org)}
		if want := [2]int{used[org], reserved[org] + lapsing}; got != want {
			t.Errorf("%s uses and reserves %d bytes, acknowledged were %d", org, got, want)
		}
	}
	stdout, stderr, _ := h.replicas[1].current().cli("", "fsck", "--json") // what requests left that died is swept in two hours
	var storage struct{ Findings []client.StorageFinding }
	if err := json.Unmarshal([]byte(stdout), &storage); err != nil {
		t.Errorf("fsck: %v: %s%s", err, stdout, stderr)
	}
	for _, f := range storage.Findings {
		if strings.HasPrefix(string(f.Problem), "missing") {
			t.Errorf("fsck: %+v", f)
		}
	}
}

// checkUpload holds an upload's events, parts, records and receipt against the ledger.
func (c *chaosClient) checkUpload(metadata *sql.DB, u *chaosUpload) {
	for sequence, status := range u.statuses {
		if n := count(c.t, metadata, `SELECT COUNT(*) FROM status_events WHERE upload_id = $1 AND org_id = $2 AND sequence = $3 AND status = $4`, u.id, c.org, sequence, status); n != 1 {
			c.t.Errorf("upload %s: sequence %d was acknowledged as %s, and %d events say so", u.id, sequence, status, n)
		}
	}
	for _, id := range u.records {
		if n := count(c.t, metadata, `SELECT COUNT(*) FROM request_records WHERE record_id = $1 AND upload_id = $2 AND org_id = $3 AND outcome = 'served'`, id, u.id, c.org); n != 1 {
			c.t.Errorf("upload %s: %d records %s of a served context", u.id, n, id)
		}
	}
	if u.withdrawn != "" {
		if n := count(c.t, metadata, `SELECT COUNT(*) FROM receipts WHERE upload_id = $1 AND withdrawal_receipt_id = $2 AND quota_bytes = $3`, u.id, u.withdrawn, len(u.content)); n != 1 {
			c.t.Errorf("upload %s: %d receipts %s", u.id, n, u.withdrawn)
		}
		return
	}
	for n, part := range cut(u.content, partSize)[:u.accepted] {
		if count(c.t, metadata, `SELECT COUNT(*) FROM parts WHERE upload_id = $1 AND part_number = $2 AND sha256 = $3 AND size_bytes = $4`, u.id, n+1, hexSum(part), len(part)) != 1 {
			c.t.Errorf("upload %s: part %d was acknowledged and is not in the ledger", u.id, n+1)
		}
	}
}

var objectOfUpload = regexp.MustCompile(`/uploads/([^/]+)/`)

// wantLate holds that files came to S3 only after the withdrawal of their upload was confirmed: others were overlooked by it.
func wantLate(t testing.TB, metadata *sql.DB, uploadID string, paths []string) {
	t.Helper()
	confirmed := count(t, metadata, `SELECT occurred_at FROM status_events WHERE upload_id = $1 AND status = 'WITHDRAWN'`, uploadID)
	for _, path := range paths {
		var file syscall.Stat_t
		if err := syscall.Stat(path, &file); errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		} else if err != nil {
			t.Fatal(err)
		}
		if came := int(time.Unix(file.Ctim.Unix()).UnixMilli()); came < confirmed { // when it got its name
			t.Errorf("%s came %d ms before the withdrawal of its upload was confirmed, and is still there", path, confirmed-came)
		}
	}
}

// uploadsWithObjects are the files that S3 keeps, by upload.
func (h *chaosSite) uploadsWithObjects(t testing.TB) map[string][]string {
	found := map[string][]string{}
	for _, bucket := range h.s3.buckets {
		for _, path := range h.s3.Files(t, bucket) {
			if m := objectOfUpload.FindStringSubmatch(path); m != nil {
				found[m[1]] = append(found[m[1]], path)
			}
		}
	}
	return found
}

// checkWebhook: every event of the organization was accepted, and for the first time only after all earlier ones of its upload.
func (h *chaosSite) checkWebhook(seen []posted, org string) {
	first := map[string]int64{} // by upload: the newest sequence that was accepted
	ids := map[string]bool{}
	for _, p := range seen {
		if p.Answer != 202 || p.Event == "contextRecalled" {
			continue
		}
		ids[p.ID] = true
		if p.Sequence > first[p.UploadID]+1 {
			h.t.Errorf("%s: event %d was delivered before %d", p.UploadID, p.Sequence, first[p.UploadID]+1)
		}
		first[p.UploadID] = max(first[p.UploadID], p.Sequence)
	}
	for _, id := range texts(h.t, postgres(h.t, h.url, "metadata.db"), `SELECT event_id FROM status_events WHERE org_id = $1`, org) {
		if !ids[id] {
			h.t.Errorf("event %s was never delivered", id)
		}
	}
}

// texts runs a query for one column of text.
func texts(t testing.TB, db *sql.DB, query string, args ...any) (found []string) {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		found = append(found, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}
