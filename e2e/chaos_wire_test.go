package e2e

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"
)

// afterSilence is when a peer's keep-alive would have noticed that the other end is gone.
const afterSilence = 10 * time.Second

// wire is the network between one replica and one server: connections through it can be slow, reset, refused, or half open.
type wire struct {
	listener net.Listener
	target   string
	ended    chan struct{}
	carriers sync.WaitGroup

	mu       sync.Mutex
	links    map[*link]bool
	delay    time.Duration // of every piece, each way
	refusing bool
	silent   bool // whatever is sent is lost, and nobody is told
	losing   bool // connections break at their commit: before the server gets it, or before its answer comes, in turns
	commits  int
}

// link is one connection through a wire.
type link struct {
	near, far *net.TCPConn // far is nil where nobody was called
	silent    bool         // for good: the network forgot it
}

func newWire(t testing.TB, target string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: l, target: target, ended: make(chan struct{}), links: map[*link]bool{}}
	w.carriers.Go(w.serve)
	t.Cleanup(func() {
		close(w.ended)
		_ = l.Close() // serve ends with it
		w.reset()
		w.carriers.Wait()
	})
	return w
}

func (w *wire) address() string { return w.listener.Addr().String() }

func (w *wire) serve() {
	for {
		conn, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.carriers.Go(func() { w.carry(conn.(*net.TCPConn)) })
	}
}

func (w *wire) carry(near *net.TCPConn) {
	l := &link{near: near}
	w.mu.Lock()
	refusing, silent := w.refusing, w.silent
	l.silent = silent
	w.links[l] = true
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.links, l)
		w.mu.Unlock()
		abort(l.near)
		abort(l.far)
	}()
	if refusing {
		return
	}
	if !silent {
		far, err := net.DialTimeout("tcp", w.target, time.Second)
		if err != nil {
			return
		}
		w.mu.Lock()
		l.far = far.(*net.TCPConn)
		cut := !w.links[l] // reset meanwhile
		w.mu.Unlock()
		if cut {
			return
		}
	}
	var both sync.WaitGroup
	both.Go(func() { w.pass(l, l.near, l.far) })
	if l.far != nil {
		both.Go(func() { w.pass(l, l.far, l.near) })
	}
	both.Wait()
}

// pass carries bytes one way until the sender ends.
func (w *wire) pass(l *link, from, to *net.TCPConn) {
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		w.mu.Lock()
		silent, delay := l.silent || to == nil, w.delay
		w.mu.Unlock()
		if n > 0 && !silent {
			if delay > 0 {
				select {
				case <-time.After(delay):
				case <-w.ended:
				}
			}
			lost, answered := w.breaks(piece[:n])
			if lost && answered {
				_, _ = to.Write(piece[:n]) // the server commits, and nobody hears of it
				_ = to.CloseWrite()
			}
			if lost {
				abort(l.near)
				return
			}
			if _, failed := to.Write(piece[:n]); failed != nil {
				_ = from.Close() // the other way ends by it
				return
			}
		}
		if err == nil {
			continue
		}
		if silent { // the other end hears nothing of it for long
			select {
			case <-time.After(afterSilence):
			case <-w.ended:
			}
			abort(to)
			return
		}
		_ = to.CloseWrite() // it may be closed already
		return
	}
}

// breaks tells whether a connection is to break at what is sent, and whether the server still gets it.
func (w *wire) breaks(sent []byte) (lost, delivered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.losing || !bytes.Contains(sent, []byte("commit\x00")) {
		return false, false
	}
	w.commits++
	return w.commits%2 == 0, w.commits%4 == 0
}

// abort ends a connection as a crash does, without goodbye.
func abort(conn *net.TCPConn) {
	if conn != nil {
		_ = conn.SetLinger(0)
		_ = conn.Close() // it may be closed already
	}
}

// reset ends every connection.
func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.links {
		delete(w.links, l)
		abort(l.near)
		abort(l.far)
	}
}

// slow delays each piece; 0: no more.
func (w *wire) slow(delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = delay
}

// lose breaks connections at their commits until it is told otherwise.
func (w *wire) lose(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.losing = on
}

// refuse ends every connection, and each new one at once, until it is told otherwise.
func (w *wire) refuse(on bool) {
	w.mu.Lock()
	w.refusing = on
	w.mu.Unlock()
	if on {
		w.reset()
	}
}

// halfOpen makes every connection silent for good, and each new one until it is told otherwise.
func (w *wire) halfOpen(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = on
	if on {
		for l := range w.links {
			l.silent = true
		}
	}
}
