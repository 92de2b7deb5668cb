package sqlstore

import (
	"context"
	"math"
)

// QuotaOfAll is the storage of all organizations together, in bytes.
type QuotaOfAll struct {
	Organizations, NearlyFull int   // NearlyFull: have 90 % or more of their allowance in use or reserved
	AllowanceBytes            int64 // to 53 bits; math.MaxInt64 where it is more
	UsedBytes, ReservedBytes  int64
}

// QuotaOfAll sums over all organizations: one pass over their rows.
func (s queries) QuotaOfAll(ctx context.Context) (q QuotaOfAll, err error) {
	var allowance float64 // an allowance may be "no limit": a few of those are more than 64 bits hold
	err = s.q.Row(ctx, `SELECT COUNT(*), COALESCE(SUM(CASE WHEN used_bytes + reserved_bytes >= allowance_bytes - allowance_bytes / 10 THEN 1 ELSE 0 END), 0),
		COALESCE(SUM(CAST(allowance_bytes AS DOUBLE PRECISION)), 0), CAST(COALESCE(SUM(used_bytes), 0) AS BIGINT), CAST(COALESCE(SUM(reserved_bytes), 0) AS BIGINT)
		FROM organizations`, nil, &q.Organizations, &q.NearlyFull, &allowance, &q.UsedBytes, &q.ReservedBytes)
	q.AllowanceBytes = math.MaxInt64
	if allowance < math.MaxInt64 {
		q.AllowanceBytes = int64(allowance)
	}
	return q, err
}
