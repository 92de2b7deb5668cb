package httpapi

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
)

// pipes is a listener of connections in memory. In a bubble of synctest a deadline of theirs passes only once everybody waits for it:
// not because the machine is busy.
type pipes struct {
	incoming chan net.Conn
	closed   chan struct{}
	close    func()
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.incoming:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// standing serves a door over b in the bubble of t, and returns what connects to it.
func standing(t *testing.T, b *rooms, cfg Config, change func(*http.Server), checks ...Check) (connect func() net.Conn) {
	t.Helper()
	cfg.BaseURL, cfg.MaxPartBytes, cfg.Sandbox, cfg.Log = "http://127.0.0.1", 1<<20, newSandbox(t, nil), slog.New(slog.DiscardHandler)
	handler, err := New(cfg, b, b, b, b, b, b, b, checks...)
	if err != nil {
		t.Fatal(err)
	}
	server := Server(handler)
	server.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	change(server)
	p := &pipes{incoming: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(Listener(p, cfg.Log, nil)) }) // it ends by Close
	t.Cleanup(func() {
		server.Close()
		serving.Wait()
	})
	return func() net.Conn {
		here, there := net.Pipe()
		t.Cleanup(func() { here.Close() })
		p.incoming <- there
		return here
	}
}

// exchanged sends request and reads the answer; the body of that is nobody's concern.
func exchanged(c net.Conn, request string) (*http.Response, error) {
	if _, err := io.WriteString(c, request); err != nil {
		return nil, err
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
	}
	return res, err
}
