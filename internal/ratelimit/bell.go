package ratelimit

import (
	"os"
	"runtime"
)

// bell is heard by the runtime's network poller, which listens where a processor has nothing to run: then all connections on which
// something has arrived are heard too.
type bell struct {
	heard, rings *os.File // of a pipe; one byte at most is in it
	rung         bool     // and not heard yet
}

// Listen has turns given when a processor has nothing else to run, until Close. The runtime of a program that always has something to
// run looks at its connections every 10 ms only; here it does whenever those have ended that had a turn, however many wait, and who
// has just asked is in its queue before the next turns are given. An error where there is no file descriptor left.
func (t *Turns) Listen() error {
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

// Close ends Listen: turns are given as soon as they are free.
func (t *Turns) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bell == nil {
		return nil
	}
	err := t.bell.rings.Close()
	t.bell = nil
	t.handAll()
	return err
}

// ring is for the holder of the turns' lock.
func (b *bell) ring() {
	if !b.rung {
		b.rung = true
		_, _ = b.rings.Write([]byte{0}) // what is open takes it
	}
}

// listen gives all turns that are free whenever the bell is heard.
func (t *Turns) listen(b *bell) {
	defer b.heard.Close()
	for {
		if _, err := b.heard.Read(make([]byte, 1)); err != nil {
			return // it is closed
		}
		runtime.Gosched() // first those who were heard with it
		t.mu.Lock()
		b.rung = false
		t.handAll()
		t.mu.Unlock()
	}
}
