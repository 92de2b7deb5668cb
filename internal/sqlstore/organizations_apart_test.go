package sqlstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
	"github.com/accession/accession/internal/sqlstore"
	"github.com/accession/accession/internal/storetest"
	"github.com/accession/accession/internal/storetest/cluster"
)

// notOfAnOrganization are the tables of the schema that row-level security leaves open, and why.
var notOfAnOrganization = map[string]string{
	"goose_db_version": "which migrations have run",
	"rate_limits":      "counted before it is known who asks; nothing of an organization but how often",
}

// fill gives every table rows of one organization.
func fill(t *testing.T, store *sqlstore.Store, org string) {
	t.Helper()
	ctx := custody.AcrossOrganizations(t.Context())
	now := custody.Now()
	u := custody.Upload{
		ID: "upl_" + org, OrgID: org, Kind: custody.KindPartner, CredentialID: "cred_" + org, SizeBytes: 128, Importance: custody.ImportanceNormal,
		PartSizeBytes: 64, CreatedAt: now, UpdatedAt: now, ExpiresAt: now,
	}
	if err := store.InTx(ctx, func(tx *sqlstore.Tx) error {
		return errors.Join(
			tx.EnsureOrganization(ctx, org, 1000),
			tx.InsertCredential(ctx, custody.Credential{ID: "cred_" + org, OrgID: org, Role: custody.RoleAIReader}))
	}); err != nil {
		t.Fatal(err)
	}
	ctx = custody.InOrganization(t.Context(), org) // what follows, an organization does for itself
	if err := store.InTx(ctx, func(tx *sqlstore.Tx) error {
		if _, err := tx.RevokeToken(ctx, "token_"+org, "cred_"+org, now.Add(1e12), now); err != nil {
			return err
		}
		return errors.Join(
			tx.InsertSeat(ctx, "session_"+org, custody.Seat{Role: custody.RoleAIReader, CredentialID: "cred_" + org, OrgID: org}),
			tx.ReserveQuota(ctx, org, 128),
			tx.InsertUpload(ctx, &u, custody.Cause{}),
			tx.AppendPart(ctx, &u, custody.Part{UploadID: u.ID, Number: 1, SizeBytes: 64, AcceptedAt: now}, nil, ""),
			tx.PutArtifact(ctx, custody.Artifact{UploadID: u.ID, Name: "text"}),
			tx.AppendReference(ctx, custody.Review{UploadID: u.ID, AttachedAt: now}, "cred_"+org),
			tx.AppendRecord(ctx, &custody.Record{ID: "rec_" + org, OrgID: org, Surface: "rest", ServedAt: now}),
			tx.BeginWithdrawal(ctx, custody.Withdrawing{UploadID: u.ID, OrgID: org, RequestedAt: now}),
			tx.KeepAnswer(ctx, custody.Idempotency{CredentialID: "cred_" + org, Key: "key"}, custody.Answer{Data: []byte("{}")}),
			tx.InsertReceipt(ctx, custody.Receipt{ID: "rct_" + org, UploadID: u.ID, OrgID: org}, custody.Consent{}),
			// The receipt forgot the ledger.
			tx.AppendPart(ctx, &u, custody.Part{UploadID: u.ID, Number: 2, SizeBytes: 64, AcceptedAt: now}, nil, ""),
			tx.AppendReference(ctx, custody.Review{UploadID: u.ID, AttachedAt: now}, "cred_"+org),
			tx.PutArtifact(ctx, custody.Artifact{UploadID: u.ID, Name: "text"}),
			tx.NoteWithdrawalObjects(ctx, u.ID, []custody.StoredObject{{Backend: "staging", Key: "k"}}))
	}); err != nil {
		t.Fatal(err)
	}
	if err := store.InTx(custody.AcrossOrganizations(t.Context()), func(tx *sqlstore.Tx) error {
		return tx.KeepAnswer(custody.AcrossOrganizations(t.Context()), custody.Idempotency{CredentialID: custody.AdminCredentialID, Key: "key-" + org}, custody.Answer{Data: []byte("{}")})
	}); err != nil {
		t.Fatal(err)
	}
}

