package scanner

import (
	"bytes"
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

// Packed scans each file packed into content, and the content as it lies: an engine looks into containers only as far as its limits
// go, and not into all of them.
type Packed struct {
	engine   engine
	unpacker Unpacker
}

// NewPacked joins an engine and what unpacks for it.
func NewPacked(e engine, u Unpacker) *Packed { return &Packed{e, u} }

// errFound ends the walk: one infected file is enough.
var errFound = errors.New("a member is infected")

// Scan scans each packed file, then the content as the engine's Scan does; Clean only where all of it is. The packed files come
// first: what would grow too large is refused before the engine begins to unpack it. What cannot be unpacked is Unscannable. Any
// other error of unpacking is no answer, unless the engine finds the content itself infected.
func (p *Packed) Scan(ctx context.Context, content io.ReaderAt, size int64) (Report, error) {
	members, walkErr := p.scanMembers(ctx, content, size)
	var refusal *custody.Refusal
	if errors.As(walkErr, &refusal) {
		members.Outcome, members.Reason, walkErr = Unscannable, refusal.Message, nil
	}
	if walkErr == nil && members.Outcome != Clean {
		content, size = bytes.NewReader(nil), 0 // only to learn which engine it was
	}
	report, err := p.engine.Scan(ctx, content, size)
	if err != nil {
		return report, err
	}
	report.Members, report.ScannedBytes = members.Members, report.ScannedBytes+members.ScannedBytes
	if report.Outcome == Clean {
		report.Outcome, report.Signature, report.Reason = members.Outcome, members.Signature, members.Reason
	}
	if walkErr != nil && report.Outcome != Infected {
		return Report{}, walkErr
	}
	return report, nil
}

// scanMembers scans the packed files up to the first that is infected.
func (p *Packed) scanMembers(ctx context.Context, content io.ReaderAt, size int64) (Report, error) {
	report := Report{Outcome: Clean}
	err := p.unpacker.Members(ctx, content, size, func(member io.Reader) error {
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
	if errors.Is(err, errFound) {
		err = nil
	}
	return report, err
}
