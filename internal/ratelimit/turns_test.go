package ratelimit

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// crowd asks for turns, one after the other, and notes whose turn came.
type crowd struct {
	*Turns
	t *testing.T

	noting sync.Mutex
	came   map[string]bool // by name
	served []string        // in the order of their turns
	failed []string        // whose turn did not come, likewise
}

// busy has one turn, which is taken.
func busy(t *testing.T) *crowd {
	c := &crowd{Turns: NewTurns(1), t: t, came: map[string]bool{}}
	if !c.Take(t.Context(), "the first", 0) {
		t.Fatal("a free turn is not given")
	}
	return c
}

// asks waits for a turn until ctx ends; once it returns, it is in its queue. A second one of a credential is called so, as a1'.
func (c *crowd) asks(ctx context.Context, address string, credential uint64) {
	c.t.Helper()
	who := fmt.Sprint(address, credential)
	for c.came[who] {
		who += "'"
	}
	c.came[who] = true
	go func() {
		ok := c.Take(ctx, address, credential)
		c.noting.Lock()
		defer c.noting.Unlock()
		if ok {
			c.served = append(c.served, who)
		} else {
			c.failed = append(c.failed, who)
		}
	}()
	synctest.Wait()
}

// gives gives the turn on so many times.
func (c *crowd) gives(n int) {
	for range n {
		c.Give()
		synctest.Wait()
	}
}

func (c *crowd) wants(served, failed string) {
	c.t.Helper()
	c.noting.Lock()
	defer c.noting.Unlock()
	if s, f := strings.Join(c.served, " "), strings.Join(c.failed, " "); s != served || f != failed {
		c.t.Errorf("turns came to %q and not to %q, want %q and %q", s, f, served, failed)
	}
	c.served, c.failed = nil, nil
}

// Addresses are served in turn, and of one address its credentials, whoever came first and wants how much.
func TestTurnsGoRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := busy(t)
		for range 4 {
			c.asks(t.Context(), "a", 1)
		}
		c.asks(t.Context(), "a", 2)
		c.asks(t.Context(), "b", 1)
		c.asks(t.Context(), "b", 1)
		c.asks(t.Context(), "c", 1)
		c.gives(3)
		c.wants("a1 b1 c1", "")
		c.asks(t.Context(), "c", 1) // again: behind those who wait already
		c.gives(6)
		c.wants("a2 b1' c1' a1' a1'' a1'''", "")
		if waiting, refused := c.State(); waiting != 0 || refused != 0 {
			t.Error(waiting, refused)
		}
	})
}

// An address that asks again after everybody else had a turn does not wait for another round; one that asks again sooner does.
func TestWhoAsksNowAndThenComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := busy(t)
		for range 6 {
			c.asks(t.Context(), "a", 1)
			c.asks(t.Context(), "b", 1)
		}
		c.gives(2)
		c.wants("a1 b1", "")
		c.asks(t.Context(), "c", 1)
		c.gives(1)
		c.wants("c1", "")
		c.asks(t.Context(), "c", 1) // the round is not over
		c.gives(3)
		c.wants("a1' b1' c1'", "")
		c.gives(3) // c has its place in the round, and does not use it
		c.asks(t.Context(), "c", 1)
		c.gives(2)
		c.wants("a1'' b1'' a1''' c1'' b1'''", "")
		c.gives(4)
	})
}

// Ever new addresses do not keep those from their turns that wait in the round.
func TestNewAddressesLeaveTheRoundItsTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := busy(t)
		c.asks(t.Context(), "a", 1)
		c.asks(t.Context(), "a", 1)
		c.gives(1)
		c.wants("a1", "")
		for n := range 2 * mostFresh {
			c.asks(t.Context(), fmt.Sprint("new", n, "."), 1)
		}
		c.gives(mostFresh)
		if last := c.served[len(c.served)-1]; last != "a1'" {
			t.Errorf("the turn that is the round's came to %s", last)
		}
		c.gives(mostFresh + 2)
	})
}

// Made-up credentials get no more than the share of the address that makes them up.
func TestManyCredentialsAreOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := busy(t)
		for n := range uint64(200) {
			c.asks(t.Context(), "a", n)
		}
		for range 3 {
			c.asks(t.Context(), "b", 7)
		}
		c.gives(6)
		c.wants("a0 b7 a1 b7' a2 b7''", "")
		c.gives(197)
	})
}

