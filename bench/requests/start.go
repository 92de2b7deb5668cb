package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/accession/accession/bench/server"
	"github.com/accession/accession/bench/table"
)

// start prints start-up until the service answers and until it is ready, engines and all; its size on disk and in idle memory.
func (b bench) start(ctx context.Context) error {
	data := filepath.Join(b.work, "start")
	var serves, ready []float64
	var idle int64
	for n := range b.rounds + 1 { // the first makes files and keys
		began := time.Now()
		s, err := b.serve(ctx, data)
		if err != nil {
			return err
		}
		said := time.Since(began)
		for {
			resp, err := http.Get(s.url + "/readyz")
			if err != nil {
				return err
			}
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if n > 0 {
			serves, ready = append(serves, said.Seconds()), append(ready, time.Since(began).Seconds())
		}
		if n == b.rounds {
			idle, err = server.Idle(s.pid())
		}
		s.stop()
		if err != nil {
			return err
		}
	}
	binary, err := os.Stat(b.binary)
	if err != nil {
		return err
	}
	for _, r := range []table.Row{
		{Job: "start, warm: until it says that it is ready", Accession: table.Spread(serves, "%.2f") + " s"},
		{Job: "start, warm: until /readyz says so, clamd with test signatures included", Accession: table.Spread(ready, "%.2f") + " s", ToReach: "≤ 1 s"},
		{Job: "binary, stripped", Accession: fmt.Sprintf("%.1f MiB", float64(binary.Size())/(1<<20)), ToReach: "≤ 60 MiB"},
		{Job: "idle memory of the service", Accession: table.MiB(idle), ToReach: "≤ 64 MiB"},
	} {
		if err := b.table.Add(r); err != nil {
			return err
		}
	}
	return nil
}
