package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/accession/accession/internal/custody"
)

const (
	handshakeTimeout = 10 * time.Second
	farewellTimeout  = time.Second // how long a peer that speaks no TLS may take to read that
)

// TLS is l, with TLS on its connections. Handshakes are over before a connection is handed on, so that Listener knows which
// protocol it carries; peers that take longer than 10 s for theirs are dropped, and those that speak HTTP are told so.
// requests may be nil.
func TLS(l net.Listener, config *tls.Config, log *slog.Logger, requests Requests) net.Listener {
	t := &tlsListener{Listener: l, config: config, refuses: listener{l, log, requests}, ready: make(chan net.Conn), failed: make(chan error)}
	t.open, t.close = context.WithCancel(context.Background())
	go t.accept()
	return t
}

type tlsListener struct {
	net.Listener
	config  *tls.Config
	refuses listener

	ready  chan net.Conn
	failed chan error
	open   context.Context
	close  context.CancelFunc
	closed sync.Once
}

// accept goes on until the listener closes; net/http decides how long to pause after an error.
func (t *tlsListener) accept() {
	for {
		c, err := t.Listener.Accept()
		if err == nil {
			go t.greet(c)
			continue
		}
		select {
		case t.failed <- err:
		case <-t.open.Done():
			return
		}
	}
}

// greet does the handshake of one connection.
func (t *tlsListener) greet(raw net.Conn) {
	ctx, cancel := context.WithTimeout(t.open, handshakeTimeout)
	defer cancel()
	c := tls.Server(raw, t.config)
	if err := c.HandshakeContext(ctx); err != nil {
		var plain tls.RecordHeaderError
		if errors.As(err, &plain) && plain.Conn != nil && asciiWord(plain.RecordHeader[:]) {
			t.refusePlain(plain.Conn)
		}
		t.refuses.log.DebugContext(ctx, "no TLS handshake", "error", err) // whoever scans ports is no news
		_ = raw.Close()
		return
	}
	select {
	case t.ready <- c:
	case <-t.open.Done():
		_ = c.Close()
	}
}

// asciiWord tells whether bytes begin a line of text, as a request without TLS does, and no protocol of bytes.
func asciiWord(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

func (t *tlsListener) refusePlain(raw net.Conn) {
	c := &conn{Conn: raw, of: t.refuses}
	if c.refuse(custody.Errorf(custody.CodeInvalidRequest, "this address speaks HTTPS; write https:// before it")) != nil || c.CloseWrite() != nil {
		return
	}
	_ = raw.SetReadDeadline(time.Now().Add(farewellTimeout))
	_, _ = io.Copy(io.Discard, io.LimitReader(raw, maxHeaderBytes)) // closed at once, the answer would be lost with what is unread
}

func (t *tlsListener) Accept() (net.Conn, error) {
	select {
	case c := <-t.ready:
		return c, nil
	case err := <-t.failed:
		return nil, err
	case <-t.open.Done():
		return nil, net.ErrClosed
	}
}

func (t *tlsListener) Close() (err error) {
	t.closed.Do(func() {
		t.close()
		err = t.Listener.Close()
	})
	return err
}

// carriesHTTP2 tells whether net/http has to see the TLS connection itself, which it asks for HTTP/2.
func carriesHTTP2(c net.Conn) bool {
	secured, ok := c.(*tls.Conn)
	return ok && secured.ConnectionState().NegotiatedProtocol == "h2"
}
