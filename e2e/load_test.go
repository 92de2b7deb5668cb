package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/client"
)

// crowded is a service with four slots for each kind of request, two for one organization, and a read now and then for a credential.
func crowded(t *testing.T) *service {
	s := start(t, options{flags: []string{"--request-slots", "read=4,write=4,upload=4",
		"--rate-limits", "read=0.001/100,write=off,upload=off,address=off"}})
	carrier := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(carrier.CloseIdleConnections)
	s.http = &http.Client{Transport: carrier}
	return s
}

// held is a part whose body is awaited.
type held struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
	body []byte // what of it is not sent yet
}

// hold begins to send a part. Status 100: the service waits for the body, and the part has a slot. Another status is its refusal.
func (p partner) hold(t *testing.T, uploadID string, body []byte) (*held, int) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * time.Minute)); err != nil { // a hang is a failure
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: service\r\nX-Api-Key: %s\r\nIdempotency-Key: %s\r\nExpect: 100-continue\r\nContent-Type: application/octet-stream\r\n"+
		"Content-Length: %d\r\n\r\n", p.path("/partner-uploads/"+uploadID+"/parts/1"), p.token, client.NewIdempotencyKey(), len(body))
	h := &held{t, conn, bufio.NewReader(conn), body}
	line, err := h.r.ReadString('\n')
	var status int
	if _, bad := fmt.Sscanf(line, "HTTP/1.1 %d", &status); err != nil || bad != nil {
		t.Fatalf("a part was answered %q: %v", line, err)
	}
	return h, status
}

// trickle sends a byte every now and then until the returned function is called: the service cuts off who sends nothing for a minute, and
// a busy machine may take longer for what the test does meanwhile.
func trickle(parts []*held) (end func()) {
	ended := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ended:
				return
			}
			for _, h := range parts {
				if len(h.body) < 2 {
					return // the last byte is finish's
				}
				if _, err := h.conn.Write(h.body[:1]); err != nil {
					h.t.Error(err)
				}
				h.body = h.body[1:]
			}
		}
	})
	return sync.OnceFunc(func() {
		close(ended)
		sending.Wait()
	})
}

