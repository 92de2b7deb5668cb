package sqlstore_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/storetest"
)

// migrationsBefore are the migrations that an older version of the service knew.
func migrationsBefore(t *testing.T, names ...string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join("migrations", "sqlite", name))
		if err != nil {
			t.Fatal(err)
		}
		files["migrations/sqlite/"+name] = &fstest.MapFile{Data: b}
	}
	return files
}

// The migration that lets READY uploads wait rebuilds two tables; nothing of what they held is lost or loosened.
func TestRescanMigrationKeepsWhatWasThere(t *testing.T) {
	db := openFile(t, filepath.Join(t.TempDir(), "metadata.db"))
	if err := db.Migrate(t.Context(), migrationsBefore(t, "00001_custody.sql", "00002_oauth.sql"), "migrations/sqlite"); err != nil {
		t.Fatal(err)
	}
	before := &storetest.Installation{DB: db}
	for _, statement := range []string{
		`INSERT INTO organizations (org_id, allowance_bytes, record_hash, audit_hash, created_at) VALUES ('acme', 9, 'h', 'h', 1)`,
		`INSERT INTO uploads (upload_id, org_id, kind, status, sequence, pipeline_id, credential_id, filename, content_type, size_bytes, visibility, uploader_type,
			consent, notes, material_type, importance, part_size_bytes, received_bytes, digest_state, reserved_bytes, used_bytes, created_at, updated_at, expires_at, due_at, attempt)
			VALUES ('upl_1', 'acme', 'partner', 'READY', 2, 'pip_1', 'cred_1', 'a.txt', 'text/plain', 5, 'internal_only', 'customer', '{}', 'notes', 'm', 'normal', 64, 5, x'00ff', 0, 5, 1, 2, 3, 0, 0),
			('upl_2', 'acme', 'partner', 'PROCESSING', 1, 'pip_2', 'cred_1', 'b.txt', 'text/plain', 5, 'internal_only', 'customer', '{}', '', '', 'normal', 64, 5, x'', 0, 5, 1, 2, 3, 17, 4)`,
		`INSERT INTO parts VALUES ('upl_1', 1, 5, 'sum', 'key', 1)`,
		`INSERT INTO gates (upload_id, position, name, state) VALUES ('upl_1', 3, 'malware_scan', 'passed')`,
		`INSERT INTO status_events VALUES ('evt_1', 'upl_1', 'acme', 1, '', 'reserved', 'INITIATED', '', '', 1, 'cred_1', 'req_1', 'trc_1'),
			('evt_2', 'upl_1', 'acme', 2, 'PROCESSING', 'gates_passed', 'READY', 'ai_context', 'passed', 2, 'cred_1', 'req_1', 'trc_1')`,
	} {
		if err := before.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	in := storetest.Install(t, db)
	u, err := in.Store.Upload(t.Context(), "acme", "upl_1")
	if err != nil || u.Status != custody.StatusReady || u.Sequence != 2 || u.Notes != "notes" || u.UsedBytes != 5 || string(u.DigestState) != "\x00\xff" {
		t.Errorf("the upload is %+v, %v", u, err)
	}
	if parts, err := in.Store.Parts(t.Context(), "upl_1"); err != nil || len(parts) != 1 {
		t.Errorf("%d parts, %v", len(parts), err)
	}
	events, err := in.Store.Events(t.Context(), "upl_1", 0)
	if err != nil || len(events) != 2 || events[1].Trigger != custody.TriggerGatesPassed || events[1].Cause.TraceID != "trc_1" {
		t.Errorf("events are %+v, %v", events, err)
	}
	if due, err := in.Store.Due(t.Context(), custody.LaneGates); err != nil || !due {
		t.Errorf("work that waited is not due: %v, %v", due, err)
	}
	for _, attack := range []string{
		`UPDATE status_events SET sequence = 9`, `DELETE FROM status_events`, `INSERT INTO parts VALUES ('upl_none', 1, 5, 'sum', 'key', 1)`,
		`DELETE FROM uploads`, `UPDATE uploads SET due_at = 1, status = 'REJECTED'`,
		`INSERT INTO status_events VALUES ('evt_3', 'upl_1', 'acme', 3, 'REJECTED', 'rescan_refused', 'READY', '', '', 1, '', '', '')`,
	} {
		if err := in.Exec(t.Context(), attack); err == nil {
			t.Errorf("accepted: %s", attack)
		}
	}
	broken, tables := 0, 0
	for statement, count := range map[string]*int{`SELECT COUNT(*) FROM pragma_foreign_key_check`: &broken,
		`SELECT COUNT(*) FROM sqlite_master WHERE name LIKE '%\_before' ESCAPE '\' OR name LIKE '%\_after' ESCAPE '\'`: &tables} {
		if err := db.Row(t.Context(), statement, nil, count); err != nil || *count != 0 {
			t.Errorf("%s: %d, %v", statement, *count, err)
		}
	}
}
