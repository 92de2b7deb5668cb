// Command bench measures the service beside a named reference, in turn, on the same machine: what it prints is the only
// source of figures in the documentation. `make bench` runs it.
//
//	upload    the same bytes in the same parts into a bare net/http handler (SHA-256, buffered write, fsync per part);
//	          into the same without a hash and past the page cache, which is the disk's ceiling; into tusd, where there is
//	          one (-tusd), and there until sha256sum has read the file
//	complete  the largest upload beside the smallest
//	memory    8 uploads of 1 GiB at once, over the idle service
//
// Only the upload path is measured: nothing is completed that need not be, so no gate runs beside it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == "bare" {
		fail(serveBare(os.Args[2], os.Args[3]))
		return
	}
	rounds := flag.Int("rounds", 5, "rounds of each measurement")
	sizeMiB := flag.Int64("size", 1024, "size of one upload in MiB")
	largeMiB := flag.Int64("large", 4096, "size of the large upload whose complete is timed, in MiB")
	tusd := flag.String("tusd", "", "the program tusd, v2; without it its rows are left out")
	dir := flag.String("dir", os.TempDir(), "where to write; its disk is what is measured")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	work, err := os.MkdirTemp(*dir, "accession-bench-")
	fail(err)
	err = run(ctx, work, *tusd, *rounds, *sizeMiB<<20, *largeMiB<<20)
	fail(os.RemoveAll(work))
	fail(err)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, work, tusd string, rounds int, size, large int64) error {
	binary := filepath.Join(work, "accession")
	if err := build(ctx, binary); err != nil {
		return err
	}
	bare, err := startBare(ctx, work)
	if err != nil {
		return err
	}
	defer bare.stop()
	references := []reference{
		{"bare handler", func(ctx context.Context, size, part int64) (time.Duration, error) {
			return bare.put(ctx, "hash", size, part)
		}},
		{"the disk's ceiling", func(ctx context.Context, size, part int64) (time.Duration, error) {
			return bare.put(ctx, "direct", size, part)
		}},
	}
	if tusd != "" {
		server, folder, err := startTusd(ctx, tusd, work)
		if err != nil {
			return err
		}
		defer server.stop()
		references = append(references,
			reference{"tusd", func(ctx context.Context, size, part int64) (time.Duration, error) {
				return server.tus(ctx, folder, size, part, false)
			}},
			reference{"tusd, then sha256sum", func(ctx context.Context, size, part int64) (time.Duration, error) {
				return server.tus(ctx, folder, size, part, true)
			}})
	}
	for _, partMiB := range []int64{16, 64} {
		svc, err := startService(ctx, binary, work, partMiB<<20)
		if err != nil {
			return err
		}
		err = uploads(ctx, svc, references, rounds, size, partMiB<<20)
		if err == nil && partMiB == 16 {
			err = completes(ctx, svc, rounds, 8<<20, large)
		}
		if err == nil && partMiB == 16 {
			err = crowd(ctx, svc, 8, size)
		}
		svc.stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// uploads prints the throughput of one upload beside each reference, round by round in turn.
func uploads(ctx context.Context, svc *process, references []reference, rounds int, size, part int64) error {
	var ours []float64
	theirs, ratio := make([][]float64, len(references)), make([][]float64, len(references))
	for range rounds {
		mine, err := svc.upload(ctx, size, part)
		if err != nil {
			return err
		}
		if err := svc.withdraw(ctx, mine.id); err != nil {
			return err
		}
		ours = append(ours, rate(size, mine.took))
		for i, r := range references {
			its, err := r.send(ctx, size, part)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			theirs[i] = append(theirs[i], rate(size, its))
			ratio[i] = append(ratio[i], its.Seconds()/mine.took.Seconds())
		}
	}
	fmt.Printf("upload %d MiB in %d MiB parts: accession %s MB/s\n", size>>20, part>>20, spread(ours, "%.0f"))
	for i, r := range references {
		fmt.Printf("  %s: %s MB/s, ratio %s\n", r.name, spread(theirs[i], "%.0f"), spread(ratio[i], "%.2f"))
	}
	return nil
}

// completes prints how long complete takes for a small and a large upload.
func completes(ctx context.Context, svc *process, rounds int, small, large int64) error {
	var took [2][]float64
	for range rounds {
		for i, size := range []int64{small, large} {
			u, err := svc.upload(ctx, size, svc.part)
			if err != nil {
				return err
			}
			d, err := svc.complete(ctx, u)
			if err != nil {
				return err
			}
			took[i] = append(took[i], float64(d.Microseconds())/1000)
			if err := svc.withdraw(ctx, u.id); err != nil {
				return err
			}
		}
	}
	fmt.Printf("complete: %d MiB %s ms, %d MiB %s ms, ratio of medians %.2f\n", small>>20, spread(took[0], "%.1f"),
		large>>20, spread(took[1], "%.1f"), median(took[1])/median(took[0]))
	return nil
}

// crowd prints the total rate of n uploads at once, and how far the service's memory rose over its idle size.
func crowd(ctx context.Context, svc *process, n int, size int64) error {
	idle, err := svc.resident()
	if err != nil {
		return err
	}
	peak := svc.watch()
	began := time.Now()
	ids := make(chan string, n)
	errs := make(chan error, n)
	for range n {
		go func() {
			u, err := svc.upload(ctx, size, svc.part)
			ids <- u.id
			errs <- err
		}()
	}
	for range n {
		if e := <-errs; e != nil {
			err = e
		}
	}
	took := time.Since(began)
	high := peak()
	if err != nil {
		return err
	}
	for range n {
		if err := svc.withdraw(ctx, <-ids); err != nil {
			return err
		}
	}
	fmt.Printf("%d uploads of %d MiB at once: %.0f MB/s in total; resident memory %d MiB idle, %d MiB at its highest, %d MiB more\n",
		n, size>>20, rate(int64(n)*size, took), idle>>20, high>>20, (high-idle)>>20)
	return nil
}

func rate(size int64, took time.Duration) float64 { return float64(size) / 1e6 / took.Seconds() }

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// spread is the median with the lowest and the highest.
func spread(v []float64, format string) string {
	return fmt.Sprintf(format+" ("+format+"–"+format+")", median(v), slices.Min(v), slices.Max(v))
}
