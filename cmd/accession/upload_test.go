package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/client"
	"github.com/accession/accession/client/clienttest"
)

const part = 64 << 10

func TestUploadFollowsTheGates(t *testing.T) {
	s := newStation(t)
	got := s.run("upload", s.file("record.pdf", 3*part+5), "--accept")
	got.want(t, exitOK, "READY", "upload up_1: record.pdf")
	for _, gate := range clienttest.Gates {
		if strings.Count(got.stdout, gate) != 1 {
			t.Errorf("gate %s is not on exactly one line:\n%s", gate, got.stdout)
		}
	}
	if !regexp.MustCompile(`\d\d:\d\d:\d\d  passed +malware_scan +(\d\.\d s|[\dhm]+s) +checked bytes 196613`).MatchString(got.stdout) {
		t.Errorf("no time, state or detail:\n%s", got.stdout)
	}
	if strings.Contains(got.stdout+got.stderr, "\x1b") {
		t.Error("escape sequences without a terminal")
	}
	if left := s.notes(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	s.run("status", "up_1").want(t, exitOK, "record.pdf", "")
}

func TestUploadVerdicts(t *testing.T) {
	s := newStation(t)
	s.service.Reject = "malware_scan"
	file := s.file("record.pdf", 10)
	s.run("upload", file, "--accept").want(t, exitRejected, "rejected  malware_scan", "gate malware_scan: the scan engine found malware (malware_found)")
	s.run("status", "up_1").want(t, exitOK, "REJECTED", "")
	s.run("status", "up_1", "--follow").want(t, exitRejected, "", "malware_found")
	s.service.Reject, s.service.Fail = "", "extraction"
	got := s.run("upload", file, "--accept", "--json")
	got.want(t, exitRejected, `"status": "FAILED"`, "an operator can resume")
	if left := s.notes(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestUploadJSON(t *testing.T) {
	s := newStation(t)
	file := s.file("record.pdf", part+1)
	for _, args := range [][]string{{"--json"}, {"--json", "--quiet"}, {"--json", "--no-follow"}} {
		got := s.run(append([]string{"upload", file, "--accept"}, args...)...)
		var data struct {
			UploadID string `json:"upload_id"`
			Status   string `json:"status"`
		}
		if err := json.Unmarshal([]byte(got.stdout), &data); err != nil || got.code != exitOK || data.UploadID == "" {
			t.Errorf("%v: %d, %v: %s", args, got.code, err, got.stdout)
		}
		if quiet := len(args) == 2 && args[1] == "--quiet"; quiet != (got.stderr == "") {
			t.Errorf("%v: stderr %q", args, got.stderr)
		}
	}
	got := s.run("upload", file, "--accept", "--no-follow", "--quiet")
	got.want(t, exitOK, "PROCESSING", "")
	if got.stderr != "" || len(s.notes()) != 0 {
		t.Errorf("stderr %q, notes %v", got.stderr, s.notes())
	}
}

func TestUploadFlags(t *testing.T) {
	s := newStation(t)
	file := s.file("record.pdf", 10)
	text := s.file("agreement.txt", 100)
	for _, test := range []struct {
		args   []string
		stderr string
	}{
		{[]string{file}, "--accept"},
		{[]string{file, "--accept", "--consent-user-id", ""}, "--consent-user-id"},
		{[]string{file, "--accept", "--consent-email", "Ada <ada@harbour.example>"}, "--consent-email"},
		{[]string{file, "--accept", "--consent-text", text}, "--agreement-version"},
		{[]string{file, "--accept", "--consent-text", text + "x", "--agreement-version", "1", "--consent-version", "1"}, "consent text cannot be read"},
		{[]string{file, "--accept", "--importance", "high"}, "normal or important"},
		{[]string{file, "--accept", "--content-type", "pdf"}, "application/pdf"},
		{[]string{file + "x", "--accept"}, "cannot be read"},
		{[]string{t.TempDir(), "--accept"}, "no regular file"},
		{[]string{s.file("empty", 0), "--accept"}, "is empty"},
		{nil, "takes FILE"},
	} {
		s.run(append([]string{"upload"}, test.args...)...).want(t, exitUsage, "", test.stderr)
	}
	large := s.file("large", 1)
	if err := os.Truncate(large, client.MaxUploadBytes+1); err != nil {
		t.Fatal(err)
	}
	s.run("upload", large, "--accept").want(t, exitUsage, "", "8 GiB at most")
	if len(s.service.Calls("")) != 0 {
		t.Error("a request was made")
	}
	s.run("upload", file, "--accept", "--consent-text", text, "--agreement-version", "7", "--consent-version", "8").want(t, exitOK, "READY", "")
}

func TestRefusedReservationLeavesNothing(t *testing.T) {
	s := newStation(t)
	s.service.AllowanceBytes = 5
	file := s.file("record.pdf", 10)
	s.run("upload", file, "--accept").want(t, exitConflict, "", "accession quota")
	s.env[envToken] = clienttest.ReaderToken
	s.run("upload", file, "--accept").want(t, exitNotAuthorised, "", client.RoleUpload)
	if left := s.notes(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// interruptUpload presses Ctrl-C while part 3 of 5 is on its way.
func interruptUpload(t *testing.T, s *station, file string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s.service.Inject("part", clienttest.Fault{}, clienttest.Fault{}, clienttest.Fault{Before: cancel, DropAfter: 10})
	s.runContext(ctx, "upload", file, "--accept").want(t, exitInterrupted, "", "128 KiB of 256 KiB are in custody as upload up_1; run the same command again")
}

func TestUploadResumesAfterInterruption(t *testing.T) {
	s := newStation(t)
	file := s.file("record.bin", 4*part+500)
	interruptUpload(t, s, file)
	notes := s.notes()
	if len(notes) != 1 {
		t.Fatalf("notes: %v", notes)
	}
	info, err := os.Stat(notes[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("note: %v, %v", info.Mode(), err)
	}
	content, err := os.ReadFile(notes[0])
	if err != nil || bytes.Contains(content, []byte(clienttest.UploadToken)) {
		t.Errorf("the note holds the token, or %v", err)
	}
	seen := len(s.service.Calls("part"))

	// Another person's consent is not slipped under the first one's.
	s.run("upload", file, "--accept", "--consent-user-id", "bob").want(t, exitUsage, "", "--restart")

	s.run("upload", file, "--accept").want(t, exitOK, "READY", "resuming upload up_1: 128 KiB of 256 KiB are in custody")
	if sent := s.service.Calls("part")[seen:]; len(sent) != 3 || sent[0].PartNumber != 3 {
		t.Errorf("sent again: %d parts", len(sent))
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(s.service.Bytes("up_1"), want) || s.service.Uploads() != 1 {
		t.Errorf("other bytes, or %d uploads, or %v", s.service.Uploads(), err)
	}
	if left := s.notes(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestInterruptedWhileFollowing(t *testing.T) {
	s := newStation(t)
	file := s.file("record.bin", 100)
	ctx, cancel := context.WithCancel(t.Context())
	s.service.Inject("status", clienttest.Fault{}, clienttest.Fault{}, clienttest.Fault{Before: cancel, DropAfter: -1})
	s.runContext(ctx, "upload", file, "--accept").want(t, exitInterrupted, "", "same command again")
	s.run("upload", file, "--accept").want(t, exitOK, "READY", "was sent earlier; following its gates")
	if s.service.Uploads() != 1 || len(s.service.Calls("part")) != 1 {
		t.Errorf("%d uploads, %d parts sent", s.service.Uploads(), len(s.service.Calls("part")))
	}
}

func TestServiceGoneThenBack(t *testing.T) {
	s := newStation(t)
	file := s.file("record.bin", 2*part)
	for range 8 {
		s.service.Inject("part", clienttest.Fault{DropAfter: 10})
	}
	s.run("upload", file, "--accept").want(t, exitUnavailable, "", "what was accepted is safe; run the same command again")
	s.run("upload", file, "--accept").want(t, exitOK, "READY", "resuming")
}

func TestChangedFileOnResume(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"grown": func(path string) error { return os.Truncate(path, 5*part) },
		"same size, other bytes": func(path string) error {
			content, err := os.ReadFile(path)
			content[5] ^= 1
			if err == nil {
				err = os.WriteFile(path, content, 0o600)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStation(t)
			file := s.file("record.bin", 4*part+500)
			interruptUpload(t, s, file)
			if err := change(file); err != nil {
				t.Fatal(err)
			}
			s.run("upload", file, "--accept").want(t, exitFailure, "", "the file changed since its upload began")
			if len(s.service.Calls("complete")) != 0 {
				t.Error("completed all the same")
			}
			s.run("upload", file, "--accept", "--restart").want(t, exitOK, "READY", "gave the unfinished upload up_1 up")
			if len(s.service.Calls("withdraw")) != 1 || s.service.Uploads() != 2 {
				t.Errorf("%d withdrawals, %d uploads", len(s.service.Calls("withdraw")), s.service.Uploads())
			}
		})
	}
}

func TestFileWrittenToWhileItIsSent(t *testing.T) {
	s := newStation(t)
	file := s.file("record.bin", 2*part)
	s.service.Inject("part", clienttest.Fault{}, clienttest.Fault{Before: func() {
		if err := os.Chtimes(file, time.Time{}, time.Unix(1, 0)); err != nil {
			t.Error(err)
		}
	}})
	s.run("upload", file, "--accept").want(t, exitFailure, "", "written to while it was sent")
	if len(s.service.Calls("complete")) != 0 {
		t.Error("completed all the same")
	}
}

func TestExpiredUploadBeginsAnew(t *testing.T) {
	s := newStation(t)
	file := s.file("record.bin", 4*part+500)
	interruptUpload(t, s, file)
	s.service.SetStatus("up_1", client.StatusExpired)
	s.run("upload", file, "--accept").want(t, exitOK, "READY", "upload up_1 is EXPIRED and takes no more parts; beginning anew")
}

func TestDamagedNote(t *testing.T) {
	s := newStation(t)
	file := s.file("record.bin", 4*part+500)
	interruptUpload(t, s, file)
	if err := os.WriteFile(s.notes()[0], []byte(`{"transfer"`), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run("upload", file, "--accept").want(t, exitOK, "READY", "beginning anew")
}

func TestNowhereToKeepNotes(t *testing.T) {
	s := newStation(t)
	s.env["XDG_STATE_HOME"] = "relative/folder"
	s.run("upload", s.file("record.bin", 10), "--accept").want(t, exitOK, "READY", "will begin anew")
	s.env["HOME"] = t.TempDir()
	s.run("upload", s.file("record.bin", 10), "--accept").want(t, exitOK, "READY", "")
	if _, err := os.Stat(filepath.Join(s.env["HOME"], ".local", "state", "accession")); err != nil {
		t.Error(err)
	}
}

func TestOneFileIsSentOnceAtATime(t *testing.T) {
	s := newStation(t)
	file := s.file("record.bin", 10)
	var second outcome
	s.service.Inject("part", clienttest.Fault{Before: func() { second = s.run("upload", file, "--accept") }})
	s.run("upload", file, "--accept").want(t, exitOK, "READY", "")
	second.want(t, exitFailure, "", "another accession upload is sending this file")
	if s.service.Uploads() != 1 {
		t.Errorf("%d uploads", s.service.Uploads())
	}
}

func TestTerminal(t *testing.T) {
	s := newStation(t)
	s.terminal = true
	file := s.file("record.bin", 4*part+500)
	s.service.Inject("part", clienttest.Fault{}, clienttest.Fault{DropAfter: 20_000}, clienttest.Fault{Status: 500})
	got := s.run("upload", file, "--accept")
	got.want(t, exitOK, "\x1b[32mpassed", "sending record.bin")
	percents := regexp.MustCompile(`(\d+)%`).FindAllStringSubmatch(got.stderr, -1)
	if len(percents) == 0 {
		t.Errorf("no bar: %q", got.stderr)
	}
	for _, match := range percents {
		if n, err := strconv.Atoi(match[1]); err != nil || n > 100 {
			t.Errorf("progress of %s %%", match[1])
		}
	}
	s.env["NO_COLOR"] = "1"
	if got := s.run("upload", file, "--accept"); strings.Contains(got.stdout, "\x1b[3") {
		t.Errorf("colours with NO_COLOR: %q", got.stdout)
	}
	if got := s.run("upload", file, "--accept", "--quiet"); got.stderr != "" {
		t.Errorf("--quiet: %q", got.stderr)
	}
}

func TestBarNeverGoesBackNorPastTheEnd(t *testing.T) {
	var out bytes.Buffer
	b := newBar(&out, true, "x")
	for _, progress := range []client.Progress{
		{Phase: client.PhaseVerify, Bytes: 40, Total: 100}, {Phase: client.PhaseSend, Bytes: 60, Total: 100},
		{Phase: client.PhaseSend, Bytes: 50, Total: 100}, {Phase: client.PhaseSend, Bytes: 130, Total: 100},
		{Phase: client.PhaseComplete, Bytes: 100, Total: 100},
	} {
		before := b.highest
		b.update(progress)
		if b.highest < before || b.highest > 100 {
			t.Errorf("%+v: from %d to %d", progress, before, b.highest)
		}
	}
	if b.sent != 60 || !strings.Contains(out.String(), "sending the rest of x") {
		t.Errorf("sent %d: %q", b.sent, out.String())
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\nü": "plain\ttext\nü", "a\x1b[2Jb": `a\u001b[2Jb`, "a\rb": `a\u000db`, "a\u202eb": `a\u202eb`, "a\u009bb": `a\u009bb`,
	} {
		if got := printable(text); got != want {
			t.Errorf("printable(%q) = %q, want %q", text, got, want)
		}
	}
}
