package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/accession/accession/internal/custody"
)

// copyBuffer is how much of a document a gate holds in memory at a time, in bytes.
const copyBuffer = 1 << 20

// integrity reads back every stored byte: length, part ledger and SHA-256 are exactly the declared ones.
type integrity struct{ vault Vault }

func (g integrity) run(ctx context.Context, p *pass) error {
	content, err := g.vault.Open(ctx, p.Upload.ID, p.parts)
	if err != nil {
		return err
	}
	defer content.Close()
	if err := verify(ctx, content, p.Upload); err != nil {
		return err
	}
	p.detail["sha256"] = p.Upload.SHA256
	p.detail["size_bytes"] = p.Upload.SizeBytes
	p.detail["parts"] = len(p.parts)
	return nil
}

// verify reads content to its end and compares it with what the upload declared.
func verify(ctx context.Context, content custody.Content, u custody.Upload) error {
	whole := sha256.New()
	n, err := stream(ctx, whole, content)
	if err != nil {
		return err
	}
	if n != u.SizeBytes || hex.EncodeToString(whole.Sum(nil)) != u.SHA256 {
		return bytesDiffer()
	}
	return nil
}

func bytesDiffer() *custody.Refusal {
	return &custody.Refusal{Code: "stored_bytes_differ", Message: "The stored bytes are not the declared ones."}
}

// stream copies content to w block by block, and stops when ctx does.
func stream(ctx context.Context, w io.Writer, content custody.Content) (int64, error) {
	r := io.NewSectionReader(content, 0, content.Size())
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{reader{ctx, r}}, make([]byte, max(1, min(copyBuffer, content.Size()))))
}

// reader fails once its context ends.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}
