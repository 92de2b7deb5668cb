package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"mime"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/accession/accession/bench/table"
	"github.com/accession/accession/internal/extract"
	"github.com/accession/accession/internal/scanner"
)

const mixedDocuments = 100

// submission is one document as it goes through the service and through the bare engines.
type submission struct {
	name, media string
	content     []byte
	kind        string
}

// mixed are a hundred documents: papers and manuals as PDF, their texts, HTML, scanned pages as PNG and as PDF of two pages. They
// come in turn, so that no stretch is all of one kind.
func (b *bench) mixed(ctx context.Context) ([]submission, error) {
	scans, err := b.scans(ctx)
	if err != nil {
		return nil, err
	}
	scans = slices.DeleteFunc(scans, func(s scan) bool { return s.language != "eng" })
	byKind := map[string][]submission{}
	add := func(kind, name string, content []byte) {
		media, _, err := mime.ParseMediaType(mime.TypeByExtension(filepath.Ext(name)))
		if err != nil {
			media = "text/plain"
		}
		byKind[kind] = append(byKind[kind], submission{name: name, media: media, content: content, kind: kind})
	}
	for i, s := range scans {
		content, err := os.ReadFile(s.file)
		if err != nil {
			return nil, err
		}
		add("PNG", fmt.Sprintf("page-%d.png", i), content)
		if i%2 == 1 {
			add("PDF of pictures", fmt.Sprintf("scan-%d.pdf", i), picturePDF(scans[i-1:i+1]))
		}
	}
	for i, d := range b.documents {
		content, err := os.ReadFile(d.file)
		if err != nil {
			return nil, err
		}
		if d.use == "format" {
			add("HTML", fmt.Sprintf("%d.html", i), content)
			continue
		}
		add("PDF", fmt.Sprintf("%d.pdf", i), content)
		if strings.HasSuffix(d.reference, ".txt.gz") {
			if content, err = os.ReadFile(d.sourceFile); err != nil {
				return nil, err
			}
			add("text", fmt.Sprintf("%d.txt", i), content)
		}
	}
	quota := []struct {
		kind string
		n    int
	}{{"PDF", 40}, {"text", 23}, {"HTML", 7}, {"PNG", 20}, {"PDF of pictures", 10}}
	var out []submission
	for i := range mixedDocuments {
		for _, q := range quota {
			// The i-th hundredth brings the next of a kind when that kind's share of the hundred has grown by one; spread
			// over all there are, so that small and large come alike.
			if have := byKind[q.kind]; (i+1)*q.n/mixedDocuments > i*q.n/mixedDocuments {
				if len(have) < q.n {
					return nil, fmt.Errorf("%d documents of kind %s, %d are needed", len(have), q.kind, q.n)
				}
				out = append(out, have[i*q.n/mixedDocuments*len(have)/q.n])
			}
		}
	}
	return out, nil
}

