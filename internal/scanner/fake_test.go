package scanner

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fake is a clamd that misbehaves as told. It answers VERSION properly; instream gets the connection after the command.
func fake(t *testing.T, instream func(net.Conn)) *Clamd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fake.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if command := readCommand(conn); command == "zVERSION" {
				io.WriteString(conn, "ClamAV 1.4.6/27460/Tue Nov 18 08:35:21 2026\x00")
			} else {
				instream(conn)
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-served
	})
	return &Clamd{network: "unix", address: path, zone: time.UTC}
}

// readCommand reads up to the NUL and no further: the stream follows.
func readCommand(conn net.Conn) string {
	var command []byte
	for next := make([]byte, 1); ; command = append(command, next[0]) {
		if _, err := conn.Read(next); err != nil || next[0] == 0 {
			return string(command)
		}
	}
}

// swallow reads a whole stream, as clamd does before it answers.
func swallow(conn net.Conn) {
	for {
		var length uint32
		if binary.Read(conn, binary.BigEndian, &length) != nil || length == 0 {
			return
		}
		io.CopyN(io.Discard, conn, int64(length))
	}
}

func TestScanAnswersThatAreNoAnswer(t *testing.T) {
	say := func(text string) func(net.Conn) {
		return func(conn net.Conn) { swallow(conn); io.WriteString(conn, text) }
	}
	for name, behave := range map[string]func(net.Conn){
		"hangs up at once":         func(net.Conn) {},
		"hangs up after content":   swallow,
		"reply without an end":     say("stream: OK"),
		"empty reply":              say("\x00"),
		"garbage":                  say("\xff\xfe\x00"),
		"endless":                  say(strings.Repeat("stream: OK ", replyLimit)),
		"lower case":               say("stream: ok\x00"),
		"nothing found":            say("stream:  FOUND\x00"),
		"OK and more":              say("stream: OK, mostly\x00"),
		"another file's answer":    say("/etc/passwd: OK\x00"),
		"error of clamd":           say("INSTREAM: Can't write to temporary file. ERROR\x00"),
		"error about the stream":   say("stream: Can't allocate memory ERROR\x00"),
		"unknown command":          say("UNKNOWN COMMAND\x00"),
		"OK before any content":    func(conn net.Conn) { io.WriteString(conn, "stream: OK\x00") },
		"OK in front of a hang-up": func(conn net.Conn) { io.CopyN(io.Discard, conn, 100); io.WriteString(conn, "stream: OK\x00") },
	} {
		t.Run(name, func(t *testing.T) {
			content := noise(4 << 20)
			report, err := fake(t, behave).Scan(soon(t), bytes.NewReader(content), int64(len(content)))
			if !errors.Is(err, ErrUnavailable) || report != (Report{}) {
				t.Errorf("got %+v, %v, want no report and ErrUnavailable", report, err)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("only the test's own deadline ended it: %v", err)
			}
		})
	}
}

func TestScanSilence(t *testing.T) {
	for name, behave := range map[string]func(net.Conn, <-chan struct{}){
		"takes nothing":     func(_ net.Conn, end <-chan struct{}) { <-end },
		"takes all, is mum": func(conn net.Conn, end <-chan struct{}) { swallow(conn); <-end },
	} {
		t.Run(name, func(t *testing.T) {
			end := make(chan struct{})
			c := fake(t, func(conn net.Conn) { behave(conn, end) })
			defer close(end) // before the fake is closed, which waits for it
			content := bytes.NewReader(noise(4 << 20))

			c.Patience = 20 * time.Millisecond
			if _, err := c.Scan(soon(t), content, content.Size()); !errors.Is(err, ErrUnavailable) {
				t.Errorf("patience ran out: got %v, want ErrUnavailable", err)
			} else if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("only the test's own deadline ended it: %v", err)
			}
		})
		t.Run(name+", context ends", func(t *testing.T) {
			end := make(chan struct{})
			ctx, cancel := context.WithCancel(soon(t))
			c := fake(t, func(conn net.Conn) {
				cancel() // the stream has begun
				behave(conn, end)
			})
			defer close(end)
			content := bytes.NewReader(noise(4 << 20))
			_, err := c.Scan(ctx, content, content.Size())
			if !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.Canceled) {
				t.Errorf("context ended: got %v, want ErrUnavailable and context.Canceled", err)
			}
		})
	}
}

