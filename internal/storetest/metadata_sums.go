package storetest

import (
	"math"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqlstore"
)

// metadataSums is what is told of all organizations together.
func metadataSums(t *testing.T, in *Installation) {
	ctx := custody.AcrossOrganizations(t.Context())
	if q, err := in.Store.QuotaOfAll(ctx); err != nil || q != (sqlstore.QuotaOfAll{}) {
		t.Errorf("nobody's quota is %+v, %v", q, err)
	}
	in.Hook(t, "acme")
	in.organization(t, "beta", 1000)
	in.reserved(t, "acme", 64)
	in.reserved(t, "beta", 900)
	want := sqlstore.QuotaOfAll{Organizations: 2, NearlyFull: 1, AllowanceBytes: 1<<30 + 1000, ReservedBytes: 964}
	if q, err := in.Store.QuotaOfAll(ctx); err != nil || q != want {
		t.Errorf("quota of all is %+v, %v, want %+v", q, err, want)
	}
	in.organization(t, "gamma", math.MaxInt64) // without a limit
	in.organization(t, "delta", math.MaxInt64)
	want.Organizations, want.AllowanceBytes = 4, math.MaxInt64
	if q, err := in.Store.QuotaOfAll(ctx); err != nil || q != want {
		t.Errorf("quota of all is %+v, %v, want %+v", q, err, want)
	}
	if waiting, dead, oldest, err := in.Store.WebhookBacklog(ctx); err != nil || waiting != 1 || dead != 0 || oldest < 0 || oldest > time.Minute {
		t.Errorf("%d wait, the oldest for %s, %d are dead, %v", waiting, oldest, dead, err)
	}
	if err := in.Exec(ctx, `UPDATE webhook_deliveries SET state = 'dead'`); err != nil {
		t.Fatal(err)
	}
	if waiting, dead, oldest, err := in.Store.WebhookBacklog(ctx); err != nil || waiting != 0 || dead != 1 || oldest != 0 {
		t.Errorf("%d wait, the oldest for %s, %d are dead, %v", waiting, oldest, dead, err)
	}
}
