package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
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

// begins sends the head of a request and waits until its body is asked for; finish sends the body and reads the answer.
func (b *bench) begins(path, contentType, body string) (status int, finish func() int) {
	b.t.Helper()
	c := dial(b.t, "", strings.TrimPrefix(b.url, "http://"))
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", path, contentType, len(body))
	r := bufio.NewReader(c)
	read := func() int {
		b.t.Helper()
		line, err := r.ReadString('\n')
		var status int
		if _, bad := fmt.Sscanf(line, "HTTP/1.1 %d", &status); err != nil || bad != nil {
			b.t.Fatalf("%s answered %q, %v", path, line, err)
		}
		return status
	}
	return read(), func() int {
		b.t.Helper()
		if _, err := r.ReadString('\n'); err != nil { // the end of 100 Continue
			b.t.Fatal(err)
		}
		io.WriteString(c, body)
		return read()
	}
}

const someForm, someCredential, someMessage = "grant_type=client_credentials&client_id=a&client_secret=b", `{"credential":"acc_unknown"}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// message sends an MCP message.
func (b *bench) message(headers ...string) int {
	b.t.Helper()
	req, err := http.NewRequest("POST", b.url+"/mcp", strings.NewReader(someMessage))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// Bodies of strangers that do not come hold no slot, of any class; and of one address not many are awaited.
func TestStrangersHoldNoSlotsWithBodiesThatTrickle(t *testing.T) {
	b := newBench(t, func(c *Config) {
		c.Slots = ratelimit.NewGate(ratelimit.Slots{ratelimit.Read: 1, ratelimit.Token: 1, ratelimit.Stranger: 1})
		c.BodyTimeout = time.Hour
	})
	withOffice(t, b)
	_, company := b.issued("org_1", "solution_company_upload")
	bodies := []struct {
		path, contentType, body string
		status                  int
	}{
		{"/oauth/token", formType, someForm, 401},
		{"/portal/session", "application/json", someCredential, 401},
		{"/mcp", "application/json", someMessage, 200},
	}
	var finish []func() int
	for range mostArriving {
		c := bodies[len(finish)%len(bodies)]
		status, end := b.begins(c.path, c.contentType, c.body)
		if status != 100 {
			t.Fatalf("%s: answered %d", c.path, status)
		}
		finish = append(finish, end)
	}
	b.call("GET", base+"/quota", nil, "X-Api-Key: "+company).succeeds(t, 200)
	b.call("GET", "/portal/session", nil).wants(t, 401, custody.CodeAuthenticationRequired)
	b.call("GET", "/api/v1/ai/capabilities", nil).succeeds(t, 200)
	if status := b.message("X-Api-Key: " + company); status != 200 {
		t.Errorf("an organization's message is answered %d", status)
	}

	// One address awaits no more, whatever it asks; what it sent on is answered, and makes room.
	for _, c := range bodies {
		if status, _ := b.begins(c.path, c.contentType, c.body); status != 503 {
			t.Errorf("%s: one too many was answered %d", c.path, status)
		}
	}
	for i, c := range bodies {
		if status := finish[i](); status != c.status {
			t.Errorf("%s: answered %d, want %d", c.path, status, c.status)
		}
		if status, _ := b.begins(c.path, c.contentType, c.body); status != 100 {
			t.Errorf("%s: answered %d where there is room", c.path, status)
		}
	}
}

// Where strangers have used up their slots, whoever has a credential, or asks for a token with one, is served; and the other way round.
func TestStrangersHaveSlotsOfTheirOwn(t *testing.T) {
	slots := ratelimit.NewGate(ratelimit.Slots{ratelimit.Read: 1, ratelimit.Token: 1, ratelimit.Stranger: 1})
	b := newBench(t, func(c *Config) { c.Slots = slots })
	withOffice(t, b)
	_, company := b.issued("org_1", "solution_company_upload")
	asCompany := "X-Api-Key: " + company
	strangers := func(status int) {
		t.Helper()
		for _, r := range []reply{b.call("GET", "/api/v1/ai/capabilities", nil), b.call("GET", "/oauth/jwks", nil)} {
			if r.StatusCode != status {
				t.Errorf("a stranger is answered %d, want %d: %s", r.StatusCode, status, r.raw)
			}
		}
		if got := b.message(); got != status {
			t.Errorf("a stranger's message is answered %d, want %d", got, status)
		}
	}
	known := func(status int) {
		t.Helper()
		if r := b.call("GET", base+"/quota", nil, asCompany); r.StatusCode != status {
			t.Errorf("an organization is answered %d, want %d: %s", r.StatusCode, status, r.raw)
		}
		if got := b.message(asCompany); got != status {
			t.Errorf("an organization's message is answered %d, want %d", got, status)
		}
	}
	tokens := func(status int) {
		t.Helper()
		for _, r := range []reply{b.call("POST", "/oauth/token", strings.NewReader(someForm), "Content-Type: "+formType), b.call("POST", "/portal/session", strings.NewReader(someCredential), asJ)} {
			if r.StatusCode != status {
				t.Errorf("who asks for a token is answered %d, want %d: %s", r.StatusCode, status, r.raw)
			}
		}
	}
	full := func(class ratelimit.Class, check func()) {
		t.Helper()
		leave, ok := slots.Enter(class, "somebody else")
		if !ok {
			t.Fatal(class, "has no slot left")
		}
		check()
		leave()
	}
	full(ratelimit.Stranger, func() { strangers(503); known(200); tokens(401) })
	full(ratelimit.Read, func() { strangers(200); known(503); tokens(401) })
	full(ratelimit.Token, func() { strangers(200); known(200); tokens(503) })
}
