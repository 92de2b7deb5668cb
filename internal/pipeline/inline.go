package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"time"

	"github.com/accession/accession/internal/custody"
)

// inlineLimit is how long one gate may keep a request waiting; a MiB of text needs well under a second.
const inlineLimit = 30 * time.Second

// Inline runs the six gates over a small text inside the request that brings it: the same gates, once, without a row that
// could wait. The results are published by the caller's transaction, together with the upload. Errors: *custody.Refusal
// with the gate that refused, *custody.NoAnswer where a gate has no answer within the shorter of 30 s and its deadline.
// (Contract decisions, "Statuses, stages, gates".)
func (r *Runner) Inline(ctx context.Context, u custody.Upload, parts []custody.Part) (results []custody.GateResult, artifacts []custody.Artifact, err error) {
	made := map[string][]byte{}
	for _, g := range r.gates {
		result := custody.GateResult{Name: g.Name, State: custody.GatePassed, StartedAt: custody.Now()}
		switch g.Name {
		case custody.GateExtraction:
			g.run = extraction{r.vault, payload{r.extractor}}.run
		case custody.GateControlledSummary:
			g.run = controlledSummary{r.vault, r.fewAtOnce}.run
		}
		p := &pass{Claim: custody.Claim{Upload: u, Attempt: 1}, parts: parts, store: r.store, detail: map[string]any{}, made: made, progress: func(map[string]any) {}}
		if err := r.once(ctx, g, p); err != nil {
			return nil, nil, err
		}
		result.FinishedAt, result.Detail, result.ScannedWith = custody.Now(), p.detail, p.scannedWith
		results, artifacts = append(results, result), append(artifacts, p.artifacts...)
	}
	return results, artifacts, nil
}

// once runs one gate for a request that waits.
func (r *Runner) once(ctx context.Context, g gate, p *pass) (err error) {
	left := min(inlineLimit, g.Attempt, g.Deadline)
	ctx, cancel := context.WithTimeoutCause(ctx, left, &custody.NoAnswer{Code: "gate_attempt_timeout", Message: fmt.Sprintf("no answer within %s", left)})
	defer cancel()
	ctx, ended := r.cfg.Watch.Gate(ctx, g.Name)
	defer func() { ended(err) }()
	defer func() {
		if v := recover(); v != nil { // as in the pipeline: one document must not take the service down
			err = &custody.NoAnswer{Code: "internal_error", Message: "the gate failed inside", Cause: fmt.Errorf("panic: %v", v)}
		}
	}()
	if err = g.run(ctx, p); err == nil {
		return nil
	}
	var refusal *custody.Refusal
	switch {
	case ctx.Err() != nil: // whatever the gate made of the interruption is no verdict, even if it calls it one
		return fmt.Errorf("%w: %v", context.Cause(ctx), err)
	case !errors.As(err, &refusal):
		return err
	case g.Name == custody.GateIntegrity, g.Name == custody.GateQuarantine:
		// These compare what was stored with what came in: the fault is the storage's, not the sender's.
		return &custody.NoAnswer{Code: refusal.Code, Message: refusal.Message, Cause: fmt.Errorf("%s gate", g.Name)}
	}
	refusal.Gate = g.Name
	return refusal
}

// fewAtOnce summarizes as many texts of requests at a time as there are slots. That only computes: more at once are done no sooner,
// and each may take tens of MiB for as long. The others wait with their text alone, no longer than their gate may.
type fewAtOnce struct {
	Summarizer
	busy chan struct{} // as long as there are slots
}

func (s fewAtOnce) Summarize(ctx context.Context, t Text) (summary json.RawMessage, detail map[string]any, err error) {
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
		return s.Summarizer.Summarize(ctx, t)
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// payload answers the extraction gate for content that is text by contract: one page, taken literally. Only what may be
// markup goes to the extractor: nobody is served tags.
type payload struct{ markup Extractor }

var markupTypes = map[string]bool{"text/html": true, "application/xhtml+xml": true, "text/markdown": true}

func (x payload) Extract(ctx context.Context, content io.ReaderAt, size int64, declared string, progress func(done, total int)) (Text, error) {
	b := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(content, 0, size), b); err != nil {
		return Text{}, err
	}
	mediaType, _, err := mime.ParseMediaType(declared)
	if err != nil {
		mediaType = plainText
	}
	if !markupTypes[mediaType] && bytes.IndexByte(b, '<') < 0 {
		return Text{MediaType: mediaType, PageCount: 1, Pages: []Page{{Number: 1, Text: string(b), Source: "text"}}}, nil
	}
	readAs := plainText + "; charset=utf-8" // a payload is UTF-8, and text whatever else its type says
	if markupTypes[mediaType] {
		readAs = mediaType + "; charset=utf-8"
	}
	text, err := x.markup.Extract(ctx, content, size, readAs, progress)
	if err == nil && text.MediaType == plainText {
		text.MediaType = mediaType
	}
	return text, err
}

const plainText = "text/plain"
