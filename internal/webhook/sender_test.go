package webhook

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/accession/accession/internal/custody"
)

func TestOutcomes(t *testing.T) {
	released := make(chan struct{})
	mux := http.NewServeMux()
	status := func(path string, status int) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Location", "/202")
			w.WriteHeader(status)
		})
	}
	for path, code := range map[string]int{"/200": 200, "/202": 202, "/204": 204, "/301": 301, "/307": 307, "/400": 400, "/401": 401, "/409": 409, "/410": 410, "/429": 429, "/500": 500} {
		status(path, code)
	}
	mux.HandleFunc("/hangs", func(http.ResponseWriter, *http.Request) { <-released })
	mux.HandleFunc("/drops", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/pours", func(w http.ResponseWriter, r *http.Request) { // an answer without an end
		for r.Context().Err() == nil {
			if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
				return
			}
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	defer server.CloseClientConnections()
	self := httptest.NewTLSServer(mux)
	defer self.Close()
	defer close(released)                        // first of all: servers wait for their handlers
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // is not asked

	// A busy machine is no silent receiver.
	s, hasty := newSender(true, 2*time.Minute), newSender(true, 200*time.Millisecond)
	for _, c := range []struct {
		url, outcome string
		status       int
	}{
		{server.URL + "/200", custody.DeliveryAccepted, 200}, {server.URL + "/202", custody.DeliveryAccepted, 202}, {server.URL + "/204", custody.DeliveryAccepted, 204},
		{server.URL + "/301", custody.DeliveryUnexpected, 301}, {server.URL + "/307", custody.DeliveryUnexpected, 307},
		{server.URL + "/400", custody.DeliveryRefused, 400}, {server.URL + "/401", custody.DeliveryUnexpected, 401},
		{server.URL + "/409", custody.DeliveryDuplicate, 409}, {server.URL + "/410", custody.DeliveryGone, 410}, {server.URL + "/429", custody.DeliveryUnexpected, 429},
		{server.URL + "/500", custody.DeliveryUnexpected, 500}, {server.URL + "/pours", custody.DeliveryAccepted, 200},
		{server.URL + "/hangs", custody.DeliveryTimeout, 0}, {server.URL + "/drops", custody.DeliveryNoConnection, 0},
		{self.URL + "/202", custody.DeliveryUntrusted, 0}, {"http://127.0.0.1:1/", custody.DeliveryAddressRefused, 0},
	} {
		by := s
		if c.outcome == custody.DeliveryTimeout {
			by = hasty
		}
		a, advice, err := by.post(t.Context(), c.url, "evt_1", [][]byte{newSecret()}, []byte("{}"))
		if err != nil || a.Outcome != c.outcome || a.Status != c.status || a.At.IsZero() || a.Latency <= 0 {
			t.Errorf("%s: %+v, %v", c.url, a, err)
		}
		if c.status != 0 && !strings.HasSuffix(c.url, "/pours") && advice != 7*time.Second {
			t.Errorf("%s: advice %s", c.url, advice)
		}
	}
}

func TestPostIsSignedByEverySecret(t *testing.T) {
	var got http.Header
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r.Header
		body, _ = io.ReadAll(r.Body) // compared below
	}))
	defer server.Close()
	s := newSender(true, 2*time.Minute)
	secrets := [][]byte{newSecret(), newSecret()}
	if _, _, err := s.post(t.Context(), server.URL, "evt_9", secrets, []byte(`{"event_id":"evt_9"}`)); err != nil {
		t.Fatal(err)
	}
	if string(body) != `{"event_id":"evt_9"}` || got.Get("Content-Type") != "application/json" || got.Get("webhook-id") != "evt_9" {
		t.Errorf("it came as %s under %v", body, got)
	}
	for i, secret := range append(secrets, newSecret()) {
		w, err := standardwebhooks.NewWebhook(shown(secret))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Verify(body, got); (err == nil) != (i < 2) {
			t.Errorf("secret %d: %v", i, err)
		}
	}
	for _, bad := range [][][]byte{nil, {}, {{}}, {newSecret(), nil}, {[]byte("short")}} {
		if _, _, err := s.post(context.Background(), server.URL, "evt_9", bad, nil); err == nil {
			t.Errorf("signed with %d secrets, one of them none", len(bad))
		}
	}
}

func TestDecide(t *testing.T) {
	s := New(nil, Config{Delays: []time.Duration{time.Second, time.Minute}, RetryFor: time.Hour})
	now := custody.Now()
	try := func(outcome string, attempt int, queued time.Duration, advice time.Duration) custody.DeliveryResult {
		return s.decide(custody.Delivery{Attempt: attempt, QueuedAt: now.Add(-queued)}, custody.DeliveryAttempt{At: now, Outcome: outcome}, advice)
	}
	for outcome, want := range map[string]custody.DeliveryResult{
		custody.DeliveryAccepted: {State: "delivered"}, custody.DeliveryDuplicate: {State: "delivered"}, custody.DeliveryRefused: {State: "dead"},
		custody.DeliveryGone: {State: "pending", Disable: true}, custody.DeliveryTimeout: {State: "pending", Failed: true},
		custody.DeliveryUnexpected: {State: "pending", Failed: true}, custody.DeliveryAddressRefused: {State: "pending", Failed: true},
	} {
		if r := try(outcome, 1, 0, 0); r.State != want.State || r.Disable != want.Disable || r.Failed != want.Failed {
			t.Errorf("%s: %+v", outcome, r)
		}
	}
	for _, c := range []struct {
		attempt     int
		advice      time.Duration
		least, most time.Duration
	}{{1, 0, 800 * time.Millisecond, 1200 * time.Millisecond}, {2, 0, 48 * time.Second, 72 * time.Second}, {9, 0, 48 * time.Second, 72 * time.Second}, {1, time.Minute, time.Minute, time.Minute}} {
		if r := try(custody.DeliveryTimeout, c.attempt, 0, c.advice); r.Delay < c.least || r.Delay > c.most {
			t.Errorf("attempt %d: again after %s", c.attempt, r.Delay)
		}
	}
	if r := try(custody.DeliveryTimeout, 2, 59*time.Minute+30*time.Second, 0); r.State != custody.DeliveryDead {
		t.Errorf("after its time: %+v", r)
	}
	for failures, open := range map[int]bool{1: false, 4: false, 5: true, 50: true} {
		if p := s.pause(failures); (p > 0) != open || p > custody.LongestPause {
			t.Errorf("%d failures: %s", failures, p)
		}
	}
}
