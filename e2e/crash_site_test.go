package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver named "sqlite"
)

// site is one data folder whose service dies under its clients. Whoever needs it next starts it again, and it must come up.
type site struct {
	t     testing.TB // owns the processes
	first []string   // environment of the first start alone
	o     options

	mu       sync.Mutex
	now      *service
	began    time.Time     // of now
	timed    *service      // whose start is in slowest
	slowest  time.Duration // start until it was ready
	deaths   []string      // what each dead service said last about a crash point, "" where it was killed from outside
	answered chan struct{} // gets one for every answer, as far as somebody listens
}

func newSite(t testing.TB, binary string, first ...string) *site {
	return &site{
		t: t, first: first, answered: make(chan struct{}, 64),
		o: options{
			data: filepath.Join(t.TempDir(), "data"), binary: binary,
			flags: []string{"--listen", "127.0.0.1:0"}, // of hundreds of starts no two fight over a port
			env:   []string{fmt.Sprintf("ACCESSION_PART_SIZE_BYTES=%d", crashPartSize)},
		},
	}
}

// service returns the one that runs, after starting it where none does.
func (h *site) service() (*service, error) {
	ctx, cancel := context.WithTimeout(context.Background(), faultPatience)
	defer cancel()
	for ctx.Err() == nil {
		h.mu.Lock()
		s, err := h.startIfDead()
		h.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if s.log.await(ctx, s.done, "accession is ready at") {
			h.mu.Lock()
			defer h.mu.Unlock()
			if said := s.saidURL(); s.url != said { // written once, before anybody asks it
				s.url = said
			}
			if h.timed != s && h.now == s {
				h.timed, h.slowest = s, max(h.slowest, time.Since(h.began))
			}
			return s, nil
		}
	}
	return nil, errors.New("the service does not come up")
}

func (h *site) startIfDead() (*service, error) {
	o := h.o
	if h.now == nil {
		o.env = append(slices.Clone(o.env), h.first...)
	} else {
		select {
		case <-h.now.done:
		default:
			return h.now, nil
		}
		status, ok := h.now.cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
			return nil, fmt.Errorf("the service ended by itself (start %d): %v\n%s", len(h.deaths)+1, h.now.err, h.now.log)
		}
		h.deaths = append(h.deaths, crashedAt(h.now))
	}
	h.began = time.Now()
	h.now = launch(h.t, o)
	return h.now, nil
}

// crashedAt is the name of the last crash point in a service's log.
func crashedAt(s *service) string {
	names := hits(s)
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1]
}

// hits are the crash points a service's log names, in their order.
func hits(s *service) (names []string) {
	for _, line := range s.log.lines("crashpoint ") {
		_, name, _ := strings.Cut(strings.TrimPrefix(line, "crashpoint "), " ")
		names = append(names, name)
	}
	return names
}

// died lists the deaths so far.
func (h *site) died() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now != nil {
		select {
		case <-h.now.done:
			return append(slices.Clone(h.deaths), crashedAt(h.now))
		default:
		}
	}
	return slices.Clone(h.deaths)
}

// kill ends whatever runs now, ready or not.
func (h *site) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now != nil {
		h.now.kill()
	}
}

// saidURL is the address that a ready service printed.
func (s *service) saidURL() string {
	for _, line := range s.log.lines("accession is ready at ") {
		return strings.TrimPrefix(line, "accession is ready at ")
	}
	return ""
}

// database opens one of the databases that a dead service left, as it left it.
func (h *site) database(t testing.TB, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(h.o.data, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	var verdict string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("%s: integrity_check: %q, %v", name, verdict, err)
	}
	broken, err := db.Query("PRAGMA foreign_key_check")
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	if broken.Next() {
		t.Errorf("%s: a foreign key points nowhere", name)
	}
	return db
}

// count runs a query for one number.
func count(t testing.TB, db *sql.DB, query string, args ...any) (n int) {
	t.Helper()
	if err := db.QueryRow(query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// objects lists the files left in both storage roots.
func (h *site) objects(t testing.TB) (left []string) {
	t.Helper()
	for _, root := range []string{"blobs", "quarantine"} {
		if err := filepath.WalkDir(filepath.Join(h.o.data, root), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				left = append(left, path)
			}
			return err
		}); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return left
}
