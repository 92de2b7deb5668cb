// Command requests measures single requests beside their references. `go run ./bench/requests`, on Linux, with clamd, at the top of
// the repository. docs/performance.md is made of it.
//
//	status, not-modified, introspection,   each row of the table and its reference, in turn, every process apart: service,
//	context, upload, token, mcp            reference, load
//	start                                  start-up until it answers, binary size, idle memory
//	million                                one organization with 1,000,000 uploads and 10,000,000 records beside one with 1,000 (minutes)
//
// `go run ./bench/requests -rows status,context` prints these alone; without -rows it is all but million, and with -rows all it is that
// too. Processor time is what the processes account for themselves, user and system, so a busy machine changes it less than a rate.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/accession/accession/bench/scratch"
	"github.com/accession/accession/bench/server"
	"github.com/accession/accession/bench/table"
)

type bench struct {
	work, binary   string
	rounds         int
	round          time.Duration
	rows           []string
	uploads        int // of the large organization
	recordsPerEach int
	table          *table.Table
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
	names := append(slices.Clone(rowNames), "start")
	seconds := flag.Float64("seconds", 5, "length of a round")
	rows := flag.String("rows", strings.Join(names, ","), "rows to measure, separated by commas; also million, or all")
	dir := flag.String("dir", os.TempDir(), "where to write; its disk is what durable rows wait for")
	path := flag.String("table", "", "a file that the rows are added to as well")
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of each row")
	flag.IntVar(&b.uploads, "uploads", 1_000_000, "uploads of the large organization, each with 10 records")
	flag.Parse()
	if b.rounds < 1 || *seconds <= 0 || b.uploads < 1 {
		return errors.New("-rounds, -seconds and -uploads are more than 0")
	}
	b.round = time.Duration(*seconds * float64(time.Second))
	if b.rows, err = table.Choose("rows", *rows, append(names, "million")); err != nil {
		return err
	}
	if b.table, err = table.Open(*path); err != nil {
		return err
	}
	need := int64(1 << 30)
	if b.wants("million") {
		need += int64(b.uploads) * uploadBytes
	}
	return scratch.Run(*dir, "requests", need, func(ctx context.Context, folder string) error {
		b.work = folder
		return b.run(ctx)
	})
}

func (b bench) wants(row string) bool { return slices.Contains(b.rows, row) }

func (b bench) run(ctx context.Context) (err error) {
	if b.binary, err = server.Build(ctx, b.work); err != nil {
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
	for _, r := range rows {
		if !b.wants(r.name) {
			continue
		}
		if err := b.row(ctx, s, r); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

// row measures one job and its reference in turn and prints its lines of the table.
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
	var rounds table.Rounds
	for range b.rounds {
		ours, err := b.spending(&s.process, func() (float64, error) { return b.rate(ctx, r.load, b.round) })
		if err != nil {
			return err
		}
		theirs, err := b.spending(&reference.process, func() (float64, error) { return reference.measure(ctx, b, b.round) })
		if err != nil {
			return err
		}
		rounds.Add(ours, theirs)
	}
	measured := rounds.Row(fmt.Sprintf("%s, %d clients, beside %s", r.title, r.load.Clients, besides[r.reference]), "%.0f /s", "%.0f µs")
	measured.Peak, measured.ToReach = s.peak(), r.reach
	if err := b.table.Add(measured); err != nil {
		return err
	}
	half := r.load
	half.Rate = rounds.Ours() / 2
	calm, err := b.drive(ctx, half, b.round)
	if err != nil {
		return err
	}
	if err := b.table.Add(table.Row{Job: r.title + ": p99 at half that rate", Accession: fmt.Sprintf("%.1f ms", 1000*calm.P99), ToReach: r.calm}); err != nil || !r.durable {
		return err
	}
	shared, err := b.syncs(ctx, s, r.load)
	if err != nil {
		return err
	}
	return b.table.Add(table.Row{Job: r.title + ": requests per sync of the disk", Accession: shared, ToReach: r.sharing})
}

// spending is a round: the rate, and the processor time of p for each request in microseconds.
func (b bench) spending(p *process, round func() (float64, error)) (table.Round, error) {
	before := p.spent()
	rate, err := round()
	return table.Round{Value: rate, CPU: 1e6 * (p.spent() - before) / rate / b.round.Seconds()}, err
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
		return "not counted: no perf", nil
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
		return "not counted", nil
	}
	return fmt.Sprintf("%.2f", float64(done.Done)/float64(syncs)), nil
}
