package storetest

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqlstore"
)

var longestWaits = custody.LongestWaits{Gate: 2 * time.Minute, Rescan: 30 * time.Minute, Webhook: 20 * time.Minute}

func (in *Installation) bringBack(t *testing.T, limit int) (brought int64) {
	t.Helper()
	in.must(t, func(tx *sqlstore.Tx) (err error) {
		brought, err = tx.BringBack(t.Context(), longestWaits, limit)
		return err
	})
	return brought
}

// wantPutBack brings back what waits too long: as many rows as wanted.
func (in *Installation) wantPutBack(t *testing.T, want int64) {
	t.Helper()
	waits, err := in.Store.WaitsTooLong(t.Context(), longestWaits)
	if brought := in.bringBack(t, 10); err != nil || waits != (want > 0) || brought != want {
		t.Errorf("waits too long: %t, %v; %d brought back, want %d", waits, err, brought, want)
	}
}

// A clock that is put back moves what waits, and what a dead worker held, as far away: both are brought back, and nothing else is.
func metadataClockPutBack(t *testing.T, in *Installation) {
	soon, far := in.Processing(t), in.Processing(t)
	held, reserved := in.Processing(t), in.reserved(t, "acme", 64)
	exec := func(statement string) {
		t.Helper()
		if err := in.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	now := custody.Now()
	exec(fmt.Sprintf(`UPDATE uploads SET due_at = %d WHERE upload_id = '%s'`, now.Add(longestWaits.Gate-time.Second).UnixMilli(), soon.ID))
	in.wantPutBack(t, 0)
	exec(fmt.Sprintf(`UPDATE uploads SET due_at = %d WHERE upload_id = '%s'`, now.Add(time.Hour).UnixMilli(), far.ID))
	exec(fmt.Sprintf(`UPDATE uploads SET lease = 'dead', lease_until = %d WHERE upload_id = '%s'`, now.Add(time.Hour).UnixMilli(), held.ID))
	in.wantPutBack(t, 2)
	in.wantPutBack(t, 0)
	var until int64
	if err := in.DB.Row(t.Context(), `SELECT lease_until FROM uploads WHERE upload_id = $1`, []any{held.ID}, &until); err != nil {
		t.Fatal(err)
	}
	if left := until - now.UnixMilli(); left <= 0 || left > longestWaits.Gate.Milliseconds() {
		t.Errorf("the dead worker holds its upload for %d ms", left)
	}
	in.lapse(t)
	var due []string
	for _, c := range in.claim(t, custody.LaneGates, 10) {
		due = append(due, c.Upload.ID)
	}
	if len(due) != 2 || !slices.Contains(due, far.ID) || !slices.Contains(due, held.ID) {
		t.Errorf("due are %q, want %q and %q, and not the reservation %s", due, far.ID, held.ID, reserved.ID)
	}
}

// The same for what waits beside the gates: each as long as it may, which is left alone, and then longer.
func metadataClockPutBackElsewhere(t *testing.T, in *Installation) {
	stored := in.Ready(t, "acme", "old")
	in.queueRescans(t, custody.RescanScope{}, "", 10)
	in.Hook(t, "beta")
	in.reserved(t, "beta", 64) // one event
	exec := func(statement string) {
		t.Helper()
		if err := in.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	until := func(by time.Duration) string {
		return in.DB.Dialect().Now + " + " + strconv.FormatInt(by.Milliseconds(), 10)
	}
	const (
		rescan   = `UPDATE uploads SET due_at = %s WHERE status = 'READY'`
		delivery = `UPDATE webhook_deliveries SET due_at = %s`
	)
	for _, set := range []struct {
		statement string
		longest   time.Duration
	}{
		{rescan, longestWaits.Rescan},
		{`UPDATE uploads SET lease = 'dead', lease_until = %s WHERE status = 'READY'`, longestWaits.Gate},
		{delivery, longestWaits.Webhook},
		{`UPDATE webhook_deliveries SET lease = 'dead', lease_until = %s`, longestWaits.Gate},
		{`UPDATE webhook_endpoints SET retry_at = %s`, longestWaits.Webhook},
	} {
		exec(fmt.Sprintf(set.statement, until(set.longest)))
		in.wantPutBack(t, 0)
		exec(fmt.Sprintf(set.statement, until(set.longest+time.Millisecond)))
		in.wantPutBack(t, 1)
		in.wantPutBack(t, 0)
	}
	if claims := in.claim(t, custody.LaneRescans, 10); len(claims) != 0 {
		t.Error("whoever held the re-scan has no time to renew it")
	}
	if claims := in.carry(t, "beta", "l1", 9); len(claims) != 0 {
		t.Error("whoever held the delivery has no time to keep it")
	}
	in.lapse(t)
	exec(`UPDATE webhook_deliveries SET lease_until = 1`)
	in.claimOne(t, custody.LaneRescans, stored)
	claims := in.carry(t, "beta", "l1", 9)
	if len(claims) != 1 {
		t.Fatalf("%d deliveries go on, want the one", len(claims))
	}

	// A delivery that was tried may wait for long, but not longer than since then.
	r := failed
	r.Delay = 24 * time.Hour
	in.finish(t, claims[0], r)
	in.wantPutBack(t, 0)
	exec(`UPDATE webhook_attempts SET at = ` + until(longestWaits.Webhook))
	in.wantPutBack(t, 0)
	exec(`UPDATE webhook_attempts SET at = ` + until(longestWaits.Webhook+time.Millisecond))
	in.wantPutBack(t, 1)

	exec(fmt.Sprintf(rescan, until(24*time.Hour)))
	exec(fmt.Sprintf(delivery, until(24*time.Hour)))
	for range 2 {
		if n := in.bringBack(t, 1); n != 1 {
			t.Errorf("%d rows are brought back at once, want 1", n)
		}
	}
	in.wantPutBack(t, 0)
}
