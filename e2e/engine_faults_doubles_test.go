package e2e

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// nth counts connections from the beginning of a job, and knows which of them goes wrong.
type nth struct {
	mu    sync.Mutex
	plan  engineCall
	calls []*engineCall
}

// begin starts to count for a job.
func (c *nth) begin(plan engineCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plan, c.calls = plan, nil
}

// end returns what was counted; nothing goes wrong any more.
func (c *nth) end() (calls []engineCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.calls {
		calls = append(calls, *call)
	}
	c.plan, c.calls = engineCall{}, nil
	return calls
}

// next counts a connection and tells what goes wrong with it, "-" for nothing. named says what it turns out to be for.
func (c *nth) next(engine, what string) (fault string, named func(what string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := &engineCall{engine, len(c.calls) + 1, "-", what}
	if c.plan.engine == engine && c.plan.n == call.n {
		*call = c.plan
	}
	c.calls = append(c.calls, call)
	return call.fault, func(what string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		call.what = what // the job may have ended: then nobody looks at it any more
	}
}

// reset breaks a connection off, so that the other side sees no proper end.
func reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// faultyScanner stands before the shared clamd, and does not let everything through.
type faultyScanner struct {
	nth
	address string // for ACCESSION_CLAMD_ADDRESS
}

// scannerFaults are what it does. It never says that content is clean which clamd has not seen, nor that clamd found something:
// nobody could tell that from the truth.
var scannerFaults = []string{
	"refuse",  // breaks off before it has read anything
	"broken",  // breaks off in the middle of the content
	"silent",  // passes everything on, and does not answer
	"lost",    // passes everything on, and ends without the answer
	"cut",     // ends in the middle of the answer
	"garbage", // answers what clamd never says
	"flood",   // answers without end
	"error",   // passes everything on, and answers that it failed
	"other",   // answers about another stream
	"limit",   // answers that the content is too long
}

func newFaultyScanner(t testing.TB) *faultyScanner {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &faultyScanner{address: "tcp:" + l.Addr().String()}
	var guests sync.WaitGroup
	t.Cleanup(func() { // the service was stopped before, and with it every guest is gone
		l.Close()
		guests.Wait()
	})
	guests.Go(func() {
		for {
			guest, err := l.Accept()
			if err != nil {
				return
			}
			fault, named := s.next("scanner", "?")
			guests.Go(func() {
				defer guest.Close()
				s.serve(guest, fault, named)
			})
		}
	})
	return s
}

func (s *faultyScanner) serve(guest net.Conn, fault string, named func(string)) {
	if fault == "refuse" {
		reset(guest)
		return
	}
	from := bufio.NewReader(guest)
	command, err := from.ReadString(0)
	if err != nil {
		return
	}
	named(strings.Trim(command, "z\x00"))
	host, err := net.Dial("unix", strings.TrimPrefix(clamd, "unix:"))
	if err != nil {
		return
	}
	defer host.Close()
	if fault == "broken" {
		_, _ = io.WriteString(host, command)
		if strings.Contains(command, "INSTREAM") {
			_, _ = io.CopyN(host, from, 4) // each stream has as many bytes
		}
		reset(guest)
		return
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = io.WriteString(host, command)
		_, _ = io.Copy(host, from)
		_ = host.(*net.UnixConn).CloseWrite() // a guest that leaves is not waited for
		_, _ = io.Copy(io.Discard, from)
	}()
	answer, err := io.ReadAll(host)
	if err != nil {
		return
	}
	switch fault {
	case "silent":
		<-left
		return
	case "lost":
		return
	case "cut":
		answer = answer[:len(answer)/2]
	case "garbage":
		answer = []byte("220 mail.example ESMTP\r\n\x00")
	case "flood":
		for err == nil {
			_, err = io.WriteString(guest, "stream: OK, stream: OK, ")
		}
		return
	case "error":
		answer = []byte("Can't allocate memory ERROR\x00")
	case "other":
		answer = append([]byte("2: "), answer...)
	case "limit":
		answer = []byte("INSTREAM size limit exceeded. ERROR\x00")
	}
	_, _ = guest.Write(answer)
}

// faultyReceiver is a receiver of webhooks to which each post comes on a connection of its own, and one of them goes wrong.
type faultyReceiver struct {
	*receiver
	nth
}

// receiverFaults are what it does.
var receiverFaults = []string{
	"refuse",  // breaks off before it has read anything
	"silent",  // takes the post and does not answer
	"lost",    // takes the post and ends without an answer
	"cut",     // ends in the middle of the answer
	"garbage", // answers what no web server says
	"endless", // 202, and the body has no end
	"drip",    // 202, and the body does not come
	"error",   // 500
}

type (
	faultKey  struct{}
	faultConn struct {
		net.Conn
		fault string
	}
	faultListener struct {
		net.Listener
		of *nth
	}
)

func (l faultListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		fault, _ := l.of.next("receiver", "post")
		if fault != "refuse" {
			return faultConn{conn, fault}, nil
		}
		reset(conn)
	}
}

func newFaultyReceiver(t testing.TB) *faultyReceiver {
	f := &faultyReceiver{receiver: &receiver{arrived: make(chan struct{})}}
	f.answer = func(p posted) int {
		switch p.Header.Get("Fault") {
		case "silent":
			return 0
		case "lost", "cut", "garbage":
			return -1
		case "error":
			return http.StatusInternalServerError
		}
		return http.StatusAccepted
	}
	f.Server = httptest.NewUnstartedServer(f)
	f.Listener = faultListener{f.Listener, &f.nth}
	f.Config.SetKeepAlivesEnabled(false)
	f.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, faultKey{}, c.(faultConn).fault)
	}
	f.Start()
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

func (f *faultyReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	fault := request.Context().Value(faultKey{}).(string)
	request.Header.Set("Fault", fault)
	says := map[string]string{"cut": "HTTP/1.1 202 Accep", "garbage": "what is a post?\n\n"}[fault]
	if says != "" {
		defer func() {
			_ = recover() // the receiver breaks off
			if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_, _ = io.WriteString(conn, says)
				_ = conn.Close()
			}
		}()
	}
	f.receiver.ServeHTTP(w, request)
	switch fault {
	case "endless":
		for err := error(nil); err == nil; {
			_, err = w.Write(make([]byte, 4<<10))
		}
	case "drip":
		_ = http.NewResponseController(w).Flush()
		<-request.Context().Done()
	}
}

// taken are the posts since the last time, and forgets them.
func (f *faultyReceiver) taken() (seen []posted) {
	f.receiver.mu.Lock()
	defer f.receiver.mu.Unlock()
	seen, f.seen = f.seen, nil
	return seen
}
