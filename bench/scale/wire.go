package main

import (
	"io"
	"net"
	"sync/atomic"
)

// wire counts what goes through it to a server.
type wire struct {
	address     string
	trips, bits atomic.Int64 // round trips: how often a side that had listened spoke; bytes both ways
}

func newWire(target string) (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{address: l.Addr().String()}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				near.Close()
				continue
			}
			var asked atomic.Bool // the client spoke last
			go w.carry(far, near, func() {
				if !asked.Swap(true) {
					w.trips.Add(1)
				}
			})
			go w.carry(near, far, func() { asked.Store(false) })
		}
	}()
	return w, nil
}

func (w *wire) carry(to, from net.Conn, spoke func()) {
	defer to.Close()
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			spoke()
			w.bits.Add(int64(n))
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if err != io.EOF {
				from.Close()
			}
			return
		}
	}
}
