package httpapi

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/ratelimit"
)

// unsent is an answer that nobody gets.
type unsent struct {
	header http.Header
	status int
}

func (u *unsent) Header() http.Header         { return u.header }
func (u *unsent) Write(b []byte) (int, error) { return len(b), nil }
func (u *unsent) WriteHeader(status int)      { u.status = status }

// What the door itself costs: rooms answer at once, and nothing goes over a wire.
func BenchmarkDoor(b *testing.B) {
	r := &rooms{state: custody.UploadState{Upload: custody.Upload{
		ID: "up_1", OrgID: "org_1", PipelineID: "pl_1", Status: custody.StatusReady, Sequence: 15, NextPart: 2, Filename: "note.txt", SizeBytes: 2048, ReceivedBytes: 2048, PartSizeBytes: 1 << 20,
		CreatedAt: time.Date(2026, 11, 20, 9, 30, 0, 120e6, time.UTC), UpdatedAt: time.Date(2026, 11, 20, 9, 30, 1, 0, time.UTC),
	}}}
	for _, g := range custody.Gates {
		r.state.Gates = append(r.state.Gates, custody.GateShown{Name: g.Name, State: custody.GatePassed, StartedAt: r.state.CreatedAt, FinishedAt: r.state.UpdatedAt,
			Detail: json.RawMessage(`{"engine":"ClamAV","engine_version":"1.4.3","scanned_bytes":2048,"sha256":"` + custody.FirstHash + `","truncated":false}`)})
	}
	cfg := Config{BaseURL: "http://127.0.0.1", Log: slog.New(slog.NewJSONHandler(io.Discard, nil)), Sandbox: nowhere{}, Slots: ratelimit.NewGate(ratelimit.DefaultSlots)}
	door, err := New(cfg, r, r, r, r, r, r, r)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name, path, token, seen string
		want                    int
	}{
		{"status", oneUpload, uploaderToken, "", 200},
		{"not modified", oneUpload, uploaderToken, "*", 304},
		{"context", base + "/ai-context/up_1", readerToken, "", 200},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			request := httptest.NewRequest(http.MethodGet, c.path, nil)
			request.Header.Set("X-Api-Key", c.token)
			if c.seen != "" {
				request.Header.Set("If-None-Match", c.seen)
			}
			for b.Loop() {
				w := &unsent{header: http.Header{}}
				door.ServeHTTP(w, request)
				if w.status != c.want {
					b.Fatal(w.status)
				}
			}
		})
	}
}

type nowhere struct{ Sandbox }
