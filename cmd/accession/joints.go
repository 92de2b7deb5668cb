package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/accession/accession/internal/aicontext"
	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/extract"
	"github.com/accession/accession/internal/intake"
	"github.com/accession/accession/internal/pipeline"
	"github.com/accession/accession/internal/scanner"
	"github.com/accession/accession/internal/sqlstore"
	"github.com/accession/accession/internal/tenant"
	"github.com/accession/accession/internal/upkeep"
	"github.com/accession/accession/internal/withdrawal"
)

// The rooms do not know each other: each declares the few methods it needs. Here they are joined; nothing is decided here.

type intakeStore struct{ *sqlstore.Store }

func (s intakeStore) InTx(ctx context.Context, fn func(intake.Tx) error) error {
	return s.Store.InTx(ctx, func(tx *sqlstore.Tx) error { return fn(tx) })
}

type withdrawalStore struct{ *sqlstore.Store }

func (s withdrawalStore) InTx(ctx context.Context, fn func(withdrawal.Tx) error) error {
	return s.Store.InTx(ctx, func(tx *sqlstore.Tx) error { return fn(tx) })
}

type contextStore struct{ *sqlstore.Store }

func (s contextStore) InTx(ctx context.Context, fn func(aicontext.Tx) error) error {
	return s.Store.InTx(ctx, func(tx *sqlstore.Tx) error { return fn(tx) })
}

type tenantStore struct{ *sqlstore.Store }

func (s tenantStore) InTx(ctx context.Context, fn func(tenant.Tx) error) error {
	return s.Store.InTx(ctx, func(tx *sqlstore.Tx) error { return fn(tx) })
}

type pipelineStore struct{ *sqlstore.Store }

func (s pipelineStore) InTx(ctx context.Context, fn func(pipeline.Tx) error) error {
	return s.Store.InTx(ctx, func(tx *sqlstore.Tx) error { return fn(tx) })
}

type pipelineSweepStore struct{ *sqlstore.Store }

func (s pipelineSweepStore) ForgetAnswers(ctx context.Context, before time.Time) error {
	return s.Store.InTx(ctx, func(tx *sqlstore.Tx) error {
		return errors.Join(tx.ForgetAnswers(ctx, before), tx.ForgetRates(ctx), tx.ForgetSessions(ctx, custody.Now()))
	})
}

type upkeepStore struct{ *sqlstore.Store }

func (s upkeepStore) InTx(ctx context.Context, fn func(upkeep.Tx) error) error {
	return s.Store.InTx(ctx, func(tx *sqlstore.Tx) error { return fn(tx) })
}

// clamav is what both kinds of clamd, managed and given by address, can do.
type clamav interface {
	Scan(ctx context.Context, content io.ReaderAt, size int64) (scanner.Report, error)
	ScanStream(ctx context.Context, content io.Reader) (scanner.Report, error)
	Health(ctx context.Context) (scanner.Engine, error)
	Signatures(ctx context.Context) (scanner.Engine, error)
}

// provenClamd is a clamd that somebody else runs: before each scan it proves that it finds what it must and has the settings
// without which it would pass what it did not look at.
type provenClamd struct{ *scanner.Clamd }

func (c provenClamd) Scan(ctx context.Context, content io.ReaderAt, size int64) (scanner.Report, error) {
	if _, err := c.Health(ctx); err != nil {
		return scanner.Report{}, err
	}
	return c.Clamd.Scan(ctx, content, size)
}

// unpacker opens containers for the scanner, in a cage.
type unpacker struct{ *extract.Extractor }

func (u unpacker) Members(ctx context.Context, content io.ReaderAt, size int64, visit func(io.Reader) error) error {
	err := u.Extractor.Members(ctx, content, size, visit)
	var refusal *extract.Refusal
	switch {
	case errors.As(err, &refusal):
		return &custody.Refusal{Code: refusal.Code, Message: refusal.Message}
	case errors.Is(err, extract.ErrCageOpen):
		return noCage(err)
	case errors.Is(err, extract.ErrStopped):
		return &custody.NoAnswer{Code: "unpacking_unfinished", Message: "what unpacks the document was stopped, it used more than it may or did what it must not", Cause: err}
	case errors.Is(err, extract.ErrUnfinished):
		return &custody.NoAnswer{Code: "unpacking_unfinished", Message: "the files packed into the document could not be looked at", Cause: err}
	}
	return err
}

func noCage(err error) error {
	return &custody.NoAnswer{Code: "extractor_unavailable", Message: "the service cannot lock in what reads documents, so none is read", Cause: err}
}

// scanGate answers the malware_scan gate.
type scanGate struct{ packed *scanner.Packed }

