package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/accession/accession/internal/custody"
)

// errAddress says that a connection was refused before it was made.
var errAddress = errors.New("the address is not public")

// special are the ranges of the public spaces that lead somewhere else: IANA's special-purpose registries, and those that carry
// an IPv4 address in them.
var special = func() (ranges []netip.Prefix) {
	for text := range strings.FieldsSeq(`0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
		192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
		168.63.129.16/32 2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20`) {
		ranges = append(ranges, netip.MustParsePrefix(text))
	}
	return ranges
}()

// globalUnicast is all of IPv6 that is handed out; loopback, mapped, NAT64, unique local, link local and multicast lie outside.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// public tells whether a is an address of the open internet, whatever it is dressed up as.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsValid() || a.Is6() && !globalUnicast.Contains(a) {
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

// portAllowed keeps deliveries away from the services of the system ports.
func portAllowed(port uint16, private bool) bool {
	return port == 443 || port >= 1024 || private && port == 80
}

// guard looks at the very address that a connection is about to be made to, after names are resolved: a name cannot turn into
// another address behind it.
func guard(private bool) func(network, address string, _ syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		switch {
		case network != "tcp4" && network != "tcp6", err != nil:
			return errAddress
		case !private && !public(to.Addr()):
			return errAddress
		case !portAllowed(to.Port(), private):
			return errAddress
		}
		return nil
	}
}

// newTransport dials guarded addresses only: no proxy, nothing that follows from the environment.
func newTransport(private bool, timeout time.Duration, names *net.Resolver) *http.Transport {
	dialer := &net.Dialer{Timeout: timeout, Control: guard(private), Resolver: names}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout, MaxResponseHeaderBytes: 64 << 10,
		DisableCompression: true, MaxIdleConns: 100, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true,
	}
}

// checkURL refuses a callback URL that could never be delivered to, saying what to change. What its name resolves to is looked
// at whenever a connection is made.
func checkURL(text string, private bool) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return refused("must be an absolute address such as https://example.org/hooks")
	case len(text) > custody.MaxWebhookURLBytes:
		return refused(fmt.Sprintf("must have at most %d bytes", custody.MaxWebhookURLBytes))
	case u.Scheme != "https" && (u.Scheme != "http" || !private):
		return refused("must be https")
	case u.User != nil:
		return refused("must hold no user or password; deliveries are signed")
	case u.Fragment != "":
		return refused("must hold no fragment")
	}
	port := uint64(443)
	if u.Scheme == "http" {
		port = 80
	}
	if u.Port() != "" || strings.HasSuffix(u.Host, ":") {
		if port, err = strconv.ParseUint(u.Port(), 10, 16); err != nil {
			return refused("must have a port such as 443, or none")
		}
	}
	if !portAllowed(uint16(port), private) {
		return refused("must have port 443, or one from 1024 on")
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && !private && !public(a) {
		return refused("must lead to a public address")
	}
	if name := strings.TrimSuffix(strings.ToLower(u.Hostname()), "."); !private && (name == "localhost" || strings.HasSuffix(name, ".localhost")) {
		return refused("must lead to a public address")
	}
	return nil
}

func refused(reason string) error {
	return custody.Errorf(custody.CodeInvalidRequest, "the callback address cannot be used: it %s", reason).
		With("fields", []any{map[string]any{"path": "/url", "reason": reason}})
}
