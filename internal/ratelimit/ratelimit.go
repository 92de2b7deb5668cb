// Package ratelimit says who asks too often. Each class of requests has a rate; each credential, or address where there is
// none, has an allowance per class (GCRA: a burst at once, then evenly spaced). It counts in memory, in one process, or in a
// Store that replicas share. (Section 8; architecture, "Several replicas".)
package ratelimit

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

// DefaultSize is how many credentials or addresses each class remembers, about 200 bytes each. Past it the one that has
// asked nothing for longest is forgotten, which gives it a full burst again.
const DefaultSize = 100_000

// Verdict on one request, with the figures that its answer shows.
type Verdict struct {
	Limited    bool          // it must be refused; it was not counted
	Limit      int           // the burst
	Remaining  int           // requests that would be let through right now
	Reset      time.Duration // until Remaining is Limit again
	RetryAfter time.Duration // until the next request would be let through; only when Limited
}

// Limiter counts. Any number of goroutines may use it.
type Limiter struct {
	classes map[Class]*class
	store   Store
}

// Store counts for several processes together.
type Store interface {
	// TakeRate counts one request of who, unless the allowance is used up: then it is limited and not counted. ahead is how far
	// requests so far reach beyond now, at one each interval.
	TakeRate(ctx context.Context, who string, interval time.Duration, burst int) (limited bool, ahead time.Duration, err error)
}

type class struct {
	rate Rate
	mu   sync.Mutex // throttled retries a lost compare-and-swap ten times, then fails: so none is lost
	gcra *throttled.GCRARateLimiterCtx
}

// Config of a Limiter.
type Config struct {
	Rates Rates
	Size  int              // remembered per class; zero: DefaultSize
	Now   func() time.Time // nil: a clock that nobody sets
	Store Store            // nil: memory
}

// New makes a limiter. Error: a rate outside its limits.
func New(cfg Config) (*Limiter, error) {
	if cfg.Size <= 0 {
		cfg.Size = DefaultSize
	}
	if cfg.Now == nil {
		cfg.Now = steady()
	}
	l := &Limiter{map[Class]*class{}, cfg.Store}
	for name, rate := range cfg.Rates {
		if !(rate.PerSecond > 0) || rate.Burst < 1 {
			return nil, fmt.Errorf("rate of %s: %v must be positive", name, rate)
		}
		memory, err := memstore.New(cfg.Size)
		if err != nil {
			return nil, err
		}
		memory.SetTimeNow(cfg.Now)
		gcra, err := throttled.NewGCRARateLimiterCtx(throttled.WrapStoreWithContext(memory),
			throttled.RateQuota{MaxRate: throttled.PerDuration(1, rate.interval()), MaxBurst: rate.Burst - 1})
		if err != nil {
			return nil, fmt.Errorf("rate of %s: %w", name, err)
		}
		l.classes[name] = &class{rate: rate, gcra: gcra}
	}
	return l, nil
}

// steady tells the time as it goes on from now: a wall clock that is put back would leave allowances used up for as long as that.
func steady() func() time.Time {
	began := time.Now()
	return func() time.Time { return began.Add(time.Since(began)) }
}

// Take counts one request of who in the class. limits is false for a class without a rate; the verdict then says nothing.
func (l *Limiter) Take(ctx context.Context, name Class, who string) (v Verdict, limits bool, err error) {
	c := l.classes[name]
	if c == nil {
		return Verdict{}, false, nil
	}
	if l.store != nil {
		v, err := c.takeShared(ctx, l.store, string(name)+" "+who)
		return v, err == nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	limited, r, err := c.gcra.RateLimitCtx(ctx, who, 1)
	if err != nil {
		return Verdict{}, false, fmt.Errorf("counting a request: %w", err)
	}
	return Verdict{Limited: limited, Limit: r.Limit, Remaining: max(0, r.Remaining), Reset: max(0, r.ResetAfter), RetryAfter: max(0, r.RetryAfter)}, true, nil
}

// takeShared counts in the store. A burst of b lets requests reach b intervals beyond now.
func (c *class) takeShared(ctx context.Context, store Store, who string) (Verdict, error) {
	interval := c.rate.interval()
	limited, ahead, err := store.TakeRate(ctx, who, interval, c.rate.Burst)
	if err != nil {
		return Verdict{}, fmt.Errorf("counting a request: %w", err)
	}
	left := time.Duration(c.rate.Burst)*interval - ahead
	v := Verdict{Limited: limited, Limit: c.rate.Burst, Remaining: max(0, int(left/interval)), Reset: max(0, ahead)}
	if limited {
		v.Remaining, v.RetryAfter = 0, max(time.Microsecond, interval-left)
	}
	return v, nil
}

// Whose names the allowance that an address draws on: one per IPv4 address, one per IPv6 /64, which is what one customer
// of a provider gets.
func Whose(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		return netip.PrefixFrom(a, 64).Masked().String()
	}
	return a.String()
}
