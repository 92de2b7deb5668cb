package ratelimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// clock is moved by hand.
type clock struct{ now time.Time }

func (c *clock) tell() time.Time { return c.now }

func limiter(t *testing.T, c *clock, size int, rates Rates) *Limiter {
	t.Helper()
	l, err := New(Config{Rates: rates, Size: size, Now: c.tell})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func take(t *testing.T, l *Limiter, c Class, who string) Verdict {
	t.Helper()
	v, limits, err := l.Take(context.Background(), c, who)
	if err != nil || !limits {
		t.Fatalf("limits %v, error %v", limits, err)
	}
	return v
}

// In every window, between any two requests that were let through, there are never more than rate·t + burst of them; and
// the limiter is not stricter than that either: who waits as told is let through.
func TestNeverMoreThanRateAndBurst(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		rate := Rate{PerSecond: []float64{0.5, 1, 3, 7, 50, 333.3}[r.IntN(6)], Burst: 1 + r.IntN(40)}
		c := &clock{time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}
		l := limiter(t, c, 10, Rates{Read: rate})
		var passed []time.Time
		for range 1500 {
			switch r.IntN(4) {
			case 0: // a rush
			case 1:
				c.now = c.now.Add(time.Duration(r.Float64() * float64(rate.interval())))
			case 2:
				c.now = c.now.Add(time.Duration(r.Float64() * 3 * float64(rate.interval())))
			case 3:
				if r.IntN(50) == 0 { // a long rest
					c.now = c.now.Add(time.Duration(rate.Burst) * 2 * rate.interval())
				}
			}
			v := take(t, l, Read, "a")
			if !v.Limited {
				passed = append(passed, c.now)
				continue
			}
			if v.RetryAfter <= 0 || v.Remaining != 0 || v.Reset < v.RetryAfter {
				t.Fatalf("seed %d: refused with %+v", seed, v)
			}
			if r.IntN(10) == 0 {
				c.now = c.now.Add(v.RetryAfter)
				if v := take(t, l, Read, "a"); v.Limited {
					t.Fatalf("seed %d: refused after waiting as told", seed)
				}
				passed = append(passed, c.now)
			}
		}
		for i := range passed {
			for j := i; j < len(passed); j++ {
				if n, allowed := j-i+1, rate.PerSecond*passed[j].Sub(passed[i]).Seconds()+float64(rate.Burst); float64(n) > allowed+1e-6 {
					t.Fatalf("seed %d: %d requests in %s, at most %.3f with %+v", seed, n, passed[j].Sub(passed[i]), allowed, rate)
				}
			}
		}
	}
}

func TestFigures(t *testing.T) {
	c := &clock{time.Unix(1_800_000_000, 0)}
	l := limiter(t, c, 10, Rates{Read: {2, 3}})
	for i, want := range []Verdict{
		{false, 3, 2, 500 * time.Millisecond, 0}, {false, 3, 1, time.Second, 0}, {false, 3, 0, 1500 * time.Millisecond, 0},
		{true, 3, 0, 1500 * time.Millisecond, 500 * time.Millisecond}, {true, 3, 0, 1500 * time.Millisecond, 500 * time.Millisecond},
	} {
		if got := take(t, l, Read, "a"); got != want {
			t.Errorf("request %d: %+v, want %+v", i+1, got, want)
		}
	}
	if v := take(t, l, Read, "b"); v.Limited {
		t.Error("one credential pays for another")
	}
	c.now = c.now.Add(1500 * time.Millisecond)
	if v := take(t, l, Read, "a"); v.Limited || v.Remaining != 2 {
		t.Errorf("after Reset: %+v", v)
	}
	if _, limits, err := l.Take(context.Background(), Write, "a"); limits || err != nil {
		t.Errorf("a class without a rate: limits %v, error %v", limits, err)
	}
}

// At one instant, whatever the concurrency, exactly the burst is let through and nobody meets an error.
func TestConcurrentRequests(t *testing.T) {
	c := &clock{time.Unix(1_800_000_000, 0)}
	l := limiter(t, c, 10, Rates{Read: {1, 100}})
	var passed, failed atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 20 {
				v, _, err := l.Take(context.Background(), Read, "a")
				if err != nil {
					failed.Add(1)
				} else if !v.Limited {
					passed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if passed.Load() != 100 || failed.Load() != 0 {
		t.Errorf("%d let through, want 100; %d errors", passed.Load(), failed.Load())
	}
}

// Strangers cannot fill the memory; whoever goes on asking is remembered.
func TestMemoryIsBounded(t *testing.T) {
	c := &clock{time.Unix(1_800_000_000, 0)}
	l := limiter(t, c, 4, Rates{Address: {0.001, 2}})
	take(t, l, Address, "busy")
	for i := range 1000 {
		take(t, l, Address, fmt.Sprint(i))
		take(t, l, Address, "busy")
	}
	if v := take(t, l, Address, "busy"); !v.Limited {
		t.Error("the busy one was forgotten")
	}
	if v := take(t, l, Address, "0"); v.Limited || v.Remaining != 1 {
		t.Errorf("one that rested is still remembered: %+v", v)
	}
}

func TestParse(t *testing.T) {
	with := func(c Class, r Rate) Rates {
		rates := Rates{}
		for class, rate := range Default {
			rates[class] = rate
		}
		rates[c] = r
		return rates
	}
	off := with(Upload, Rate{})
	delete(off, Upload)
	for text, want := range map[string]Rates{
		"": Default, "off": {}, " off ": {}, "read=5/10": with(Read, Rate{5, 10}), " read = 0.5/1 ,": with(Read, Rate{0.5, 1}), "upload=off": off,
	} {
		got, err := Parse(text)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"on": "no class", "read": "must be off, or", "read=5": "must be off, or", "read=5/0": "must be off, or", "read=NaN/1": "must be off, or",
		"read=-1/5": "must be off, or", "read=Inf/5": "must be off, or", "read=5/10,read=6/10": "twice", "parts=5/10": "no class", "off,read=1/1": "no class",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want one that says %q", text, err, says)
		}
	}
}

func TestWhose(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := Whose(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s draws on %s, want %s", address, got, want)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	l, err := New(Config{Rates: Default})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := l.Take(context.Background(), Read, "a"); err != nil {
			b.Fatal(err)
		}
	}
}
