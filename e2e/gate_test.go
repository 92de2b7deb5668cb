package e2e

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
)

// wantEnd follows an upload to a terminal status other than READY and returns its failure.
func (p partner) wantEnd(uploadID, terminal, gate, code string) status {
	p.t.Helper()
	st := p.follow(uploadID)
	if st.Status != terminal || st.Failure == nil || st.Failure.Gate != gate || st.Failure.Code != code {
		p.t.Fatalf("want %s at %s for %s: %+v %+v", terminal, gate, code, st, st.Failure)
	}
	// A sentence a person understands, with nothing of the machine in it.
	if m := st.Failure.Message; len(m) < 20 || !strings.Contains(m, " ") || strings.ContainsAny(m, "/\n") {
		p.t.Errorf("message %q", m)
	}
	state := "passed" // up to the gate, which ended it; the rest never began
	for _, g := range st.Gates {
		want := state
		if g.Name == gate {
			want, state = map[string]string{"REJECTED": "rejected", "FAILED": "failed"}[terminal], "pending"
		}
		if g.State != want {
			p.t.Errorf("gate %s is %s, want %s", g.Name, g.State, want)
		}
	}
	return st
}

func TestMalwareIsRejected(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	content := append(append(note("hidden-cargo"), eicar()...), note("hidden-cargo")...)
	id := p.send("note.txt", "text/plain", content)
	st := p.wantEnd(id, "REJECTED", "malware_scan", "malware_found")
	if !strings.Contains(st.Failure.Message, "EICAR") || st.Gates[2].Detail["signature"] == "" {
		t.Errorf("failure: %+v, detail %v", st.Failure, st.Gates[2].Detail)
	}
	s.context("harbour", reader, id).want(t, 404, "context_not_ready")
	s.wantUnseen("hidden-cargo", eicar()[:40])
	if found := s.records("harbour", reader, ""); len(found) != 0 {
		t.Errorf("records: %+v", found)
	}
	p.wantWithdrawn(id, len(content))
	s.wantNoObjects()
}

func TestMalwareIsFoundAcrossParts(t *testing.T) {
	t.Parallel()
	s := start(t, smallParts())
	p := s.partner("harbour")
	content := append(append(noise(partSize-30, 11), eicar()...), noise(3*partSize, 12)...)
	parts := cut(content, partSize)
	id := p.initiate("a.bin", "application/octet-stream", len(content))
	for i, part := range parts {
		p.part(id, i+1, part).want(t, 200, "")
	}
	p.complete(id, parts).want(t, 202, "")
	p.wantEnd(id, "REJECTED", "malware_scan", "malware_found")
}

func TestSilenceOfTheScannerIsNoPass(t *testing.T) {
	t.Parallel()
	hung := newGatekeeper(t)
	for name, address := range map[string]string{"nobody listens": "tcp:" + freeAddress(t), "accepts and never answers": hung.address} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, options{env: []string{"ACCESSION_CLAMD_ADDRESS=" + address}, flags: []string{"--gate-deadlines", "malware_scan=20s"}})
			p := s.partner("harbour")
			id := p.send("note.txt", "text/plain", note("blind-watch"))
			p.wantEnd(id, "FAILED", "malware_scan", "scanner_unavailable")
			s.context("harbour", s.issue("harbour", "ai_reader"), id).want(t, 404, "context_not_ready")
			p.wantWithdrawn(id, len(note("blind-watch")))
		})
	}
}

func TestUnreadableDocumentsAreRejected(t *testing.T) {
	t.Parallel()
	s := start(t, options{})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	for _, c := range []struct {
		name, mediaType string
		content         []byte
		gate, code      string
	}{
		{"garbage that says PDF", "application/pdf", append([]byte("%PDF-1.7\n"), noise(5000, 3)...), "extraction", "document_broken"},
		{"no format at all", "application/pdf", noise(5000, 4), "extraction", "media_type_mismatch"},
		{"a cut PDF", "application/pdf", scannedPDF(t)[:20000], "extraction", "document_broken"},
		{"an encrypted PDF", "application/pdf", readFile(t, "../internal/extract/testdata/encrypted.pdf"), "malware_scan", "content_unscannable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := p.in(t)
			id := p.send("document.pdf", c.mediaType, c.content)
			p.wantEnd(id, "REJECTED", c.gate, c.code)
			s.context("harbour", reader, id).want(t, 404, "context_not_ready")
		})
	}
}

func TestMissingTesseractIsTriedAgainAndFails(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"PATH=" + t.TempDir()}, flags: []string{"--gate-deadlines", "extraction=1m"}}) // the first attempt draws a page, and must leave time for another
	p := s.partner("harbour")
	pdf := scannedPDF(t)
	id := p.send("record.pdf", "application/pdf", pdf)
	st := p.wantEnd(id, "FAILED", "extraction", "extractor_unavailable")
	if n, _ := st.Gates[3].Detail["attempts"].(float64); n < 2 {
		t.Errorf("attempts: %v", st.Gates[3].Detail)
	}
	p.wantReady(p.send("note.txt", "text/plain", note("no-eyes"))) // text needs none
}

