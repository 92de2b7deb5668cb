package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/pipeline"
	"github.com/accession/accession/internal/scanner"
)

func TestSettingsOfSignatures(t *testing.T) {
	s, err := checked(t, nil)
	if err != nil || s.SignaturesMaxAge != 0 || s.SignaturesCheck != time.Minute {
		t.Errorf("by default %s, %s, %v", s.SignaturesMaxAge, s.SignaturesCheck, err)
	}
	s, err = checked(t, map[string]string{"ACCESSION_SIGNATURES_MAX_AGE": "168h", "ACCESSION_SIGNATURES_CHECK_EVERY": "5s"})
	if err != nil || s.SignaturesMaxAge != 168*time.Hour || s.SignaturesCheck != 5*time.Second {
		t.Errorf("from the environment %s, %s, %v", s.SignaturesMaxAge, s.SignaturesCheck, err)
	}
	for arg, says := range map[string]string{
		"--signatures-max-age=a week":     "must be a duration",
		"--signatures-max-age=-1h":        "such as 168h",
		"--signatures-check-every=0":      "at least 1s",
		"--signatures-check-every=always": "must be a duration",
	} {
		if _, err := checked(t, nil, arg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error that says %q", arg, err, says)
		}
	}
}

// aged is a scan engine with signatures of a date.
type aged struct {
	date  time.Time
	err   error
	scans int
}

func (a *aged) Signatures(context.Context) (scanner.Engine, error) {
	return scanner.Engine{Name: "ClamAV", SignatureDate: a.date}, a.err
}

func (a *aged) Scan(context.Context, io.ReaderAt, int64) (pipeline.ScanReport, error) {
	a.scans++
	return pipeline.ScanReport{Clean: true}, nil
}

func TestSignaturesThatMayPass(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		date   time.Time
		err    error
		maxAge time.Duration
		code   string
	}{
		"off":          {date: now.Add(-1000 * time.Hour)},
		"off, unknown": {},
		"off, away":    {err: errors.New("away")}, // the scan itself finds out
		"fresh":        {date: now.Add(-167 * time.Hour), maxAge: 168 * time.Hour},
		"old":          {date: now.Add(-169 * time.Hour), maxAge: 168 * time.Hour, code: "signatures_outdated"},
		"unknown":      {maxAge: 168 * time.Hour, code: "signatures_outdated"},
		"away":         {err: errors.New("away"), maxAge: 168 * time.Hour, code: "scanner_unavailable"},
	} {
		a := &aged{date: c.date, err: c.err}
		report, err := freshSignatures{a, a, c.maxAge}.Scan(t.Context(), strings.NewReader("x"), 1)
		var silent *custody.NoAnswer
		switch {
		case c.code == "" && (err != nil || !report.Clean || a.scans != 1):
			t.Errorf("%s: %+v, %v", name, report, err)
		case c.code != "" && (!errors.As(err, &silent) || silent.Code != c.code || report.Clean || a.scans != 0 || strings.Contains(silent.Message, "/")):
			t.Errorf("%s: %+v, %v; want no answer %s", name, report, err, c.code)
		}
	}
}
