// Command scale measures what several replicas on one PostgreSQL cost and give. `go run ./bench/scale`, on Linux, with
// PostgreSQL, clamd and the S3 service of scripts/engines.sh --for-tests. docs/scale.md is made of it.
//
//	replicas  requests and whole jobs a second: two replicas beside one, on the same processors, in turn
//	start     from complete to the first gate, on PostgreSQL and on SQLite
//	cost      processor time, statements, round trips, bytes, rows and objects of each operation, and what many uploads a day come to
//
// `go run ./bench/scale cost` prints one of them alone. The server is PostgreSQL as it is installed, fsync on; client, service,
// database and storage share the machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/accession/accession/bench/scratch"
	"github.com/accession/accession/bench/server"
	"github.com/accession/accession/bench/table"
)

func main() {
	b := bench{}
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of each measurement of replicas")
	flag.DurationVar(&b.round, "round", 4*time.Second, "length of a round")
	flag.IntVar(&b.clients, "clients", 16, "clients at once, each of another organization")
	flag.IntVar(&b.jobs, "jobs", 200, "jobs whose start is measured")
	flag.DurationVar(&b.pace, "pace", 250*time.Millisecond, "from one of these jobs to the next")
	flag.IntVar(&b.repeats, "repeats", 50, "operations of each kind whose cost is measured")
	flag.IntVar(&b.organizations, "organizations", 1000, "organizations of the projection")
	flag.IntVar(&b.uploads, "uploads", 10_000_000, "uploads a day of the projection")
	flag.Float64Var(&b.peak, "peak", 3, "the busiest second of the projection, times the average")
	dir := flag.String("dir", os.TempDir(), "where to write; its disk is what is measured")
	flag.Parse()
	if err := scratch.Run(*dir, "scale", 2<<30, func(ctx context.Context, folder string) error {
		b.work = folder
		return b.run(ctx, flag.Args())
	}); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	work, binary                   string
	rounds, clients, jobs, repeats int
	organizations, uploads         int
	peak                           float64
	round, pace                    time.Duration
}

func (b bench) run(ctx context.Context, which []string) (err error) {
	if err := os.Chmod(b.work, 0o755); err != nil { // PostgreSQL is another user
		return err
	}
	if b.binary, err = server.Build(ctx, b.work); err != nil {
		return err
	}
	db, err := startPostgres(ctx, b.work)
	if err != nil {
		return err
	}
	defer db.stop()
	for _, part := range []struct {
		name string
		run  func(context.Context, *postgres) error
	}{{"replicas", b.replicas}, {"start", b.start}, {"cost", b.cost}, {"one", b.one}} {
		if len(which) == 0 || slices.Contains(which, part.name) {
			if err := part.run(ctx, db); err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
		}
	}
	return nil
}

// replicas prints what two give beside one.
func (b bench) replicas(ctx context.Context, db *postgres) error {
	url, err := db.database(ctx)
	if err != nil {
		return err
	}
	site := b.site("replicas", url)
	first, err := site.start(ctx, "a")
	if err != nil {
		return err
	}
	defer first.stop()
	clients, err := first.clients(ctx, b.clients)
	if err != nil {
		return err
	}
	loads := []struct {
		what string
		load func(context.Context, caller) (int, error)
	}{{"requests", requests}, {"jobs", job}}
	rates := map[string][2][]float64{}
	for range b.rounds {
		for _, n := range []int{1, 2} {
			all := []*service{first}
			if n == 2 {
				second, err := site.start(ctx, "b")
				if err != nil {
					return err
				}
				all = append(all, second)
			}
			if _, err := b.drive(ctx, all, clients, requests); err != nil { // connections are open and statements prepared
				return err
			}
			for _, l := range loads {
				rate, err := b.drive(ctx, all, clients, l.load)
				if err != nil {
					return err
				}
				r := rates[l.what]
				r[n-1] = append(r[n-1], rate)
				rates[l.what] = r
			}
			if n == 2 {
				all[1].stop()
			}
		}
	}
	fmt.Printf("replicas on one PostgreSQL: %d clients, %d rounds of %s, median (lowest–highest) a second\n", b.clients, b.rounds, b.round)
	fmt.Printf("%-10s %22s %22s %8s\n", "", "one replica", "two replicas", "ratio")
	for _, l := range loads {
		r := rates[l.what]
		fmt.Printf("%-10s %22s %22s %8.2f\n", l.what, spread(r[0]), spread(r[1]), table.Median(r[1])/table.Median(r[0]))
	}
	fmt.Println()
	return nil
}

// one prints what an organization alone can ask for: its chains and its allowance are one row, which its writers take in turns.
func (b bench) one(ctx context.Context, db *postgres) error {
	url, err := db.database(ctx)
	if err != nil {
		return err
	}
	s, err := b.site("one", url).start(ctx, "a")
	if err != nil {
		return err
	}
	defer s.stop()
	apart, err := s.clients(ctx, b.clients)
	if err != nil {
		return err
	}
	together := slices.Repeat(apart[:1], b.clients)
	var rates [2][]float64
	for range b.rounds {
		for n, clients := range [][]credential{apart, together} {
			rate, err := b.drive(ctx, []*service{s}, clients, requests)
			if err != nil {
				return err
			}
			rates[n] = append(rates[n], rate)
		}
	}
	fmt.Printf("requests a second of %d clients: of as many organizations %s, of one organization %s\n", b.clients, spread(rates[0]), spread(rates[1]))
	return nil
}

// start prints how long a job waits for its first gate, while workers are free.
func (b bench) start(ctx context.Context, db *postgres) error {
	url, err := db.database(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("job start after enqueue: %d jobs, one each %s, milliseconds\n%-32s %8s %8s %8s\n", b.jobs, b.pace, "", "p50", "p99", "longest")
	for _, c := range []struct {
		name, url string
		replicas  int
	}{{"SQLite", "", 1}, {"PostgreSQL", url, 1}, {"PostgreSQL, two replicas", url, 2}} {
		site := b.site("start-"+fmt.Sprint(c.replicas, c.url != ""), c.url)
		site.keys = filepath.Join(b.work, "start-keys-"+fmt.Sprint(c.url != ""))
		var all []*service
		for n := range c.replicas {
			s, err := site.start(ctx, fmt.Sprint(n))
			if err != nil {
				return err
			}
			defer s.stop()
			all = append(all, s)
		}
		waits, err := b.starts(ctx, all, c.url)
		if err != nil {
			return err
		}
		for _, s := range all {
			s.stop()
		}
		slices.Sort(waits)
		fmt.Printf("%-32s %8d %8d %8d\n", c.name, waits[len(waits)/2], waits[len(waits)*99/100], waits[len(waits)-1])
	}
	fmt.Println()
	return nil
}

func spread(v []float64) string { return table.Spread(v, "%.1f") }
