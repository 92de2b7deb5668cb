package ratelimit

import (
	"os"
	"runtime"
	"time"
)

// tooBusy is after how long a bell that nobody hears is one that nobody hears because the processors have other work than requests.
const tooBusy = 5 * time.Millisecond

// bell is heard by the runtime's network poller, which listens where a processor has nothing to run: then all connections on which
// something has arrived are heard too.
type bell struct {
	heard, rings *os.File  // of a pipe; one byte at most is in it
	rung         time.Time // zero: it is heard
}

// OneByOne has turns given one at a time, each when a processor has nothing else to run, until Close. The runtime of a program that
// always has something to run looks at its connections every 10 ms only; here it does between two requests, however many wait, and
// who has just asked is in its queue before the next turn is given. An error where there is no file descriptor left.
func (t *Turns) OneByOne() error {
	heard, rings, err := os.Pipe()
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bell = &bell{heard: heard, rings: rings}
	go t.listen(t.bell)
	return nil
}

// Close ends OneByOne: turns are given as soon as they are free.
func (t *Turns) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bell == nil {
		return nil
	}
	err := t.bell.rings.Close()
	t.bell = nil
	for t.free > 0 && t.waiting > 0 {
		t.hand()
	}
	return err
}

// ring is for the holder of the turns' lock.
func (b *bell) ring() {
	if b.rung.IsZero() {
		b.rung = time.Now()
		_, _ = b.rings.Write([]byte{0}) // what is open takes it
	}
}

// listen gives a turn whenever the bell is heard; where that took too long, all that are free.
func (t *Turns) listen(b *bell) {
	defer b.heard.Close()
	for {
		if _, err := b.heard.Read(make([]byte, 1)); err != nil {
			return // it is closed
		}
		runtime.Gosched() // first those who were heard with it
		t.mu.Lock()
		n := 1
		if time.Since(b.rung) > tooBusy {
			n = t.free
		}
		b.rung = time.Time{}
		for ; n > 0 && t.free > 0 && t.waiting > 0; n-- {
			t.hand()
		}
		t.mu.Unlock()
	}
}

// given is for who was given a turn. Only now is the bell rung for the next: one that is rung before somebody listens is heard without
// a look at the connections.
func (t *Turns) given() {
	t.mu.Lock()
	listened := t.bell != nil
	if listened {
		t.handOn()
	}
	t.mu.Unlock()
	if !listened {
		runtime.Gosched()
	}
}
