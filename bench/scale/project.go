package main

import "fmt"

// total is what one upload costs: each operation once.
type total struct {
	each
	objects, kept float64 // objects in storage, bytes in PostgreSQL with indexes
}

func (t *total) add(e each) {
	t.service, t.postgres, t.statements, t.commits, t.trips = t.service+e.service, t.postgres+e.postgres, t.statements+e.statements, t.commits+e.commits, t.trips+e.trips
	t.bytes, t.rows, t.wal, t.requests, t.sent = t.bytes+e.bytes, t.rows+e.rows, t.wal+e.wal, t.requests+e.requests, t.sent+e.sent
}

// project multiplies one upload's cost. It is arithmetic on what was measured: it knows nothing of queues, locks, or caches that
// are too small.
func (b bench) project(t total) {
	const day = 86400
	rate := float64(b.uploads) / day
	fmt.Printf("\none upload, each operation once: %.1f objects; PostgreSQL keeps %.0f bytes\n\n", t.objects, t.kept)
	fmt.Printf("%d organizations, %d uploads a day: %.0f uploads a second, %.1f an hour of each organization\n", b.organizations, b.uploads, rate, float64(b.uploads)/24/float64(b.organizations))
	fmt.Printf("%-44s %12s %12s\n", "", "on average", fmt.Sprintf("peak (x%g)", b.peak))
	row := func(what string, v float64) { fmt.Printf("%-44s %12.1f %12.1f\n", what, v, v*b.peak) }
	row("processors of the service", rate*t.service)
	row("processors of PostgreSQL", rate*t.postgres)
	row("transactions of PostgreSQL a second", rate*t.commits)
	row("round trips to PostgreSQL a second", rate*t.trips)
	row("rows written a second", rate*t.rows)
	row("WAL, MB a second", rate*t.wal/1e6)
	row("network to PostgreSQL, MB a second", rate*t.bytes/1e6)
	row("requests to S3 a second", rate*t.requests)
	fmt.Printf("%-44s %12.1f\n", "PostgreSQL grows, GB a day", float64(b.uploads)*t.kept/1e9)
	fmt.Printf("%-44s %12.1f\n", "PostgreSQL grows, TB a year", 365*float64(b.uploads)*t.kept/1e12)
	fmt.Printf("%-44s %12.1f\n\n", "objects, million a day until withdrawn", float64(b.uploads)*t.objects/1e6)
}
