package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
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

// full is metrics of which every one has been counted; broken makes every probe fail.
func full(broken *bool) *Metrics {
	m := New("1.2.3")
	m.Expect([]string{"malware_scan", "extraction"}, []string{"gates"})
	m.Begun("getQuota")
	m.Request("getQuota", 200, 0, 120, 30*time.Millisecond)
	m.Begun("getQuota")
	m.Request("getQuota", 429, 0, 80, time.Millisecond)
	m.Begun("putPartnerUploadPart")
	m.Request("putPartnerUploadPart", 200, 64, 10, time.Second)
	m.Begun("putPartnerUploadPart")
	m.Request("", 404, 0, 10, time.Second)
	m.Gate("malware_scan", "passed", 2*time.Second)
	m.Attempt("malware_scan")("unanswered")
	m.Attempt("malware_scan")
	m.Job("gates", 1, 2*time.Millisecond)()
	m.Job("gates", 2, -1)
	m.Rescan("found")
	m.Database("keys", "read", time.Millisecond, true)
	m.Storage("copy", time.Millisecond, true)
	away := func() error {
		if *broken {
			return errors.New("away")
		}
		return nil
	}
	built := time.Now().Add(-time.Hour)
	m.Watch(Probes{
		Queues: func(context.Context) (map[string]Queue, error) {
			return map[string]Queue{"gates": {3, 1500 * time.Millisecond}}, away()
		},
		Scanner:  func(context.Context) (time.Time, error) { return built, away() },
		Rescans:  func(context.Context) (int, error) { return 7, away() },
		Quota:    func(context.Context) (Quota, error) { return Quota{4, 1, 1000, 200, 30}, away() },
		Webhooks: func(context.Context) (Webhooks, error) { return Webhooks{5, 2, time.Minute}, away() },
		Turns:    func() Turns { return Turns{6, 8} },
		Ready:    map[string]func(context.Context) error{"store": func(context.Context) error { return away() }},
		Pools:    func() map[string]Pool { return map[string]Pool{"metadata": {3, 2, 5}} },
		Storage: map[string]func() (int64, int64, error){"blobs": func() (int64, int64, error) {
			return 10, 100, away()
		}},
	}, slog.New(slog.DiscardHandler))
	return m
}

func TestScrape(t *testing.T) {
	broken := false
	m := full(&broken)
	text := scraped(t, m)
	for _, want := range []string{
		`accession_requests_total{operation="getQuota",status="200"} 1`, `accession_requests_total{operation="getQuota",status="429"} 1`,
		`accession_request_duration_seconds_bucket{operation="getQuota",le="0.0025"} 1`, `accession_request_duration_seconds_count{operation="getQuota"} 2`,
		`accession_requests_in_flight{operation="getQuota"} 0`, `accession_requests_in_flight{operation="putPartnerUploadPart"} 1`,
		`accession_request_body_bytes_total{operation="putPartnerUploadPart"} 64`, `accession_answer_body_bytes_total{operation="getQuota"} 200`,
		`accession_gate_duration_seconds_bucket{gate="malware_scan",outcome="passed",le="5"} 1`, `accession_gate_duration_seconds_count{gate="extraction",outcome="failed"} 0`,
		`accession_gate_attempts_total{gate="malware_scan",outcome="unanswered"} 1`, `accession_gate_attempts_total{gate="extraction",outcome="unanswered"} 0`,
		`accession_gates_running{gate="malware_scan"} 1`, `accession_jobs_running{lane="gates"} 1`, `accession_job_start_delay_seconds_count{lane="gates"} 1`,
		`accession_job_retries_total{lane="gates"} 1`, `accession_queue_uploads{lane="gates"} 3`,
		`accession_queue_oldest_seconds{lane="gates"} 1.5`, `accession_rescans_total{outcome="found"} 1`, `accession_rescans_total{outcome="clean"} 0`,
		`accession_rescans_waiting 7`, `accession_scanner_up 1`, `accession_scanner_signature_age_seconds 36`, `accession_build_info{version="1.2.3"} 1`,
		`accession_organizations 4`, `accession_organizations_nearly_full 1`, `accession_quota_allowance_bytes 1000`, `accession_quota_used_bytes 200`,
		`accession_quota_reserved_bytes 30`, `accession_webhooks_waiting 5`, `accession_webhooks_dead 2`, `accession_webhooks_oldest_seconds 60`,
		`accession_requests_waiting 6`, `accession_turns_refused_total 8`,
		`accession_ready{check="store"} 1`, `accession_database_connections_open{database="metadata"} 3`, `accession_database_connections_in_use{database="metadata"} 2`,
		`accession_database_connections_limit{database="metadata"} 5`, `accession_storage_free_bytes{folder="blobs"} 10`, `accession_storage_size_bytes{folder="blobs"} 100`,
		`accession_database_duration_seconds_count{database="keys",kind="read"} 1`, `accession_database_errors_total{database="keys",kind="read"} 1`,
		`accession_storage_errors_total{operation="copy"} 1`, "go_goroutines", "process_open_fds",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the scrape lacks %s", want)
		}
	}
	broken = true
	text = scraped(t, m)
	for _, want := range []string{"accession_scanner_up 0", `accession_ready{check="store"} 0`} {
		if !strings.Contains(text, want) {
			t.Errorf("the scrape lacks %s", want)
		}
	}
	for _, not := range []string{"accession_queue", "rescans_waiting", "signature_age", "accession_organizations", "accession_quota", "accession_webhooks", "accession_storage_free"} {
		if strings.Contains(text, not) {
			t.Errorf("what does not answer is shown: %s", not)
		}
	}
}

