package sqlstore_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqlstore"
)

// Row notes the plan as Each does.
func (p *planned) Row(ctx context.Context, sql string, args []any, dest ...any) error {
	if err := p.note(ctx, sql, args); err != nil {
		return err
	}
	return p.DB.Row(ctx, sql, args, dest...)
}

// However many uploads, records and credentials there are, whatever a request reads is found along an index.
func TestRequestsScanNoTable(t *testing.T) {
	db := &planned{DB: openFile(t, filepath.Join(t.TempDir(), "metadata.db"))}
	store, err := sqlstore.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1)
	for name, read := range map[string]func(context.Context) error{
		"upload":         func(ctx context.Context) error { _, err := store.Upload(ctx, "acme", "upl_1"); return err },
		"state":          func(ctx context.Context) error { _, err := store.UploadState(ctx, "acme", "upl_1"); return err },
		"gates shown":    func(ctx context.Context) error { _, err := store.GatesShown(ctx, "upl_1"); return err },
		"gates":          func(ctx context.Context) error { _, err := store.Gates(ctx, "upl_1"); return err },
		"parts":          func(ctx context.Context) error { _, err := store.Parts(ctx, "upl_1"); return err },
		"part digests":   func(ctx context.Context) error { _, err := store.PartDigests(ctx, "upl_1"); return err },
		"events":         func(ctx context.Context) error { _, err := store.Events(ctx, "upl_1", 0); return err },
		"published":      func(ctx context.Context) error { _, err := store.Published(ctx, "acme", "upl_1"); return err },
		"artifact":       func(ctx context.Context) error { _, err := store.Artifact(ctx, "upl_1", "context"); return err },
		"corrections":    func(ctx context.Context) error { _, err := store.Corrections(ctx, "acme", "upl_1", 20); return err },
		"references":     func(ctx context.Context) error { _, err := store.References(ctx, "upl_1", 20); return err },
		"record":         func(ctx context.Context) error { _, err := store.Record(ctx, "rec_1"); return err },
		"receipt":        func(ctx context.Context) error { _, err := store.Receipt(ctx, "upl_1"); return err },
		"signed receipt": func(ctx context.Context) error { _, err := store.SignedReceipt(ctx, "acme", "rct_1"); return err },
		"recalled":       func(ctx context.Context) error { _, err := store.Recalled(ctx, "acme", "upl_1"); return err },
		"quota":          func(ctx context.Context) error { _, err := store.Quota(ctx, "acme"); return err },
		"credential":     func(ctx context.Context) error { _, err := store.Credential(ctx, "cred_1"); return err },
		"token revoked":  func(ctx context.Context) error { _, err := store.TokenRevoked(ctx, "jti_1"); return err },
		"seats":          func(ctx context.Context) error { _, err := store.Seats(ctx, "hash", now); return err },
		"withdrawing":    func(ctx context.Context) error { _, err := store.Withdrawing(ctx, "upl_1"); return err },
		"answered":       func(ctx context.Context) error { _, _, err := store.Answered(ctx, custody.Idempotency{}); return err },
		"due gates":      func(ctx context.Context) error { _, err := store.Due(ctx, custody.LaneGates); return err },
		"due deletions":  func(ctx context.Context) error { _, err := store.Due(ctx, custody.LaneDeletions); return err },
		"waits too long": func(ctx context.Context) error { _, err := store.WaitsTooLong(ctx, custody.LongestWaits{}); return err },
		"records": func(ctx context.Context) error {
			_, _, err := store.Records(ctx, custody.RecordQuery{OrgID: "acme", Limit: 20})
			return err
		},
		"records of upload": func(ctx context.Context) error {
			_, _, err := store.Records(ctx, custody.RecordQuery{OrgID: "acme", UploadID: "upl_1", Limit: 20})
			return err
		},
	} {
		db.plan = nil
		if err := read(t.Context()); err != nil && !strings.Contains(err.Error(), "not found") {
			t.Fatalf("%s: %v", name, err)
		}
		if len(db.plan) == 0 {
			t.Errorf("%s: nothing was read", name)
		}
		for _, step := range db.plan {
			// What a recursion has found, and a subquery's rows, are few; an organization has one webhook.
			switch table, scans := strings.CutPrefix(step, "SCAN "); {
			case !scans, table == "l", table == "newest", table == "due", table == "far", table == "CONSTANT ROW", strings.HasPrefix(table, "("), strings.HasPrefix(table, "webhook_endpoints"):
			default:
				t.Errorf("%s: %q in %q", name, step, db.plan)
			}
		}
	}
}
