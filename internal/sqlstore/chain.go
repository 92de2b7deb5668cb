package sqlstore

import (
	"context"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
)

// Inspect reads a database as it is: nothing is migrated, and what it answers must not be changed through it.
func Inspect(db sqldb.Querier) Chains { return queries{q: db} }

// Chains are the hash chains of all organizations.
type Chains interface {
	Evidence(ctx context.Context, q custody.EvidenceQuery) (custody.EvidencePage, error)
	Heads(ctx context.Context, q custody.HeadsQuery) (heads []custody.OrganizationHeads, next string, err error)
}

// Evidence reads a part of one chain, oldest first; empty where there is none. The head is read first, so that what is appended
// meanwhile lies beyond it.
func (s queries) Evidence(ctx context.Context, q custody.EvidenceQuery) (custody.EvidencePage, error) {
	page := custody.EvidencePage{Head: custody.ChainHead{Hash: custody.FirstHash}}
	column := "audit"
	if q.Chain == custody.ChainRecords {
		column = "record"
	}
	// Each, not Row: no such organization is no error.
	if err := s.q.Each(ctx, `SELECT `+column+`_position, `+column+`_hash FROM organizations WHERE org_id = $1`, []any{q.OrgID},
		func(scan func(...any) error) error { return scan(&page.Head.Position, &page.Head.Hash) }); err != nil {
		return page, err
	}
	sql, read := `SELECT position, `+recordColumns+` FROM request_records`, recordLine
	if q.Chain == custody.ChainAudit {
		sql, read = `SELECT `+auditColumns+` FROM audit_lines`, auditLine
	}
	err := s.q.Each(ctx, sql+` WHERE org_id = $1 AND position > $2 ORDER BY position LIMIT $3`, []any{q.OrgID, q.After, q.Limit + 1},
		func(scan func(...any) error) error { // one more tells whether there are more
			if len(page.Lines) == q.Limit {
				page.Next = page.Lines[q.Limit-1].Position
				return nil
			}
			line, err := read(scan)
			page.Lines = append(page.Lines, line)
			return err
		})
	return page, err
}

func recordLine(scan func(...any) error) (custody.EvidenceLine, error) {
	line := custody.EvidenceLine{Record: &custody.Record{}}
	var served int64
	err := scan(append([]any{&line.Position}, recordFields(line.Record, &served)...)...)
	line.Record.ServedAt = moment(served)
	return line, err
}

const auditColumns = `position, audit_id, org_id, at, action, credential_id, upload_id, status, detail, request_id, trace_id, previous_hash, line_hash`

func auditLine(scan func(...any) error) (custody.EvidenceLine, error) {
	l := &custody.AuditLine{}
	line := custody.EvidenceLine{Audit: l}
	var at int64
	err := scan(&line.Position, &l.ID, &l.OrgID, &at, &l.Action, &l.CredentialID, &l.UploadID, &l.Status, &l.Detail, &l.RequestID, &l.TraceID, &l.PreviousHash, &l.Hash)
	l.At = moment(at)
	return line, err
}

// Heads reads where the chains of organizations end, by ascending id, and the id to go on from (empty: no more).
func (s queries) Heads(ctx context.Context, q custody.HeadsQuery) (heads []custody.OrganizationHeads, next string, err error) {
	err = s.q.Each(ctx, `SELECT org_id, audit_position, audit_hash, record_position, record_hash FROM organizations WHERE org_id >= $1 ORDER BY org_id LIMIT $2`,
		[]any{q.From, q.Limit + 1}, func(scan func(...any) error) error {
			var h custody.OrganizationHeads
			if err := scan(&h.OrgID, &h.Audit.Position, &h.Audit.Hash, &h.Records.Position, &h.Records.Hash); err != nil {
				return err
			}
			if len(heads) == q.Limit {
				next = h.OrgID
				return nil
			}
			heads = append(heads, h)
			return nil
		})
	return heads, next, err
}