var (
	typeLine = regexp.MustCompile(`(?m)^# TYPE (accession_\w+) (\w+)$`)
	ownName  = regexp.MustCompile(`\baccession_[a-z_]+\b`)
	anyName  = regexp.MustCompile(`\b(?:accession|process|go)_[a-z_]+\b`)
)

// printed is the names that queries can use, and the type of each metric of the service's own.
func printed(t *testing.T) (series map[string]bool, types map[string]string) {
	t.Helper()
	broken := false
	text := scraped(t, full(&broken))
	series, types = map[string]bool{}, map[string]string{}
	for _, m := range typeLine.FindAllStringSubmatch(text, -1) {
		types[m[1]] = m[2]
	}
	for line := range strings.Lines(text) {
		if name := anyName.FindString(line); name != "" && strings.HasPrefix(line, name) {
			series[name] = true
		}
	}
	return series, types
}

// What docs/operations.md lists is what is printed, and each name says what it counts as Prometheus has it.
func TestDocumentedMetrics(t *testing.T) {
	_, types := printed(t)
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `accession_") {
			first, _, _ := strings.Cut(line[2:], "|")
			listed = append(listed, ownName.FindAllString(first, -1)...)
		}
	}
	for name, kind := range types {
		if !slices.Contains(listed, name) {
			t.Errorf("docs/operations.md does not list %s", name)
		}
		if total := strings.HasSuffix(name, "_total"); total != (kind == "counter") {
			t.Errorf("%s is a %s", name, kind)
		}
		if kind == "histogram" && !strings.HasSuffix(name, "_seconds") {
			t.Errorf("%s has no unit", name)
		}
	}
	for _, name := range listed {
		if types[name] == "" {
			t.Errorf("docs/operations.md lists %s, which is not printed", name)
		}
	}
}

type alert struct {
	Alert       string
	Expr        string
	For         string
	Labels      struct{ Severity string }
	Annotations struct {
		Summary string
		Runbook string `yaml:"runbook_url"`
	}
}

// Every alert asks for what is printed, and has a section that says what to do.
func TestAlerts(t *testing.T) {
	series, _ := printed(t)
	raw, err := os.ReadFile("../../deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(raw)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&rules); err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, group := range rules.Groups {
		for _, a := range group.Rules {
			seen[a.Alert] = true
			for _, name := range anyName.FindAllString(a.Expr, -1) {
				if !series[name] {
					t.Errorf("%s asks for %s, which is not printed", a.Alert, name)
				}
			}
			if a.Annotations.Runbook != "docs/operations.md#"+strings.ToLower(a.Alert) || !strings.Contains(string(docs), "\n### "+a.Alert+"\n") {
				t.Errorf("%s links to %s: docs/operations.md needs a section ### %s", a.Alert, a.Annotations.Runbook, a.Alert)
			}
			if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels.Severity) || a.Annotations.Summary == "" || a.Expr == "" {
				t.Errorf("%s: severity %q, summary %q", a.Alert, a.Labels.Severity, a.Annotations.Summary)
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^### (Accession\w+)$`).FindAllStringSubmatch(string(docs), -1) {
		if !seen[m[1]] {
			t.Errorf("docs/operations.md says what to do for %s, which is no alert", m[1])
		}
	}
	if len(seen) < 10 {
		t.Errorf("%d alerts", len(seen))
	}
}

// Every panel asks for what is printed, and everything of the service's own is on a panel.
func TestDashboard(t *testing.T) {
	series, types := printed(t)
	raw, err := os.ReadFile("../../deploy/grafana/accession.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Title, UID string
		Panels     []struct {
			ID      int
			Title   string
			Type    string
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	shown, ids := map[string]bool{}, map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d %q: %+v", p.ID, p.Title, p)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			names := anyName.FindAllString(target.Expr, -1)
			if len(names) == 0 {
				t.Errorf("panel %q asks for nothing: %s", p.Title, target.Expr)
			}
			for _, name := range names {
				shown[name] = true
				if !series[name] {
					t.Errorf("panel %q asks for %s, which is not printed", p.Title, name)
				}
			}
		}
	}
	for name := range types {
		if !shown[name] && !shown[name+"_bucket"] {
			t.Errorf("%s is on no panel", name)
		}
	}
}
