package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/accession/accession/client"
)

func TestAdminTokenIsMadeAndKeptWhenNoneIsGiven(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"ACCESSION_ADMIN_TOKEN="}})
	place := filepath.Join(s.data, "admin-token")
	s.awaitLog("admin token: " + place)
	info, err := os.Stat(place)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info.Mode(), err)
	}
	kept := readFile(t, place)
	token := strings.TrimSpace(string(kept))
	if len(token) < 32 || strings.Contains(s.log.String(), token) {
		t.Errorf("token of %d characters, or printed", len(token))
	}
	issue := issuing(client.NewIdempotencyKey(), "harbour", "ai_reader")
	issue.bearer = token
	s.do(issue).want(t, 201, "")
	if exit := s.stop(); exit != 0 {
		t.Errorf("exit %d", exit)
	}
	again := start(t, options{data: s.data, env: []string{"ACCESSION_ADMIN_TOKEN="}})
	issue.key = client.NewIdempotencyKey()
	again.do(issue).want(t, 201, "")
	if !bytes.Equal(kept, readFile(t, place)) {
		t.Error("another token was made")
	}
}

// refused runs a serve that must not start and returns its exit code and what it said.
func refused(t *testing.T, env []string, args ...string) (exit int, said string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(binary, append([]string{"serve"}, args...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ACCESSION_CLAMD_ADDRESS=" + clamd}, env...)
	cmd.Stdout, cmd.Stderr = &out, &out
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() }) // one that does start
	defer timer.Stop()
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "accession is ready") {
		t.Fatalf("it started: %s", out.String())
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

func TestWrongSettingsAreRefusedWithAdvice(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	listen := []string{"--listen", "127.0.0.1:0"}
	for _, c := range []struct {
		name   string
		env    []string
		args   []string
		advice string
	}{
		{"no data folder", nil, nil, "--data DIR"},
		{"unknown flag", nil, []string{"--data", data, "--port", "80"}, "--help"},
		{"an argument", nil, []string{"--data", data, "now"}, "write:"},
		{"listen address", nil, []string{"--data", data, "--listen", "8080"}, "127.0.0.1:8080"},
		{"part size", nil, []string{"--data", data, "--part-size-bytes", "1000"}, "multiple of 64"},
		{"part size of the environment", []string{"ACCESSION_PART_SIZE_BYTES=big"}, []string{"--data", data}, "ACCESSION_PART_SIZE_BYTES must be a whole number"},
		{"quota", nil, []string{"--data", data, "--quota-bytes", "-1"}, "must not be negative"},
		{"gate", nil, []string{"--data", data, "--gate-deadlines", "metal_scan=3s"}, "malware_scan=30m"},
		{"deadline", nil, []string{"--data", data, "--gate-deadlines", "malware_scan=soon"}, "malware_scan=30m"},
		{"reservation", nil, []string{"--data", data, "--reservation-lifetime", "-1h"}, "24h"},
		{"one storage root", nil, []string{"--data", data, "--blobs", "/srv/x", "--quarantine", "/srv/x"}, "different folders"},
		{"database", nil, []string{"--data", data, "--database", "mysql://x"}, "leave it out"},
		{"base URL", nil, []string{"--data", data, "--base-url", "custody.example"}, "https://custody.example"},
		{"short admin token", []string{"ACCESSION_ADMIN_TOKEN=hunter2-hunter2"}, append([]string{"--data", data}, listen...), "32 characters"},
	} {
		t.Run(c.name, func(t *testing.T) {
			exit, said := refused(t, c.env, c.args...)
			if exit != 2 || !strings.Contains(said, c.advice) || strings.Contains(said, "hunter2") {
				t.Errorf("exit %d, said %q, want 2 and %q", exit, said, c.advice)
			}
		})
	}
}

func TestOneServiceAloneUsesADataFolder(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	exit, said := refused(t, []string{"ACCESSION_ADMIN_TOKEN=" + adminToken}, "--data", s.data, "--listen", "127.0.0.1:0")
	if exit == 0 || !strings.Contains(said, "another accession uses the data folder") {
		t.Errorf("exit %d, said %s", exit, said)
	}
	s.partner("harbour").initiate("note.txt", "text/plain", 10) // the first one is not disturbed
	s.kill()
	start(t, options{data: s.data}) // a crash leaves no lock
}

func TestTakenPortIsSaid(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	exit, said := refused(t, []string{"ACCESSION_ADMIN_TOKEN=" + adminToken}, "--data", t.TempDir(), "--listen", strings.TrimPrefix(s.url, "http://"))
	if exit == 0 || !strings.Contains(said, "cannot listen") || !strings.Contains(said, "name another address with --listen") {
		t.Errorf("exit %d, said %s", exit, said)
	}
}

// The bound is the issue's: SIGTERM drains and stops in under 10 s, whatever clients do. No clock tells here, since a busy machine has
// its own: a poll that was to last 30 s, of a service that goes on, is still waiting when the other has stopped.
func TestStopEndsRequestsThatWouldLast(t *testing.T) {
	t.Parallel()
	s, goesOn := start(t, smallParts()), start(t, options{}).partner("harbour")
	p := s.partner("harbour")
	parts := cut(noise(2*partSize, 41), partSize)
	id := p.initiate("a.bin", "application/octet-stream", 2*partSize)
	p.part(id, 1, parts[0]).want(t, 200, "")
	before := p.status(id)
	conn := p.rawPart(id, 2, "part-in-flight", partSize, parts[1][:100]) // and never the rest
	s.awaitObjects(2)
	polling := func(p partner, id string) <-chan reply {
		return p.trying(call{method: "GET", path: p.path("/partner-uploads/" + id), token: p.token, header: map[string]string{"Prefer": "wait=30"}})
	}
	polled := polling(p, id)
	lasting := polling(goesOn, goesOn.initiate("a.txt", "text/plain", 10))
	if exit := s.stop(); exit != 0 {
		t.Errorf("exit %d", exit)
	}
	select {
	case r := <-lasting:
		t.Errorf("it stopped no sooner than a poll ends by itself: %d %s %s", r.Status, r.Message, r.Raw)
	default:
	}
	// Answered as it stands; or not at all, where the service stopped before it had read the request.
	if r := <-polled; r.Status != 0 && (r.Status != 200 || decode[status](t, r).Sequence != before.Sequence) {
		t.Errorf("long poll: %d %s", r.Status, r.Raw)
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if answer, _ := io.ReadAll(conn); bytes.HasPrefix(answer, []byte("HTTP/1.1 2")) {
		t.Errorf("half a part was acknowledged: %s", answer)
	}
	again := partner{start(t, options{data: s.data}), "harbour", p.token}
	if st := again.status(id); st.NextPartNumber != 2 || st.ReceivedBytes != partSize {
		t.Errorf("after restart: %+v", st)
	}
	again.part(id, 2, parts[1]).want(t, 200, "")
}

// awaitObjects returns once that many files are in the storage roots; only the folders tell.
func (s *service) awaitObjects(n int) {
	s.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); len(s.objects()) < n; {
		if time.Now().After(deadline) {
			s.t.Fatalf("%d objects, want %d", len(s.objects()), n)
		}
	}
}

func TestRestartGoesOnWithWhatWasBeingProcessed(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*service){"SIGTERM": func(s *service) { s.stop() }, "kill": func(s *service) { s.kill() }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keeper := newGatekeeper(t)
			s := start(t, options{env: []string{"ACCESSION_CLAMD_ADDRESS=" + keeper.address}})
			p := s.partner("harbour")
			id := p.send("note.txt", "text/plain", note("night-crossing"))
			p.awaitGate(id, "malware_scan", "running")
			before := p.status(id)
			end(s)
			again := partner{start(t, options{data: s.data}), "harbour", p.token}
			st := again.wantReady(id)
			if st.Sequence <= before.Sequence {
				t.Errorf("sequence %d, was %d", st.Sequence, before.Sequence)
			}
			again.wantWithdrawn(id, len(note("night-crossing")))
			again.wantNoObjects()
		})
	}
}

