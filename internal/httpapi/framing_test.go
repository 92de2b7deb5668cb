package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// What a proxy could read as another request than this service does is refused, and the connection ends: nothing on it is taken for
// a request any more. (Request smuggling, OWASP ASVS 5 V4.2.)
func TestRequestSmuggling(t *testing.T) {
	b := newBench(t)
	cases := 0
	post := func(headers, body string) string {
		return "POST /healthz HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n" + body
	}
	const smuggled = "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, request := range map[string]string{
		"length and chunked":       post("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+smuggled),
		"chunked and length":       post("Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", "0\r\n\r\n"+smuggled),
		"in other letters":         post("content-LENGTH: 6\r\ntransfer-ENCODING: Chunked\r\n", "0\r\n\r\n"+smuggled),
		"the same length twice":    post("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"+smuggled),
		"chunked in HTTP/1.0":      "POST /healthz HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"a continued line":         post("X: a\r\n b\r\n", smuggled),
		"a continued length":       post("Content-Length:\r\n 3\r\n", "abc"+smuggled),
		"no CR":                    "GET /healthz HTTP/1.1\nHost: x\n\n" + smuggled,
		"one CR missing":           "GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\nContent-Length: 3\r\n\r\nabc" + smuggled,
		"a long line without CR":   "GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 500) + "\nY: b\r\n\r\n" + smuggled,
		"a length far away":        post("Content-Length:"+strings.Repeat(" ", 150)+"3\r\n", "abc"+smuggled),
		"a coding far away":        post("Transfer-Encoding:"+strings.Repeat(" ", 150)+"chunked\r\n", "0\r\n\r\n"+smuggled),
		"HTTP/1.0, long address":   "POST /healthz?" + strings.Repeat("x", 300) + " HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"length and chunked, slow": post("Content-Length: 6\r\nX: "+strings.Repeat("x", 9000)+"\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+smuggled),
	} {
		cases++
		t.Run(name, func(t *testing.T) {
			b.t = t
			answers := b.answers(request)
			if len(answers) != 1 || answers[0].StatusCode != 400 || !answers[0].Close {
				t.Fatalf("answers: %v", answers)
			}
		})
	}
	b.t = t
	b.stop()
	if n := strings.Count(b.log.String(), "status=400"); n != cases {
		t.Errorf("%d lines of the log for %d refusals", n, cases)
	}
}

// The same behind requests that are fine: those are answered, nothing after them is.
func TestRequestSmugglingInAPipeline(t *testing.T) {
	b := newBench(t)
	const (
		get     = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
		chunked = "POST /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;why=not\r\nab\n\r\n5\r\n0\r\n\r\n\r\n0\r\nTrailer: x\r\n\r\n"
		long    = "POST /nowhere?%s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
		sized   = "POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 37\r\n\r\nContent-Length: 1\nTransfer-Encoding:\n"
		bad     = "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	)
	if n := len(sized) - strings.Index(sized, "\r\n\r\n") - 4; n != 37 {
		t.Fatalf("the body has %d bytes", n)
	}
	for name, c := range map[string]struct {
		requests string
		want     string
	}{
		"nothing wrong":  {get + chunked + sized + get + sized + chunked + get + "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "[200 404 404 200 404 404 200 200]"},
		"long addresses": {fmt.Sprintf(long, strings.Repeat("0", 300)) + fmt.Sprintf(long, strings.Repeat("0", 106)) + strings.ReplaceAll(get, "\r\n\r\n", "\r\nConnection: close\r\n\r\n"), "[404 404 200]"},
		"one behind":     {get + chunked + sized + bad + get, "[200 404 404 400]"},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			var got []int
			for _, a := range b.answers(c.requests) {
				got = append(got, a.StatusCode)
			}
			if s := fmt.Sprint(got); s != c.want {
				t.Errorf("answers %v, want %s", got, c.want)
			}
		})
	}
}

// watchedListener tells when everything that was sent is read and more is read for, as net/http does to notice a hang-up.
type watchedListener struct {
	net.Listener
	sent    int
	watched chan struct{}
}

func (l *watchedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &watchedConn{Conn: c, of: l, left: l.sent}, err
}

type watchedConn struct {
	net.Conn
	of   *watchedListener
	left int
	told bool
}

func (c *watchedConn) Read(p []byte) (int, error) {
	if c.left == 0 && !c.told {
		c.told = true
		close(c.of.watched)
	}
	n, err := c.Conn.Read(p)
	c.left -= n
	return n, err
}

// A request goes on while one behind it is refused: its sender has not gone.
func TestRequestSmugglingBehindARequestUnderWay(t *testing.T) {
	const bad = "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	for name, good := range map[string]string{
		"with a body":    rawRequest("PUT", oneUpload+"/parts/1", "application/octet-stream", "all of it", 9),
		"without a body": "GET " + oneUpload + " HTTP/1.1\r\nHost: x\r\n" + asUp + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			handler, err := New(Config{BaseURL: b.url, MaxPartBytes: 1 << 20, Sandbox: newSandbox(t, nil), Log: slog.New(slog.DiscardHandler)}, b, b, b, b, b, b, b)
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewUnstartedServer(nil)
			watched := &watchedListener{server.Listener, len(good + bad), make(chan struct{})}
			server.Config, server.Listener = Server(handler), Listener(watched, slog.New(slog.DiscardHandler), nil)
			server.Start()
			t.Cleanup(server.Close)
			b.url = server.URL
			b.work = func(ctx context.Context) error {
				select {
				case <-watched.watched:
				case <-ctx.Done():
				case <-time.After(2 * time.Minute):
					return errors.New("nobody watches")
				}
				return ctx.Err()
			}
			var got []int
			for _, a := range b.answers(good + bad) {
				got = append(got, a.StatusCode)
			}
			if fmt.Sprint(got) != "[200 400]" {
				t.Errorf("answers %v", got)
			}
		})
	}
}

// answers sends everything at once and reads until the connection ends.
func (b *bench) answers(requests string) (answers []*http.Response) {
	b.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil { // a hang is a failure
		b.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, requests); err != nil {
		b.t.Fatal(err)
	}
	for r := bufio.NewReader(conn); ; {
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			return answers
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			b.t.Error(err)
		}
		answers = append(answers, res)
	}
}

// Wherever a connection's bytes are cut, framing finds the same.
func FuzzFraming(f *testing.F) {
	f.Add("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n", 7)
	f.Add("POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 30)
	f.Add("GET / HTTP/1.0\r\nX: "+strings.Repeat("x", 200)+"\n\r\n", 150)
	f.Fuzz(func(t *testing.T, stream string, cut int) {
		var whole, pieces framing
		_, want := whole.follow([]byte(stream))
		var got string
		for rest := stream; len(rest) > 0 && got == ""; {
			n := min(len(rest), 1+max(0, cut)%97)
			before, offence := pieces.follow([]byte(rest[:n]))
			if before < 0 || before > n {
				t.Fatalf("%d of %d bytes are before", before, n)
			}
			got, rest = offence, rest[n:]
		}
		if got != want {
			t.Errorf("%q whole, %q in pieces", want, got)
		}
	})
}
