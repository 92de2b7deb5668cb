package sqlstore

import (
	"context"
	"time"
)

// TakeRate counts one request of who, over all replicas and by the database's clock, unless the allowance is used up: then it is
// limited and not counted. ahead is how far the requests so far reach beyond now, at one each interval. PostgreSQL alone
// has the table. A row that reaches further than a whole burst was written before the clock was put back: it counts as used up,
// and no longer than that. (Section 8; architecture, "Several replicas": GCRA as one upsert.)
func (s *Store) TakeRate(ctx context.Context, who string, interval time.Duration, burst int) (limited bool, ahead time.Duration, err error) {
	each := max(1, interval.Microseconds())
	var l, micros int64
	// A statement on its own is a transaction on its own: one round trip, and nobody who waits for changes is woken. The row is
	// locked first, and the clock read then: its moments come in order.
	err = s.q.Row(ctx, `INSERT INTO rate_limits AS r (who, reaches_to, asked_at, limited)
		VALUES ($1, FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT + $2, FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT, 0)
		ON CONFLICT (who) DO UPDATE SET (reaches_to, asked_at, limited) = (
			SELECT CASE WHEN refused THEN reaches ELSE GREATEST(reaches, now) + $3 END, now, CASE WHEN refused THEN 1 ELSE 0 END
			FROM (SELECT now, reaches, GREATEST(reaches, now) + $4 - now > $5 AS refused
				FROM (SELECT now, LEAST(r.reaches_to, now + $6) AS reaches
					FROM (SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT AS now OFFSET 0) AS clock) AS known) AS verdict)
		RETURNING limited, reaches_to - asked_at`, []any{who, each, each, each, each * int64(burst), each * int64(burst)}, &l, &micros)
	return l == 1, time.Duration(micros) * time.Microsecond, err
}

// ForgetRates deletes what no longer limits anybody; on SQLite there is nothing.
func (tx *Tx) ForgetRates(ctx context.Context) error {
	if tx.d.Name == "sqlite" {
		return nil
	}
	_, err := tx.q.Exec(ctx, `DELETE FROM rate_limits WHERE reaches_to < FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT`)
	return err
}
