package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver named "pgx"
	_ "modernc.org/sqlite"             // the driver named "sqlite"
)

// starts makes jobs at a steady pace, in turn at each replica, and returns how many milliseconds each waited from the event of
// its complete to that of its first gate, as the service itself wrote them.
func (b bench) starts(ctx context.Context, replicas []*service, url string) (waits []int64, err error) {
	credentials, err := replicas[0].clients(ctx, 1)
	if err != nil {
		return nil, err
	}
	c := credentials[0]
	tick := time.NewTicker(b.pace)
	defer tick.Stop()
	var last string
	for n := range b.jobs {
		at := caller{c.org, c.on(replicas[n%len(replicas)])}
		if last, err = at.initiate(ctx); err == nil {
			err = at.part(ctx, last)
		}
		if err == nil {
			err = at.complete(ctx, last)
		}
		if err != nil {
			return nil, err
		}
		<-tick.C
	}
	if err := (caller{c.org, c.on(replicas[0])}).ready(ctx, last); err != nil {
		return nil, err
	}
	driver, source := "sqlite", "file:"+filepath.Join(replicas[0].data, "metadata.db")+"?mode=ro"
	if url != "" {
		driver, source = "pgx", strings.Replace(url, "//scale@", "//postgres@", 1)+"&search_path=accession"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT g.occurred_at - c.occurred_at FROM status_events c JOIN status_events g ON g.upload_id = c.upload_id AND g.sequence = c.sequence + 1
		WHERE c.org_id = $1 AND c.cause = 'completed' AND g.stage = 'integrity' AND g.gate_state = 'running'`, c.org)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var wait int64
		if err := rows.Scan(&wait); err != nil {
			return nil, err
		}
		waits = append(waits, wait)
	}
	if len(waits) < b.jobs*9/10 {
		return nil, fmt.Errorf("%d of %d jobs began", len(waits), b.jobs)
	}
	return waits, rows.Err()
}
