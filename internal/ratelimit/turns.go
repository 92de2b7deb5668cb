package ratelimit

import (
	"container/list"
	"context"
	"runtime"
	"sync"
	"time"
)

const (
	turnPatience = 30 * time.Second // as long as an answer may be asked to wait: who puts up with that puts up with this
	mostWaiting  = 4096             // requests; each keeps its headers and a stack meanwhile, about 20 KiB
	mostFresh    = 16               // turns in succession of addresses that had none: one who has ever new addresses does not keep the round from going on
)

// Turns are given to so many requests at a time; the others wait. Who waits, waits in the queue of its address, there in that of its
// credential; addresses are served in turn, and of one address its credentials. So a request waits for about one round over those who
// want something, not for all that one of them wants; and credentials, which anybody can make up, get no more than their address does.
// An address that nobody has waited at for a whole round comes first in the next (the new flows of RFC 8290): who asks now and then
// does not wait for a round of those who ask all the time.
type Turns struct {
	patience time.Duration
	most     int // who may wait at once

	mu      sync.Mutex
	free    int // more than 0 while somebody waits: until the bell is heard
	waiting int
	refused uint64
	queues  map[string]*queue // by address; those in fresh and round
	fresh   list.List         // of *queue that had no turn yet; the first is next of all
	round   list.List         // of *queue, where nobody may wait any more; the first is next after those
	inRow   int               // turns of fresh since the last one of round
	bell    *bell             // nil: a turn is given as soon as it is free
}

// queue is who waits at one address.
type queue struct {
	address string
	waiting int
	lines   map[uint64]*line // by credential
	round   list.List        // of *line; the first is next
}

// line is who waits with one credential.
type line struct {
	credential uint64
	waiters    list.List     // of *waiter; the first came first
	place      *list.Element // in the round of its address
}

type waiter struct {
	queue *queue
	line  *line
	place *list.Element // in its line; nil once it waits no longer
	over  chan struct{} // closed then
	turn  bool          // it has its turn; read once it waits no longer
}

// NewTurns has n turns, all free.
func NewTurns(n int) *Turns {
	return &Turns{patience: turnPatience, most: mostWaiting, free: n, queues: map[string]*queue{}}
}

// Take waits for a turn, for 30 seconds at most and no longer than ctx; Give gives it back. ok is false where it did not come. At most
// 4096 wait: for one more, the newest of those ends its waiting who are the most, by address and there by credential. Credential may
// be any number that tells credentials apart.
//
// A request that only computes would be done with before the next one has run as far as here: then the runtime's scheduler would be
// the queue, and that is in the order of coming. So whoever finds a turn free lets those run first who can, and so have come already;
// those who wait get theirs by Listen.
func (t *Turns) Take(ctx context.Context, address string, credential uint64) (ok bool) {
	t.mu.Lock()
	if t.free > 0 && t.waiting == 0 {
		t.free--
		t.mu.Unlock()
		runtime.Gosched()
		t.mu.Lock()
		if t.waiting == 0 {
			t.mu.Unlock()
			return true
		}
		t.free++
	}
	w := t.wait(address, credential)
	t.handOn()
	t.mu.Unlock()
	patience := time.NewTimer(t.patience)
	defer patience.Stop()
	select {
	case <-w.over:
		return w.turn
	case <-ctx.Done():
	case <-patience.C:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.place != nil { // else its turn came in the same moment
		t.end(w, false)
	}
	return w.turn
}

// Give gives a turn back.
func (t *Turns) Give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free++
	t.handOn()
}

// handOn sees to it that a free turn, if there is one, comes to whose turn it is, if anybody waits; t.mu is held.
func (t *Turns) handOn() {
	switch {
	case t.free == 0 || t.waiting == 0:
	case t.bell != nil:
		t.bell.ring()
	default:
		t.handAll()
	}
}

// handAll gives the turns that are free, as long as anybody waits; t.mu is held.
func (t *Turns) handAll() {
	for t.free > 0 && t.waiting > 0 {
		t.hand()
	}
}

// hand gives a free turn to whose turn it is; t.mu is held, and somebody waits.
func (t *Turns) hand() {
	for {
		from := &t.fresh
		if from.Len() == 0 || t.inRow >= mostFresh && t.round.Len() > 0 {
			from = &t.round
		}
		q := from.Remove(from.Front()).(*queue)
		if q.waiting == 0 {
			delete(t.queues, q.address)
			continue
		}
		if t.inRow++; from == &t.round {
			t.inRow = 0
		}
		t.round.PushBack(q)
		l := q.round.Front().Value.(*line)
		q.round.MoveToBack(l.place)
		t.free--
		t.end(l.waiters.Front().Value.(*waiter), true)
		return
	}
}

// State is how many wait now, and how many have waited in vain or could not wait, those who went away included.
func (t *Turns) State() (waiting int, refused uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting, t.refused
}

// wait puts one at the end of its line; t.mu is held.
func (t *Turns) wait(address string, credential uint64) *waiter {
	q := t.queues[address]
	if q == nil {
		q = &queue{address: address, lines: map[uint64]*line{}}
		t.queues[address] = q
		t.fresh.PushBack(q)
	}
	l := q.lines[credential]
	if l == nil {
		l = &line{credential: credential}
		q.lines[credential] = l
		l.place = q.round.PushBack(l)
	}
	w := &waiter{queue: q, line: l, over: make(chan struct{})}
	w.place = l.waiters.PushBack(w)
	q.waiting++
	t.waiting++
	if t.waiting > t.most {
		t.end(t.excess(q, l), false)
	}
	return w
}

// excess is the newest of the longest line of the longest queue; among equals, of q and l, which have just grown. t.mu is held.
func (t *Turns) excess(q *queue, l *line) *waiter {
	longest := q
	for _, other := range t.queues {
		if other.waiting > longest.waiting {
			longest = other
		}
	}
	if longest != q {
		l = longest.round.Back().Value.(*line)
	}
	for _, other := range longest.lines {
		if other.waiters.Len() > l.waiters.Len() {
			l = other
		}
	}
	return l.waiters.Back().Value.(*waiter)
}

// end lets w wait no longer, with a turn or without; t.mu is held.
func (t *Turns) end(w *waiter, turn bool) {
	q, l := w.queue, w.line
	l.waiters.Remove(w.place)
	if l.waiters.Len() == 0 {
		q.round.Remove(l.place)
		delete(q.lines, l.credential)
	}
	q.waiting--
	if t.waiting--; t.waiting == 0 {
		clear(t.queues)
		t.fresh.Init()
		t.round.Init()
	}
	if !turn {
		t.refused++
	}
	w.place, w.turn = nil, turn
	close(w.over)
}
