package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// inCage floods a service whose memory is limited from outside, with what takes most of it, and says what the kernel ended.
func (b *bench) inCage(ctx context.Context) error {
	folder, killed, remove, err := memoryCage(b.memory << 20)
	if err != nil {
		return err
	}
	s, err := b.start(ctx, "cage", folder, "--rate-limits", "off")
	if err != nil {
		return errors.Join(fmt.Errorf("with %d MiB: %w", b.memory, err), remove())
	}
	defer func() {
		s.stop()
		for range 50 { // until clamd and workers are gone
			if err = remove(); err == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	var parties []party
	for n := range 8 {
		p, err := s.party(ctx, fmt.Sprintf("127.0.1.%d", n+1))
		if err != nil {
			return err
		}
		parties = append(parties, p)
	}
	for _, kind := range kinds {
		peak := s.watch()
		o, err := b.clients(ctx, flood{s.address(), kind, parties, b.connections, b.factor * b.can[kind], b.length})
		memory, files := peak()
		if err != nil {
			return err
		}
		if !s.alive() {
			log, _ := os.ReadFile(s.log)
			lines := strings.Split(strings.TrimSpace(string(log)), "\n")
			b.blame("in %d MiB, %s: the service ended: %s: %s", b.memory, kind, s.cmd.ProcessState, lines[len(lines)-1])
			return nil
		}
		b.look(fmt.Sprintf("in %d MiB, %s", b.memory, kind), o)
		b.row(fmt.Sprintf("in %d MiB, %s; %s processes killed so far", b.memory, kind, killed()), fmt.Sprintf("%.0f of %.0f", float64(o.Sent)/o.Took, b.factor*b.can[kind]),
			fmt.Sprintf("%.0f", o.rate()), fmt.Sprintf("%.0f / %.0f", o.P50, o.P99), fmt.Sprint(o.Shed[429]), fmt.Sprint(o.Shed[503]), fmt.Sprint(sum(o.Wrong)),
			fmt.Sprintf("+%d MiB", (memory-s.idleMemory)>>20), fmt.Sprint(files), "", "", "")
	}
	if _, err := s.party(ctx, "127.0.0.9"); err != nil {
		b.blame("in %d MiB, after the floods no document becomes READY: %v", b.memory, err)
	}
	return nil
}
