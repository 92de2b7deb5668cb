package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/pipeline"
	"github.com/accession/accession/internal/rescan"
	"github.com/accession/accession/internal/scanner"
	"github.com/accession/accession/internal/sqlstore"
)

// oldSignatures is the age at which serve and doctor call signatures old, whatever the gate allows.
const oldSignatures = 7 * 24 * time.Hour

// freshSignatures holds the malware gate while the signatures are older than the operator allows, or nobody knows how old.
type freshSignatures struct {
	pipeline.Scanner
	clamav interface {
		Signatures(ctx context.Context) (scanner.Engine, error)
	}
	maxAge time.Duration // 0: of any age
}

func (g freshSignatures) Scan(ctx context.Context, content io.ReaderAt, size int64) (pipeline.ScanReport, error) {
	if g.maxAge > 0 {
		engine, err := g.clamav.Signatures(ctx)
		if err != nil {
			return pipeline.ScanReport{}, &custody.NoAnswer{Code: "scanner_unavailable", Message: "the malware scan engine does not answer", Cause: err}
		}
		if reason := outdated(engine.SignatureDate, g.maxAge); reason != "" {
			return pipeline.ScanReport{}, &custody.NoAnswer{Code: "signatures_outdated", Message: reason}
		}
	}
	return g.Scanner.Scan(ctx, content, size)
}

// outdated says why signatures of that date may not pass anything, and what to do; empty where they may.
func outdated(date time.Time, maxAge time.Duration) string {
	switch {
	case date.IsZero():
		return "the date of the malware signatures is unknown, and this installation allows none older than " + maxAge.String() + ": the operator has to run freshclam"
	case time.Since(date) > maxAge:
		return fmt.Sprintf("the malware signatures are of %s, older than the %s that this installation allows: the operator has to run freshclam", date.UTC().Format(time.DateOnly), maxAge)
	}
	return ""
}

type rescanStore struct{ *sqlstore.Store }

func (s rescanStore) InTx(ctx context.Context, fn func(rescan.Tx) error) error {
	return s.Store.InTx(ctx, func(tx *sqlstore.Tx) error { return fn(tx) })
}

// rescanEngine tells the room of re-scans what scans are made with.
type rescanEngine struct{ clamav clamav }

func (e rescanEngine) Signatures(ctx context.Context) (scannedWith string, date time.Time, err error) {
	engine, err := e.clamav.Signatures(ctx)
	if err != nil {
		return "", time.Time{}, err
	}
	return engine.Identity(), engine.SignatureDate, nil
}

// Refresh can only tell a clamd of its own to load what changed.
func (e rescanEngine) Refresh(ctx context.Context) error {
	if managed, ok := e.clamav.(*scanner.Managed); ok {
		return managed.Refresh(ctx)
	}
	return nil
}