// finish sends the rest of the body and returns the answer's status.
func (h *held) finish() int {
	h.t.Helper()
	if _, err := h.r.ReadString('\n'); err != nil { // the end of 100 Continue
		h.t.Fatal(err)
	}
	if _, err := h.conn.Write(h.body); err != nil {
		h.t.Fatal(err)
	}
	res, err := http.ReadResponse(h.r, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// wantShed fails the test unless r is served, or turned away in a way that a client can go by. It returns the status.
func (r reply) wantShed(t *testing.T, what string) int {
	t.Helper()
	if r.Status/100 == 2 {
		return r.Status
	}
	seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
	codes := map[int]string{http.StatusTooManyRequests: "rate_limited", http.StatusServiceUnavailable: "service_unavailable"}
	if codes[r.Status] == "" || r.Code != codes[r.Status] || err != nil || seconds < 1 || r.RequestID == "" || r.Message == "" ||
		r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s is answered %d, Retry-After %q: %s", what, r.Status, r.Header.Get("Retry-After"), r.Raw)
	}
	return r.Status
}

// An organization that floods every class of requests is turned away with 429 and 503, each saying when to come again; what others ask
// meanwhile is all served, half of the slots being theirs; and afterwards everything is as before.
func TestFloodOfOneOrganization(t *testing.T) {
	t.Parallel()
	s := crowded(t)
	flooder, other := s.partner("harbour"), s.partner("island")
	body := note("spring-tide")
	sent := flooder.initiate("note.txt", "text/plain", len(body))
	flooder.part(sent, 1, body).want(t, 200, "")
	var mine []*held
	for range 2 { // as many slots for parts as one organization gets
		h, status := flooder.hold(t, flooder.initiate("note.txt", "text/plain", len(body)), body)
		if status != http.StatusContinue {
			t.Fatalf("a part within the organization's slots was answered %d", status)
		}
		mine = append(mine, h)
	}

	enough := trickle(mine)
	defer enough()
	served := make(chan struct{})
	var flood sync.WaitGroup
	end := sync.OnceFunc(func() {
		close(served)
		flood.Wait()
	})
	defer end()
	var mu sync.Mutex
	answers := map[string]map[int]int{}
	for n := range 16 {
		flood.Go(func() {
			asks := map[string]func() call{
				"initiate": func() call { return flooder.reserving(client.NewIdempotencyKey(), 1) },
				"part":     func() call { return flooder.put(byPath, sent, 1, client.NewIdempotencyKey(), body) },
				"status": func() call {
					return call{method: "GET", path: flooder.path("/partner-uploads/" + sent), token: flooder.token}
				},
				"quota": func() call { return call{method: "GET", path: flooder.path("/quota"), token: flooder.token} },
			}
			for turn := 0; ; turn++ {
				for what, ask := range asks {
					r, err := s.try(ask())
					if err != nil {
						t.Errorf("client %d, %s: %v", n, what, err)
						return
					}
					status := r.wantShed(t, what)
					mu.Lock()
					if answers[what] == nil {
						answers[what] = map[int]int{}
					}
					answers[what][status]++
					mu.Unlock()
				}
				select {
				case <-served:
					if turn >= 4 {
						return
					}
				default:
				}
			}
		})
	}
	for range 4 {
		id := other.initiate("note.txt", "text/plain", len(body))
		other.part(id, 1, body).want(t, 200, "")
		if st := other.status(id); st.ReceivedBytes != int64(len(body)) {
			t.Errorf("beside a flood, an upload is at %+v", st)
		}
		s.quota("island", other.token)
	}
	end()
	t.Logf("the flood was answered %v", answers)
	if n := answers["part"]; n[200] > 0 || n[503] == 0 {
		t.Errorf("an organization had more slots than its half: its parts were answered %v", n)
	}
	if answers["quota"][429]+answers["status"][429] == 0 || answers["initiate"][200] == 0 {
		t.Errorf("the flood was answered %v", answers)
	}
	enough()
	for _, h := range mine {
		if status := h.finish(); status != 200 {
			t.Errorf("a part that had its slot before the flood is answered %d", status)
		}
	}
	id := flooder.send("note.txt", "text/plain", body)
	after := partner{s, "harbour", s.issue("harbour", "solution_company_upload")} // the flood's has no reads left
	after.wantReady(id)
	if most := s.mostMemory(); most > 1<<30 {
		t.Errorf("the service held %d MiB", most>>20)
	}
}

// Whatever becomes of the requests that have slots, refused, cut off, or finished, their slots can be taken again, all of them.
func TestNoSlotIsLost(t *testing.T) {
	t.Parallel()
	s := crowded(t)
	body := note("neap-tide")
	parties := []partner{s.partner("harbour"), s.partner("island")}
	var open [4]string // an upload for each slot
	for i := range open {
		open[i] = parties[i%2].initiate("note.txt", "text/plain", len(body))
	}
	third := s.partner("quay")
	waiting := third.initiate("note.txt", "text/plain", len(body))

	// all takes every slot, waiting for those whose requests are still on their way out.
	all := func() (taken []*held) {
		t.Helper()
		for i, id := range open {
			for deadline := time.Now().Add(2 * time.Minute); ; {
				h, status := parties[i%2].hold(t, id, body)
				if status == http.StatusContinue {
					taken = append(taken, h)
					break
				}
				if h.conn.Close(); status != http.StatusServiceUnavailable || time.Now().After(deadline) {
					t.Fatalf("slot %d cannot be taken again: %d", i, status)
				}
			}
		}
		for _, p := range append(parties, third) { // not one more, whoever asks
			h, status := p.hold(t, waiting, body)
			if h.conn.Close(); status != http.StatusServiceUnavailable {
				t.Errorf("where no slot is left, a part was answered %d", status)
			}
		}
		return taken
	}
	for range 3 {
		for i, h := range all() {
			if i%2 == 0 { // in the middle of its body
				if _, err := h.conn.Write(body[:len(body)/2]); err != nil {
					t.Error(err)
				}
			}
			h.conn.Close()
		}
	}
	for _, h := range all() { // parts of these bytes
		h.body = bytes.ToUpper(h.body)
		if status := h.finish(); status != 200 {
			t.Errorf("a part is answered %d", status)
		}
	}
	for i, h := range all() {
		if status := h.finish(); status != 409 { // other bytes than the part has
			t.Errorf("slot %d: other bytes are answered %d", i, status)
		}
	}
	third.part(waiting, 1, body).want(t, 200, "")
}
