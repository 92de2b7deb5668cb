package main

import (
	"context"
	"fmt"
	"time"

	"github.com/accession/accession/bench/server"
	"github.com/accession/accession/bench/table"
)

// comparison is a row: what an upload is measured beside, and the ratio to reach.
type comparison struct{ name, reach string }

// lap is what one upload took: time on the clock, and processor time of whoever took it, in seconds.
type lap struct {
	took time.Duration
	cpu  float64
}

// reference takes the same bytes in the same parts. send returns a lap for each of its rows, all of the same upload.
type reference struct {
	rows []comparison
	send func(ctx context.Context, size, part int64) ([]lap, error)
}

// round is the megabytes (10⁶) a second of a lap, and its processor seconds per GiB.
func (l lap) round(size int64) table.Round {
	return table.Round{Value: float64(size) / 1e6 / l.took.Seconds(), CPU: l.cpu * (1 << 30) / float64(size)}
}

const (
	perSecond = "%.0f MB/s"
	perGiB    = "%.2f s/GiB"
)

// uploads prints the throughput of one upload beside each reference, round by round in turn.
func (b *bench) uploads(ctx context.Context, svc *process, where string, references []reference, size int64) error {
	round := func(size int64) (mine lap, theirs [][]lap, err error) {
		mine, err = svc.uploadMany(ctx, 1, size)
		for _, r := range references {
			if err != nil {
				return mine, nil, err
			}
			var its []lap
			if its, err = r.send(ctx, size, svc.part); err != nil {
				err = fmt.Errorf("%s: %w", r.rows[0].name, err)
			}
			theirs = append(theirs, its)
		}
		return mine, theirs, err
	}
	if _, _, err := round(svc.part); err != nil { // warm
		return err
	}
	rows := make([][]table.Rounds, len(references))
	for i, r := range references {
		rows[i] = make([]table.Rounds, len(r.rows))
	}
	for range b.rounds {
		mine, theirs, err := round(size)
		if err != nil {
			return err
		}
		for i, laps := range theirs {
			for k, its := range laps {
				rows[i][k].Add(mine.round(size), its.round(size))
			}
		}
	}
	peak, err := svc.peak()
	if err != nil {
		return err
	}
	for i, r := range references {
		for k, c := range r.rows {
			row := rows[i][k].Row(fmt.Sprintf("%s in parts of %s%s, beside %s", sized(size), sized(svc.part), where, c.name), perSecond, perGiB)
			row.Peak, row.ToReach = table.MiB(peak), c.reach
			if err := b.table.Add(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// completes prints how long complete takes for a large upload beside a small one.
func (b *bench) completes(ctx context.Context) error {
	return b.service(ctx, partSizes[0], nil, func(svc *process) error {
		var rounds table.Rounds
		digests := map[int64]string{small: digest(small), b.large: digest(b.large)}
		for range b.rounds {
			var took [2]table.Round
			for i, size := range []int64{b.large, small} {
				u, err := svc.upload(ctx, size)
				if err != nil {
					return err
				}
				d, err := svc.complete(ctx, u, digests[size])
				if err != nil {
					return err
				}
				took[i].Value = float64(d.Microseconds()) / 1000
				if err := svc.withdraw(ctx, u.id); err != nil {
					return err
				}
			}
			rounds.Add(took[0], took[1])
		}
		peak, err := svc.peak()
		if err != nil {
			return err
		}
		row := rounds.Row(fmt.Sprintf("complete after %s, beside %s", sized(b.large), sized(small)), "%.1f ms", "")
		row.Peak, row.ToReach = table.MiB(peak), "≤ 2"
		return b.table.Add(row)
	})
}

// crowd prints the total rate of several uploads at once beside one, and how far the service's memory rose over what it had before
// its first upload.
func (b *bench) crowd(ctx context.Context) error {
	return b.service(ctx, partSizes[0], nil, func(svc *process) error {
		idle, err := server.Idle(svc.cmd.Process.Pid)
		if err != nil {
			return err
		}
		var rounds table.Rounds
		for range b.rounds {
			all, err := svc.uploadMany(ctx, many, b.size)
			if err != nil {
				return err
			}
			one, err := svc.uploadMany(ctx, 1, b.size)
			if err != nil {
				return err
			}
			rounds.Add(all.round(many*b.size), one.round(b.size))
		}
		peak, err := svc.peak()
		if err != nil {
			return err
		}
		row := rounds.Row(fmt.Sprintf("%d uploads of %s at once, beside one", many, sized(b.size)), perSecond, perGiB)
		row.Peak, row.ToReach = table.MiB(peak), "≥ 1.2"
		if err := b.table.Add(row); err != nil {
			return err
		}
		return b.table.Add(table.Row{Job: "the same: memory over idle", Accession: table.MiB(peak - idle), ToReach: "≤ 96 MiB"})
	})
}

// uploadMany sends n uploads at once, from initiate to the answer of the last part, and withdraws them.
func (p *process) uploadMany(ctx context.Context, n int, size int64) (all lap, err error) {
	ids, errs := make(chan string, n), make(chan error, n)
	all, err = p.timed(func() (err error) {
		for range n {
			go func() {
				u, err := p.upload(ctx, size)
				ids <- u.id
				errs <- err
			}()
		}
		for range n {
			if e := <-errs; e != nil {
				err = e
			}
		}
		return err
	})
	for range n {
		if err == nil {
			err = p.withdraw(ctx, <-ids)
		}
	}
	return all, err
}

// sized is a number of bytes in whole GiB where it is that, else in MiB.
func sized(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", bytes>>30)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}
