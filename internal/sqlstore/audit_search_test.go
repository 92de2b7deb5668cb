package sqlstore_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
	"github.com/accession/accession/internal/sqlstore"
)

// planned notes how the engine goes about each read.
type planned struct {
	sqldb.DB
	plan []string
}

func (p *planned) Each(ctx context.Context, sql string, args []any, fn func(scan func(...any) error) error) error {
	if err := p.note(ctx, sql, args); err != nil {
		return err
	}
	return p.DB.Each(ctx, sql, args, fn)
}

func (p *planned) note(ctx context.Context, sql string, args []any) error {
	return p.DB.Each(ctx, `EXPLAIN QUERY PLAN `+sql, args, func(scan func(...any) error) error {
		var id, parent, unused int
		var step string
		err := scan(&id, &parent, &unused, &step)
		p.plan = append(p.plan, step)
		return err
	})
}

// However many lines there are, a page is read along an index, newest first: nothing is scanned, nothing is sorted.
func TestAuditSearchFollowsAnIndex(t *testing.T) {
	db := &planned{DB: openFile(t, filepath.Join(t.TempDir(), "metadata.db"))}
	store, err := sqlstore.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]custody.AuditQuery{
		"audit_lines_at": {}, "audit_lines_organization": {OrgID: "acme"}, "audit_lines_upload": {UploadID: "upl_1"}, "audit_lines_credential": {CredentialID: "cred_1"}, "audit_lines_action": {Action: "completed"},
	} {
		for _, q := range []custody.AuditQuery{
			q, {OrgID: q.OrgID, UploadID: q.UploadID, CredentialID: q.CredentialID, Action: q.Action, Since: time.UnixMilli(1), Until: time.UnixMilli(9), Before: custody.AuditPosition{At: time.UnixMilli(8), ID: "aud_1"}},
		} {
			db.plan, q.Limit = nil, 20
			if _, _, err := store.AuditLines(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			if len(db.plan) != 1 || !strings.Contains(db.plan[0], "USING INDEX "+name+" ") && !strings.HasSuffix(db.plan[0], "USING INDEX "+name) {
				t.Errorf("%+v: %q, want %s", q, db.plan, name)
			}
		}
	}
	db.plan = nil
	if _, err := store.StuckUploads(t.Context(), 20); err != nil {
		t.Fatal(err)
	}
	for _, step := range db.plan {
		if strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "uploads_failed") {
			t.Errorf("stuck uploads are found by %q", db.plan)
		}
	}
}