// Whoever tampers with what is stored gets no context out of it.
func TestTamperedBytesNeverBecomeReady(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, folder string
		gates        []string // that may find it: what a gate has read already it need not read again
	}{
		{"before complete", "blobs", []string{"integrity"}},
		{"in staging, once integrity has passed", "blobs", []string{"malware_scan", "extraction"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			keeper := newGatekeeper(t)
			s := start(t, options{env: []string{"ACCESSION_CLAMD_ADDRESS=" + keeper.address}})
			p := s.partner("harbour")
			content := note("bent-spoon")
			id := p.initiate("note.txt", "text/plain", len(content))
			p.part(id, 1, content).want(t, 200, "")
			if c.gates[0] == "integrity" {
				flipByte(t, filepath.Join(s.data, c.folder))
				p.complete(id, [][]byte{content}).want(t, 202, "")
			} else {
				p.complete(id, [][]byte{content}).want(t, 202, "")
				p.awaitGate(id, "malware_scan", "running")
				flipByte(t, filepath.Join(s.data, c.folder))
			}
			keeper.open()
			st := p.follow(id)
			if st.Status != "REJECTED" || !slices.Contains(c.gates, st.Failure.Gate) || st.Failure.Code != "stored_bytes_differ" {
				t.Fatalf("%+v %+v", st, st.Failure)
			}
			s.context("harbour", s.issue("harbour", "ai_reader"), id).want(t, 404, "context_not_ready")
			s.wantUnseen("bent-spoon")
			p.wantWithdrawn(id, len(content))
		})
	}
}

// flipByte changes one bit in the middle of the only file below root.
func flipByte(t *testing.T, root string) {
	t.Helper()
	found := files(t, root)
	if len(found) != 1 {
		t.Fatalf("%d files below %s", len(found), root)
	}
	content := readFile(t, found[0])
	content[len(content)/2] ^= 1
	if err := os.WriteFile(found[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// awaitGate follows an upload until a gate is in a state.
func (p partner) awaitGate(uploadID, gate, state string) {
	p.t.Helper()
	etag := ""
	for range 100 {
		r := p.do(call{method: "GET", path: p.path("/partner-uploads/" + uploadID), token: p.token,
			header: map[string]string{"Prefer": "wait=10", "If-None-Match": etag}})
		if r.Status == 304 {
			continue
		}
		st := decode[status](p.t, r.want(p.t, 200, ""))
		for _, g := range st.Gates {
			if g.Name == gate && g.State == state {
				return
			}
		}
		if custody.Status(st.Status).Terminal() {
			break
		}
		etag = r.Header.Get("ETag")
	}
	p.t.Fatalf("gate %s was never %s: %+v", gate, state, p.status(uploadID))
}

// gatekeeper stands before the shared clamd: it takes connections and holds them until it is told to let them through.
type gatekeeper struct {
	address string // for ACCESSION_CLAMD_ADDRESS
	opened  chan struct{}
	once    sync.Once
}

func newGatekeeper(t testing.TB) *gatekeeper {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &gatekeeper{address: "tcp:" + l.Addr().String(), opened: make(chan struct{})}
	ended := make(chan struct{})
	var guests sync.WaitGroup
	t.Cleanup(func() {
		close(ended)
		l.Close()
		guests.Wait()
	})
	guests.Go(func() {
		for {
			guest, err := l.Accept()
			if err != nil {
				return
			}
			guests.Go(func() {
				defer guest.Close()
				select {
				case <-k.opened:
					pass(guest)
				case <-ended:
				}
			})
		}
	})
	return k
}

// open lets everybody through, from now on.
func (k *gatekeeper) open() { k.once.Do(func() { close(k.opened) }) }

// pass joins a connection with the shared clamd, until clamd has answered.
func pass(guest net.Conn) {
	host, err := net.Dial("unix", strings.TrimPrefix(clamd, "unix:"))
	if err != nil {
		return
	}
	defer host.Close()
	go func() {
		_, _ = io.Copy(host, guest)
		_ = host.(*net.UnixConn).CloseWrite() // a guest that leaves is not waited for
	}()
	_, _ = io.Copy(guest, host)
}

// While pages are being recognised, whoever asks is told how many.
func TestProgressIsSeenPageByPage(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"ACCESSION_RATE_LIMITS=off"}})
	p := s.partner("harbour")
	db := s.database(t, "metadata.db")
	// A progress is no event, so nobody can wait for it: what comes after the first is not kept before that was seen.
	mustExec(t, db, `CREATE TRIGGER first_page BEFORE UPDATE ON gates WHEN OLD.name = 'extraction' AND json_extract(OLD.detail, '$.pages_done') = 1
		BEGIN SELECT RAISE(ABORT, 'nobody has asked yet'); END`)
	id := p.send("record.pdf", "application/pdf", scannedPDF(t))
	p.awaitGate(id, "extraction", "running")
	for deadline := time.Now().Add(faultPatience); ; {
		st := p.status(id)
		if custody.Status(st.Status).Terminal() || time.Now().After(deadline) {
			t.Fatalf("no progress was shown: %+v", st)
		}
		if done, ok := st.Gates[3].Detail["pages_done"].(float64); ok && st.Gates[3].State == "running" {
			if done != 1 || st.Gates[3].Detail["pages"] != float64(4) {
				t.Errorf("progress: %+v", st.Gates[3])
			}
			break
		}
	}
	mustExec(t, db, `DROP TRIGGER first_page`)
	p.wantReady(id)
}
