// Package table is what benches print: a row for each job beside its reference, the same columns in all of them.
package table

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

const heading = "| Row | accession | reference | ratio (lowest–highest) | CPU | reference CPU | peak memory | to reach |\n|---|---|---|---|---|---|---|---|\n"

// Row is a line of the table; what was not measured is empty.
type Row struct {
	Job, Accession, Reference, Ratio, CPU, ReferenceCPU, Peak, ToReach string
}

// Table prints rows as they come, the heading before the first.
type Table struct {
	file    *os.File // nil: standard output alone
	printed bool
}

// Open returns a table on standard output. Unless path is "" its rows are added to the file there too, below those of other
// benches: so that several make one table.
func Open(path string) (*Table, error) {
	if path == "" {
		return &Table{}, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() == 0 {
		_, err = f.WriteString(heading)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Table{file: f}, nil
}

// Add prints a row.
func (t *Table) Add(r Row) error {
	line := "|"
	for _, cell := range []string{r.Job, r.Accession, r.Reference, r.Ratio, r.CPU, r.ReferenceCPU, r.Peak, r.ToReach} {
		line += strings.TrimRight(" "+cell, " ") + " |"
	}
	line += "\n"
	if !t.printed {
		fmt.Print("\n" + heading)
		t.printed = true
	}
	fmt.Print(line)
	if t.file == nil {
		return nil
	}
	_, err := t.file.WriteString(line)
	return err
}

// Round is one measurement of one side.
type Round struct {
	Value float64 // a rate, or a time
	CPU   float64 // processor time for each GiB, request or document; 0: not measured
}

// Rounds are those of a job and of its reference, in turn.
type Rounds struct{ ours, theirs []Round }

// Add takes a round of the job and the one of the reference that followed.
func (r *Rounds) Add(ours, theirs Round) {
	r.ours, r.theirs = append(r.ours, ours), append(r.theirs, theirs)
}

// Ours is the median of the job.
func (r *Rounds) Ours() float64 {
	return Median(column(r.ours, func(x Round) float64 { return x.Value }))
}

// Row is the medians of both, printed as value and cpu say, and the ratios of job to reference, round by round.
func (r *Rounds) Row(job, value, cpu string) Row {
	ratios := make([]float64, len(r.ours))
	for i := range ratios {
		ratios[i] = r.ours[i].Value / r.theirs[i].Value
	}
	values, times := func(x Round) float64 { return x.Value }, func(x Round) float64 { return x.CPU }
	return Row{
		Job: job, Ratio: Spread(ratios, "%.2f"),
		Accession: cell(value, column(r.ours, values)), Reference: cell(value, column(r.theirs, values)),
		CPU: cell(cpu, column(r.ours, times)), ReferenceCPU: cell(cpu, column(r.theirs, times)),
	}
}

func column(rounds []Round, of func(Round) float64) []float64 {
	v := make([]float64, len(rounds))
	for i, r := range rounds {
		v[i] = of(r)
	}
	return v
}

func cell(format string, v []float64) string {
	if slices.Max(v) == 0 {
		return ""
	}
	return fmt.Sprintf(format, Median(v))
}

// Median of at least one figure.
func Median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Spread is the median with the lowest and the highest.
func Spread(v []float64, format string) string {
	return fmt.Sprintf(format+" ("+format+"–"+format+")", Median(v), slices.Min(v), slices.Max(v))
}

// MiB is a number of bytes as a cell says it.
func MiB(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// Choose is the rows that the value of a flag names, separated by commas, out of all that there are; "all" are all.
func Choose(flag, value string, all []string) ([]string, error) {
	if value == "all" {
		return all, nil
	}
	chosen := strings.Split(value, ",")
	for _, c := range chosen {
		if !slices.Contains(all, c) {
			return nil, fmt.Errorf("-%s: there is no %q: write some of %s, or all", flag, c, strings.Join(all, ","))
		}
	}
	return chosen, nil
}