func TestFilesBelongToTheServiceAlone(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: append(managedClamd(), "ACCESSION_ADMIN_TOKEN=")})
	admin := strings.TrimSpace(string(readFile(t, filepath.Join(s.data, "admin-token"))))
	issue := issuing(client.NewIdempotencyKey(), "harbour", "solution_company_upload")
	issue.bearer = admin
	p := partner{s, "harbour", s.do(issue).want(t, 201, "").field(t, "token")}
	p.wantReady(p.send("note.txt", "text/plain", note("locked-door")))
	err := filepath.WalkDir(s.data, func(path string, d fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		if errors.Is(err, fs.ErrNotExist) { // the service works in there
			return nil
		}
		if err != nil {
			return err
		}
		if d.IsDir() && info.Mode().Perm() != 0o700 || info.Mode().IsRegular() && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", strings.TrimPrefix(path, s.data), info.Mode())
		}
		if d.IsDir() && d.Name() == "clamd" {
			return fs.SkipDir // clamd's own account reads in there; the folder around it is closed
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	if r := s.do(call{method: "GET", path: "/healthz"}).want(t, 200, ""); r.field(t, "status") != "ok" {
		t.Errorf("healthz: %s", r.Raw)
	}
	want := map[string]string{"accepting": "ok", "blobs": "ok", "disk": "ok", "keys": "ok", "room": "ok", "scanner": "ok", "store": "ok"}
	// A check that has no answer in time fails: on a busy machine that may be the word of a moment.
	for deadline := time.Now().Add(2 * time.Minute); ; {
		r := s.do(call{method: "GET", path: "/readyz"})
		ready := struct {
			Status string
			Checks map[string]string
		}{}
		if r.Status == 200 {
			if err := json.Unmarshal(r.Data, &ready); err != nil {
				t.Fatal(err)
			}
		}
		if ready.Status == "ready" && maps.Equal(ready.Checks, want) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("readyz: %d %s", r.Status, r.Raw)
		}
	}
	s.do(call{method: "GET", path: "/api/v2/organizations"}).want(t, 404, "route_not_found")
	if r := s.do(call{method: "DELETE", path: "/healthz"}).want(t, 405, "method_not_allowed"); r.Header.Get("Allow") == "" {
		t.Errorf("Allow: %v", r.Header)
	}
	contract := s.do(call{method: "GET", path: "/api/v1/ai/openapi.json"})
	if contract.Status != 200 || !bytes.Contains(contract.Raw, []byte(`"openapi":"3.1.0"`)) || !bytes.Contains(contract.Raw, []byte("v1-phase28")) {
		t.Errorf("openapi.json: %d", contract.Status)
	}
}

