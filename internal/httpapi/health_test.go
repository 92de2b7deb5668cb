package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/accession/accession/internal/custody"
)

type readiness func(context.Context) error

func (r readiness) Ready(ctx context.Context) error { return r(ctx) }

// readyz asks a door with the given checks.
func readyz(t *testing.T, b *rooms, checks ...Check) (status int, body string) {
	t.Helper()
	handler, err := New(Config{BaseURL: "http://127.0.0.1", Sandbox: newSandbox(t, nil), Log: slog.New(slog.DiscardHandler)}, b, b, b, b, b, b, b, checks...)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", readyPath, nil))
	return w.Code, w.Body.String()
}

func TestReadiness(t *testing.T) {
	b := &rooms{}
	good := readiness(func(context.Context) error { return nil })
	bad := readiness(func(context.Context) error { return errors.New("secret") })
	hangs := readiness(func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	for name, c := range map[string]struct {
		store, scanner readiness
		status         int
		shows          string
	}{
		"all answer":          {good, good, 200, `"checks":{"scanner":"ok","store":"ok"}`},
		"no scanner":          {good, bad, 200, `"checks":{"scanner":"failing","store":"ok"}`},
		"the scanner hangs":   {good, hangs, 200, `"checks":{"scanner":"failing","store":"ok"}`},
		"no store":            {bad, good, 503, `"checks":{"scanner":"ok","store":"failing"}`},
		"no store or scanner": {bad, bad, 503, `"checks":{"scanner":"failing","store":"failing"}`},
	} {
		synctest.Test(t, func(t *testing.T) { // how long a check may take is little for a busy machine
			status, body := readyz(t, b, Check{Name: "store", Readiness: c.store}, Check{Name: "scanner", Readiness: c.scanner, Informs: true})
			if status != c.status || !strings.Contains(body, c.shows) || strings.Contains(body, "secret") {
				t.Errorf("%s: %d %s", name, status, body)
			}
		})
	}
}

// counts keeps what a door counts.
type counts struct {
	mu    sync.Mutex
	seen  []count
	begun []string
}

type count struct {
	operation string
	status    int
	in, out   int64
}

func (c *counts) Begun(operation string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = append(c.begun, operation)
}

func (c *counts) Request(operation string, status int, in, out int64, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, count{operation, status, in, out})
}

func TestRequestsAreCounted(t *testing.T) {
	c := &counts{}
	b := newBench(t, func(cfg *Config) { cfg.Requests = c })
	part := b.call("PUT", oneUpload+"/parts/1", strings.NewReader("eight by"), asUp, key, asB)
	stranger := b.call("GET", base+"/quota", nil)
	lost := b.call("GET", "/nowhere", nil)
	token := b.call("POST", "/oauth/token", strings.NewReader("grant_type=x"), "Content-Type: application/x-www-form-urlencoded")
	b.stop()
	want := []count{
		{"putPartnerUploadPartByPath", 200, 8, int64(len(part.raw))}, {string(custody.OpQuota), 401, 0, int64(len(stranger.raw))},
		{"", 404, 0, int64(len(lost.raw))}, {"issueAccessToken", token.StatusCode, 12, int64(len(token.raw))},
	}
	if !slices.Equal(c.seen, want) {
		t.Errorf("counted %+v, want %+v", c.seen, want)
	}
	if want := []string{"putPartnerUploadPartByPath", string(custody.OpQuota), "issueAccessToken"}; !slices.Equal(c.begun, want) {
		t.Errorf("begun %v, want %v", c.begun, want)
	}
}

// The answer's traceparent names the same trace, another span, and whether the sender samples.
func TestTraceparentOfAnswers(t *testing.T) {
	const id, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	b := newBench(t)
	for sent, want := range map[string][2]string{
		"00-" + id + "-" + span + "-01": {"00-" + id + "-", "-01"}, "00-" + id + "-" + span + "-02": {"00-" + id + "-", "-00"},
		"cc-" + id + "-" + span + "-03-x": {"00-" + id + "-", "-01"}, "broken": {"00-", "-00"},
	} {
		r := b.call("GET", "/nowhere", nil, "Traceparent: "+sent)
		got := r.Header.Get("Traceparent")
		if !strings.HasPrefix(got, want[0]) || !strings.HasSuffix(got, want[1]) || strings.Contains(got, span) || !traceparent.MatchString(got) ||
			!strings.Contains(got, r.body.TraceID) {
			t.Errorf("%s: answered %s", sent, got)
		}
	}
}
