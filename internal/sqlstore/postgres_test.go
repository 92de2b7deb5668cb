package sqlstore_test

import (
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqlstore"
	"github.com/accession/accession/internal/storetest"
	"github.com/accession/accession/internal/storetest/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Run(m)) }

func TestPostgresConforms(t *testing.T) { storetest.Metadata(t, storetest.PostgresMetadata) }

// A database that the first version for PostgreSQL made is brought up to date with everything in it.
func TestPostgresMigratesWhatEarlierVersionsMade(t *testing.T) {
	db := storetest.OpenPostgres(t, cluster.Database(t))
	text, err := os.ReadFile("migrations/postgres/00004_custody.sql")
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context(), fstest.MapFS{"migrations/postgres/00004_custody.sql": {Data: text}}, "migrations/postgres"); err != nil {
		t.Fatal(err)
	}
	before := &storetest.Installation{DB: storetest.Across{DB: db}}
	for _, statement := range []string{
		`INSERT INTO organizations (org_id, allowance_bytes, record_hash, audit_hash, created_at) VALUES ('acme', 9, 'h', 'h', 1)`,
		`INSERT INTO credentials (credential_id, org_id, role, scope, key_id, created_at, expires_at) VALUES ('cred_1', 'acme', 'ai_reader', 'mcp', 'key_1', 1, 2)`,
		`INSERT INTO uploads (upload_id, org_id, kind, status, sequence, pipeline_id, credential_id, filename, content_type, size_bytes, visibility, uploader_type,
			consent, notes, material_type, importance, part_size_bytes, received_bytes, digest_state, reserved_bytes, used_bytes, created_at, updated_at, expires_at, due_at)
			VALUES ('upl_1', 'acme', 'partner', 'PROCESSING', 1, 'pip_1', 'cred_1', 'a.txt', 'text/plain', 5, 'internal_only', 'customer', '{}', 'notes', 'm', 'normal', 64, 5, '\x00ff', 0, 5, 1, 2, 3, 17)`,
		`INSERT INTO parts VALUES ('upl_1', 1, 5, 'sum', 'key', 1)`,
		`INSERT INTO status_events VALUES ('evt_1', 'upl_1', 'acme', 1, '', 'reserved', 'INITIATED', '', '', 1, 'cred_1', 'req_1', 'trc_1')`,
		`INSERT INTO withdrawals (upload_id, org_id, credential_id, reason, requested_at) VALUES ('upl_1', 'acme', 'cred_1', 'r', 5)`,
		`INSERT INTO idempotency_keys VALUES ('cred_1', 'initiate', 'key', 'h', 200, '{}', 1)`,
	} {
		if err := before.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	in := storetest.Install(t, storetest.Across{DB: db})
	u, err := in.Store.Upload(t.Context(), "acme", "upl_1")
	if err != nil || u.Status != custody.StatusProcessing || u.Notes != "notes" || u.UsedBytes != 5 || string(u.DigestState) != "\x00\xff" {
		t.Errorf("the upload is %+v, %v", u, err)
	}
	if w, err := in.Store.Withdrawing(t.Context(), "upl_1"); err != nil || w.Reason != "r" {
		t.Errorf("the withdrawal is %+v, %v", w, err)
	}
	if _, a, err := in.Store.Answered(t.Context(), custody.Idempotency{CredentialID: "cred_1", Operation: "initiate", Key: "key"}); err != nil || a.Status != 200 {
		t.Errorf("the answer is %+v, %v", a, err)
	}
	if events, err := in.Store.Events(t.Context(), "upl_1", 0); err != nil || len(events) != 1 {
		t.Errorf("events %+v, %v", events, err)
	}
	if due, err := in.Store.Due(t.Context(), custody.LaneGates); err != nil || !due {
		t.Errorf("work that waited is not due: %v, %v", due, err)
	}
	if again := storetest.Install(t, storetest.Across{DB: db}); again.Store.Ping(t.Context()) != nil {
		t.Error("a second start")
	}
	for _, attack := range []string{
		`UPDATE status_events SET sequence = 9`, `DELETE FROM status_events`, `TRUNCATE status_events`, `TRUNCATE uploads CASCADE`, `DELETE FROM uploads`,
		`INSERT INTO parts VALUES ('upl_none', 1, 5, 'sum', 'key', 1)`, `UPDATE uploads SET due_at = 1, status = 'REJECTED'`,
	} {
		if err := in.Exec(t.Context(), attack); err == nil {
			t.Errorf("accepted: %s", attack)
		}
	}
}

// Replicas whose signatures differ for a while do not scan everything in turns.
func TestReplicasDoNotRescanInTurns(t *testing.T) {
	in := storetest.Install(t, storetest.PostgresMetadata(t))
	in.Ready(t, "acme", "signatures 1")
	for _, c := range []struct {
		rescanned time.Time
		queued    int64
	}{
		{time.Now().Add(-time.Minute), 0},
		{time.Now().Add(-2 * time.Hour), 1},
		{time.Now().Add(3 * time.Hour), 1}, // before the clock was put back
	} {
		if err := in.Exec(t.Context(), `UPDATE uploads SET due_at = 0, rescanned_at = $1`, c.rescanned.UnixMilli()); err != nil {
			t.Fatal(err)
		}
		if err := in.Store.InTx(t.Context(), func(tx *sqlstore.Tx) error {
			n, err := tx.QueueOutdated(t.Context(), "signatures 2", 10)
			if n != c.queued {
				t.Errorf("re-scanned %s: queued %d, want %d", c.rescanned, n, c.queued)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}
