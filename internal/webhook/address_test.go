package webhook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/accession/accession/internal/custody"
)

func TestPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"1.1.1.1": true, "8.8.8.8": true, "203.0.112.255": true, "2606:4700::1111": true, "::ffff:1.1.1.1": true, "2a00:1450:4001::8a": true,

		"127.0.0.1": false, "127.255.255.254": false, "0.0.0.0": false, "10.0.0.1": false, "172.31.255.255": false, "192.168.1.1": false, "100.64.0.1": false,
		"169.254.169.254": false, "168.63.129.16": false, "192.0.0.192": false, "198.18.0.1": false, "203.0.113.7": false, "224.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false,
		"64:ff9b:1::7f00:1": false, "2002:7f00:1::": false, "2001::1": false, "2001:db8::1": false, "2001:20::1": false, "fc00::1": false, "fd00:ec2::254": false,
		"fe80::1": false, "fe80::1%eth0": false, "fec0::1": false, "ff02::1": false, "3fff::1": false, "5f00::1": false, "100::1": false,
	} {
		if got := public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if public(netip.Addr{}) {
		t.Error("no address at all is public")
	}
}

func TestGuard(t *testing.T) {
	for _, c := range []struct {
		network, address string
		private, ok      bool
	}{
		{"tcp4", "1.1.1.1:443", false, true}, {"tcp6", "[2606:4700::1111]:8443", false, true},
		{"tcp4", "127.0.0.1:8443", false, false}, {"tcp6", "[::1]:443", false, false}, {"tcp6", "[fe80::1%lo]:443", false, false},
		{"tcp6", "[::ffff:10.0.0.1]:443", false, false}, {"tcp4", "1.1.1.1:80", false, false}, {"tcp4", "1.1.1.1:22", false, false},
		{"udp4", "1.1.1.1:443", false, false}, {"unix", "/run/docker.sock", false, false}, {"unix", "/run/docker.sock", true, false}, {"tcp4", "nonsense", true, false},
		{"tcp4", "127.0.0.1:80", true, true}, {"tcp4", "10.0.0.1:8080", true, true}, {"tcp4", "127.0.0.1:22", true, false},
	} {
		if err := guard(c.private)(c.network, c.address, nil); (err == nil) != c.ok || err != nil && !errors.Is(err, errAddress) {
			t.Errorf("%s %s, private %v: %v", c.network, c.address, c.private, err)
		}
	}
}

func TestCheckURL(t *testing.T) {
	for text, want := range map[string][2]bool{ // by default, with private addresses
		"https://hooks.example/accession?x=1": {true, true}, "https://hooks.example": {true, true}, "https://hooks.example:8443/": {true, true}, "https://1.1.1.1/": {true, true},
		"http://hooks.example/": {false, true}, "http://127.0.0.1:8080/": {false, true}, "https://[::1]/": {false, true}, "https://LOCALHOST./": {false, true},
		"https://a.localhost/": {false, true}, "https://[fe80::1%25eth0]/": {false, true}, "https://[::ffff:7f00:1]/": {false, true},
		"https://user@hooks.example/": {}, "https://u:p@hooks.example/": {}, "https://hooks.example:22/": {}, "https://hooks.example:/": {}, "https://hooks.example:99999/": {},
		"https://hooks.example/#x": {}, "ftp://hooks.example/": {}, "https:hooks.example": {}, "/hooks": {}, "": {}, "https://": {}, "https:///x": {}, "https://:8443/": {}, "https://[]/": {}, "https://hooks.example/\x00": {},
		"https://hooks.example/" + strings.Repeat("a", 2048): {},
	} {
		for i, private := range []bool{false, true} {
			err := checkURL(text, private)
			if (err == nil) != want[i] {
				t.Errorf("%.60q, private %v: %v", text, private, err)
			}
			var said *custody.Error
			if err != nil && (!errors.As(err, &said) || said.Code != custody.CodeInvalidRequest || strings.Contains(err.Error(), "u:p")) {
				t.Errorf("%.60q: %v", text, err)
			}
		}
	}
}

// names answers every question for an address, changing its mind: first public, then loopback.
func names(t *testing.T, asked *atomic.Int64, answers ...[4]byte) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Header = dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true}
			m.Additionals = nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				at := min(int(asked.Add(1)), len(answers)) - 1
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: &dnsmessage.AResource{A: answers[at]}}}
			}
			if packed, err := m.Pack(); err == nil {
				_, _ = server.WriteTo(packed, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// A name that leads inside is refused when it is connected to, whatever it led to before.
func TestNameThatLeadsInside(t *testing.T) {
	var arrived, asked atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	defer inside.Close()
	u, err := url.Parse(inside.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, private := range []bool{true, false} {
		s := newSender(private, 2*time.Minute)
		resolver := names(t, &asked, [4]byte{127, 0, 0, 1})
		s.client.Transport = newTransport(private, 2*time.Minute, resolver)
		a, _, err := s.post(t.Context(), "http://rebind.example:"+u.Port()+"/", "evt_1", [][]byte{newSecret()}, []byte("{}"))
		want := custody.DeliveryAddressRefused
		if private {
			want = custody.DeliveryAccepted
		}
		if err != nil || a.Outcome != want {
			t.Errorf("private %v: %+v, %v", private, a, err)
		}
	}
	if arrived.Load() != 1 || asked.Load() < 2 {
		t.Errorf("%d requests arrived, %d names were asked", arrived.Load(), asked.Load())
	}
}
