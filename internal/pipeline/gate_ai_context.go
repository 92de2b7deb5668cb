package pipeline

import (
	"context"
	"encoding/json"

	"github.com/accession/accession/internal/custody"
)

// Composer makes the bounded context that readers get.
type Composer interface {
	Compose(ctx context.Context, u custody.Upload, t Text, summary json.RawMessage) (served json.RawMessage, detail map[string]any, err error)
}

type aiContext struct {
	vault    Vault
	composer Composer
}

func (g aiContext) run(ctx context.Context, p *pass) error {
	var text Text
	if err := derived(ctx, g.vault, p, ArtifactText, &text); err != nil {
		return err
	}
	var summary json.RawMessage
	if err := derived(ctx, g.vault, p, ArtifactSummary, &summary); err != nil {
		return err
	}
	served, detail, err := g.composer.Compose(ctx, p.Upload, text, summary)
	if err != nil {
		return err
	}
	p.detail = detail
	return derive(ctx, g.vault, p, ArtifactContext, served)
}
