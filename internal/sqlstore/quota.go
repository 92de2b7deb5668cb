package sqlstore

import "context"

// QuotaOfAll is the storage of all organizations together, in bytes.
type QuotaOfAll struct {
	Organizations, NearlyFull                int // NearlyFull: have 90 % or more of their allowance in use or reserved
	AllowanceBytes, UsedBytes, ReservedBytes int64
}

// QuotaOfAll sums over all organizations: one pass over their rows.
func (s queries) QuotaOfAll(ctx context.Context) (q QuotaOfAll, err error) {
	err = s.q.Row(ctx, `SELECT COUNT(*), COALESCE(SUM(CASE WHEN used_bytes + reserved_bytes >= allowance_bytes - allowance_bytes / 10 THEN 1 ELSE 0 END), 0),
		CAST(COALESCE(SUM(allowance_bytes), 0) AS BIGINT), CAST(COALESCE(SUM(used_bytes), 0) AS BIGINT), CAST(COALESCE(SUM(reserved_bytes), 0) AS BIGINT)
		FROM organizations`, nil, &q.Organizations, &q.NearlyFull, &q.AllowanceBytes, &q.UsedBytes, &q.ReservedBytes)
	return q, err
}
