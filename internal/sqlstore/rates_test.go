package sqlstore_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accession/accession/internal/sqlstore"
	"github.com/accession/accession/internal/storetest"
	"github.com/accession/accession/internal/storetest/cluster"
)

// Two replicas together let through what one would: the burst, and one each interval.
func TestRatesHoldAcrossReplicas(t *testing.T) {
	url := cluster.Database(t)
	var stores []*sqlstore.Store
	for range 2 {
		s, err := sqlstore.Open(t.Context(), storetest.OpenPostgres(t, url))
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
	}
	var passed, refused atomic.Int64
	var group sync.WaitGroup
	for i := range 60 {
		group.Go(func() {
			limited, ahead, err := stores[i%2].TakeRate(t.Context(), "read cred_1", time.Hour, 10)
			if err != nil || ahead <= 0 || ahead > 10*time.Hour {
				t.Errorf("ahead %s, %v", ahead, err)
			}
			if limited {
				refused.Add(1)
			} else {
				passed.Add(1)
			}
		})
	}
	group.Wait()
	if passed.Load() != 10 || refused.Load() != 50 {
		t.Errorf("%d passed, %d refused; want 10 and 50", passed.Load(), refused.Load())
	}
	take := func(who string, interval time.Duration, burst int) bool {
		t.Helper()
		limited, _, err := stores[0].TakeRate(t.Context(), who, interval, burst)
		if err != nil {
			t.Fatal(err)
		}
		return limited
	}
	if take("read cred_2", time.Hour, 1) {
		t.Error("one pays for another")
	}
	if !take("read cred_2", time.Hour, 1) {
		t.Error("a second request within the hour")
	}
	for range 2 {
		if take("write cred_2", time.Microsecond, 1) {
			t.Error("refused after its interval")
		}
	}
	if err := stores[0].InTx(t.Context(), func(tx *sqlstore.Tx) error { return tx.ForgetRates(t.Context()) }); err != nil {
		t.Fatal(err)
	}
	if !take("read cred_1", time.Hour, 10) {
		t.Error("forgetting gave a full burst")
	}
}
