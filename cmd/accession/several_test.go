package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
	"github.com/accession/accession/client/clienttest"
)

func TestSeveralFiles(t *testing.T) {
	s := newStation(t)
	files := []string{s.file("a.bin", 2*part), s.file("b.bin", part+1), s.file("c.bin", 10)}
	got := s.run(append([]string{"upload", "--accept", "--concurrency", "3"}, files...)...)
	got.want(t, exitOK, "READY", "3 files: 3 READY; sent 192 KiB in")
	if strings.Count(got.stdout, "\n") != 3 || strings.Contains(got.stdout+got.stderr, "\x1b") {
		t.Errorf("not one plain line for each: %q", got.stdout)
	}
	if left := s.notes(); len(left) != 0 || s.service.Uploads() != 3 {
		t.Errorf("left behind %v, %d uploads", left, s.service.Uploads())
	}
}

func TestOneOfSeveralFails(t *testing.T) {
	s := newStation(t)
	a, b := s.file("a.bin", 10), s.file("b.bin", 20)
	got := s.run("upload", "--accept", a, a+"x", b)
	got.want(t, exitUsage, "READY", "1 of 3 files did not end well")
	for _, says := range []string{a + "x: file cannot be read", "3 files: 2 READY, 1 with an error", "run the same command again"} {
		if !strings.Contains(got.stderr, says) {
			t.Errorf("nothing of %q in %s", says, got.stderr)
		}
	}
	// The same command goes on: what is READY is not sent again.
	if err := os.WriteFile(a+"x", []byte("here now"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run("upload", "--accept", a, a+"x", b).want(t, exitOK, "", "3 files: 3 READY")
	if left := s.notes(); s.service.Uploads() != 3 || len(left) != 0 {
		t.Errorf("%d uploads, notes %v", s.service.Uploads(), left)
	}
	// All ended: once more is a new upload.
	s.run("upload", "--accept", a, b).want(t, exitOK, "", "2 READY")
	if s.service.Uploads() != 5 {
		t.Errorf("%d uploads", s.service.Uploads())
	}
}

func TestSeveralExitCodes(t *testing.T) {
	s := newStation(t)
	a, b := s.file("a.bin", 10), s.file("b.bin", 20)
	s.service.Reject = "malware_scan"
	s.run("upload", "--accept", a, b).want(t, exitRejected, "REJECTED", "2 files: 2 REJECTED")
	s.run("upload", "--accept", a, b, b+"x").want(t, exitFailure, "", "3 of 3 files did not end well")
	s.run("upload", "--accept", a, b, a).want(t, exitUsage, "", "is named twice")
	s.run("upload", "--accept", a, b, "--concurrency", "9").want(t, exitUsage, "", "--concurrency")
}

func TestSeveralForMachines(t *testing.T) {
	s := newStation(t)
	a := s.file("a.bin", 10)
	got := s.run("upload", "--accept", "--json", "--quiet", a, a+"x")
	if got.code != exitUsage {
		t.Errorf("exit code %d", got.code)
	}
	seen := map[string]map[string]any{}
	for line := range strings.Lines(got.stdout) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		seen[o["name"].(string)] = o
	}
	if seen[a]["status"] != client.StatusReady || seen[a]["exit_code"] != 0.0 || seen[a+"x"]["exit_code"] != 2.0 || seen[a+"x"]["error"] == nil {
		t.Errorf("%v", seen)
	}
}

func TestSeveralGoOnAfterInterruption(t *testing.T) {
	s := newStation(t)
	a, b, c := s.file("a.bin", 10), s.file("b.bin", 4*part+500), s.file("c.bin", 20)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// a has one part; the third of b is cut.
	s.service.Inject("part", clienttest.Fault{}, clienttest.Fault{}, clienttest.Fault{}, clienttest.Fault{Before: cancel, DropAfter: 10})
	got := s.runContext(ctx, "upload", "--accept", "--concurrency", "1", a, b, c)
	got.want(t, exitInterrupted, "", "3 files: 1 READY, 1 interrupted, 1 not begun")
	if !strings.Contains(got.stderr, "run the same command again") {
		t.Error(got.stderr)
	}
	seen := len(s.service.Calls("part"))
	s.run("upload", "--accept", "--concurrency", "1", a, b, c).want(t, exitOK, "", "3 files: 3 READY")
	if sent := len(s.service.Calls("part")) - seen; sent != 4 || s.service.Uploads() != 3 || len(s.notes()) != 0 {
		t.Errorf("%d parts sent again, %d uploads, notes %v", sent, s.service.Uploads(), s.notes())
	}
}

func TestChangedFileIsNotTakenForTheOneThatWasSent(t *testing.T) {
	s := newStation(t)
	a := s.file("a.bin", 10)
	s.run("upload", "--accept", a, a+"x").want(t, exitUsage, "READY", "")
	if err := os.WriteFile(a, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(a, time.Time{}, time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	s.run("upload", "--accept", a).want(t, exitOK, "READY", "was changed after upload up_1 had sent it")
	if string(s.service.Bytes("up_2")) != "0123456789" {
		t.Error("the new content was not sent")
	}
}

func TestServiceGoneStopsTheRest(t *testing.T) {
	s := newStation(t)
	for range 8 {
		s.service.Inject("initiate", clienttest.Fault{DropAfter: -1})
	}
	got := s.run("upload", "--accept", "--concurrency", "1", s.file("a.bin", 10), s.file("b.bin", 10))
	got.want(t, exitUnavailable, "", "2 files: 1 with an error, 1 not begun")
}

func TestBoardOnATerminal(t *testing.T) {
	s := newStation(t)
	s.terminal = true
	got := s.run("upload", "--accept", s.file("a.bin", 2*part), s.file("b.bin", part))
	got.want(t, exitOK, "\x1b[32mREADY", "0 of 2 files done")
	if !strings.HasSuffix(strings.SplitAfter(got.stderr, "\x1b[?7h")[strings.Count(got.stderr, "\x1b[?7h")], "/s)\n") {
		t.Errorf("something is left drawn after the end: %q", got.stderr)
	}
	s.env["TERM"] = "dumb"
	if got := s.run("upload", "--accept", s.file("a.bin", 2*part), s.file("b.bin", part)); strings.Contains(got.stderr, "\x1b") {
		t.Errorf("a dumb terminal is drawn on: %q", got.stderr)
	}
}

func TestBoardShowsAsManyAsFit(t *testing.T) {
	var out bytes.Buffer
	app := &App{Getenv: func(string) string { return "" }, Stderr: &out, StderrIsTerminal: true, Screen: func() (int, int) { return 40, 6 }}
	b := newBoard(app, false)
	for range 5 {
		b.row("a file with quite a long name of its own.pdf").set("sending", true)
	}
	out.Reset()
	b.stay(&out, "READY")
	if b.drawn != 4 || !strings.Contains(out.String(), "2 more not shown") || !strings.Contains(out.String(), "a file…") {
		t.Errorf("%d lines: %q", b.drawn, out.String())
	}
	out.Reset()
	b.close()
	if out.String() != "\x1b[4A\r\x1b[J" {
		t.Errorf("closing: %q", out.String())
	}
}

func TestWatch(t *testing.T) {
	s := newStation(t)
	s.run("watch").want(t, exitNotFound, "", "name the uploads")
	s.run("upload", s.file("a.bin", 10), "--accept", "--no-follow").want(t, exitOK, "PROCESSING", "")
	s.run("upload", s.file("b.bin", 10), "--accept", "--no-follow").want(t, exitOK, "PROCESSING", "")
	got := s.run("watch", "up_1", "up_2")
	got.want(t, exitOK, "READY      up_1  a.bin", "2 uploads: 2 READY")
	if strings.Count(got.stdout, "malware_scan") != 2 {
		t.Errorf("a gate of each is a line: %s", got.stdout)
	}
	got = s.run("watch", "up_1", "--json", "--quiet")
	for line := range strings.Lines(got.stdout) {
		if o := map[string]any{}; json.Unmarshal([]byte(line), &o) != nil || o["upload_id"] != "up_1" {
			t.Errorf("no object: %s", line)
		}
	}
	s.run("watch", "up_1", "up_9").want(t, exitNotFound, "READY", "request_id")
	s.run("watch", "up_9").want(t, exitNotFound, "", "check the upload id")
	s.terminal = true
	s.run("watch", "up_1", "up_2").want(t, exitOK, "READY", "\x1b[?7l")
}

func TestInterruptedWatch(t *testing.T) {
	for _, ids := range [][]string{{"up_1"}, {"up_1", "up_2"}} {
		s := newStation(t)
		s.run("upload", s.file("a.bin", 10), "--accept", "--no-follow").want(t, exitOK, "PROCESSING", "")
		s.run("upload", s.file("b.bin", 10), "--accept", "--no-follow").want(t, exitOK, "PROCESSING", "")
		ctx, cancel := context.WithCancel(t.Context())
		s.service.Inject("status", clienttest.Fault{Before: cancel, DropAfter: -1})
		got := s.runContext(ctx, append([]string{"watch"}, ids...)...)
		got.want(t, exitInterrupted, "", "error: interrupted\nnext: run the same command again")
		if strings.Count(got.stderr, "error:") != 1 {
			t.Errorf("an interruption is no other error: %s", got.stderr)
		}
	}
}

func TestWatchWithoutIdsTakesUnfinishedOnes(t *testing.T) {
	s := newStation(t)
	a := s.file("a.bin", 10)
	s.run("upload", "--accept", a, a+"x").want(t, exitUsage, "READY", "")
	s.run("watch").want(t, exitOK, "READY      up_1  a.bin", "")
	s.service.Reject = "malware_scan"
	s.run("upload", s.file("c.bin", 10), "--accept", "--no-follow").want(t, exitOK, "", "")
	s.run("watch", "up_2").want(t, exitRejected, "rejected", "malware_found")
}
