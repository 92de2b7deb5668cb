package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// settling is how long the service idles before its memory is looked at.
const settling = 5 * time.Second

// start prints start-up until the service answers and until it is ready, engines and all; its size on disk and in idle memory.
func (b bench) start(ctx context.Context) error {
	data := filepath.Join(b.work, "start")
	var serves, ready []float64
	var idle float64
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
			time.Sleep(settling)
			idle = s.memory("VmRSS")
		}
		s.stop()
	}
	binary, err := os.Stat(b.binary)
	if err != nil {
		return err
	}
	fmt.Println("| start | median (lowest–highest) |\n|---|---|")
	fmt.Printf("| until it says that it is ready | %.2f s (%.2f–%.2f) |\n", median(serves), slices.Min(serves), slices.Max(serves))
	fmt.Printf("| until /readyz says so, clamd with test signatures included | %.2f s (%.2f–%.2f) |\n", median(ready), slices.Min(ready), slices.Max(ready))
	fmt.Printf("| binary, stripped | %.1f MiB |\n| idle memory of the service | %.1f MiB |\n\n", float64(binary.Size())/(1<<20), idle)
	return nil
}
