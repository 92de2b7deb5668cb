package webhook

import (
	"bufio"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

// talker answers every request with the same bytes, then hangs up.
type talker struct {
	net.Listener
	mu   sync.Mutex
	says []byte
}

func newTalker(f *testing.F) *talker {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	l := &talker{Listener: listener}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				l.mu.Lock()
				_, _ = conn.Write(l.says) // the sender may have gone
				l.mu.Unlock()
			}
			conn.Close()
		}
	})
	f.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
	return l
}

// Whatever a receiver answers, an attempt ends with an outcome of the table, and only a status of its own says that the event was
// taken. It cannot ask to be left alone for longer than an hour.
func FuzzReceiversAnswer(f *testing.F) {
	for _, answer := range []string{
		"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 410 Gone\r\n\r\n", "HTTP/1.1 409 Conflict\r\n\r\n", "HTTP/1.1 400 Bad\r\n\r\n",
		"HTTP/1.1 429 Slow\r\nRetry-After: 120\r\n\r\n", "HTTP/1.1 503 No\r\nRetry-After: 99999999999999999999\r\n\r\n", "HTTP/1.1 503 No\r\nRetry-After: 9223372036854775807\r\n\r\n", "HTTP/1.1 503 No\r\nRetry-After: -1\r\n\r\n",
		"HTTP/1.1 301 Moved\r\nLocation: http://169.254.169.254/\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "HTTP/1.1 999 ?\r\n\r\n", "HTTP/1.1 20", "", "\x16\x03\x01", "HTTP/1.1 000 \r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70<<10) + "\r\n\r\n",
	} {
		f.Add([]byte(answer))
	}
	l := newTalker(f)
	s := newSender(true, 2*time.Minute)
	s.client.Transport.(*http.Transport).DisableKeepAlives = true // or what follows an answer is the next one's
	address, secrets := "http://"+l.Addr().String()+"/hook", [][]byte{newSecret()}
	f.Fuzz(func(t *testing.T, answer []byte) {
		l.mu.Lock()
		l.says = answer
		l.mu.Unlock()
		a, advice, err := s.post(t.Context(), address, "evt_1", secrets, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if advice < 0 || advice > longestAdvice {
			t.Errorf("%q: advice %s", answer, advice)
		}
		var answered bool
		switch a.Outcome {
		case custody.DeliveryAccepted:
			answered = a.Status >= 200 && a.Status <= 299
		case custody.DeliveryDuplicate:
			answered = a.Status == http.StatusConflict
		case custody.DeliveryRefused:
			answered = a.Status == http.StatusBadRequest
		case custody.DeliveryGone:
			answered = a.Status == http.StatusGone
		case custody.DeliveryNoConnection:
			answered = a.Status == 0 && advice == 0
		case custody.DeliveryUnexpected:
			answered = a.Status < 200 || a.Status > 299
		default:
			answered = false
		}
		if !answered {
			t.Errorf("%q: %+v", answer, a)
		}
		if a.Outcome == custody.DeliveryAccepted && !strings.Contains(string(answer), " 2") {
			t.Errorf("%q counts as taken", answer)
		}
	})
}

// A callback address that is taken leads where it seems to lead: https, no user, an allowed port, and no address of the inside.
func FuzzCallbackAddress(f *testing.F) {
	for _, text := range []string{
		"https://hooks.example/accession?x=1", "https://1.1.1.1:8443/", "https://[::ffff:7f00:1]/", "https://[fe80::1%25eth0]/", "https://user:word@hooks.example/", "https://hooks.example:22/",
		"https://LOCALHOST./", "https://a.localhost", "https:hooks.example", "https://127.1/", "https://2130706433/", "https://0x7f.1/", "https://[64:ff9b::7f00:1]/", "//hooks.example", "https://hooks.example:/", "https://\u2460\u2461\u2466.0.0.1/",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		public1, private := checkURL(text, false), checkURL(text, true)
		if public1 == nil && private != nil {
			t.Errorf("%q is good, but not where private addresses are allowed: %v", text, private)
		}
		for _, err := range []error{public1, private} {
			if err != nil && len(text) > 12 && strings.Contains(err.Error(), text) {
				t.Errorf("the refusal repeats %q: %v", text, err)
			}
		}
		if private != nil {
			return
		}
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || len(text) > custody.MaxWebhookURLBytes {
			t.Fatalf("%q is taken", text)
		}
		if _, err := http.NewRequest(http.MethodPost, text, nil); err != nil {
			t.Errorf("%q is taken, and no request can be made for it: %v", text, err)
		}
		if public1 != nil {
			return
		}
		if u.Scheme != "https" {
			t.Errorf("%q is taken", text)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && (a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() || a.Zone() != "") {
			t.Errorf("%q leads inside", text)
		}
	})
}

// Of an address in whatever dress, none that leads inside is public.
func FuzzPublicAddress(f *testing.F) {
	for _, a := range []string{"127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1", "fe80::1", "1.1.1.1", "2606:4700::1111", "::", "100.64.0.1"} {
		b := netip.MustParseAddr(a).As16()
		f.Add(b[:])
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, ok := netip.AddrFromSlice(raw)
		if !ok {
			return
		}
		plain := a.Unmap()
		inside := plain.IsLoopback() || plain.IsPrivate() || plain.IsLinkLocalUnicast() || plain.IsUnspecified() || plain.IsMulticast() || plain.IsInterfaceLocalMulticast()
		if public(a) && (inside || !plain.IsGlobalUnicast()) {
			t.Errorf("%s is public", a)
		}
		if a.Is4() {
			mapped := netip.AddrFrom16(a.As16())
			if public(a) != public(mapped) {
				t.Errorf("%s and %s differ", a, mapped)
			}
		}
		err := guard(false)("tcp6", netip.AddrPortFrom(a, 443).String(), nil)
		if (err == nil) != public(a) {
			t.Errorf("%s: %v", a, err)
		}
	})
}