// Who goes away, or has waited for too long, leaves its place; those behind it move up, and no turn is lost.
func TestWaitingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := busy(t)
		ctx, leave := context.WithCancel(t.Context())
		c.asks(ctx, "a", 1)
		c.asks(t.Context(), "a", 1)
		leave()
		synctest.Wait()
		c.wants("", "a1")
		time.Sleep(turnPatience - time.Second)
		c.asks(t.Context(), "b", 1)
		c.wants("", "")
		time.Sleep(time.Second)
		synctest.Wait()
		c.wants("", "a1'")
		c.gives(1)
		c.wants("b1", "")
		c.gives(1) // to nobody
		c.asks(t.Context(), "c", 1)
		c.wants("c1", "")
		if waiting, refused := c.State(); waiting != 0 || refused != 2 {
			t.Error(waiting, refused)
		}
	})
}

// Where the queues are full, the newest of the longest line of the longest queue gives way to who wants less.
func TestQueuesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := busy(t)
		c.most = 4
		for _, credential := range []uint64{1, 1, 2, 1} {
			c.asks(t.Context(), "a", credential)
		}
		c.wants("", "")
		c.asks(t.Context(), "b", 1)
		c.wants("", "a1''")
		c.asks(t.Context(), "b", 1)
		c.wants("", "a1'")
		c.asks(t.Context(), "b", 1) // more than a has
		c.wants("", "b1''")
		c.asks(t.Context(), "c", 1) // where a has as many as b, it may be either's
		c.gives(4)
		c.noting.Lock()
		defer c.noting.Unlock()
		if len(c.failed) != 1 || len(c.served) != 4 || c.served[2] != "c1" {
			t.Errorf("turns came to %v and not to %v", c.served, c.failed)
		}
	})
}

// Whatever becomes of those who wait, all turns can be taken again.
func TestNoTurnIsLost(t *testing.T) {
	t.Run("at once", func(t *testing.T) { loseNone(t, func(*Turns) {}) })
	t.Run("heard", func(t *testing.T) {
		loseNone(t, func(all *Turns) {
			listening(t, all)
			t.Cleanup(func() {
				if err := all.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	})
	t.Run("heard, and then at once", func(t *testing.T) {
		loseNone(t, func(all *Turns) {
			listening(t, all)
			if !all.Take(t.Context(), "the first", 0) {
				t.Fatal("a free turn is not given")
			}
			go func() { // while others wait
				if err := all.Close(); err != nil {
					t.Error(err)
				}
				all.Give()
			}()
		})
	})
}

func listening(t *testing.T, all *Turns) {
	t.Helper()
	if err := all.Listen(); err != nil {
		t.Fatal(err)
	}
}

func loseNone(t *testing.T, prepare func(*Turns)) {
	const turns = 3
	all := NewTurns(turns)
	prepare(all)
	all.most = 20
	ending, end := context.WithCancel(t.Context())
	defer end()
	var crowd sync.WaitGroup
	for n := range 64 {
		ctx := t.Context()
		if n%4 == 0 {
			ctx = ending
		}
		crowd.Go(func() {
			for i := range 200 {
				if n == 63 && i == 100 {
					end()
				}
				if all.Take(ctx, fmt.Sprint(n%5), uint64(n%3)) {
					all.Give()
				}
			}
		})
	}
	crowd.Wait()
	for range turns {
		if !all.Take(t.Context(), "the last", 0) {
			t.Fatal("a turn is lost")
		}
	}
	for range turns {
		all.Give()
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.free != turns || all.waiting != 0 || len(all.queues) != 0 || all.fresh.Len()+all.round.Len() != 0 {
		t.Errorf("%d turns are free, %d wait in %d queues, %d in the round", all.free, all.waiting, len(all.queues), all.fresh.Len()+all.round.Len())
	}
}

func BenchmarkTurnThatIsFree(b *testing.B) {
	turns := NewTurns(4)
	for b.Loop() {
		if !turns.Take(b.Context(), "192.0.2.7", 1) {
			b.Fatal("no turn")
		}
		turns.Give()
	}
}
