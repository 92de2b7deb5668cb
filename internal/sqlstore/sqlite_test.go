package sqlstore_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
	"github.com/accession/accession/internal/sqlstore"
	"github.com/accession/accession/internal/storetest"
)

func TestSQLiteConforms(t *testing.T) {
	storetest.Metadata(t, func(t *testing.T) sqldb.DB { return openFile(t, filepath.Join(t.TempDir(), "metadata.db")) })
}

func openFile(t *testing.T, path string) *sqldb.SQLite {
	t.Helper()
	db, err := sqldb.OpenSQLite(path, sqldb.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func mustTx(t *testing.T, in *storetest.Installation, fn func(ctx context.Context, tx *sqlstore.Tx) error) {
	t.Helper()
	if err := in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error { return fn(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
}

// Whoever can write to the file can drop the triggers; the chains still tell what was changed.
func TestChangedEvidenceIsFound(t *testing.T) {
	for what, attack := range map[string][]string{
		"a record's bytes":      {`DROP TRIGGER request_records_keep`, `UPDATE request_records SET bytes = 1 WHERE position = 2`},
		"a record's outcome":    {`DROP TRIGGER request_records_keep`, `UPDATE request_records SET outcome = 'refused_visibility' WHERE position = 3`},
		"a record taken out":    {`DROP TRIGGER request_records_stay`, `DELETE FROM request_records WHERE position = 2`},
		"an audit line's cause": {`DROP TRIGGER audit_lines_keep`, `UPDATE audit_lines SET credential_id = 'cred_2' WHERE position = 1`},
		"an audit line's time":  {`DROP TRIGGER audit_lines_keep`, `UPDATE audit_lines SET at = at + 1 WHERE position = 3`},
		"two lines in turn":     {`DROP TRIGGER audit_lines_keep`, `UPDATE audit_lines SET position = 9 - position WHERE position IN (2, 3)`},
	} {
		in := storetest.OpenSQLite(t)
		mustTx(t, in, func(ctx context.Context, tx *sqlstore.Tx) error { return tx.EnsureOrganization(ctx, "acme", 1) })
		for range 3 {
			mustTx(t, in, func(ctx context.Context, tx *sqlstore.Tx) error {
				if err := tx.AppendAudit(ctx, custody.AuditLine{OrgID: "acme", At: custody.Now(), Action: "credential_issued", CredentialID: "cred_1"}); err != nil {
					return err
				}
				return tx.AppendRecord(ctx, &custody.Record{ID: custody.NewID("rec"), OrgID: "acme", Surface: "rest", Outcome: custody.OutcomeServed, Bytes: 7, ServedAt: custody.Now()})
			})
		}
		if n := in.BrokenLinks(t, "acme"); n != 0 {
			t.Fatalf("%d links do not verify before anything was changed", n)
		}
		for _, statement := range attack {
			if err := in.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if in.BrokenLinks(t, "acme") == 0 {
			t.Errorf("changing %s was not found", what)
		}
	}
}

// Not one column of one table keeps what a withdrawal must forget.
func TestWithdrawnUploadLeavesNoNames(t *testing.T) {
	in := storetest.OpenSQLite(t)
	u := custody.Upload{
		ID: "upl_1", OrgID: "acme", Kind: custody.KindPartner, PipelineID: "pip_1", CredentialID: "cred_1", ContentType: "text/plain", SizeBytes: 1,
		Filename: "forgetme-name.txt", Notes: "forgetme-notes", MaterialType: "forgetme-material", Importance: custody.ImportanceNormal,
		Consent:       custody.Consent{AgreementVersion: "b1", ConsentingUserID: "forgetme-user", ConsentingEmail: "forgetme@example.org"},
		PartSizeBytes: 64, ReservedBytes: 1, CreatedAt: custody.Now(), UpdatedAt: custody.Now(), ExpiresAt: custody.Now(),
	}
	mustTx(t, in, func(ctx context.Context, tx *sqlstore.Tx) error {
		if err := tx.EnsureOrganization(ctx, "acme", 1); err != nil {
			return err
		}
		if err := tx.ReserveQuota(ctx, "acme", 1); err != nil {
			return err
		}
		if err := tx.InsertUpload(ctx, &u, custody.Cause{}); err != nil {
			return err
		}
		if err := tx.AppendPart(ctx, &u, custody.Part{UploadID: u.ID, Number: 1, SizeBytes: 1, SHA256: "forgetme-hash", ObjectKey: "forgetme-key"}, []byte("forgetme-state"), ""); err != nil {
			return err
		}
		return tx.PutArtifact(ctx, custody.Artifact{UploadID: u.ID, Name: "text", ObjectKey: "forgetme-text"})
	})
	if n := cellsWith(t, in, "forgetme"); n != 8 {
		t.Fatalf("%d cells hold what is to be forgotten, want 8: filename, notes, material, consent, digest state, the part's digest and key, the text", n)
	}
	mustTx(t, in, func(ctx context.Context, tx *sqlstore.Tx) error {
		for _, trigger := range []custody.Trigger{custody.TriggerWithdrawal, custody.TriggerDeletionConfirmed} {
			if err := tx.Transition(ctx, &u, custody.Change{Trigger: trigger}); err != nil {
				return err
			}
		}
		return tx.InsertReceipt(ctx, custody.Receipt{ID: "rct_1", UploadID: u.ID, OrgID: "acme"}, u.Consent)
	})
	if n := cellsWith(t, in, "forgetme"); n != 0 {
		t.Errorf("%d cells of the database still hold it", n)
	}
	if n := cellsWith(t, in, "upl_1"); n == 0 {
		t.Error("nothing of the upload is left to audit")
	}
}

// cellsWith counts the cells of all tables that contain text.
func cellsWith(t *testing.T, in *storetest.Installation, text string) (cells int) {
	t.Helper()
	var columns [][2]string
	if err := in.DB.Each(t.Context(), `SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'`, nil, func(scan func(...any) error) error {
		var c [2]string
		err := scan(&c[0], &c[1])
		columns = append(columns, c)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range columns {
		var n int
		if err := in.DB.Row(t.Context(), `SELECT COUNT(*) FROM "`+c[0]+`" WHERE instr(CAST("`+c[1]+`" AS TEXT), $1) > 0`, []any{text}, &n); err != nil {
			t.Fatal(err)
		}
		cells += n
	}
	return cells
}

func TestStoreIsThereAfterReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metadata.db")
	db, err := sqldb.OpenSQLite(path, sqldb.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first := storetest.Install(t, db)
	changed := first.Store.Changed()
	mustTx(t, first, func(ctx context.Context, tx *sqlstore.Tx) error { return tx.EnsureOrganization(ctx, "acme", 5) })
	<-changed // hangs if a commit tells nobody
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := first.Store.Ping(t.Context()); err == nil {
		t.Error("a closed database answers")
	}
	second := storetest.Install(t, openFile(t, path))
	if q, err := second.Store.Quota(t.Context(), "acme"); err != nil || q.AllowanceBytes != 5 {
		t.Errorf("after reopening: %+v, %v", q, err)
	}
}

// An identifier of the request never becomes SQL.
func TestValuesAreNotSQL(t *testing.T) {
	in := storetest.OpenSQLite(t)
	mustTx(t, in, func(ctx context.Context, tx *sqlstore.Tx) error { return tx.EnsureOrganization(ctx, "acme", 5) })
	evil := `' OR '1'='1`
	if records, _, err := in.Store.Records(t.Context(), custody.RecordQuery{OrgID: evil, UploadID: evil, RequestID: evil, Limit: 5}); err != nil || len(records) != 0 {
		t.Errorf("records of %q: %v, %v", evil, records, err)
	}
	if _, err := in.Store.Upload(t.Context(), evil, evil); err == nil || strings.Contains(err.Error(), "syntax") {
		t.Errorf("upload of %q: %v", evil, err)
	}
}
