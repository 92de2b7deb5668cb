package pipeline

import (
	"context"
	"encoding/json"
)

// Summarizer derives the bounded summary from extracted text; it returns what the composer needs, and metadata for the
// gate's detail.
type Summarizer interface {
	Summarize(ctx context.Context, t Text) (summary json.RawMessage, detail map[string]any, err error)
}

type controlledSummary struct {
	vault      Vault
	summarizer Summarizer
}

func (g controlledSummary) run(ctx context.Context, p *pass) error {
	var text Text
	if err := derived(ctx, g.vault, p, ArtifactText, &text); err != nil {
		return err
	}
	summary, detail, err := g.summarizer.Summarize(ctx, text)
	if err != nil {
		return err
	}
	p.detail = detail
	return derive(ctx, g.vault, p, ArtifactSummary, summary)
}
