package e2e

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asker is a connection from an address, which asks for the status of an upload again and again.
type asker struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
	asks string // the request
	want int    // the status that answers it
}

// asker asks with token for p's upload, once, so that its connection is known to the service.
func (p partner) asker(t *testing.T, address, uploadID, token string, want int) *asker {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	conn, err := d.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil { // a hang is a failure
		t.Fatal(err)
	}
	a := &asker{t, conn, bufio.NewReader(conn), fmt.Sprintf("GET %s HTTP/1.1\r\nHost: service\r\nX-Api-Key: %s\r\n\r\n", p.path("/partner-uploads/"+uploadID), token), want}
	a.ask(1)
	a.answered(1)
	return a
}

// ask sends the request n times, and waits for no answer.
func (a *asker) ask(n int) {
	a.t.Helper()
	if _, err := io.WriteString(a.conn, strings.Repeat(a.asks, n)); err != nil {
		a.t.Fatal(err)
	}
}

func (a *asker) answered(n int) {
	a.t.Helper()
	for range n {
		res, err := http.ReadResponse(a.r, nil)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
		}
		if err != nil || res.StatusCode != a.want {
			a.t.Fatalf("answered %+v, want %d: %v", res, a.want, err)
		}
	}
}

// A flood of reads by one organization, over many connections of an address, half of them with credentials that it makes up, leaves the
// clients of another address their turns: they came last, and wait for about one of its requests each.
func TestFloodOfReadsLeavesOthersTheirTurns(t *testing.T) {
	t.Parallel()
	const connections, each, few = 200, 16, 16
	s := start(t, options{flags: []string{"--rate-limits", "off"}, env: []string{"GOMAXPROCS=1"}})
	flooder, other := s.partner("harbour"), s.partner("island")
	flooded, looked := flooder.initiate("note.txt", "text/plain", 1), other.initiate("note.txt", "text/plain", 1)
	var flood, ordinary []*asker
	for n := range connections {
		if n%2 == 0 {
			flood = append(flood, flooder.asker(t, "127.0.0.1", flooded, flooder.token, 200))
		} else {
			flood = append(flood, flooder.asker(t, "127.0.0.1", flooded, rand.Text(), 401))
		}
	}
	for range few {
		ordinary = append(ordinary, other.asker(t, "127.0.0.2", looked, other.token, 200))
	}
	const route = `"route":"GET /api/v1/organizations/{org_id}/partner-uploads/{upload_id}"`
	logged := func(n int) []string {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			lines := s.log.lines(route)
			if len(lines) >= n {
				return lines
			}
			if time.Now().After(deadline) {
				t.Fatalf("the log has %d requests, not %d", len(lines), n)
			}
		}
	}
	logged(connections + few)

	// All of it is there before any of it is looked at.
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }() // where the test ends early
	for _, a := range flood {
		a.ask(each)
	}
	for _, a := range ordinary {
		a.ask(1)
	}
	if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, a := range ordinary {
		a.answered(1)
	}
	for _, a := range flood {
		a.answered(each)
	}

	// The log has the requests in the order in which they were done with.
	const all = connections * each
	log := logged(connections + few + all + few)[connections+few:]
	first, before, came := 0, 0, 0 // of the flood: before the first and before the last of the others
	for i, line := range log {
		if strings.Contains(line, `"org_id":"island"`) {
			if came++; came == 1 {
				first = i
			}
			before = i + 1 - came
		}
	}
	t.Logf("of the flood's %d requests, %d were done with before the first of another address, and %d before the last", all, first, before)
	if came != few || before > all/4 { // 16 as a rule, one for each; without turns, two thirds of all
		t.Errorf("%d requests of another address waited for %d of the flood's %d", came, before, all)
	}
}
