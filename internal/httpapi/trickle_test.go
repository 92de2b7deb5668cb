package httpapi

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// addressed is a connection in memory with an address.
type addressed struct {
	net.Conn
	from string
}

func (a addressed) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(a.from))
}

// visit is a client's side of one.
type visit struct {
	net.Conn
	ended, answered bool // once everybody waits
}

// bounding serves at most so many connections in the bubble of t. Requests of /held last until letGo.
func bounding(t *testing.T, most int) (connect func(from string) *visit, letGo func()) {
	release := make(chan struct{})
	server := Server(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		taken(r.Context())
		if r.URL.Path == "/held" {
			<-release
		}
	}))
	server.ReadHeaderTimeout = time.Hour
	server.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	p := &pipes{incoming: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	var working sync.WaitGroup
	working.Go(func() { _ = server.Serve(Listener(Bounded(p, most), slog.New(slog.DiscardHandler), nil)) }) // it ends by Close
	t.Cleanup(func() {
		server.Close()
		working.Wait()
	})
	connect = func(from string) *visit {
		here, there := net.Pipe()
		t.Cleanup(func() { here.Close() })
		v := &visit{Conn: here}
		working.Go(func() {
			for {
				if _, err := here.Read(make([]byte, 1<<10)); err != nil {
					v.ended = true
					return
				}
				v.answered = true
			}
		})
		p.incoming <- addressed{there, from + ":4000"}
		synctest.Wait()
		return v
	}
	return connect, sync.OnceFunc(func() { close(release) })
}

func (v *visit) says(text string) {
	go func() { _, _ = io.WriteString(v, text) }() // where the connection has ended, nothing comes of it
	synctest.Wait()
}

const elsewhere = "127.0.0.3"

func TestConnectionsWhoseHeadersTrickle(t *testing.T) {
	const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	const begun, rest = "GET / HTTP/1.1\r\nHo", "st: x\r\n\r\n"
	for name, test := range map[string]func(t *testing.T){
		"the one awaited longest ends for a new one": func(t *testing.T) {
			connect, _ := bounding(t, 4)
			first, second := connect(here), connect(here)
			connect(there).says(request)
			connect(there).says(request)
			first.says(begun)
			time.Sleep(time.Second)
			second.says(begun)
			time.Sleep(headTime - time.Second - 1)
			if !connect(elsewhere).ended || first.ended || second.ended {
				t.Fatal("headers that are just arriving ended for a new connection")
			}
			time.Sleep(time.Nanosecond)
			first.says("st")
			if connect(elsewhere).ended || !first.ended || second.ended {
				t.Fatal("headers that trickle hold a connection")
			}
			if second.says(rest); !second.answered {
				t.Error("another one ended")
			}
		},
		"it counts from the first byte": func(t *testing.T) {
			connect, _ := bounding(t, 2)
			v, other := connect(here), connect(there)
			v.says(request)
			other.says(request)
			time.Sleep(quietTime - 1)
			v.says(begun)
			time.Sleep(time.Nanosecond)
			if connect(elsewhere).ended || !other.ended || v.ended {
				t.Fatal("a connection that rested for long ended in the middle of its request")
			}
			time.Sleep(headTime)
			if connect(elsewhere).ended || !v.ended {
				t.Error("headers that trickle hold a connection")
			}
		},
		"a request under way goes on": func(t *testing.T) {
			connect, letGo := bounding(t, 3)
			v, other, behind := connect(here), connect(here), connect(here)
			for _, v := range []*visit{v, other} {
				v.says("GET /held HTTP/1.1\r\nHo")
				v.says(rest)
				v.says("GET") // the next one begins
			}
			behind.says(request + "GET /held HTTP/1.1\r\nHo" + rest)
			behind.says("GET")
			time.Sleep(time.Hour)
			if !connect(there).ended || v.ended || other.ended || behind.ended {
				t.Fatal("a request under way was cut")
			}
			letGo()
			synctest.Wait()
			if !v.answered || !other.answered {
				t.Error("a request under way has no answer")
			}
		},
		"who holds more than half is not waited for": func(t *testing.T) {
			connect, _ := bounding(t, 3)
			first, second, third := connect(here), connect(here), connect(here)
			time.Sleep(time.Nanosecond)
			first.says(begun)
			if connect(there).ended || first.ended || !second.ended || third.ended { // the second has said nothing since before
				t.Fatal("new connections of one address keep others out")
			}
			if !connect(there).ended || first.ended || third.ended {
				t.Error("who holds half lost another one at once")
			}
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
	}
}
