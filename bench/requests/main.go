// Command requests measures single requests beside their references. `go run ./bench/requests`, on Linux. docs/performance.md
// is made of it.
//
//	reads, uploads, oauth, mcp   each row of the table and its reference, in turn, every process apart: service, reference, load
//	start                        start-up until it answers, binary size, idle memory
//	million                      one organization with 1,000,000 uploads and 10,000,000 records beside one with 1,000 (minutes)
//
// `go run ./bench/requests -rows status,context` prints these alone; without -rows it is all but million. Processor time is what
// the processes account for themselves, user and system, so a busy machine changes it less than a rate.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

type bench struct {
	work, binary   string
	rounds         int
	round          time.Duration
	rows           []string
	uploads        int // of the large organization
	recordsPerEach int
}

func main() {
	var err error
	switch {
	case len(os.Args) >= 3 && os.Args[1] == "reference":
		err = serveReference(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "load":
		err = serveLoad(os.Stdin, os.Stdout)
	case len(os.Args) == 4 && os.Args[1] == "commits":
		err = serveCommits(os.Args[2], os.Args[3])
	default:
		err = measure()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "requests:", err)
		os.Exit(1)
	}
}

func measure() (err error) {
	b := bench{recordsPerEach: 10}
	seconds := flag.Float64("seconds", 5, "length of a round")
	rows := flag.String("rows", "", "rows to measure, separated by commas; empty: all but million")
	dir := flag.String("dir", os.TempDir(), "where to write; its disk is what durable rows wait for")
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of each row")
	flag.IntVar(&b.uploads, "uploads", 1_000_000, "uploads of the large organization, each with 10 records")
	flag.Parse()
	b.round = time.Duration(*seconds * float64(time.Second))
	if *rows != "" {
		b.rows = strings.Split(*rows, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if b.work, err = os.MkdirTemp(*dir, "accession-requests-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.work)) }()
	return b.run(ctx)
}

// wants tells whether a row is asked for; million only by its name.
func (b bench) wants(row string) bool {
	return slices.Contains(b.rows, row) || len(b.rows) == 0 && row != "million"
}

func (b bench) run(ctx context.Context) error {
	b.binary = filepath.Join(b.work, "accession")
	build := exec.CommandContext(ctx, "go", "build", "-tags", "grpcnotrace", "-trimpath", "-ldflags", "-s -w", "-o", b.binary, "./cmd/accession")
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	if err := b.requests(ctx); err != nil {
		return err
	}
	if b.wants("start") {
		if err := b.start(ctx); err != nil {
			return err
		}
	}
	if b.wants("million") {
		return b.million(ctx)
	}
	return nil
}

func (b bench) requests(ctx context.Context) error {
	if !slices.ContainsFunc(rowNames, b.wants) {
		return nil
	}
	s, err := b.serve(ctx, filepath.Join(b.work, "data"))
	if err != nil {
		return err
	}
	defer s.stop()
	rows, err := s.rows(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d rounds of %s, medians; µs: processor time of the server per request\n\n", b.rounds, b.round)
	fmt.Println("| Row | accession /s | reference /s | ratio (lowest–highest) | µs | reference µs | CPU ratio | peak memory | p99 at half | other |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
	for _, r := range rows {
		if !b.wants(r.name) {
			continue
		}
		if err := b.row(ctx, s, r); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	fmt.Println()
	return nil
}

// row measures one job and its reference in turn and prints a line of the table.
func (b bench) row(ctx context.Context, s *service, r row) error {
	reference, err := b.reference(ctx, r)
	if err != nil {
		return err
	}
	defer reference.stop()
	for _, warm := range []func() (float64, error){
		func() (float64, error) { return b.rate(ctx, r.load, b.round/4) },
		func() (float64, error) { return reference.measure(ctx, b, b.round/4) },
	} {
		if _, err := warm(); err != nil {
			return err
		}
	}
	s.forgetPeak()
	var ours, theirs, ratios, mine, its []float64
	for range b.rounds {
		before := s.spent()
		rate, err := b.rate(ctx, r.load, b.round)
		if err != nil {
			return err
		}
		ours, mine = append(ours, rate), append(mine, 1e6*(s.spent()-before)/rate/b.round.Seconds())
		before = reference.spent()
		if rate, err = reference.measure(ctx, b, b.round); err != nil {
			return err
		}
		theirs, its = append(theirs, rate), append(its, 1e6*(reference.spent()-before)/rate/b.round.Seconds())
		ratios = append(ratios, ours[len(ours)-1]/rate)
	}
	peak := s.peak()
	half := r.load
	half.Rate = median(ours) / 2
	calm, err := b.drive(ctx, half, b.round)
	if err != nil {
		return err
	}
	other := ""
	if r.durable {
		if other, err = b.syncs(ctx, s, r.load); err != nil {
			return err
		}
	}
	fmt.Printf("| %s | %.0f | %.0f | %.2f (%.2f–%.2f) | %.0f | %.0f | %.2f | %.0f MiB | %.1f ms | %s |\n", r.title, median(ours), median(theirs),
		median(ratios), slices.Min(ratios), slices.Max(ratios), median(mine), median(its), median(its)/median(mine), peak, 1000*calm.P99, other)
	return nil
}

// syncs is how many requests one sync of the disk serves, as perf counts them; empty where it cannot.
func (b bench) syncs(ctx context.Context, s *service, l load) (string, error) {
	counting, end := context.WithCancel(ctx)
	defer end()
	perf := exec.CommandContext(counting, "perf", "stat", "-x", ",", "-e", "syscalls:sys_enter_fdatasync,syscalls:sys_enter_fsync,syscalls:sys_enter_syncfs", "-p", fmt.Sprint(s.pid()))
	perf.Cancel = func() error { return perf.Process.Signal(os.Interrupt) }
	var said strings.Builder
	perf.Stderr = &said
	if err := perf.Start(); err != nil {
		return "syncs not counted: no perf", nil
	}
	done, err := b.drive(ctx, l, b.round)
	if err != nil {
		return "", err
	}
	end()
	_ = perf.Wait() // it ends by a signal
	syncs := 0
	for line := range strings.Lines(said.String()) {
		var n int
		if _, err := fmt.Sscanf(line, "%d,", &n); err == nil {
			syncs += n
		}
	}
	if syncs == 0 {
		return "syncs not counted", nil
	}
	return fmt.Sprintf("%.2f requests per sync", float64(done.Done)/float64(syncs)), nil
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
