package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// What VerifyChain finds.
const (
	ChainChanged     = "changed"      // the line does not have its own hash
	ChainMissing     = "missing"      // there is no line at this position, but later ones
	ChainMisplaced   = "misplaced"    // the line does not follow the one before: reordered, replaced, or lines between them removed
	ChainCutOff      = "cut_off"      // the chain ends before its head
	ChainHeadDiffers = "head_differs" // the head the service states has another hash than the line there
	ChainHeadBehind  = "head_behind"  // the chain goes on after the head the service states
	ChainRewritten   = "rewritten"    // a head kept outside has another hash than the line there
)

// ChainFinding is the first thing that is wrong with a chain.
type ChainFinding struct {
	Position int64  `json:"position"`
	Problem  string `json:"problem"` // ChainChanged, …
	Detail   string `json:"detail"`  // for a person
}

// ChainReport says what VerifyChain saw.
type ChainReport struct {
	OrgID   string        `json:"org_id"`
	Chain   string        `json:"chain"`
	Lines   int64         `json:"lines"` // that hold, from the first on
	Head    ChainHead     `json:"head"`  // of the last of them
	Finding *ChainFinding `json:"finding,omitempty"`
}

// ChainSource reads chains. A *Client does; an offline copy can.
type ChainSource interface {
	Evidence(ctx context.Context, q EvidenceQuery) (*EvidencePage, error)
}

// verifyPage is how many lines are in memory at a time.
const verifyPage = 1000

// VerifyChain recomputes every hash of one chain, page by page, and compares with the head the source states and with heads of
// this chain that were kept outside, of any age. It stops at the first finding; lines appended meanwhile are none. An error means
// that the chain could not be read to its end.
func VerifyChain(ctx context.Context, source ChainSource, org, chain string, kept ...ChainHead) (*ChainReport, error) {
	v := newChainWalk(org, chain, kept)
	for {
		page, err := v.read(ctx, source)
		if err != nil {
			return nil, err
		}
		if v.begin(page.Head) || slices.ContainsFunc(page.Lines, v.step) {
			return v.report, nil
		}
		if page.NextAfter != 0 {
			if len(page.Lines) == 0 || page.NextAfter != v.report.Head.Position {
				return nil, errors.New("the pages of the chain do not follow each other: this is not the service's answer")
			}
			continue
		}
		if v.end() || v.stated.Position == v.report.Head.Position {
			return v.report, nil
		}
		// Lines after the head: they were appended while the page was read, and then the head is there by now.
		if page, err = v.read(ctx, source); err == nil {
			v.begin(page.Head)
		}
		return v.report, err
	}
}

// chainWalk goes along one chain.
type chainWalk struct {
	report *ChainReport
	kept   []ChainHead // not passed yet, by position
	passed int64       // position of the last kept head that holds
	stated ChainHead
}

func newChainWalk(org, chain string, kept []ChainHead) *chainWalk {
	w := &chainWalk{report: &ChainReport{OrgID: org, Chain: chain, Head: ChainHead{Hash: FirstHash}}}
	for _, k := range kept {
		if k.Position > 0 {
			w.kept = append(w.kept, k)
		}
	}
	slices.SortStableFunc(w.kept, func(a, b ChainHead) int { return cmp.Compare(a.Position, b.Position) })
	return w
}

func (w *chainWalk) read(ctx context.Context, source ChainSource) (*EvidencePage, error) {
	return source.Evidence(ctx, EvidenceQuery{OrgID: w.report.OrgID, Chain: w.report.Chain, After: w.report.Head.Position, Limit: verifyPage})
}

func (w *chainWalk) find(position int64, problem, format string, args ...any) bool {
	w.report.Finding = &ChainFinding{position, problem, fmt.Sprintf(format, args...)}
	return true
}

// begin takes the head stated by a page. It was read after the lines walked so far, so it is not behind them.
func (w *chainWalk) begin(stated ChainHead) bool {
	w.stated = stated
	if stated.Position < w.report.Head.Position {
		return w.find(stated.Position+1, ChainHeadBehind, "the service states a head at position %d, and the chain goes on after it", stated.Position)
	}
	return w.passes()
}

