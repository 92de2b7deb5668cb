package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/accession/accession/client"
	"github.com/accession/accession/internal/storetest/cluster"
)

// premises are what the processes of one installation share: a database, storage, and a key file.
type premises struct {
	t      testing.TB
	url    string
	shared string
}

func newPremises(t testing.TB) premises {
	t.Helper()
	return premises{t, cluster.Database(t), t.TempDir()}
}

// options of a process with a role; each has a data folder of its own, or the given one.
func (p premises) options(data, roles string, env ...string) options {
	if data == "" {
		data = filepath.Join(p.t.TempDir(), "data")
	}
	return options{data: data, env: append([]string{
		"ACCESSION_DATABASE=" + p.url, "ACCESSION_ROLES=" + roles, "ACCESSION_BASE_URL=http://custody.example", "ACCESSION_RATE_LIMITS=off",
		"ACCESSION_BLOBS=" + filepath.Join(p.shared, "blobs"), "ACCESSION_QUARANTINE=" + filepath.Join(p.shared, "quarantine"),
		"ACCESSION_KEYS=" + filepath.Join(p.shared, "key-encryption.key"),
	}, env...)}
}

func TestRolesApart(t *testing.T) {
	t.Parallel()
	site := newPremises(t)
	// Whatever this one had scanned would never come to an end.
	door := start(t, site.options("", "api", "ACCESSION_CLAMD_ADDRESS="+newGatekeeper(t).address))
	hand := start(t, site.options("", "worker"))
	for path, status := range map[string]int{"/healthz": 200, "/readyz": 200, "/api/v1/ai/capabilities": 404, "/api/v1/ai/openapi.json": 404} {
		if r := hand.do(call{method: "GET", path: path}); r.Status != status {
			t.Errorf("worker: %s: %d", path, r.Status)
		}
	}
	hand.do(call{method: "POST", path: "/admin/tenant-keys/issue", bearer: adminToken}).want(t, 404, "route_not_found")

	p := door.partner("harbour")
	var ids []string
	for range 8 {
		ids = append(ids, p.send("note.txt", "text/plain", note("two-hands")))
	}
	for _, id := range ids {
		p.wantReady(id)
	}
	p.wantWithdrawn(ids[0], len(note("two-hands")))

	// Without any worker the door still takes texts, whose gates run inside the request; a withdrawal waits for one.
	if exit := hand.stop(); exit != 0 {
		t.Errorf("worker: exit %d", exit)
	}
	idle := start(t, site.options("", "worker"))
	idle.freeze() // as good as none: a start would last as long as the withdrawal waits, on a busy machine
	second := partner{start(t, site.options("", "api")), "harbour", p.token}
	text := second.submit(text("The crane was serviced in May.", nil))
	second.wantReady(text)
	withdrawn := second.trying(second.withdrawing(text, client.NewIdempotencyKey(), "nobody is at work"))
	second.awaitStatus(text, "WITHDRAWING")
	idle.thaw()
	if r := <-withdrawn; r.Status != http.StatusOK {
		t.Errorf("a withdrawal that another process finished: %d %s %s", r.Status, r.Message, r.Raw)
	}
	for _, s := range []*service{door, second.service} {
		if exit := s.stop(); exit != 0 {
			t.Errorf("api: exit %d", exit)
		}
	}
}

func TestRolesApartAreRefusedWithNothingShared(t *testing.T) {
	t.Parallel()
	site := newPremises(t)
	for _, c := range []struct {
		says string
		args []string
	}{
		{"--roles must be all with SQLite", nil},
		{"--base-url is needed", []string{"--database", site.url}},
		{"--blobs must be set", []string{"--database", site.url, "--base-url", "http://custody.example"}},
	} {
		exit, said := refused(t, nil, append([]string{"--data", t.TempDir(), "--roles", "worker"}, c.args...)...)
		if exit != 2 || !strings.Contains(said, c.says) {
			t.Errorf("exit %d, said %q, want 2 and %q", exit, said, c.says)
		}
	}
}

// awaitStatus returns once the upload has this status. Nobody is told when a terminal one is left, so it asks again and again.
func (p partner) awaitStatus(uploadID, want string) {
	p.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); p.status(uploadID).Status != want; {
		if time.Now().After(deadline) {
			p.t.Fatalf("upload %s was never %s", uploadID, want)
		}
	}
}

// freeze stops the process as it is, and returns when all of it stands still.
func (s *service) freeze() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
	for deadline := time.Now().Add(2 * time.Minute); s.moves(); runtime.Gosched() {
		if time.Now().After(deadline) {
			s.t.Fatal("the process does not stand still")
		}
	}
}

// thaw lets a frozen process go on.
func (s *service) thaw() {
	s.t.Helper()
	s.signal(syscall.SIGCONT)
}

func (s *service) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// moves tells whether any thread of the process is not stopped.
func (s *service) moves() bool {
	s.t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.cmd.Process.Pid))
	if err != nil || len(threads) == 0 {
		s.t.Fatalf("%d threads, %v", len(threads), err)
	}
	for _, path := range threads {
		stat, err := os.ReadFile(path)
		if err != nil { // the thread has ended meanwhile
			return true
		}
		if _, state, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(state, "T") { // "id (name) state …"
			return true
		}
	}
	return false
}
