package sqlstore

import (
	"context"
	"fmt"

	"github.com/accession/accession/internal/custody"
)

// AuditLines reads audit lines of all organizations, newest first, and the position to go on before (zero: no more).
func (s queries) AuditLines(ctx context.Context, q custody.AuditQuery) (lines []custody.EvidenceLine, next custody.AuditPosition, err error) {
	sql, args := `SELECT `+auditColumns+` FROM audit_lines WHERE 1 = 1`, []any{}
	and := func(condition string, values ...any) {
		places := make([]any, len(values))
		for i := range values {
			places[i] = len(args) + i + 1
		}
		args = append(args, values...)
		sql += fmt.Sprintf(condition, places...)
	}
	for _, filter := range []struct{ column, value string }{
		{"org_id", q.OrgID}, {"upload_id", q.UploadID}, {"credential_id", q.CredentialID}, {"action", q.Action},
	} {
		if filter.value != "" {
			and(` AND `+filter.column+` = $%d`, filter.value)
		}
	}
	if q.UploadID != "" {
		and(` AND upload_id <> ''`) // what its index is limited to
	}
	if !q.Since.IsZero() {
		and(` AND at >= $%d`, millis(q.Since))
	}
	if !q.Until.IsZero() {
		and(` AND at < $%d`, millis(q.Until))
	}
	if !q.Before.At.IsZero() {
		and(` AND (at, audit_id) < ($%d, $%d)`, millis(q.Before.At), q.Before.ID)
	}
	and(` ORDER BY at DESC, audit_id DESC LIMIT $%d`, q.Limit+1) // one more tells whether there are more
	err = s.q.Each(ctx, sql, args, func(scan func(...any) error) error {
		if len(lines) == q.Limit {
			last := lines[q.Limit-1].Audit
			next = custody.AuditPosition{At: last.At, ID: last.ID}
			return nil
		}
		line, err := auditLine(scan)
		lines = append(lines, line)
		return err
	})
	return lines, next, err
}
