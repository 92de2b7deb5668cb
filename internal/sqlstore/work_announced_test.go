package sqlstore_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/accession/accession/internal/storetest"
	"github.com/accession/accession/internal/storetest/cluster"
)

// Replicas hear of work, and of nothing else as if it were work: each look costs them statements.
func TestPostgresAnnouncesWork(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	url := cluster.Database(t)
	in := storetest.Install(t, storetest.Across{DB: storetest.OpenPostgres(t, url)})
	ears, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer ears.Close(context.WithoutCancel(ctx))
	if _, err := ears.Exec(ctx, `LISTEN accession`); err != nil {
		t.Fatal(err)
	}
	const now = `FLOOR(EXTRACT(EPOCH FROM statement_timestamp()) * 1000)::BIGINT`
	for _, c := range []struct {
		what, statement string
		heard           []string
	}{
		{"an organization", `INSERT INTO organizations (org_id, allowance_bytes, record_hash, audit_hash, created_at) VALUES ('acme', 9, 'h', 'h', 1)`, nil},
		{"its credential", `INSERT INTO credentials (credential_id, org_id, role, scope, key_id, created_at, expires_at) VALUES ('cred_1', 'acme', 'ai_reader', 'mcp', 'key_1', 1, 2)`, nil},
		{"a reservation", `INSERT INTO uploads (upload_id, org_id, kind, status, sequence, pipeline_id, credential_id, filename, content_type, size_bytes, visibility, uploader_type,
			consent, notes, material_type, importance, part_size_bytes, received_bytes, digest_state, reserved_bytes, used_bytes, created_at, updated_at, expires_at, due_at)
			VALUES ('upl_1', 'acme', 'partner', 'INITIATED', 1, 'pip_1', 'cred_1', 'a.txt', 'text/plain', 5, 'internal_only', 'customer', '{}', 'notes', 'm', 'normal', 64, 5, '', 5, 0, 1, 2, 3, ` + now + ` + 3600000)`, nil},
		{"its event", `INSERT INTO status_events VALUES ('evt_1', 'upl_1', 'acme', 1, '', 'reserved', 'INITIATED', '', '', 1, 'cred_1', 'req_1', 'trc_1')`, nil},
		{"the next event", `INSERT INTO status_events VALUES ('evt_2', 'upl_1', 'acme', 2, 'INITIATED', 'part_accepted', 'RECEIVING', '', '', 1, 'cred_1', 'req_1', 'trc_1')`, []string{""}},
		{"a part", `UPDATE uploads SET status = 'RECEIVING', due_at = ` + now + ` + 7200000`, nil},
		{"complete", `UPDATE uploads SET status = 'PROCESSING', due_at = ` + now, []string{"work"}},
		{"a claim", `UPDATE uploads SET lease = 'lease_1', lease_until = ` + now + ` + 3000, attempt = 1`, nil},
		{"its heartbeat", `UPDATE uploads SET lease_until = ` + now + ` + 3000`, nil},
		{"given back", `UPDATE uploads SET lease = '', lease_until = 0`, []string{"work"}},
		{"claimed again", `UPDATE uploads SET lease = 'lease_2', lease_until = ` + now + ` + 3000, attempt = 2`, nil},
		{"postponed", `UPDATE uploads SET due_at = ` + now + ` + 60000, lease = '', lease_until = 0`, nil},
		{"withdrawn", `UPDATE uploads SET status = 'WITHDRAWING', due_at = ` + now, []string{"work"}},
		{"a webhook", `INSERT INTO webhook_endpoints (org_id, endpoint_id, url, state, secret_id, created_at, updated_at) VALUES ('acme', 'whe_1', 'https://hooks.example/', 'active', 's', 1, 1)`, nil},
		{"no delivery", `INSERT INTO webhook_deliveries (event_id, org_id, upload_id, position, kind, state, queued_at, due_at) SELECT 'evt_0', 'acme', 'upl_1', 1, 'uploadStatusChanged', 'pending', 1, 1 WHERE FALSE`, nil},
		{"a delivery", `INSERT INTO webhook_deliveries (event_id, org_id, upload_id, position, kind, state, queued_at, due_at) VALUES ('evt_1', 'acme', 'upl_1', 2, 'uploadStatusChanged', 'pending', 1, 1)`, []string{"work"}},
	} {
		if err := in.Exec(ctx, c.statement); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if _, err := ears.Exec(ctx, `SELECT pg_notify('accession', 'that is all')`); err != nil {
			t.Fatal(err)
		}
		var heard []string
		for {
			n, err := ears.WaitForNotification(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if n.Payload == "that is all" {
				break
			}
			heard = append(heard, n.Payload)
		}
		if !slices.Equal(heard, c.heard) {
			t.Errorf("%s: heard %q, want %q", c.what, heard, c.heard)
		}
	}
}