func (g scanGate) Scan(ctx context.Context, content io.ReaderAt, size int64) (pipeline.ScanReport, error) {
	r, err := g.packed.Scan(ctx, content, size)
	if errors.Is(err, scanner.ErrUnavailable) {
		return pipeline.ScanReport{}, &custody.NoAnswer{Code: "scanner_unavailable", Message: "the malware scan engine does not answer", Cause: err}
	}
	if err != nil {
		return pipeline.ScanReport{}, err
	}
	return pipeline.ScanReport{
		Clean: r.Outcome == scanner.Clean, Found: r.Signature, Unscannable: r.Reason,
		Engine: r.Engine.Name, EngineVersion: r.Engine.Version, SignatureVersion: r.Engine.SignatureVersion, SignatureDate: r.Engine.SignatureDate,
		ScannedWith:    r.Engine.Identity(),
		TestSignatures: !r.Engine.FullDatabase, Windows: r.Windows, Members: r.Members, ScannedBytes: r.ScannedBytes,
	}, nil
}

// extractGate answers the extraction gate.
type extractGate struct{ *extract.Extractor }

func (g extractGate) Extract(ctx context.Context, content io.ReaderAt, size int64, declared string, progress func(done, total int)) (pipeline.Text, error) {
	d, err := g.Extractor.Extract(ctx, content, size, declared, progress)
	var refusal *extract.Refusal
	switch {
	case errors.As(err, &refusal):
		return pipeline.Text{}, &custody.Refusal{Code: refusal.Code, Message: refusal.Message}
	case errors.Is(err, extract.ErrCageOpen):
		return pipeline.Text{}, noCage(err)
	case errors.Is(err, extract.ErrEngineMissing):
		return pipeline.Text{}, &custody.NoAnswer{Code: "extractor_unavailable", Message: "an extraction engine is not installed", Cause: err}
	case errors.Is(err, extract.ErrStopped):
		return pipeline.Text{}, &custody.NoAnswer{Code: "extraction_unfinished", Message: "what reads the document was stopped, it used more than it may or did what it must not", Cause: err}
	case err != nil:
		return pipeline.Text{}, &custody.NoAnswer{Code: "extraction_unfinished", Message: "the text could not be extracted", Cause: err}
	}
	t := pipeline.Text{MediaType: d.MediaType, PageCount: d.PageCount, OCRPages: d.OCRPages, Truncated: d.Truncated, Members: d.Members, LeftOut: d.LeftOut}
	for _, p := range d.Pages {
		t.Pages = append(t.Pages, pipeline.Page{Number: p.Number, Text: p.Text, Source: p.Source, Hidden: hiddenRuns(p)})
	}
	return t, nil
}

func hiddenRuns(p extract.Page) []pipeline.Hidden {
	runs := make([]pipeline.Hidden, len(p.Hidden))
	for i, run := range p.Hidden {
		runs[i] = pipeline.Hidden(run)
	}
	return runs
}

// contextGates answer controlled_summary and ai_context.
type contextGates struct{ limits aicontext.Limits }

func (g contextGates) Summarize(_ context.Context, t pipeline.Text) (json.RawMessage, map[string]any, error) {
	summary, err := aicontext.Summarize(contextPages(t), g.limits)
	if err != nil {
		return nil, nil, err
	}
	b, err := json.Marshal(summary)
	return b, map[string]any{"sentences": len(summary.Sentences), "token_count": summary.TokenCount, "language": summary.Language}, err
}

func (g contextGates) Compose(_ context.Context, u custody.Upload, t pipeline.Text, b json.RawMessage) (json.RawMessage, map[string]any, error) {
	var summary aicontext.Summary
	if err := json.Unmarshal(b, &summary); err != nil {
		return nil, nil, err
	}
	c, err := aicontext.Compose(u, t.MediaType, contextPages(t), t.Truncated, summary, g.limits)
	if err != nil {
		return nil, nil, err
	}
	served, err := json.Marshal(c)
	return served, map[string]any{
		"token_count": c.TokenCount, "token_limit": c.TokenLimit, "excerpts": len(c.Excerpts), "truncated": c.Truncated,
		"signals": len(c.Signals), "context_sha256": c.ContextSHA256,
	}, err
}

func contextPages(t pipeline.Text) []aicontext.Page {
	pages := make([]aicontext.Page, len(t.Pages))
	for i, p := range t.Pages {
		pages[i] = aicontext.Page{Number: p.Number, Text: p.Text}
		for _, run := range p.Hidden {
			pages[i].Hidden = append(pages[i].Hidden, aicontext.HiddenRun(run))
		}
	}
	return pages
}
