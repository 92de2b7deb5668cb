package scanner

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
	"unicode"
)

// Only the one reply that clamd gives to what it found clean passes. Everything else is a finding, a reason, or no answer.
func FuzzScanReply(f *testing.F) {
	for _, reply := range []string{
		"stream: OK", "stream: Win.Test.EICAR_HDB-1 FOUND", "stream: Heuristics.Encrypted.PDF FOUND", "stream: Heuristics.Limits.Exceeded.MaxFileSize FOUND",
		"INSTREAM size limit exceeded. ERROR", "stream: Can't allocate memory ERROR", "stream: OK\n", "stream: OK FOUND", "stream:  FOUND", "UNKNOWN COMMAND", "",
		"stream: a\x1b[31m\x85 FOUND", "ClamAV 1.4.6/27460/Tue Nov 18 08:35:21 2026", "ClamAV 1.4.6", "ClamAV 1//Tue Nov 18 08:35:21 2026",
	} {
		f.Add(reply)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		report, err := parseScanReply(reply)
		switch {
		case err != nil:
			if !errors.Is(err, ErrUnavailable) || report != (Report{}) || len(err.Error()) > 1000 {
				t.Errorf("%q: %+v, %.1000v", reply, report, err)
			}
		case report.Outcome == Clean:
			if reply != "stream: OK" {
				t.Errorf("%q passes", reply)
			}
		case report.Outcome == Infected:
			if report.Signature == "" || "stream: "+report.Signature+" FOUND" != printable(reply) {
				t.Errorf("%q: %+v", reply, report)
			}
			unprintable(t, report.Signature)
		case report.Outcome != Unscannable || report.Reason == "" || report.Signature != "":
			t.Errorf("%q: %+v", reply, report)
		default:
			unprintable(t, report.Reason)
		}
		engine, err := parseVersion(reply, time.UTC)
		if err != nil && (!errors.Is(err, ErrUnavailable) || engine != (Engine{})) || err == nil && (engine.Version == "" || !strings.HasPrefix(reply, "ClamAV "+engine.Version)) {
			t.Errorf("%q: %+v, %v", reply, engine, err)
		}
	})
}

// unprintable refuses what must not reach a log, a terminal or an answer: names of signatures end up in all of them.
func unprintable(t *testing.T, said string) {
	t.Helper()
	if strings.ContainsFunc(said, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		t.Errorf("%q is handed on", said)
	}
}

// Whatever comes over clamd's socket, in whatever pieces, content passes only if the answer is that it is clean, whole, and came
// after the content.
func FuzzClamdConversation(f *testing.F) {
	for _, said := range []string{"stream: OK\x00", "stream: OK", "\x00", "stream: OK\x00stream: X FOUND\x00", "stream: X FOUND\x00", strings.Repeat("x", replyLimit+1), "stream: OK\n\x00"} {
		f.Add([]byte(said), true)
		f.Add([]byte(said), false)
	}
	f.Fuzz(func(t *testing.T, said []byte, listens bool) {
		content := []byte("an ordinary sentence")
		c := fake(t, func(conn net.Conn) {
			if listens {
				swallow(conn)
			}
			_, _ = conn.Write(said) // the client may have gone
		})
		report, err := c.Scan(soon(t), bytes.NewReader(content), int64(len(content)))
		reply, _, ended := bytes.Cut(said, []byte{0})
		switch {
		case err != nil && (!errors.Is(err, ErrUnavailable) || report != (Report{})):
			t.Errorf("%q: %+v, %v", said, report, err)
		case err == nil && !ended:
			t.Errorf("%q has no end: %+v", said, report)
		case err == nil && report.Outcome == Clean && (string(reply) != "stream: OK" || report.ScannedBytes != int64(len(content))):
			t.Errorf("%q passes: %+v", said, report)
		case err == nil && report.Outcome != Clean && report.Outcome != Infected && report.Outcome != Unscannable:
			t.Errorf("%q: %+v", said, report)
		}
	})
}
