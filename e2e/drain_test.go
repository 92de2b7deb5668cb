package e2e

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// terminate asks the service to end and returns once it has begun to.
func (s *service) terminate() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	s.awaitLog(`"msg":"stopping"`)
}

func TestReadinessFailsBeforeRequestsAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, options{flags: []string{"--drain-delay", "1m"}}) // all that is asked below has to come before its end
	p := s.partner("harbour")
	begun := p.initiate("early.txt", "text/plain", 10)
	gone := p.initiate("gone.txt", "text/plain", 10)
	s.terminate()
	for deadline := time.Now().Add(2 * time.Minute); ; { // a check of the store that a busy machine holds up fails, too
		r := s.do(call{method: "GET", path: "/readyz"}).want(t, 503, "service_unavailable")
		checks, _ := r.Details["checks"].(map[string]any)
		if checks["accepting"] != "failing" || time.Now().After(deadline) {
			t.Fatalf("readyz: %s", r.Raw)
		}
		if checks["store"] == "ok" {
			break
		}
	}
	s.do(call{method: "GET", path: "/healthz"}).want(t, 200, "") // it is not dead, and nobody should kill it
	p.part(begun, 1, []byte("0123456789")).want(t, 200, "")
	p.withdraw(gone).want(t, 200, "") // which waits for a worker
	late := p.initiate("late.txt", "text/plain", 10)
	request, err := http.NewRequest("GET", s.url+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if !resp.Close {
		t.Error("an answer keeps its connection although the process stops")
	}
	<-s.done
	if exit := s.cmd.ProcessState.ExitCode(); exit != 0 {
		t.Errorf("exit %d", exit)
	}
	again := partner{start(t, options{data: s.data}), "harbour", p.token}
	if st := again.status(begun); st.ReceivedBytes != 10 {
		t.Errorf("an acknowledged part is gone: %+v", st)
	}
	if st := again.status(late); st.Status != "INITIATED" {
		t.Errorf("an acknowledged reservation is gone: %+v", st)
	}
}

func TestRequestUnderWayEndsWithItsAnswer(t *testing.T) {
	t.Parallel()
	keeper := newGatekeeper(t)
	s := start(t, options{flags: []string{"--drain-time", "1m"}, env: []string{"ACCESSION_CLAMD_ADDRESS=" + keeper.address}})
	p := s.partner("harbour")
	held := p.send("note.txt", "text/plain", note("held-at-the-gate"))
	p.awaitGate(held, "malware_scan", "running")
	id := p.initiate("a.bin", "application/octet-stream", 20)
	before := len(s.objects())
	conn := p.rawPart(id, 1, "part-in-flight", 20, []byte("0123456789"))
	s.awaitObjects(before + 1)
	s.terminate()
	if _, err := io.WriteString(conn, "0123456789"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("the part was answered %s", resp.Status)
	}
	if rest, err := io.ReadAll(conn); err != nil || len(rest) != 0 && !strings.HasPrefix(string(rest), "{") {
		t.Errorf("the connection ended with %q, %v", rest, err)
	}
	<-s.done
	if exit := s.cmd.ProcessState.ExitCode(); exit != 0 {
		t.Errorf("exit %d", exit)
	}
	db := s.database(t, "metadata.db")
	if n := count(t, db, "SELECT count(*) FROM uploads WHERE lease <> ''"); n != 0 {
		t.Errorf("%d leases were not given back", n)
	}
	if n := count(t, db, "SELECT count(*) FROM uploads WHERE upload_id = $1 AND status = 'PROCESSING'", held); n != 1 {
		t.Error("the upload at the gate is not processed any more")
	}
	again := partner{start(t, options{data: s.data}), "harbour", p.token}
	if st := again.status(id); st.ReceivedBytes != 20 {
		t.Errorf("an acknowledged part is gone: %+v", st)
	}
	again.wantReady(held)
}