// Queries that have lost their filter see no row of another organization, in any table.
func TestDatabaseKeepsOrganizationsApart(t *testing.T) {
	db := storetest.OpenPostgres(t, cluster.Database(t))
	store, err := sqlstore.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, store, "acme")
	fill(t, store, "rival")
	across := custody.AcrossOrganizations(t.Context())

	var tables []string
	if err := db.Each(across, `SELECT c.relname::TEXT, c.relrowsecurity AND c.relforcerowsecurity FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') ORDER BY c.relname`, []any{storetest.MetadataSchema}, func(scan func(...any) error) error {
		var name string
		var forced bool
		if err := scan(&name, &forced); err != nil {
			return err
		}
		if _, open := notOfAnOrganization[name]; open {
			return nil
		}
		if !forced {
			t.Errorf("%s: row-level security is not forced; call keep_to_organization or keep_to_upload in its migration, or say here why not", name)
		}
		tables = append(tables, name)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	count := func(ctx context.Context, table string) (n int) {
		t.Helper()
		if err := db.Row(ctx, `SELECT COUNT(*) FROM `+table, nil, &n); err != nil {
			t.Error(err)
		}
		return n
	}
	acme, rival := custody.InOrganization(t.Context(), "acme"), custody.InOrganization(t.Context(), "rival")
	for _, table := range tables {
		all, ours, theirs := count(across, table), count(acme, table), count(rival, table)
		house := 0
		if table == "idempotency_keys" {
			house = 2 // of the administrator
		}
		if ours+theirs+house != all {
			t.Errorf("%s: %d rows, of which acme sees %d and rival %d", table, all, ours, theirs)
		}
		if slices.Contains(filledTables, table) && (ours == 0 || theirs == 0) {
			t.Errorf("%s: acme sees %d rows, rival %d; both have some", table, ours, theirs)
		}
		for what, ctx := range map[string]context.Context{"nobody": t.Context(), "a stranger": custody.InOrganization(t.Context(), "stranger"), "*": custody.InOrganization(t.Context(), "*")} {
			if n := count(ctx, table); n != 0 {
				t.Errorf("%s: %s sees %d rows", table, what, n)
			}
		}
		if !slices.Contains(filledTables, table) || slices.Contains(evidence, table) {
			continue
		}
		if err := db.InTx(acme, func(q sqldb.Querier) error { // to write, too, nobody else's rows are there
			n, err := q.Exec(acme, `UPDATE `+table+` SET `+touched(table))
			if n != int64(ours) {
				t.Errorf("%s: acme changed %d rows, %d are its own", table, n, ours)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
	for _, name := range filledTables {
		if !slices.Contains(tables, name) {
			t.Errorf("no table %s", name)
		}
	}
	err = db.InTx(acme, func(q sqldb.Querier) error {
		_, err := q.Exec(acme, `INSERT INTO withdrawals (upload_id, org_id, credential_id, reason, requested_at) VALUES ('upl_rival', 'rival', '', '', 1)`)
		return err
	})
	if err == nil {
		t.Error("acme wrote a row of rival")
	}
	err = db.InTx(acme, func(q sqldb.Querier) error {
		_, err := q.Exec(acme, `INSERT INTO artifacts (upload_id, name, object_key, size_bytes, sha256) VALUES ('upl_rival', 'summary', '', 1, '')`)
		return err
	})
	if err == nil {
		t.Error("acme wrote into an upload of rival")
	}
}

var filledTables = []string{"organizations", "credentials", "revoked_tokens", "uploads", "parts", "gates", "artifacts", "external_references", "status_events",
	"audit_lines", "request_records", "withdrawals", "receipts", "withdrawal_objects", "idempotency_keys", "portal_sessions"}

var evidence = []string{"status_events", "audit_lines", "request_records", "receipts"} // nobody changes their rows

// touched is an assignment that changes nothing of a table's row.
func touched(table string) string {
	column, other := map[string]string{"organizations": "created_at", "credentials": "created_at", "revoked_tokens": "expires_at", "uploads": "notes",
		"gates": "detail", "external_references": "notes", "withdrawals": "reason", "idempotency_keys": "created_at", "portal_sessions": "created_at"}[table]
	if !other {
		column = "size_bytes"
	}
	return column + " = " + column
}