// A clamd that outlived its service would keep scratch files, in clear, of a document in the middle of its scan.
func TestManagedClamdEndsWithItsService(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*service){"SIGTERM": func(s *service) { s.stop() }, "kill": func(s *service) { s.kill() }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, options{env: managedClamd()})
			p := s.partner("harbour")
			p.wantReady(p.send("note.txt", "text/plain", note("own-watch")))
			p.wantEnd(p.send("note.txt", "text/plain", []byte(eicar())), "REJECTED", "malware_scan", "malware_found")
			s.awaitLog("NO FULL SIGNATURE DATABASE")
			pid := child(t, s.cmd.Process.Pid, "clamd")
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			end(s)
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 120_000)
			for err == unix.EINTR {
				n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 120_000)
			}
			if err != nil || n != 1 {
				t.Errorf("clamd %d outlives its service (%v)", pid, err)
			}
		})
	}
}

// childrenOf are the processes that a process has started, but for those that have ended, each as "pid (name) state".
func childrenOf(t *testing.T, parent int) (found []string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path) // "pid (name) state ppid …"
		if err != nil {
			continue
		}
		if fields := strings.Fields(string(stat)); len(fields) > 3 && fields[3] == strconv.Itoa(parent) {
			found = append(found, strings.Join(fields[:3], " "))
		}
	}
	return found
}

// child is the process of that name whose parent is pid.
func child(t *testing.T, parent int, name string) int {
	t.Helper()
	for _, of := range childrenOf(t, parent) {
		if fields := strings.Fields(of); fields[1] == "("+name+")" {
			pid, err := strconv.Atoi(fields[0])
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("process %d has no child %s", parent, name)
	return 0
}
