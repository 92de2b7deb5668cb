package sqlstore

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
)

// manyHeld is more re-scans than all replicas together have under way: one each.
const manyHeld = 100

// farRows are the rows of one table that wait for, or are held until, a time that nobody gives them: the clock was put back since.
type farRows struct{ table, key, where, set string }

// tooFar lists what waits for longer than longest. Each condition is a range of an index, or looks at what is under way: not at all uploads
// that wait to be scanned again, nor at what waits for a webhook that is left alone. A reservation waits for a time of its own.
func tooFar(d sqldb.Dialect, longest custody.LongestWaits) []farRows {
	in := func(t time.Duration) string { return d.Now + ` + ` + strconv.FormatInt(t.Milliseconds(), 10) }
	fresh, gate, webhook := in(custody.LeaseLifetime), in(longest.Gate), in(longest.Webhook)
	// A lease is cut to what it lasts, so that who lives renews it and nobody waits for the dead.
	cut := `, lease_until = CASE WHEN lease_until > ` + fresh + ` THEN ` + fresh + ` ELSE lease_until END`
	upload := `due_at = CASE WHEN status NOT IN ('INITIATED', 'RECEIVING') AND due_at > ` + d.Now + ` THEN ` + d.Now + ` ELSE due_at END` + cut
	delivery := `due_at = CASE WHEN due_at > ` + d.Now + ` THEN ` + d.Now + ` ELSE due_at END` + cut
	return []farRows{
		{"uploads", "upload_id", `due_at > 0 AND status IN ('INITIATED', 'RECEIVING', 'PROCESSING', 'WITHDRAWING')
			AND (status IN ('PROCESSING', 'WITHDRAWING') AND due_at > ` + gate + ` OR lease_until > ` + gate + `)`, upload},
		{"uploads", "upload_id", `due_at > 0 AND status = 'READY' AND due_at > ` + in(longest.Rescan), upload},
		{"uploads", "upload_id", `lease_until > ` + gate + ` AND upload_id IN (SELECT upload_id FROM uploads WHERE due_at > 0 AND status = 'READY'
			ORDER BY due_at LIMIT ` + strconv.Itoa(manyHeld) + `)`, upload},
		// However long a delivery waits by its schedule, it was tried before that; what was not tried since it was queued waits for nothing.
		{"webhook_deliveries", "event_id", `state = 'pending' AND due_at > ` + webhook + ` AND org_id IN (SELECT org_id FROM webhook_endpoints)
			AND (attempt = 0 OR NOT EXISTS (SELECT 1 FROM webhook_attempts a
				WHERE a.event_id = webhook_deliveries.event_id AND a.attempt = webhook_deliveries.attempts AND a.at <= ` + webhook + `))`, delivery},
		{"webhook_deliveries", "event_id", `state = 'pending' AND lease_until > ` + gate + `
			AND org_id IN (SELECT org_id FROM webhook_endpoints WHERE retry_at <= ` + d.Now + `)`, delivery},
		{"webhook_endpoints", "org_id", `retry_at > ` + webhook, `retry_at = ` + d.Now},
	}
}

// WaitsTooLong tells whether any work waits, or is held, for longer than longest from now.
func (s queries) WaitsTooLong(ctx context.Context, longest custody.LongestWaits) (bool, error) {
	var found []string
	for _, far := range tooFar(s.d, longest) {
		found = append(found, `SELECT 1 FROM `+far.table+` WHERE `+far.where)
	}
	var n int
	err := s.q.Row(ctx, `SELECT COUNT(*) FROM (`+strings.Join(found, ` UNION ALL `)+` LIMIT 1) AS far`, nil, &n)
	return n > 0, err
}

// BringBack makes due what WaitsTooLong finds, up to limit rows.
func (tx *Tx) BringBack(ctx context.Context, longest custody.LongestWaits, limit int) (brought int64, err error) {
	for _, far := range tooFar(tx.d, longest) {
		// Materialized: chosen once, however the engine joins.
		n, err := tx.q.Exec(ctx, `WITH far AS MATERIALIZED (SELECT `+far.key+` FROM `+far.table+` WHERE `+far.where+` LIMIT $1`+tx.d.SkipLocked+`)
			UPDATE `+far.table+` SET `+far.set+` WHERE `+far.key+` IN (SELECT `+far.key+` FROM far)`, int64(limit)-brought)
		if err != nil {
			return 0, err
		}
		if brought += n; brought >= int64(limit) {
			break
		}
	}
	return brought, nil
}
