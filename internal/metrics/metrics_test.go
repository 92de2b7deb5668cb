package metrics

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func scraped(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	raw, err := io.ReadAll(w.Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("%d, %v: %s", w.Code, err, raw)
	}
	return string(raw)
}

func TestScrape(t *testing.T) {
	m := New("1.2.3")
	m.Request("getQuota", 200, 0, 120, 30*time.Millisecond)
	m.Request("getQuota", 429, 0, 80, time.Millisecond)
	m.Request("putPartnerUploadPart", 200, 64, 10, time.Second)
	m.Gate("malware_scan", "passed", 2*time.Second)
	m.Rescan("found")
	built := time.Now().Add(-time.Hour)
	broken := false
	m.Watch(Probes{
		Queues: func(context.Context) (map[string]Queue, error) {
			if broken {
				return nil, errors.New("away")
			}
			return map[string]Queue{"gates": {3, 1500 * time.Millisecond}}, nil
		},
		Scanner: func(context.Context) (time.Time, error) {
			if broken {
				return time.Time{}, errors.New("away")
			}
			return built, nil
		},
		Rescans: func(context.Context) (int, error) {
			if broken {
				return 0, errors.New("away")
			}
			return 7, nil
		},
	}, slog.New(slog.DiscardHandler))
	text := scraped(t, m)
	for _, want := range []string{
		`accession_requests_total{operation="getQuota",status="200"} 1`, `accession_requests_total{operation="getQuota",status="429"} 1`,
		`accession_request_duration_seconds_bucket{operation="getQuota",le="0.0025"} 1`, `accession_request_duration_seconds_count{operation="getQuota"} 2`,
		`accession_request_body_bytes_total{operation="putPartnerUploadPart"} 64`, `accession_answer_body_bytes_total{operation="getQuota"} 200`,
		`accession_gate_duration_seconds_bucket{gate="malware_scan",outcome="passed",le="5"} 1`, `accession_queue_uploads{lane="gates"} 3`,
		`accession_queue_oldest_seconds{lane="gates"} 1.5`, `accession_rescans_total{outcome="found"} 1`, `accession_rescans_waiting 7`, `accession_scanner_up 1`, `accession_scanner_signature_age_seconds 36`, `accession_build_info{version="1.2.3"} 1`,
		"go_goroutines", "process_open_fds",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the scrape lacks %s", want)
		}
	}
	broken = true
	text = scraped(t, m)
	if !strings.Contains(text, "accession_scanner_up 0") || strings.Contains(text, "accession_queue") || strings.Contains(text, "rescans_waiting") || strings.Contains(text, "signature_age") {
		t.Errorf("what does not answer is shown:\n%s", text)
	}
}
