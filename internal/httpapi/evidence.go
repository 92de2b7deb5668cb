package httpapi

import (
	"context"
	"encoding/base64"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/accession/accession/internal/custody"
)

// chains let an operator prove that no evidence was changed, removed or moved; an addition to section 4.7.
type chains struct{ room Evidence }

// Evidence reads the hash chains.
type Evidence interface {
	Evidence(context.Context, custody.Caller, custody.EvidenceQuery) (custody.EvidencePage, error)
	// Heads returns the organization to go on from; empty when there are no more.
	Heads(context.Context, custody.Caller, custody.HeadsQuery) (heads []custody.OrganizationHeads, next string, err error)
	// Search returns the position to go on before; zero when there are no more.
	Search(context.Context, custody.Caller, custody.AuditQuery) (lines []custody.EvidenceLine, next custody.AuditPosition, err error)
}

const (
	evidencePath = "/admin/evidence"
	headsPath    = evidencePath + "/heads"
)

// tenantOrHouse is an organization, or nothing for the installation itself.
type tenantOrHouse string

func (tenantOrHouse) Schema(huma.Registry) *huma.Schema {
	return text(0, 128, noControls, "The organization; left out or empty: the installation itself, whose audit chain holds what concerns no single organization.")
}

type evidenceInput struct {
	OrgID tenantOrHouse `query:"org_id"`
	Chain string        `query:"chain" enum:"audit,records" required:"true"`
	After int64         `query:"after" minimum:"0" maximum:"9007199254740991" default:"0" doc:"next_after of the page before."`
	Limit int           `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type evidencePage struct {
	OrgID     string            `json:"org_id"`
	Chain     string            `json:"chain" enum:"audit,records"`
	Head      custody.ChainHead `json:"head" doc:"Where the chain ended before these lines were read."`
	Lines     []chainLine       `json:"lines" nullable:"false" doc:"Oldest first; positions count from 1 without a gap."`
	NextAfter int64             `json:"next_after" doc:"0 on the last page."`
}

// chainLine is a line as its hash covers it.
type chainLine struct {
	Position int64              `json:"position"`
	Audit    *custody.AuditLine `json:"audit,omitempty"`
	Record   *chainedRecord     `json:"record,omitempty"`
}

// chainedRecord is a record without what was learnt of it later.
type chainedRecord custody.Record

type headsInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"1000"`
	Cursor string `query:"cursor" maxLength:"1024" doc:"next_cursor of the page before."`
}

type headsPage struct {
	At         timestamp                   `json:"at"`
	Heads      []custody.OrganizationHeads `json:"heads" nullable:"false" doc:"By org_id, in ascending order of bytes."`
	NextCursor string                      `json:"next_cursor" doc:"Empty on the last page."`
}

func (s chains) mount(d *door) {
	const tag = "evidence"
	mount(d, operation{
		id: custody.OpEvidence, method: http.MethodGet, path: evidencePath, tag: tag,
		summary: "Read a hash chain", doc: "The audit log or the request records of one organization, in order. The hash of a line is the SHA-256 of its audit or record object as it stands here, " +
			"without white space and with line_hash or record_hash empty; previous_hash is the hash of the line before, 64 zeros for the first. An organization that is not known has empty chains.",
		answers: map[int]reflect.Type{200: says[evidencePage]()},
	}, s.lines)
	mount(d, operation{
		id: custody.OpHeads, method: http.MethodGet, path: headsPath, tag: tag,
		summary: "Read where all hash chains end", doc: "To be kept outside of the service: whoever rewrites a chain later cannot make it pass through these hashes.",
		answers: map[int]reflect.Type{200: says[headsPage]()},
	}, s.heads)
	s.mountSearch(d)
}

func (s chains) lines(ctx context.Context, x *exchange, in *evidenceInput) (answer, error) {
	page, err := s.room.Evidence(ctx, x.caller, custody.EvidenceQuery{OrgID: string(in.OrgID), Chain: custody.Chain(in.Chain), After: in.After, Limit: in.Limit})
	if err != nil {
		return answer{}, err
	}
	lines := make([]chainLine, len(page.Lines))
	for i, l := range page.Lines {
		lines[i] = chainLine{l.Position, l.Audit, (*chainedRecord)(l.Record)}
	}
	return respond(evidencePage{string(in.OrgID), in.Chain, page.Head, lines, page.Next})
}

func (s chains) heads(ctx context.Context, x *exchange, in *headsInput) (answer, error) {
	at := custody.Now() // no head is older
	from, err := base64.RawURLEncoding.DecodeString(in.Cursor)
	if err != nil || len(from) > 512 {
		return answer{}, invalid(field{"/query/cursor", "expected the next_cursor of a page before"})
	}
	heads, next, err := s.room.Heads(ctx, x.caller, custody.HeadsQuery{From: string(from), Limit: in.Limit})
	if err != nil {
		return answer{}, err
	}
	if heads == nil {
		heads = []custody.OrganizationHeads{}
	}
	return respond(headsPage{timestamp{at}, heads, base64.RawURLEncoding.EncodeToString([]byte(next))})
}
