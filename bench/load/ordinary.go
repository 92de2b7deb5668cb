package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// probe is an ordinary client: it looks at a status twenty times a second.
type probe struct {
	visitor *visitor
	stop    context.CancelFunc
	stopped chan struct{}

	mu      sync.Mutex
	samples []sample
}

type sample struct {
	at time.Time // asked
	ms float64
}

// times of requests that were accepted, in milliseconds.
type times struct {
	n        int
	p50, p99 float64
}

func (s *service) probe(who party) *probe {
	ctx, stop := context.WithCancel(context.Background())
	p := &probe{visitor: &visitor{server: s.address(), party: who, tally: &tally{shed: map[int]int{}, wrong: map[string]int{}}}, stop: stop, stopped: make(chan struct{})}
	go func() {
		defer close(p.stopped)
		defer p.visitor.leave()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			began, before := time.Now(), len(p.visitor.tally.took)
			p.visitor.round("status")
			if took := p.visitor.tally.took; len(took) > before {
				p.mu.Lock()
				p.samples = append(p.samples, sample{began, float64(took[before])})
				p.mu.Unlock()
			}
		}
	}()
	return p
}

// end stops asking, and returns what was counted.
func (p *probe) end() *tally {
	p.stop()
	<-p.stopped
	return p.visitor.tally
}

func (p *probe) between(from, to time.Time) times {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []float64
	for _, s := range p.samples {
		if !s.at.Before(from) && s.at.Before(to) {
			all = append(all, s.ms)
		}
	}
	slices.Sort(all)
	return times{len(all), quantile(all, 0.5), quantile(all, 0.99)}
}

// during waits, and returns what it was like meanwhile.
func (p *probe) during(ctx context.Context, d time.Duration) (times, error) {
	began := time.Now()
	select {
	case <-ctx.Done():
		return times{}, ctx.Err()
	case <-time.After(d):
	}
	t := p.between(began, time.Now())
	if t.n == 0 {
		return t, fmt.Errorf("the ordinary client was answered nothing: %v %v", p.visitor.tally.shed, p.visitor.tally.wrong)
	}
	return t, nil
}

// recovered is how long after ended a second began in which nearly all is as fast as before: its nineteen of twenty are within one and a
// half times the p99 from before, or 5 ms if that is more. ok is false where it is not so within a minute.
func (p *probe) recovered(ctx context.Context, ended time.Time, before times) (after time.Duration, ok bool) {
	bound := max(5, 1.5*before.p99)
	for time.Since(ended) < time.Minute && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		for from := ended; time.Since(from) > time.Second; from = from.Add(100 * time.Millisecond) {
			second := p.within(from, bound)
			if second >= 0.95 {
				return from.Sub(ended), true
			}
		}
	}
	return time.Since(ended), false
}

// within is the share of the second from that was no slower than bound; 0 where little was answered.
func (p *probe) within(from time.Time, bound float64) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, fast := 0, 0
	for _, s := range p.samples {
		if !s.at.Before(from) && s.at.Before(from.Add(time.Second)) {
			if all++; s.ms <= bound {
				fast++
			}
		}
	}
	if all < 10 {
		return 0
	}
	return float64(fast) / float64(all)
}
