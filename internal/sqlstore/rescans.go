package sqlstore

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/accession/accession/internal/custody"
)

// A READY upload with due_at is to be scanned again. It stays READY, and readable, until a scan refuses it.

// within narrows a query to a scope; its arguments are numbered from those that come before.
func within(scope custody.RescanScope, args []any) (string, []any) {
	var where strings.Builder
	for _, filter := range [][2]string{{"org_id", scope.OrgID}, {"upload_id", scope.UploadID}} {
		if filter[1] != "" {
			args = append(args, filter[1])
			where.WriteString(" AND " + filter[0] + " = $" + strconv.Itoa(len(args)))
		}
	}
	return where.String(), args
}

// QueueRescans makes up to limit READY uploads of the scope due at once, in the order of their ids, those after the given one.
// What waits already is not put back; what is being scanned is left alone. last is the id to go on after.
func (tx *Tx) QueueRescans(ctx context.Context, scope custody.RescanScope, after string, limit int) (queued int, last string, err error) {
	where, args := within(scope, []any{after})
	args = append(args, limit)
	err = tx.q.Each(ctx, `WITH chosen AS MATERIALIZED (SELECT upload_id FROM uploads
		WHERE status = 'READY' AND lease_until <= `+tx.d.Now+` AND upload_id > $1`+where+` ORDER BY upload_id LIMIT $`+strconv.Itoa(len(args))+tx.d.ForUpdate+`)
		UPDATE uploads SET due_at = `+tx.d.Now+`, attempt = 0 WHERE upload_id IN (SELECT upload_id FROM chosen)
		RETURNING upload_id`, args, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		queued, last = queued+1, max(last, id)
		return err
	})
	return queued, last, err
}

// replicasAgree is how long a re-scan holds against another replica with other signatures: until they have the same, each would
// have done again what the other did. What was scanned that much later than now was so before the clock was put back, and holds nothing.
const replicasAgree = time.Hour

// QueueOutdated makes up to limit READY uploads due that something else than scannedWith last found clean; with replicas, not
// those that one of them just scanned again.
func (tx *Tx) QueueOutdated(ctx context.Context, scannedWith string, limit int) (queued int64, err error) {
	settled := ""
	if tx.d.Name != "sqlite" {
		hour := strconv.FormatInt(replicasAgree.Milliseconds(), 10)
		settled = ` AND rescanned_at NOT BETWEEN ` + tx.d.Now + ` - ` + hour + ` AND ` + tx.d.Now + ` + ` + hour
	}
	return tx.q.Exec(ctx, `WITH chosen AS MATERIALIZED (SELECT upload_id FROM uploads
		WHERE status = 'READY' AND due_at = 0 AND (scanned_with < $1 OR scanned_with > $2)`+settled+` LIMIT $3`+tx.d.SkipLocked+`)
		UPDATE uploads SET due_at = `+tx.d.Now+`, attempt = 0 WHERE upload_id IN (SELECT upload_id FROM chosen)`, scannedWith, scannedWith, limit)
}

// FinishRescan notes that c's upload is clean; nothing else about it changes. ErrLeaseLost as in Hold.
func (tx *Tx) FinishRescan(ctx context.Context, c custody.Claim, scannedWith string, at time.Time) error {
	return tx.held(tx.q.Exec(ctx, `UPDATE uploads SET due_at = 0, lease = '', lease_until = 0, attempt = 0, scanned_with = $1, rescanned_at = $2
		WHERE upload_id = $3 AND lease = $4 AND status = $5`, scannedWith, millis(at), c.Upload.ID, c.Lease, c.Upload.Status))
}

// DropArtifacts forgets the derived objects of an upload; its parts stay.
func (tx *Tx) DropArtifacts(ctx context.Context, uploadID string) error {
	_, err := tx.q.Exec(ctx, `DELETE FROM artifacts WHERE upload_id = $1`, uploadID)
	return err
}

// RescanState counts the scope's uploads that wait to be scanned again, and the outcomes since then.
func (s queries) RescanState(ctx context.Context, scope custody.RescanScope, since time.Time) (state custody.RescanState, err error) {
	where, args := within(scope, nil)
	if err := s.q.Row(ctx, `SELECT COUNT(*), COALESCE(SUM(CASE WHEN attempt > 0 AND lease = '' THEN 1 ELSE 0 END), 0)
		FROM uploads WHERE status = 'READY' AND due_at > 0`+where, args, &state.Waiting, &state.Unanswered); err != nil {
		return state, err
	}
	where, args = within(scope, []any{millis(since)})
	err = s.q.Row(ctx, `SELECT COALESCE(SUM(CASE WHEN status = 'READY' THEN 1 ELSE 0 END), 0),
		COALESCE(SUM(CASE WHEN status = 'REJECTED' AND failure_code = 'malware_found' THEN 1 ELSE 0 END), 0),
		COALESCE(SUM(CASE WHEN status = 'REJECTED' AND failure_code <> 'malware_found' THEN 1 ELSE 0 END), 0)
		FROM uploads WHERE rescanned_at > 0 AND rescanned_at >= $1`+where, args, &state.Clean, &state.Found, &state.Unreadable)
	return state, err
}
