package sqlstore_test

import (
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqlstore"
	"github.com/accession/accession/internal/storetest"
	"github.com/accession/accession/internal/storetest/cluster"
)

// However PostgreSQL joins, a claim takes no more than it was asked for: a subquery that is executed again for every row of the
// other side would skip what the statement has just claimed, and find the next.
func TestPostgresClaimsNoMoreThanAsked(t *testing.T) {
	const many, limit = 12, 3
	for name, planner := range map[string]string{
		"its own choice": "",
		"nested loops":   "&enable_hashjoin=off&enable_mergejoin=off&enable_material=off&enable_hashagg=off&enable_sort=off&enable_indexscan=off&enable_bitmapscan=off&enable_indexonlyscan=off",
	} {
		t.Run(name, func(t *testing.T) {
			in := storetest.Install(t, storetest.Across{DB: storetest.OpenPostgres(t, cluster.Database(t)+planner)})
			in.Hook(t, "acme")
			in.Processing(t)
			// As the planner sees a table that has just begun to fill.
			for _, statement := range []string{`DELETE FROM webhook_deliveries WHERE position > 2`, `ANALYZE webhook_deliveries`, `ANALYZE uploads`} {
				if err := in.Exec(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			for range many {
				in.Processing(t)
				in.Ready(t, "acme", "signatures 1")
			}
			if err := in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
				claims, err := tx.ClaimDue(t.Context(), custody.LaneGates, limit)
				if err != nil || len(claims) != limit {
					t.Errorf("%d uploads claimed, want %d, %v", len(claims), limit, err)
				}
				_, deliveries, err := tx.ClaimDeliveries(t.Context(), "acme", "l1", limit, many, many)
				if err != nil || len(deliveries) != limit {
					t.Errorf("%d deliveries claimed, want %d, %v", len(deliveries), limit, err)
				}
				rescans, err := tx.QueueOutdated(t.Context(), "signatures 2", limit)
				if err != nil || rescans != limit {
					t.Errorf("%d re-scans queued, want %d, %v", rescans, limit, err)
				}
				return err
			}); err != nil {
				t.Error(err)
			}
			if err := in.Exec(t.Context(), `UPDATE webhook_deliveries SET due_at = due_at + 86400000`); err != nil {
				t.Fatal(err)
			}
			if err := in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
				brought, err := tx.BringBack(t.Context(), custody.LongestWaits{Gate: time.Hour, Rescan: time.Hour, Webhook: time.Hour}, limit)
				if err != nil || brought != limit {
					t.Errorf("%d deliveries brought back, want %d, %v", brought, limit, err)
				}
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
}