func (b *bench) pipeline(ctx context.Context) error {
	fmt.Printf("\n## Pipeline\n")
	documents, err := b.mixed(ctx)
	if err != nil {
		return err
	}
	clamd, address, err := b.scanner(ctx)
	if err != nil {
		return err
	}
	defer clamd.Close()
	e := b.extractor("eng")
	if err := e.Warm(ctx); err != nil {
		return err
	}
	kinds, total := map[string]int{}, 0
	for _, d := range documents {
		kinds[d.kind]++
		total += len(d.content)
	}
	fmt.Printf("\n%d documents, %.1f MB: %d PDF, %d text, %d HTML, %d PNG, %d PDF of pictures\n", len(documents), float64(total)/1e6,
		kinds["PDF"], kinds["text"], kinds["HTML"], kinds["PNG"], kinds["PDF of pictures"])
	fmt.Printf("\n| round | service, s | its engines alone, s | ratio | processor time: service, s | engines alone, s | ratio |\n|---|---|---|---|---|---|---|\n")
	var ratios, processor []float64
	var rounds table.Rounds
	var peak int64
	var spent []map[string]time.Duration
	for round := range b.rounds {
		alone, err := enginesAlone(ctx, clamd, e, documents)
		if err != nil {
			return err
		}
		ours, gates, err := b.throughService(ctx, address, documents)
		if err != nil {
			return err
		}
		spent = append(spent, gates)
		rounds.Add(ours.each(len(documents)), alone.each(len(documents)))
		peak = max(peak, ours.peak)
		ratios = append(ratios, ours.clock.Seconds()/alone.clock.Seconds())
		processor = append(processor, ours.processor.Seconds()/alone.processor.Seconds())
		fmt.Printf("| %d | %.1f | %.1f | %.2f | %.1f | %.1f | %.2f |\n", round+1, ours.clock.Seconds(), alone.clock.Seconds(), ratios[round],
			ours.processor.Seconds(), alone.processor.Seconds(), processor[round])
	}
	fmt.Printf("\nRatio: %s (wished: at most 1.1); of processor time, without clamd's, which is the same: %s\n",
		table.Spread(ratios, "%.2f"), table.Spread(processor, "%.2f"))
	fmt.Printf("\n| the service's gates, all documents together | s: median (lowest–highest) |\n|---|---|\n")
	for _, gate := range slices.Sorted(maps.Keys(spent[0])) {
		var s []float64
		for _, round := range spent {
			s = append(s, round[gate].Seconds())
		}
		fmt.Printf("| %s | %s |\n", gate, table.Spread(s, "%.1f"))
	}
	row := rounds.Row(fmt.Sprintf("pipeline, %d mixed documents, beside its engines alone (CPU without clamd's)", len(documents)), "%.1f s", "%.2f s/document")
	row.Peak, row.ToReach = table.MiB(peak), "≤ 1.1"
	return b.table.Add(row)
}

// enginesAlone scans and extracts the same bytes with the same engines, as many at once as the service has slots, without it:
// no network, no custody, no database, no quarantine, no summary.
func enginesAlone(ctx context.Context, clamd *scanner.Managed, e *extract.Extractor, documents []submission) (cost, error) {
	began, used := time.Now(), processorTime()
	var group errgroup.Group
	group.SetLimit(max(2, runtime.NumCPU()))
	for _, d := range documents {
		group.Go(func() error {
			content, size := bytes.NewReader(d.content), int64(len(d.content))
			report, err := clamd.Scan(ctx, content, size)
			if err == nil && report.Outcome != scanner.Clean {
				err = fmt.Errorf("clamd says %v", report.Outcome)
			}
			if err == nil {
				_, err = e.Extract(ctx, content, size, d.media, nil)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
			return nil
		})
	}
	err := group.Wait()
	return cost{clock: time.Since(began), processor: processorTime() - used}, err
}

// throughService is the time from the first initiate to the last READY, on a service with nothing in it yet, and how long the
// documents together were in each gate.
func (b *bench) throughService(ctx context.Context, clamd string, documents []submission) (cost, map[string]time.Duration, error) {
	s, err := b.serve(ctx, clamd)
	if err != nil {
		return cost{}, nil, err
	}
	gates := map[string]time.Duration{}
	var adding sync.Mutex
	began := time.Now()
	var group errgroup.Group
	group.SetLimit(4 * runtime.NumCPU()) // submitters: enough that a slot never waits for one
	for _, d := range documents {
		group.Go(func() error {
			status, err := s.submit(ctx, d.name, d.media, bytes.NewReader(d.content), int64(len(d.content)))
			if err == nil && status.Status != "READY" {
				err = fmt.Errorf("is %s: %+v", status.Status, status.Failure)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
			adding.Lock()
			defer adding.Unlock()
			for _, g := range status.Gates {
				gates[g.Name] += g.FinishedAt.Sub(g.StartedAt)
			}
			return nil
		})
	}
	err = group.Wait()
	took := time.Since(began)
	peak, unread := s.memory("VmHWM")
	err = errors.Join(err, unread, s.stop())
	return cost{took, s.processorTime(), peak}, gates, err
}
