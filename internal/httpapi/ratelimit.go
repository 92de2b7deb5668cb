package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/ratelimit"
)

// Every request counts against its address before anybody knows who asks; then against its credential in the operation's
// class, or against its address where the operation takes no credential. (Section 8.)

// rateHeaders are the figures on answers: both families, times in seconds, rounded up.
var rateHeaders = []struct {
	name, doc string
	figure    func(ratelimit.Verdict) int
}{
	{"X-RateLimit-Limit", "As RateLimit-Limit.", limitOf},
	{"X-RateLimit-Remaining", "As RateLimit-Remaining.", remainingOf},
	{"X-RateLimit-Reset", "As RateLimit-Reset.", resetOf},
	{"RateLimit-Limit", "Requests that may come at once.", limitOf},
	{"RateLimit-Remaining", "Requests that would be let through right now.", remainingOf},
	{"RateLimit-Reset", "Seconds until RateLimit-Remaining is RateLimit-Limit again.", resetOf},
}

func limitOf(v ratelimit.Verdict) int     { return v.Limit }
func remainingOf(v ratelimit.Verdict) int { return v.Remaining }
func resetOf(v ratelimit.Verdict) int     { return wholeSeconds(v.Reset) }

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// allowAddress counts a request whose sender is not known yet.
func (d *door) allowAddress(w http.ResponseWriter, r *http.Request, x *exchange) error {
	if d.cfg.Limits == nil || isProbe(r) {
		return nil
	}
	return d.allow(w, r, ratelimit.Address, x.address)
}

// allowCaller counts a request of op, whose sender is known as far as the headers tell, and gives it a slot: now, or once its body
// is in.
func (d *door) allowCaller(w http.ResponseWriter, r *http.Request, x *exchange, op operation) error {
	if op.unlimited {
		return nil
	}
	if d.cfg.Limits != nil {
		who := "address " + x.address
		if x.caller.CredentialID != "" {
			who = "credential " + x.caller.CredentialID
		}
		if err := d.allow(w, r, op.rateClass(), who); err != nil {
			return err
		}
	}
	if op.entersLate() && x.caller.CredentialID == "" {
		return d.arrivals.await(x)
	}
	return d.enter(x, op)
}

func (d *door) allow(w http.ResponseWriter, r *http.Request, class ratelimit.Class, who string) error {
	v, limits, err := d.cfg.Limits.Take(r.Context(), class, who)
	if err != nil {
		return custody.Unavailable(err)
	}
	if !limits {
		return nil
	}
	for _, h := range rateHeaders {
		w.Header()[http.CanonicalHeaderKey(h.name)] = []string{strconv.Itoa(h.figure(v))}
	}
	if !v.Limited {
		return nil
	}
	e := custody.Errorf(custody.CodeRateLimited, "too many requests; repeat this one after Retry-After").With("class", class)
	e.RetryAfter = max(v.RetryAfter, time.Second)
	return e
}

// rateClass is the class that requests of op count in.
func (op operation) rateClass() ratelimit.Class {
	switch {
	case op.class != "":
		return op.class
	case op.body == bodyPart:
		return ratelimit.Upload
	case op.method == http.MethodGet:
		return ratelimit.Read
	}
	return ratelimit.Write
}

// addressOf is where the request comes from: the peer, or, where that is a trusted proxy, the last address before it in
// X-Forwarded-For that is none. What stands further left is the client's own word.
func (d *door) addressOf(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	at, _ := netip.ParseAddr(host)
	if len(d.cfg.TrustedProxies) == 0 {
		return at
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && d.trusts(at); i-- {
		before, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		at = before
	}
	return at
}

func (d *door) trusts(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, p := range d.cfg.TrustedProxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
