package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/ratelimit"
)

// limited gives a bench rates and a clock that stands until it is moved.
func limited(t *testing.T, rates ratelimit.Rates, change ...func(*Config)) (*bench, *atomic.Int64) {
	t.Helper()
	now := &atomic.Int64{}
	now.Store(1_800_000_000e9)
	l, err := ratelimit.New(ratelimit.Config{Rates: rates, Now: func() time.Time { return time.Unix(0, now.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	return newBench(t, append([]func(*Config){func(c *Config) { c.Limits = l }}, change...)...), now
}

func (r reply) figures(t *testing.T, limit, remaining, reset int) {
	t.Helper()
	for _, prefix := range []string{"RateLimit-", "X-RateLimit-"} {
		for name, want := range map[string]int{"Limit": limit, "Remaining": remaining, "Reset": reset} {
			if got := r.Header.Get(prefix + name); got != strconv.Itoa(want) {
				t.Errorf("%s%s is %q, want %d", prefix, name, got, want)
			}
		}
	}
}

func TestRateLimitPerCredential(t *testing.T) {
	b, now := limited(t, ratelimit.Rates{ratelimit.Read: {PerSecond: 0.4, Burst: 2}})
	quota := base + "/quota"
	for i, remaining := range []int{1, 0} {
		r := b.call("GET", quota, nil, asUp)
		r.succeeds(t, 200)
		r.figures(t, 2, remaining, []int{3, 5}[i]) // 2.5 s, rounded up
	}
	r := b.call("GET", quota, nil, asUp)
	r.wants(t, 429, custody.CodeRateLimited)
	r.figures(t, 2, 0, 5)
	if r.Header.Get("Retry-After") != "3" {
		t.Errorf("Retry-After %q", r.Header.Get("Retry-After"))
	}
	b.call("GET", quota, nil, "Authorization: Bearer "+uploaderToken).wants(t, 429, custody.CodeRateLimited) // the same credential
	b.call("GET", quota, nil, asAI).succeeds(t, 200)                                                         // another
	b.call("GET", quota, nil).wants(t, 401, custody.CodeAuthenticationRequired)                              // a stranger does not draw on it
	if r := b.post(partners+"/initiate", initiateJSON, asUp); r.StatusCode != 200 || r.Header.Get("RateLimit-Limit") != "" {
		t.Errorf("another class: %d %v", r.StatusCode, r.Header)
	}
	now.Add(2500e6)
	b.call("GET", quota, nil, asUp).succeeds(t, 200)
	b.call("GET", quota, nil, asUp).wants(t, 429, custody.CodeRateLimited)
}

// A refused request reaches no room, and its body is not read.
func TestRateLimitedWriteHasNoEffect(t *testing.T) {
	b, _ := limited(t, ratelimit.Rates{ratelimit.Write: {PerSecond: 1, Burst: 1}, ratelimit.Upload: {PerSecond: 1, Burst: 1}})
	b.post(partners+"/initiate", initiateJSON, asUp).succeeds(t, 200)
	b.call("PUT", oneUpload+"/parts/1", strings.NewReader("x"), asUp, key, asB).succeeds(t, 200)
	b.got, b.part = nil, nil
	b.post(partners+"/initiate", "no JSON", asUp).wants(t, 429, custody.CodeRateLimited)
	b.call("PUT", oneUpload+"/parts/2", strings.NewReader("y"), asUp, key, asB).wants(t, 429, custody.CodeRateLimited)
	if b.got != nil || b.part != nil {
		t.Errorf("it reached a room: %v %q", b.got, b.part)
	}
}

func TestRateLimitPerAddress(t *testing.T) {
	b, now := limited(t, ratelimit.Rates{ratelimit.Address: {PerSecond: 1, Burst: 5}})
	b.call("GET", "/nowhere", nil).wants(t, 404, custody.CodeRouteNotFound)
	for range 4 {
		b.call("GET", base+"/quota", nil, "X-Api-Key: acc_guess").wants(t, 401, custody.CodeCredentialInvalid)
	}
	r := b.call("GET", base+"/quota", nil, asUp) // before anybody knows who asks
	r.wants(t, 429, custody.CodeRateLimited)
	r.figures(t, 5, 0, 5)
	b.call("GET", "/nowhere", nil).wants(t, 429, custody.CodeRateLimited)
	b.call("GET", "/healthz", nil).succeeds(t, 200)
	b.call("GET", "/readyz", nil).succeeds(t, 200)
	now.Add(1e9)
	b.call("GET", base+"/quota", nil, asUp).succeeds(t, 200)
}

// The sandbox, free to everybody, counts issued keys by address and their use by credential.
func TestRateLimitSandbox(t *testing.T) {
	b, _ := limited(t, ratelimit.Rates{ratelimit.Sandbox: {PerSecond: 1, Burst: 2}})
	one, two := b.sandboxToken(), b.sandboxToken()
	b.call("POST", sandboxPath+"/keys", nil).wants(t, 429, custody.CodeRateLimited)
	b.call("GET", sandboxPath, nil).wants(t, 429, custody.CodeRateLimited)
	for _, token := range []string{one, two} {
		for range 2 {
			b.post(sandboxPath+"/echo", `{"input":"a"}`, "X-Api-Key: "+token).succeeds(t, 200)
		}
		b.post(sandboxPath+"/batch", `{"operations":[{}]}`, "X-Api-Key: "+token).wants(t, 429, custody.CodeRateLimited)
	}
	b.call("GET", "/api/v1/ai/capabilities", nil).succeeds(t, 200)
}

type brokenLimiter struct{}

func (brokenLimiter) Take(context.Context, ratelimit.Class, string) (ratelimit.Verdict, bool, error) {
	return ratelimit.Verdict{}, false, errors.New("secret")
}

func TestRateLimiterThatCannotCount(t *testing.T) {
	b := newBench(t)
	handler, err := New(Config{BaseURL: b.url, Sandbox: newSandbox(t, nil), Limits: brokenLimiter{}, Log: slog.New(slog.DiscardHandler)}, b, b, b, b, b, b, b)
	if err != nil {
		t.Fatal(err)
	}
	w := &overheard{header: http.Header{}}
	req, err := http.NewRequest("GET", b.url+base+"/quota", nil)
	if err != nil {
		t.Fatal(err)
	}
	if handler.ServeHTTP(w, req); w.status != 503 {
		t.Errorf("answered %d", w.status)
	}
}

func TestAddressOf(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		peer, want string
		trusted    []netip.Prefix
		forwarded  []string
	}{
		{"192.0.2.1:99", "192.0.2.1", nil, []string{"198.51.100.7"}},
		{"192.0.2.1:99", "192.0.2.1", proxies, []string{"198.51.100.7"}},
		{"10.1.1.1:99", "198.51.100.7", proxies, []string{"198.51.100.7"}},
		{"[::ffff:10.1.1.1]:99", "198.51.100.7", proxies, []string{"198.51.100.7"}},
		{"10.1.1.1:99", "198.51.100.7", proxies, []string{"1.1.1.1, 198.51.100.7, 10.2.2.2"}},
		{"10.1.1.1:99", "198.51.100.7", proxies, []string{"1.1.1.1", "198.51.100.7", "fd00::1"}},
		{"10.1.1.1:99", "10.1.1.1", proxies, []string{"whatever"}},
		{"10.1.1.1:99", "10.1.1.1", proxies, nil},
	} {
		d := &door{cfg: Config{TrustedProxies: c.trusted}}
		got := d.addressOf(&http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-For": c.forwarded}})
		if got.Unmap().String() != c.want {
			t.Errorf("%s, %v: %s, want %s", c.peer, c.forwarded, got, c.want)
		}
	}
}