// step checks the next line.
func (w *chainWalk) step(line EvidenceLine) bool {
	org, previous, stated, own := line.hashes(w.report.Chain)
	before, position := w.report.Head, w.report.Head.Position+1
	switch {
	case line.Position > position:
		return w.find(position, ChainMissing, "the next line is at position %d", line.Position)
	case line.Position < position:
		return w.find(position, ChainMisplaced, "a line of position %d stands there", line.Position)
	case own != stated:
		return w.find(position, ChainChanged, "the line does not have the hash that stands in it")
	case previous != before.Hash:
		return w.find(position, ChainMisplaced, "the line does not follow the one before it: lines were reordered, replaced or removed here")
	case org != w.report.OrgID:
		return w.find(position, ChainMisplaced, "the line belongs to another organization")
	}
	w.report.Lines, w.report.Head = w.report.Lines+1, ChainHead{position, own}
	return w.passes()
}

// passes compares the line just walked with the heads at its position.
func (w *chainWalk) passes() bool {
	at := w.report.Head
	for ; len(w.kept) > 0 && w.kept[0].Position == at.Position; w.kept = w.kept[1:] {
		if w.kept[0].Hash != at.Hash {
			return w.find(at.Position, ChainRewritten, "a head kept outside has another hash here: a line after position %d and up to here was replaced, and the lines after it linked again", w.passed)
		}
		w.passed = at.Position
	}
	if w.stated.Position == at.Position && w.stated.Hash != at.Hash {
		return w.find(at.Position, ChainHeadDiffers, "the head the service states has another hash than the line there")
	}
	return false
}

// end compares with the heads that were not reached.
func (w *chainWalk) end() bool {
	at := w.report.Head.Position
	if w.stated.Position > at {
		return w.find(at+1, ChainCutOff, "the chain ends here, the head the service states is at position %d", w.stated.Position)
	}
	if len(w.kept) > 0 {
		return w.find(at+1, ChainCutOff, "the chain ends here, a head kept outside is at position %d", w.kept[len(w.kept)-1].Position)
	}
	return false
}

// hashes are what a line says of itself, and the hash that it should have. A line of another chain has none.
func (l EvidenceLine) hashes(chain string) (org, previous, stated, own string) {
	switch {
	case chain == ChainAudit && l.Audit != nil:
		a := *l.Audit
		a.LineHash = ""
		return a.OrgID, a.PreviousHash, l.Audit.LineHash, chainHash(a)
	case chain == ChainRecords && l.Record != nil:
		r := l.Record
		return r.OrgID, r.PreviousHash, r.RecordHash, chainHash(hashedRecord{
			r.RecordID, r.RequestID, r.TraceID, r.OrgID, r.UploadID, r.CredentialID, r.Surface, r.Outcome, r.ContextSHA256, r.Bytes, r.ServedAt, r.PreviousHash, "",
		})
	}
	return "", "", "", "none"
}

// hashedRecord is what a record's hash covers: what was known when it was written.
type hashedRecord struct {
	RecordID      string    `json:"record_id"`
	RequestID     string    `json:"request_id"`
	TraceID       string    `json:"trace_id"`
	OrgID         string    `json:"org_id"`
	UploadID      string    `json:"upload_id"`
	CredentialID  string    `json:"credential_id"`
	Surface       string    `json:"surface"`
	Outcome       string    `json:"outcome"`
	ContextSHA256 string    `json:"context_sha256"`
	Bytes         int64     `json:"bytes"`
	ServedAt      time.Time `json:"served_at"`
	PreviousHash  string    `json:"previous_hash"`
	RecordHash    string    `json:"record_hash"`
}

// chainHash is SHA-256 over JSON in the order of the fields.
func chainHash(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // a year beyond 9999, which no line can have been written with
		return "none"
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
