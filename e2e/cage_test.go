package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// flat is how far the service's own memory may grow while workers print and allocate without end.
const flat = 64 << 20

// reasons are what the operator's log says of each misbehaviour.
var reasons = map[string]string{
	"socket": "could not finish its work", "file": "could not finish its work", "write": "could not finish its work", "fork": "could not finish its work",
	"allocate": "needs more memory than it may have", "loop": "used more than it may", "hang": "no answer within",
	"print": "broke the protocol", "print-pages": "broke the protocol", "print-members": "broke the protocol",
}

// TestWallsHold uploads documents whose readers do what an exploited parser would, to a binary that is built for it, and an innocent
// one among them.
func TestWallsHold(t *testing.T) {
	t.Parallel()
	misbehaving := filepath.Join(t.TempDir(), "accession") // by a name of its own its processes are told from those of other tests
	if err := os.Link(misbehavingBinary(t), misbehaving); err != nil {
		t.Fatal(err)
	}
	s := start(t, options{binary: misbehaving, flags: []string{"--gate-deadlines", "malware_scan=60s,extraction=60s"}})
	p, reader := s.partner("harbour"), s.issue("harbour", "ai_reader")
	p.wantReady(p.send("note.txt", "text/plain", note("first-mark"))) // what reading costs at all is in the memory below
	before := s.mostMemory()

	address, reached := someListener(t)
	secret, out := filepath.Join(t.TempDir(), "secret"), filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(secret, []byte("hidden-compass-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	uploads := map[string]string{} // by what they ask for
	for _, ask := range []string{
		"text socket " + address, "text file " + secret, "text write " + out, "text fork -", "text allocate -", "text loop -", "text hang -",
		"text print -", "text print-pages -", "members allocate -", "members loop -", "members print-members -",
	} {
		uploads[ask] = p.send("bad.txt", "text/plain", fmt.Appendf(nil, "misbehave %s\nThe harbour office keeps this note.\n", ask))
	}
	p.wantReady(p.send("note.txt", "text/plain", note("innocent-mark")))
	for ask, id := range uploads {
		gate, code := "extraction", "extraction_unfinished"
		if strings.HasPrefix(ask, "members") {
			gate, code = "malware_scan", "unpacking_unfinished"
		}
		st := p.wantEnd(id, "FAILED", gate, code)
		// The gate has the sentence of its last try; the log has each try's reason.
		what := strings.Fields(ask)[1]
		t.Logf("%s: %s", what, st.Failure.Message)
		if !slices.ContainsFunc(s.log.lines(id), func(line string) bool { return strings.Contains(line, reasons[what]) }) {
			t.Errorf("%s: no reason %q in the log", ask, reasons[what])
		}
		s.context("harbour", reader, id).want(t, 404, "context_not_ready")
	}
	p.wantReady(p.send("note.txt", "text/plain", note("last-mark")))

	if n := reached(); n > 0 {
		t.Errorf("workers made %d connections", n)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a worker wrote a file")
	}
	s.wantUnseen("hidden-compass-secret", "the worker got through")
	if left := processesOf(t, misbehaving, "worker"); len(left) > 0 {
		t.Errorf("workers are left: %q", left)
	}
	grown := s.mostMemory() - before
	t.Logf("the service's memory grew by %d KiB", grown>>10)
	if grown > flat {
		t.Errorf("by more than %d KiB", flat>>10)
	}
}

// A release knows nothing of misbehaviour: the same document is a note like any other.
func TestReleaseDoesNotMisbehave(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"the worker got through", "print-members"} {
		if program := readFile(t, binary); bytes.Contains(program, []byte(name)) {
			t.Errorf("the released binary holds %q", name)
		}
	}
	s := start(t, options{})
	p := s.partner("harbour")
	p.wantReady(p.send("note.txt", "text/plain", []byte("misbehave text hang -\nThe harbour office keeps this note.\n")))
}

// someListener accepts connections on an address of its own, and counts them.
func someListener(t *testing.T) (address string, reached func() int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n.Add(1)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String(), n.Load
}

// mostMemory is the most that the service's process has ever held, in bytes.
func (s *service) mostMemory() int64 {
	s.t.Helper()
	status := string(readFile(s.t, fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid)))
	_, after, _ := strings.Cut(status, "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return kib << 10
}

// processesOf are the command lines of living processes of a program that hold word.
func processesOf(t *testing.T, program, word string) (found []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		exe, _ := os.Readlink(filepath.Join(filepath.Dir(path), "exe"))
		if exe == program && strings.Contains(string(line), word) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
