package sqlstore_test

import (
	"testing"
	"time"

	"github.com/accession/accession/internal/sqldb"
	"github.com/accession/accession/internal/sqlstore"
	"github.com/accession/accession/internal/storetest"
	"github.com/accession/accession/internal/storetest/cluster"
)

// The database's clock was an hour ahead and is put back: what was counted then holds nobody up for longer than a whole burst.
func TestRatesOutliveAClockThatIsPutBack(t *testing.T) {
	db := storetest.OpenPostgres(t, cluster.Database(t))
	s, err := sqlstore.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := db.InTx(ctx, func(q sqldb.Querier) error {
		_, err := q.Exec(ctx, `INSERT INTO rate_limits (who, reaches_to, asked_at, limited)
			SELECT 'read cred_1', moment, moment, 0 FROM (SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp() + INTERVAL '1 hour') * 1000000)::BIGINT AS moment) AS ahead`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	const interval, burst = 100 * time.Millisecond, 3
	limited, ahead, err := s.TakeRate(ctx, "read cred_1", interval, burst)
	if err != nil || !limited || ahead > burst*interval {
		t.Fatalf("limited %v, ahead %s, %v", limited, ahead, err)
	}
	for limited { // until the burst has passed; an hour of this would end the test
		if limited, _, err = s.TakeRate(ctx, "read cred_1", interval, burst); err != nil {
			t.Fatal(err)
		}
	}
}
