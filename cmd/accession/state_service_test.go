package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/scanner"
)

func TestScannerSentence(t *testing.T) {
	now := time.Now()
	engine := func(full bool, date time.Time) scanner.Engine {
		return scanner.Engine{Name: "ClamAV", Version: "1.4.3", SignatureVersion: "27825", SignatureDate: date, FullDatabase: full}
	}
	for _, c := range []struct {
		name   string
		engine scanner.Engine
		err    error
		maxAge time.Duration
		ok     bool
		says   string
	}{
		{"fresh", engine(true, now.Add(-time.Hour)), nil, 0, true, "its signatures are of "},
		{"fresh enough", engine(true, now.Add(-time.Hour)), nil, 2 * time.Hour, true, "its signatures are of "},
		{"older than allowed", engine(true, now.Add(-3*time.Hour)), nil, 2 * time.Hour, false, "freshclam"},
		{"of an unknown age, which is not allowed", engine(true, time.Time{}), nil, time.Hour, false, "unknown"},
		{"of an unknown age", engine(true, time.Time{}), nil, 0, true, "not known"},
		{"old", engine(true, now.Add(-9*24*time.Hour)), nil, 0, true, "9 days old"},
		{"for tests alone", engine(false, now), nil, 0, true, "next to nothing"},
		{"away", scanner.Engine{}, errors.New("dial unix /run/clamd.sock: no such file"), 0, false, "wait at the malware_scan gate"},
	} {
		s := scannerState(c.engine, c.err, c.maxAge)
		if s.OK != c.ok || !strings.Contains(s.Sentence, c.says) || strings.Contains(s.Sentence, "clamd.sock") || (c.err == nil) != (s.Engine == "ClamAV") {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}
