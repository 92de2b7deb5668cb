package httpapi

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/accession/accession/internal/ratelimit"
)

const (
	// writeTime is how long a piece of an answer of up to writePiece bytes may wait for its reader.
	writeTime  = 60 * time.Second
	writePiece = 64 << 10
	// quietTime is how long a connection must have had no request to be ended for a new one.
	quietTime = 5 * time.Second
	// headTime is how long the headers of a request must have been awaited, from their first byte, for the same: an honest sender has
	// them in one packet or two.
	headTime = 2 * time.Second
)

// Bounded is l with at most so many connections open. Where there are as many, one without a request under way ends for the new one:
// of the address that holds the most, the one that has been idle, or whose headers have been awaited, for longest. It must have been so
// for a while, unless its address holds more than half of all: who does that would win by connecting faster than others wait. Where
// there is none, or only of addresses that hold fewer than the new one's, the new one ends. A peer that does not read what it asked for is cut
// off after 60 seconds without progress. Serve it with a Server of this package, which tells when requests begin and end.
func Bounded(l net.Listener, most int) net.Listener {
	return &bounded{Listener: l, most: most, quietTime: quietTime, headTime: headTime, writeTime: writeTime, shares: map[string]*share{}}
}

type bounded struct {
	net.Listener
	most                           int
	quietTime, headTime, writeTime time.Duration

	mu     sync.Mutex
	open   int
	shares map[string]*share // by address
}

// share is what one address holds.
type share struct {
	open  int
	idle  list.List // of *boundedConn without a request, the one that has been so for longest first
	heads list.List // of those whose request has begun, and is not under way before its headers are in; the longest awaited first
}

// quietest is what s can do without best; nil where it can do without none.
func (b *bounded) quietest(s *share) (c *boundedConn) {
	for _, kind := range []struct {
		list *list.List
		time time.Duration
	}{{&s.idle, b.quietTime}, {&s.heads, b.headTime}} {
		first := kind.list.Front()
		if first == nil {
			continue
		}
		q := first.Value.(*boundedConn)
		if time.Since(q.since) < kind.time && s.open <= (b.most+1)/2 {
			continue
		}
		if c == nil || q.since.Before(c.since) {
			c = q
		}
	}
	return c
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		raw, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &boundedConn{Conn: raw, of: b, address: addressOf(raw)}
		ends := b.admit(c)
		if ends != nil {
			_ = ends.Conn.Close() // its own reader notices; there is nobody else to tell
		}
		if ends != c {
			return c, nil
		}
	}
}

// admit counts c in. ends is the connection that has to go for it, or c itself.
func (b *bounded) admit(c *boundedConn) (ends *boundedConn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open >= b.most {
		if ends = b.dispensable(c.address); ends == nil {
			return c
		}
		b.remove(ends)
	}
	s := b.shares[c.address]
	if s == nil {
		s = &share{}
		b.shares[c.address] = s
	}
	b.open++
	s.open++
	c.share = s
	c.rest()
	return ends
}

// dispensable is the connection to end for one of address; nil where there is none.
func (b *bounded) dispensable(address string) (c *boundedConn) {
	for _, s := range b.shares {
		q := b.quietest(s)
		if q == nil {
			continue
		}
		if c == nil || s.open > c.share.open || s.open == c.share.open && q.since.Before(c.since) {
			c = q
		}
	}
	if own := b.shares[address]; c != nil && own != nil && own.open > c.share.open {
		return nil
	}
	return c
}

func (b *bounded) remove(c *boundedConn) {
	if c.share == nil {
		return
	}
	c.work()
	b.open--
	if c.share.open--; c.share.open == 0 {
		delete(b.shares, c.address)
	}
	c.share = nil
}

// addressOf is whom a connection counts against.
func addressOf(c net.Conn) string {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return "" // not of TCP: all of them together
	}
	return ratelimit.Whose(at.Addr())
}

type boundedConn struct {
	net.Conn
	of      *bounded
	address string

	// under of.mu
	share *share        // nil once it has ended
	among *list.List    // of the share; nil while a request is under way
	place *list.Element // there
	since time.Time     // when it came there
	until time.Time     // what somebody else set as the end of writing
}

// rest notes that no request is under way; of.mu is held.
func (c *boundedConn) rest() {
	if c.share != nil && c.among == nil {
		c.queue(&c.share.idle)
	}
}

// hear notes the first byte of a request; of.mu is held.
func (c *boundedConn) hear() {
	if c.share != nil && c.among == &c.share.idle {
		c.work()
		c.queue(&c.share.heads)
	}
}

// work notes that a request is under way; of.mu is held.
func (c *boundedConn) work() {
	if c.share != nil && c.among != nil {
		c.among.Remove(c.place)
		c.among = nil
	}
}

func (c *boundedConn) queue(among *list.List) {
	c.since, c.among = time.Now(), among
	c.place = among.PushBack(c)
}

// tell tells the bound connection below c, if there is one, what goes on on it.
func tell(c net.Conn, what func(*boundedConn)) {
	for {
		switch below := c.(type) {
		case *conn:
			c = below.Conn
		case *tls.Conn:
			c = below.NetConn()
		case *boundedConn:
			below.of.mu.Lock()
			defer below.of.mu.Unlock()
			what(below)
			return
		default:
			return
		}
	}
}

// Write moves its deadline on with every piece.
func (c *boundedConn) Write(p []byte) (written int, err error) {
	for err == nil && (len(p) > 0 || written == 0) {
		piece := p[:min(len(p), writePiece)]
		if err = c.Conn.SetWriteDeadline(c.writeDeadline()); err != nil {
			return written, err
		}
		var n int
		n, err = c.Conn.Write(piece)
		written += n
		p = p[n:]
		if len(piece) == 0 {
			return written, err
		}
	}
	return written, err
}

func (c *boundedConn) writeDeadline() time.Time {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	at := time.Now().Add(c.of.writeTime)
	if !c.until.IsZero() && c.until.Before(at) {
		return c.until
	}
	return at
}

func (c *boundedConn) SetWriteDeadline(t time.Time) error {
	c.of.mu.Lock()
	c.until = t
	c.of.mu.Unlock()
	return c.Conn.SetWriteDeadline(t)
}

func (c *boundedConn) SetDeadline(t time.Time) error {
	c.of.mu.Lock()
	c.until = t
	c.of.mu.Unlock()
	return c.Conn.SetDeadline(t)
}

func (c *boundedConn) Close() error {
	c.of.mu.Lock()
	c.of.remove(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

func (c *boundedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return os.ErrInvalid
}
