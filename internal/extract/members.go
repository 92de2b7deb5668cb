package extract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/accession/accession/internal/extract/archive"
	"github.com/accession/accession/internal/extract/mail"
)

// nestedBytes is the longest member that is itself looked into: it is held in memory for that.
const nestedBytes = 256 << 20

// Members calls visit with every file that is packed into content, at whatever depth: archives of any kind (office documents are
// some), what is attached to mail and to PDF. A packed container is visited as a file too. visit need not read to the end.
// Content that contains nothing calls it never; for short plain text that is found out without a worker.
//
// The error is visit's own; a *Refusal where nobody can look into the content: encrypted, damaged, packed too deep, or
// growing too large, which is found out before anything grows; content's own; or it wraps ErrUnfinished.
// Source: architecture, "Engines": walk containers ourselves and scan every member.
func (e *Extractor) Members(ctx context.Context, content io.ReaderAt, size int64, visit func(io.Reader) error) error {
	if size <= 0 || holdsNothing(content, size) {
		return nil
	}
	var visitErr error
	err := e.converse(ctx, purposeMembers, "", content, size, func(c *conversation) (err error) {
		visitErr, err = c.members(visit)
		return err
	})
	var refusal *Refusal
	// What visit reads is the worker's word: that it broke off is no error of visit.
	if errors.Is(visitErr, errFrame) || errors.Is(visitErr, errEnded) {
		visitErr = nil
	}
	if err == nil || visitErr != nil || errors.As(err, &refusal) || errors.Is(err, errContent) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnfinished, err)
}

// members has every member that the worker sends visited. visitErr is visit's own; err is that, or why the worker did not come to
// its end.
func (c *conversation) members(visit func(io.Reader) error) (visitErr, err error) {
	for {
		kind, payload, err := c.next(bytesLimit)
		if err != nil {
			return nil, err
		}
		switch kind {
		case frameMember:
			m := &memberReader{conversation: c}
			if err := visit(m); err != nil {
				return err, err
			}
			if _, err := io.Copy(io.Discard, m); err != nil {
				return nil, err
			}
		case frameNeed:
			return nil, errNeedPDF
		case frameRefusal:
			return nil, refusalOf(payload)
		case frameEnd:
			return nil, nil
		default:
			return nil, errFrame
		}
	}
}

// ErrUnfinished marks errors that say nothing about the content: a worker was killed at a limit, or broke down.
var ErrUnfinished = errors.New("the content was not looked at to its end")

func refusalOf(payload []byte) error {
	var f refusalFrame
	if json.Unmarshal(payload, &f) != nil || refusalMessages[f.Code] == "" {
		return errFrame
	}
	return refuse(f.Code)
}

// memberReader is one member as it comes over the wire.
type memberReader struct {
	*conversation
	left []byte
	err  error
}

func (m *memberReader) Read(p []byte) (int, error) {
	for len(m.left) == 0 && m.err == nil {
		kind, payload, err := m.next(bytesLimit)
		switch {
		case err != nil:
			m.err = err
		case kind == frameBytes:
			m.left = payload
		case kind == frameMemberEnd:
			m.err = io.EOF
		case kind == frameRefusal:
			m.err = refusalOf(payload)
		default:
			m.err = errFrame
		}
	}
	if len(m.left) == 0 {
		return 0, m.err
	}
	n := copy(p, m.left)
	m.left = m.left[n:]
	return n, nil
}

// sendMembers is the purpose "members".
func (w *worker) sendMembers() error {
	if err := w.misbehave(purposeMembers); err != nil {
		return err
	}
	p := packed{worker: w, budget: archive.NewBudget(archive.DefaultLimits(), w.job.Size)}
	return p.look(w.content, w.job.Size)
}

// packed looks for what is packed into content.
type packed struct {
	*worker
	budget *archive.Budget
	held   int64 // bytes of members that are looked into just now
}

// look goes by what any reader would take the content for, not by what it is called.
func (p *packed) look(content io.ReaderAt, size int64) error {
	if kind, ok := archive.Detect(content, size); ok {
		if err := archive.Walk(kind, content, size, p.budget, p.member); err != nil {
			return faultOf(err)
		}
	}
	head, err := whole(content, min(size, headBytes))
	if err != nil {
		return err
	}
	if pdfHeader(head) >= 0 {
		return p.walk(func() error { return p.attachments(content, size) })
	}
	if mail.Detect(head) {
		return faultOf(mail.Walk(content, size, p.budget, p.member))
	}
	return nil
}

func (p *packed) walk(walk func() error) error {
	if err := p.budget.Enter(); err != nil {
		return faultOf(err)
	}
	defer p.budget.Leave()
	return faultOf(walk())
}

// attachments are the files attached to a PDF. One that cannot be opened has none: nobody reads it, and its extraction is refused.
// Most have none that anything could be read of, and need no engine.
func (p *packed) attachments(content io.ReaderAt, size int64) error {
	raw, err := p.wholePDF(content, size)
	if err != nil || !mayHoldFiles(raw) {
		return err
	}
	d, err := p.openPDF(raw)
	var refusal *Refusal
	if errors.As(err, &refusal) && refusal.Code == CodeBroken {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.close()
	return d.attachments(d.allPages(), p.budget, p.member)
}

// member looks into one member, and sends it. What is packed into it goes first: an engine that is given a bomb begins to unpack it.
func (p *packed) member(_ archive.Member, from io.Reader) error {
	room := nestedBytes - p.held
	var kept bytes.Buffer
	if _, err := io.Copy(&kept, io.LimitReader(from, room+1)); err != nil {
		return err
	}
	size := int64(kept.Len())
	if size > room {
		return p.long(kept.Bytes(), from)
	}
	p.held += size
	defer func() { p.held -= size }()
	if err := p.look(bytes.NewReader(kept.Bytes()), size); err != nil {
		return err
	}
	return p.sendMember(bytes.NewReader(kept.Bytes()))
}

// long sends a member that is too long to be looked into, which matters only if there is something to look for.
func (p *packed) long(begin []byte, rest io.Reader) error {
	_, packed := archive.Detect(bytes.NewReader(begin), int64(len(begin)))
	if packed || pdfHeader(begin) >= 0 || mail.Detect(begin[:min(len(begin), headBytes)]) {
		return refuse(CodeExpands)
	}
	tail := &lastBytes{keep: tailBytes}
	if err := p.sendMember(io.TeeReader(io.MultiReader(bytes.NewReader(begin), rest), tail)); err != nil {
		return err
	}
	if archive.EndsAsZip(tail.kept) {
		return refuse(CodeExpands)
	}
	return nil
}

func (p *packed) sendMember(from io.Reader) error {
	if err := p.to.send(frameMember, nil); err != nil {
		return err
	}
	buffer := make([]byte, bytesLimit)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if err := writeRaw(p.to.out, frameBytes, buffer[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return p.to.send(frameMemberEnd, nil)
		}
		if err != nil {
			return err
		}
	}
}

// lastBytes keeps the end of what is written to it.
type lastBytes struct {
	keep int
	kept []byte
}

func (l *lastBytes) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p...)
	l.kept = l.kept[max(0, len(l.kept)-l.keep):]
	return len(p), nil
}

// tailBytes holds the end record of a zip with the longest comment.
const tailBytes = 66 << 10
