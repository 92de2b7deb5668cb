package pipeline

import (
	"context"
	"encoding/json"
	"io"
)

// Names of derived objects.
const (
	ArtifactText    = "text"
	ArtifactSummary = "summary"
	ArtifactContext = "context"
)

// Extractor turns a document into text. It refuses content with a custody.Refusal.
type Extractor interface {
	Extract(ctx context.Context, content io.ReaderAt, size int64, declared string, progress func(done, total int)) (Text, error)
}

// Text is what a document says, page by page.
type Text struct {
	MediaType string `json:"media_type"` // as detected
	Pages     []Page `json:"pages"`
	PageCount int    `json:"page_count"`
	OCRPages  int    `json:"ocr_pages"`
	Truncated bool   `json:"truncated"`          // a cap on pages, pixels or text was reached, or a member was left out
	Members   int    `json:"members,omitempty"`  // documents packed into this one that were read
	LeftOut   int    `json:"left_out,omitempty"` // and that could not be
}

// Page is one page of text.
type Page struct {
	Number int      `json:"number"`
	Text   string   `json:"text"`
	Source string   `json:"source"` // "text" or "ocr"
	Hidden []Hidden `json:"hidden,omitempty"`
}

// Hidden is a stretch of a page's text that nobody sees who looks at the document. Start and End are byte offsets.
type Hidden struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Class string `json:"class"`
}

type extraction struct {
	vault     Vault
	extractor Extractor
}

func (g extraction) run(ctx context.Context, p *pass) error {
	content, err := g.vault.Open(ctx, p.Upload.ID, p.parts)
	if err != nil {
		return err
	}
	defer content.Close()
	text, err := g.extractor.Extract(ctx, content, content.Size(), p.Upload.ContentType, func(done, total int) {
		p.progress(map[string]any{"pages_done": done, "pages": total})
	})
	if err != nil {
		return err
	}
	characters := 0
	for _, page := range text.Pages {
		characters += len([]rune(page.Text))
	}
	p.detail["declared_media_type"] = p.Upload.ContentType
	p.detail["media_type"] = text.MediaType
	p.detail["pages"] = text.PageCount
	p.detail["ocr_pages"] = text.OCRPages
	p.detail["characters"] = characters
	p.detail["truncated"] = text.Truncated
	if text.Members+text.LeftOut > 0 {
		p.detail["members"] = text.Members
		p.detail["members_left_out"] = text.LeftOut
	}
	return derive(ctx, g.vault, p, ArtifactText, text)
}

// derive seals v as JSON; it is published together with the gate's result.
func derive(ctx context.Context, vault Vault, p *pass, name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	a, err := vault.SealArtifact(ctx, p.Upload.ID, name, b)
	p.artifacts = append(p.artifacts, a)
	if p.made != nil {
		p.made[name] = b
	}
	return err
}

// derived reads what an earlier gate derived.
func derived(ctx context.Context, vault Vault, p *pass, name string, v any) error {
	if b, ok := p.made[name]; ok {
		return json.Unmarshal(b, v)
	}
	a, err := p.store.Artifact(ctx, p.Upload.ID, name)
	if err != nil {
		return err
	}
	b, err := vault.OpenArtifact(ctx, a)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
