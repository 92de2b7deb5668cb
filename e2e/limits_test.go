package e2e

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// scraped is what the listener of metrics answers.
func scraped(t *testing.T, address string) string {
	t.Helper()
	res, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Settings of limits and metrics reach the running service.
func TestLimitsAndMetrics(t *testing.T) {
	metrics := freeAddress(t)
	s := start(t, options{flags: []string{"--metrics-listen", metrics}, env: []string{"ACCESSION_RATE_LIMITS=sandbox=0.01/3,write=off"}})
	statuses := ""
	var last *http.Response
	for range 4 {
		res, err := http.Get(s.url + "/api/v1/sandbox")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		statuses, last = statuses+fmt.Sprint(res.StatusCode, " "), res
	}
	if h := last.Header; statuses != "200 200 200 429 " || h.Get("Retry-After") == "" || h.Get("RateLimit-Limit") != "3" || h.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("statuses %s, headers %v", statuses, h)
	}
	wants := []string{`accession_requests_total{operation="getSandbox",status="429"} 1`, `accession_queue_uploads{lane="gates"} 0`, "accession_scanner_up 1"}
	for deadline := time.Now().Add(2 * time.Minute); ; { // a probe that a busy machine holds up for seconds is left out of a scrape
		text := scraped(t, metrics)
		lacks := slices.DeleteFunc(slices.Clone(wants), func(want string) bool { return strings.Contains(text, want) })
		if len(lacks) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the metrics lack %s", lacks)
		}
	}
	if res, err := http.Get(s.url + "/metrics"); err != nil || res.StatusCode != 404 {
		t.Errorf("clients can ask for metrics: %v, %v", res, err)
	}
}