func TestScanEarlyRefusal(t *testing.T) {
	for name, then := range map[string]func(net.Conn, <-chan struct{}){
		"hangs up":        func(net.Conn, <-chan struct{}) {},
		"reads no more":   func(_ net.Conn, end <-chan struct{}) { <-end },
		"reads and waits": func(conn net.Conn, end <-chan struct{}) { io.Copy(io.Discard, conn); <-end },
	} {
		t.Run(name, func(t *testing.T) {
			end := make(chan struct{})
			c := fake(t, func(conn net.Conn) {
				io.CopyN(io.Discard, conn, 1<<20)
				io.WriteString(conn, "INSTREAM size limit exceeded. ERROR\x00")
				then(conn, end)
			})
			defer close(end)
			content := readerAt(func(p []byte, _ int64) (int, error) { return len(p), nil })
			report, err := c.Scan(soon(t), content, 1<<30) // one window
			if err != nil || report.Outcome != Unscannable || !strings.Contains(report.Reason, "StreamMaxLength") {
				t.Errorf("got %+v, %v, want unscannable because of StreamMaxLength", report, err)
			}
			if report.ScannedBytes == 1<<30 {
				t.Error("all of the content was sent, though the beginning was refused")
			}
		})
	}
}

func TestScanNobodyListens(t *testing.T) {
	c, err := NewClamd("unix:" + filepath.Join(t.TempDir(), "none.sock"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Scan(t.Context(), strings.NewReader("x"), 1)
	if !errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "none.sock") {
		t.Errorf("got %v, want ErrUnavailable that names no path", err)
	}
	if _, err = c.Health(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("health: got %v, want ErrUnavailable", err)
	}
}

func TestHealth(t *testing.T) {
	engine, err := client().Health(t.Context())
	if err != nil || engine.Name != "ClamAV" || engine.Version == "" {
		t.Errorf("real clamd: %+v, %v", engine, err)
	}
	// A clamd of which one probe fails. Found names what each answers, in the order of the probes.
	const found, ok, limit = "stream: X FOUND\x00", "stream: OK\x00", "stream: Heuristics.Limits.Exceeded.MaxRecursion FOUND\x00"
	for name, tc := range map[string]struct {
		answers []string
		advice  string
	}{
		"finds all it must":     {[]string{found, ok, limit, limit}, ""},
		"misses EICAR":          {[]string{ok}, "freshclam"},
		"finds malware in text": {[]string{found, found}, "signatures"},
		"passes encrypted":      {[]string{found, ok, ok}, "AlertEncrypted"},
		"passes over the limit": {[]string{found, ok, limit, ok}, "AlertExceedsMax"},
	} {
		t.Run(name, func(t *testing.T) {
			answers := tc.answers
			c := fake(t, func(conn net.Conn) {
				swallow(conn)
				if len(answers) > 0 {
					io.WriteString(conn, answers[0])
					answers = answers[1:]
				}
			})
			engine, err := c.Health(soon(t))
			if tc.advice == "" {
				want := Engine{Name: "ClamAV", Version: "1.4.6", SignatureVersion: "27460", FullDatabase: true,
					SignatureDate: time.Date(2026, 11, 18, 8, 35, 21, 0, time.UTC)}
				if err != nil || engine != want {
					t.Errorf("got %+v, %v, want %+v", engine, err, want)
				}
				return
			}
			if !errors.Is(err, ErrUnavailable) || !errors.Is(err, errUnhealthy) || !strings.Contains(err.Error(), tc.advice) {
				t.Errorf("got %v, want advice on %s", err, tc.advice)
			}
		})
	}
}

func TestParseReplies(t *testing.T) {
	for text, want := range map[string]Outcome{
		"stream: OK":                                            Clean,
		"stream: Win.Test.EICAR_HDB-1 FOUND":                    Infected,
		"stream: Win.Ransomware.Encrypted.A-1 FOUND":            Infected,
		"stream: Heuristics.Phishing.Email.SpoofedDomain FOUND": Infected,
		"stream: Heuristics.Encrypted.PDF FOUND":                Unscannable,
		"stream: Encrypted.Zip FOUND":                           Unscannable,
		"stream: Heuristics.Limits.Exceeded.MaxFileSize FOUND":  Unscannable,
		"stream: Heuristics.Limits.Exceeded FOUND":              Unscannable,
		"INSTREAM size limit exceeded. ERROR":                   Unscannable,
	} {
		if got, err := parseScanReply(text); err != nil || got.Outcome != want {
			t.Errorf("%q is %s, %v, want %s", text, got.Outcome, err, want)
		}
	}
	for _, text := range []string{"", "ClamAV", "ClamAV ", "clamd 1.0", "ClamAV 1/2", "ClamAV 1/2/yesterday",
		"ClamAV 1//Tue Nov 18 08:35:21 2026"} {
		if engine, err := parseVersion(text, time.UTC); !errors.Is(err, ErrUnavailable) {
			t.Errorf("version %q is %+v, %v, want ErrUnavailable", text, engine, err)
		}
	}
	berlin := time.FixedZone("", 3600)
	engine, err := parseVersion("ClamAV 1.4.6/27460/Mon Nov  2 08:35:21 2026", berlin)
	if want := time.Date(2026, 11, 2, 7, 35, 21, 0, time.UTC); err != nil || engine.SignatureDate != want {
		t.Errorf("date %v, %v, want %v", engine.SignatureDate, err, want)
	}
	if Outcome(0).String() != "invalid" || Outcome(0) == Clean {
		t.Error("the zero outcome looks like an answer")
	}
}
