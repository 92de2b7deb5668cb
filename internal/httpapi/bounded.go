package httpapi

import (
	"container/list"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// writeTime is how long a piece of an answer of up to writePiece bytes may wait for its reader.
	writeTime  = 60 * time.Second
	writePiece = 64 << 10
	// quietTime is how long a connection must have been quiet to be ended for a new one.
	quietTime = 5 * time.Second
)

// Bounded is l with at most so many connections open. Where there are as many, the one that has been quiet for longest ends; where
// none is quiet, the new one does. A peer that does not read what it asked for is cut off after 60 seconds without progress.
func Bounded(l net.Listener, most int) net.Listener {
	return &bounded{Listener: l, most: most, quietTime: quietTime, writeTime: writeTime, quiet: list.New()}
}

type bounded struct {
	net.Listener
	most                 int
	quietTime, writeTime time.Duration

	mu    sync.Mutex
	quiet *list.List // of *boundedConn, the one that was used last at the end
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		raw, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &boundedConn{Conn: raw, of: b, used: time.Now()}
		b.mu.Lock()
		var ends net.Conn
		if b.quiet.Len() >= b.most {
			if oldest := b.quiet.Front().Value.(*boundedConn); time.Since(oldest.used) >= b.quietTime {
				ends = oldest.Conn
				b.quiet.Remove(oldest.at)
				oldest.at = nil
			} else {
				ends = raw
			}
		}
		if ends != raw {
			c.at = b.quiet.PushBack(c)
		}
		b.mu.Unlock()
		if ends != nil {
			_ = ends.Close() // its own reader notices; there is nobody else to tell
		}
		if ends != raw {
			return c, nil
		}
	}
}

type boundedConn struct {
	net.Conn
	of *bounded

	// under of.mu
	at    *list.Element // nil once it has ended
	used  time.Time
	until time.Time // what somebody else set as the end of writing
}

func (c *boundedConn) use() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.at != nil {
		c.used = time.Now()
		c.of.quiet.MoveToBack(c.at)
	}
}

func (c *boundedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.use()
	}
	return n, err
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
		if n > 0 {
			c.use()
		} else if len(piece) == 0 {
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
	if c.at != nil {
		c.of.quiet.Remove(c.at)
		c.at = nil
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}

func (c *boundedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return os.ErrInvalid
}
