package httpapi

import (
	"bufio"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// crowd is a server with few connections, whose requests of /held wait until they are let go.
type crowd struct {
	t       *testing.T
	address string
	inside  chan struct{} // a request is
	rested  chan struct{} // a connection is idle again
	free    func()        // lets the requests go
	bounds  *bounded
	secured *tls.Config // nil: plain
}

func newCrowd(t *testing.T, most int, secured bool) *crowd {
	release := make(chan struct{})
	c := &crowd{t: t, inside: make(chan struct{}, 9), rested: make(chan struct{}, 99), free: sync.OnceFunc(func() { close(release) })}
	server := httptest.NewUnstartedServer(nil)
	server.Config = Server(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		taken(r.Context())
		if r.URL.Path == "/held" {
			c.inside <- struct{}{}
			<-release
		}
	}))
	server.Config.ConnState = func(n net.Conn, s http.ConnState) {
		if stateChanged(n, s); s == http.StateIdle {
			c.rested <- struct{}{}
		}
	}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	c.bounds = Bounded(server.Listener, most).(*bounded)
	c.bounds.quietTime = 0
	server.Listener = c.bounds
	if secured {
		borrowed := httptest.NewTLSServer(http.NotFoundHandler())
		defer borrowed.Close()
		c.secured = &tls.Config{InsecureSkipVerify: true}
		server.Listener = TLS(server.Listener, &tls.Config{Certificates: borrowed.TLS.Certificates}, slog.New(slog.DiscardHandler), nil)
	}
	server.Listener = Listener(server.Listener, slog.New(slog.DiscardHandler), nil)
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(c.free)
	c.address = server.Listener.Addr().String()
	return c
}

// guest is a connection to a crowd.
type guest struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

// from connects from an address of this computer.
func (c *crowd) from(address string) *guest {
	c.t.Helper()
	raw := dial(c.t, address, c.address)
	if c.secured != nil {
		raw = tls.Client(raw, c.secured)
	}
	return &guest{c.t, raw, bufio.NewReader(raw)}
}

// idle connects, and is idle after one request.
func (c *crowd) idle(address string) *guest {
	c.t.Helper()
	g := c.from(address)
	g.ask("/")
	if !g.answered() {
		c.t.Fatalf("a connection from %s is not served", address)
	}
	<-c.rested
	return g
}

// held connects, and has a request under way.
func (c *crowd) held(address string) *guest {
	c.t.Helper()
	g := c.from(address)
	g.ask("/held")
	select {
	case <-c.inside:
	case <-time.After(2 * time.Minute):
		c.t.Fatalf("a connection from %s is not served", address)
	}
	return g
}

func (g *guest) ask(path string) {
	_, _ = io.WriteString(g, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n") // where the connection has ended, there is no answer
}

// answered tells whether an answer comes before the connection ends.
func (g *guest) answered() bool {
	g.t.Helper()
	res, err := http.ReadResponse(g.r, nil)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, res.Body)
	return err == nil
}

// ended waits for the end of the connection.
func (g *guest) ended() bool {
	_, err := g.r.ReadByte()
	late, ok := err.(net.Error)
	return err != nil && !(ok && late.Timeout())
}

func dial(t *testing.T, from, to string) net.Conn {
	t.Helper()
	d := net.Dialer{}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	c, err := d.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil { // a hang is a failure
		t.Fatal(err)
	}
	return c
}

const here, there = "127.0.0.1", "127.0.0.2"

func TestConnectionsAreBounded(t *testing.T) {
	for name, secured := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name+": requests under way go on", func(t *testing.T) {
			c := newCrowd(t, 2, secured)
			busy, quiet := c.held(here), c.idle(here)
			other := c.held(here)
			if !quiet.ended() {
				t.Error("the idle one goes on")
			}
			if !c.from(here).ended() {
				t.Error("one too many is served")
			}
			c.free()
			if !busy.answered() || !other.answered() {
				t.Fatal("a request under way was cut")
			}
			<-c.rested
			<-c.rested
			busy.Close() // what is idle now, and what is gone, makes room
			c.idle(here)
			c.idle(here)
		})
	}
	t.Run("the longest idle of the address that holds most", func(t *testing.T) {
		c := newCrowd(t, 3, false)
		lone, first, second := c.idle(there), c.idle(here), c.idle(here)
		third := c.idle(here)
		if !first.ended() {
			t.Error("the longest idle goes on")
		}
		first = c.idle(there)
		if !second.ended() {
			t.Error("the longest idle of the address that holds most goes on")
		}
		for _, g := range []*guest{lone, first, third} {
			if g.ask("/"); !g.answered() {
				t.Error("another one ended")
			}
		}
	})
	t.Run("who holds more ends nothing of who holds less", func(t *testing.T) {
		c := newCrowd(t, 3, false)
		lone := c.idle(there)
		c.held(here)
		c.held(here)
		if !c.from(here).ended() {
			t.Error("one too many is served")
		}
		if lone.ask("/"); !lone.answered() {
			t.Error("it ended another's")
		}
	})
	t.Run("not at once", func(t *testing.T) {
		c := newCrowd(t, 1, false)
		c.bounds.mu.Lock()
		c.bounds.quietTime = time.Hour
		c.bounds.mu.Unlock()
		g := c.idle(here)
		if !c.from(there).ended() {
			t.Error("one too many is served")
		}
		if g.ask("/"); !g.answered() {
			t.Error("it ended one that had just asked")
		}
	})
}

// deadlines is a listener of connections that note until when a write may last.
type deadlines struct {
	net.Listener
	set chan time.Time
}

func (l deadlines) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return deadlinesConn{c, l.set}, err
}

type deadlinesConn struct {
	net.Conn
	set chan time.Time
}

func (c deadlinesConn) SetWriteDeadline(t time.Time) error {
	c.set <- t
	return c.Conn.SetWriteDeadline(t)
}

// Whoever reads slowly gets it all, as each piece has its own time; whoever reads nothing is cut off.
func TestAnswersWaitForReadersThatRead(t *testing.T) {
	const size = 16 << 20 // more than any socket keeps
	send := func(limit time.Duration) (reader net.Conn, set chan time.Time, sent chan error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		set, sent = make(chan time.Time, size/writePiece+1), make(chan error, 1)
		b := Bounded(deadlines{l, set}, 9).(*bounded)
		b.writeTime = limit
		reader = dial(t, "", l.Addr().String())
		c, err := b.Accept()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer c.Close()
			_, err := c.Write(make([]byte, size))
			sent <- err
		}()
		return reader, set, sent
	}
	_, _, sent := send(200 * time.Millisecond)
	if err := <-sent; err == nil {
		t.Error("an answer waits for a reader that reads nothing")
	}
	reader, set, sent := send(time.Minute)
	if n, err := io.Copy(io.Discard, reader); n != size || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	close(set)
	n, before := 0, time.Time{}
	for at := range set {
		if n++; !at.After(before) {
			t.Errorf("piece %d has no more time than the one before", n)
		}
		before = at
	}
	if n != size/writePiece {
		t.Errorf("%d deadlines", n)
	}
}
