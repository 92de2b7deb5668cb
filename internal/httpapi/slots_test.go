package httpapi

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/ratelimit"
)

// One organization gets half of the slots of a class; reads and probes go on behind its flood, and a slot comes back.
func TestSlots(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Slots = ratelimit.NewGate(ratelimit.Slots{ratelimit.Upload: 2, ratelimit.Read: 2}) })
	inside, release := make(chan struct{}), make(chan struct{})
	var begun atomic.Bool
	b.work = func(context.Context) error {
		if begun.CompareAndSwap(false, true) {
			close(inside)
			<-release
		}
		return nil
	}
	put := func() reply {
		return b.call("PUT", oneUpload+"/parts/1", strings.NewReader("x"), asUp, key, asB)
	}
	held := make(chan reply)
	go func() { held <- put() }()
	<-inside
	for range 2 {
		r := put()
		r.wants(t, 503, custody.CodeUnavailable)
		if r.Header.Get("Retry-After") == "" || !strings.Contains(string(r.raw), `"class":"upload"`) {
			t.Errorf("%v %s", r.Header, r.raw)
		}
		b.call("GET", oneUpload, nil, asUp).succeeds(t, 200)
		b.call("GET", "/healthz", nil).succeeds(t, 200)
	}
	close(release)
	(<-held).succeeds(t, 200)
	put().succeeds(t, 200)
}

// quietly is a listener of connections that are served by what is sent.
func quietly(t *testing.T, most int, quiet, write time.Duration) (address string, accepted chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &bounded{Listener: l, most: most, quietTime: quiet, writeTime: write, quiet: list.New()}
	accepted = make(chan net.Conn, 100)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := b.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	return l.Addr().String(), accepted
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil { // a hang is a failure
		t.Fatal(err)
	}
	return c
}

func TestConnectionsAreBounded(t *testing.T) {
	t.Run("the quietest ends", func(t *testing.T) {
		address, accepted := quietly(t, 2, 0, time.Minute)
		first, second := dial(t, address), dial(t, address)
		one, other := <-accepted, <-accepted
		if one.RemoteAddr().String() != first.LocalAddr().String() {
			one = other
		}
		fmt.Fprint(first, "x") // now the second is the quietest
		if _, err := one.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		dial(t, address)
		<-accepted
		if _, err := second.Read(make([]byte, 1)); err == nil || errors.Is(err, net.ErrClosed) {
			t.Errorf("the quietest: %v", err)
		}
		fmt.Fprint(one, "z")
		got := make([]byte, 1)
		if _, err := first.Read(got); err != nil || got[0] != 'z' {
			t.Errorf("the busy one: %q, %v", got, err)
		}
	})
	t.Run("none is quiet", func(t *testing.T) {
		address, accepted := quietly(t, 1, time.Hour, time.Minute)
		first := dial(t, address)
		held := <-accepted
		if _, err := dial(t, address).Read(make([]byte, 1)); err == nil {
			t.Error("the one too many was served")
		}
		held.Close()
		if _, err := first.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
		dial(t, address)
		(<-accepted).Close() // its place is free
	})
}

// Whoever reads slowly gets it all; whoever reads nothing is cut off.
func TestAnswersWaitForReadersThatRead(t *testing.T) {
	const size = 16 << 20 // more than any socket keeps
	address, accepted := quietly(t, 9, time.Hour, 2*time.Second)
	send := func() error {
		c := <-accepted
		defer c.Close()
		_, err := c.Write(make([]byte, size))
		return err
	}
	silent := dial(t, address)
	if err := send(); err == nil {
		t.Error("an answer waits for a reader that reads nothing")
	}
	silent.Close()

	slow := dial(t, address)
	sent := make(chan error)
	go func() { sent <- send() }()
	for left := size; left > 0; { // some of it, then a pause shorter than the limit, for longer than the limit altogether
		n, err := io.ReadFull(slow, make([]byte, min(left, 2<<20)))
		if err != nil {
			t.Fatal(err)
		}
		left -= n
		time.Sleep(300 * time.Millisecond) // the reader's slowness itself
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}
