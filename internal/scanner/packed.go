package scanner

import (
	"context"
	"errors"
	"io"

	"github.com/accession/accession/internal/custody"
)

// engine scans content as it lies: a Clamd or a Managed.
type engine interface {
	Scan(ctx context.Context, content io.ReaderAt, size int64) (Report, error)
	ScanStream(ctx context.Context, content io.Reader) (Report, error)
}

// Unpacker calls visit with every file that is packed into content, at whatever depth. A *custody.Refusal from it says that
// nobody can look into the content.
type Unpacker interface {
	Members(ctx context.Context, content io.ReaderAt, size int64, visit func(io.Reader) error) error
}

// Packed scans content as it lies, and then each file packed into it: an engine looks into containers only as far as its limits
// go, and not into all of them.
type Packed struct {
	engine   engine
	unpacker Unpacker
}

// NewPacked joins an engine and what unpacks for it.
func NewPacked(e engine, u Unpacker) *Packed { return &Packed{e, u} }

// errFound ends the walk: one infected file is enough.
var errFound = errors.New("a member is infected")

// Scan is the engine's Scan, Clean only where every packed file is clean too. What cannot be unpacked is Unscannable. Any other error
// of unpacking is no answer.
func (p *Packed) Scan(ctx context.Context, content io.ReaderAt, size int64) (Report, error) {
	report, err := p.engine.Scan(ctx, content, size)
	if err != nil || report.Outcome != Clean {
		return report, err
	}
	err = p.unpacker.Members(ctx, content, size, func(member io.Reader) error {
		found, err := p.engine.ScanStream(ctx, member)
		if err != nil {
			return err
		}
		report.Members++
		report.ScannedBytes += found.ScannedBytes
		switch {
		case found.Outcome == Infected:
			report.Outcome, report.Signature, report.Reason = Infected, found.Signature, ""
			return errFound
		case found.Outcome != Clean && report.Outcome == Clean: // a later member may still be infected
			report.Outcome, report.Reason = Unscannable, found.Reason
		}
		return nil
	})
	var refusal *custody.Refusal
	switch {
	case err == nil, errors.Is(err, errFound):
		return report, nil
	case errors.As(err, &refusal):
		report.Outcome, report.Reason = Unscannable, refusal.Message
		return report, nil
	}
	return Report{}, err
}
