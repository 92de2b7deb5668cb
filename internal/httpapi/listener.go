package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/accession/accession/internal/custody"
)

// What is no request never reaches a handler: net/http answers it in plain text of its own (a broken request line, headers
// past its limit, an unknown expectation), or not at all (headers that do not arrive). Listener puts the error object there.

// Listener is l, on whose connections every refusal has the form of the contract. Serve it with a Server of this package;
// requests may be nil. (Contract decisions, "Errors".)
func Listener(l net.Listener, log *slog.Logger, requests Requests) net.Listener {
	return listener{l, log, requests}
}

type listener struct {
	net.Listener
	log      *slog.Logger
	requests Requests
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if carriesHTTP2(c) {
		return c, nil // its framing leaves nothing to answer before a request is there
	}
	return &conn{Conn: c, of: l}, nil
}

// conn knows whether a request has begun and whether the door has it, which decides who answers.
type conn struct {
	net.Conn
	of     listener
	begun  atomic.Bool // bytes came since the last answer
	inside atomic.Bool // the door has the request, and answers

	framing  framing      // of what was read: by one goroutine at a time, as net/http reads
	offence  string       // of the request that begins, or goes on, behind what was read
	answered atomic.Int64 // requests
	ended    bool         // because of the offence
}

type connKey struct{}

// remember lets the door say that it has a request.
func remember(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

func taken(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.inside.Store(true)
	}
}

func stateChanged(c net.Conn, s http.ConnState) {
	if c, ok := c.(*conn); ok && s == http.StateIdle {
		c.begun.Store(false)
		c.inside.Store(false)
		c.answered.Add(1)
	}
	switch s {
	case http.StateActive:
		tell(c, (*boundedConn).work)
	case http.StateIdle:
		tell(c, (*boundedConn).rest)
	}
}

func (c *conn) Read(p []byte) (int, error) {
	if c.offence != "" {
		if c.answered.Load() < int64(c.framing.requests) {
			return 0, c.discard() // net/http watches whether the one who asked is still there
		}
		return 0, c.endAmbiguous()
	}
	n, err := c.Conn.Read(p)
	if before, offence := c.framing.follow(p[:n]); offence != "" {
		c.offence = offence
		c.begun.Store(true)
		if before == 0 {
			return c.Read(p)
		}
		return before, nil // those before it are answered
	}
	if n > 0 && !c.begun.Swap(true) {
		tell(c.Conn, (*boundedConn).hear)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && c.begun.Load() && !c.inside.Load() {
		c.refuse(custody.Errorf(custody.CodeRequestTimeout, "the request did not arrive in time"))
	}
	return n, err
}

// discard reads until the connection ends, or net/http has had enough of watching it.
func (c *conn) discard() error {
	piece := make([]byte, 1<<10)
	for {
		if _, err := c.Conn.Read(piece); err != nil {
			return err
		}
	}
}

// endAmbiguous refuses a request that others could read differently, once those before it are answered. Where it is the body, the
// door has the request and says so: for it, the body ends.
func (c *conn) endAmbiguous() error {
	if !c.inside.Load() && !c.ended {
		c.ended = true
		e := custody.Errorf(custody.CodeInvalidRequest, "two readers could take this for different requests: %s", c.offence)
		if errors.Join(c.refuse(e), c.CloseWrite()) == nil { // what is still on its way would have the system take back the answer
			_ = c.SetReadDeadline(time.Now().Add(lingering))
			_, _ = io.CopyN(io.Discard, c.Conn, maxJSONBytes)
		}
	}
	return io.EOF
}

// lingering is how long a connection stays open for a peer to read why it ends.
const lingering = 500 * time.Millisecond

// plainText is what net/http's own refusals have and no answer of the door.
var plainText = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

func (c *conn) Write(p []byte) (int, error) {
	if c.ended {
		return len(p), nil // it has its refusal; net/http writes another
	}
	status, found := bytes.CutPrefix(p, []byte("HTTP/1.1 "))
	if !found || c.inside.Load() || !(bytes.Contains(p, plainText) || bytes.HasPrefix(status, []byte("417 "))) {
		return c.Conn.Write(p)
	}
	e := custody.Errorf(custody.CodeInvalidRequest, "this is not a request of HTTP/1.1 that can be read")
	if bytes.HasPrefix(status, []byte("431 ")) {
		e = custody.Errorf(custody.CodeHeadersTooLarge, "the headers are larger than %d bytes", maxHeaderBytes)
	}
	return len(p), c.refuse(e)
}

// refuse answers instead of the door.
func (c *conn) refuse(e *custody.Error) error {
	x := &exchange{requestID: custody.NewID("req")}
	x.traceID, x.traceparent = trace("")
	p := newProblem(x, e)
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // whoever sends no request may read no answer either
	_, err = fmt.Fprintf(c.Conn, "HTTP/1.1 %d %s\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: %d\r\nContent-Type: application/json\r\n"+
		"Date: %s\r\nTraceparent: %s\r\nX-Content-Type-Options: nosniff\r\nX-Request-Id: %s\r\n\r\n%s",
		p.status, http.StatusText(p.status), len(body), time.Now().UTC().Format(http.TimeFormat), x.traceparent, x.requestID, body)
	c.of.log.Info("request", "route", x.route, "status", p.status, "code", string(p.Code), "request_id", x.requestID, "trace_id", x.traceID)
	if c.of.requests != nil {
		c.of.requests.Request("", p.status, 0, int64(len(body)), 0)
	}
	return err
}

// CloseWrite lets net/http end a refusal so that the peer can still read it.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
