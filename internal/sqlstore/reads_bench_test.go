package sqlstore_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
	"github.com/accession/accession/internal/sqlstore"
)

// The queries of a status read and of an AI context, each for itself.
func BenchmarkReads(b *testing.B) {
	db, err := sqldb.OpenSQLite(filepath.Join(b.TempDir(), "metadata.db"), sqldb.SQLiteOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	ctx := b.Context()
	store, err := sqlstore.Open(ctx, db)
	if err != nil {
		b.Fatal(err)
	}
	now := time.UnixMilli(1_800_000_000_000)
	u := custody.Upload{
		ID: "upl_1", OrgID: "acme", Kind: custody.KindPartner, PipelineID: "pip_1", CredentialID: "cred_1", Filename: "note.txt", ContentType: "text/plain", SizeBytes: 2048,
		Visibility: custody.VisibilityAIReadable, UploaderType: custody.UploaderCustomer, Importance: custody.ImportanceNormal, PartSizeBytes: 1 << 20,
		CreatedAt: now, UpdatedAt: now, ExpiresAt: now,
		Consent: custody.Consent{AgreementVersion: "b1", AIReadableVersion: "b1", TextHashSHA256: custody.FirstHash, ConsentingUserID: "user", ConsentingEmail: "user@example.org", AcceptedAt: now},
	}
	if err := store.InTx(ctx, func(tx *sqlstore.Tx) error {
		if err := tx.EnsureOrganization(ctx, "acme", 1<<30); err != nil {
			return err
		}
		if err := tx.InsertCredential(ctx, custody.Credential{ID: "cred_1", OrgID: "acme", Role: custody.RoleAIReader, Scopes: custody.RoleScopes[custody.RoleAIReader], KeyID: "key_1", CreatedAt: now, ExpiresAt: now.Add(time.Hour)}); err != nil {
			return err
		}
		if err := tx.InsertUpload(ctx, &u, custody.Cause{}); err != nil {
			return err
		}
		for _, g := range custody.Gates {
			if err := tx.SetGate(ctx, u.ID, custody.GateResult{Name: g.Name, State: custody.GatePassed, StartedAt: now, FinishedAt: now, Detail: map[string]any{
				"sha256": custody.FirstHash, "scanned_bytes": 2048, "engine": "ClamAV", "engine_version": "1.4.3", "truncated": false,
			}}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	for _, read := range []struct {
		name string
		one  func(context.Context) error
	}{
		{"credential", func(ctx context.Context) error { _, err := store.Credential(ctx, "cred_1"); return err }},
		{"upload", func(ctx context.Context) error { _, err := store.Upload(ctx, "acme", "upl_1"); return err }},
		{"gates", func(ctx context.Context) error { _, err := store.Gates(ctx, "upl_1"); return err }},
		{"state", func(ctx context.Context) error { _, err := store.UploadState(ctx, "acme", "upl_1"); return err }},
		{"retention", func(ctx context.Context) error { _, err := store.Retention(ctx, "acme"); return err }},
		{"corrections", func(ctx context.Context) error { _, err := store.Corrections(ctx, "acme", "upl_1", 20); return err }},
		{"references", func(ctx context.Context) error { _, err := store.References(ctx, "upl_1", 20); return err }},
	} {
		b.Run(read.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := read.one(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
