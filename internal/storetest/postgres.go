package storetest

import (
	"context"
	"io/fs"
	"testing"

	"github.com/accession/accession/internal/custody"
	"github.com/accession/accession/internal/sqldb"
	"github.com/accession/accession/internal/sqlstore"
	"github.com/accession/accession/internal/storetest/cluster"
)

// MetadataSchema is where the metadata lies on PostgreSQL.
const MetadataSchema = "accession"

// OpenPostgres opens an empty database of a real server, as the service does.
func OpenPostgres(t *testing.T, url string) *sqldb.Postgres {
	t.Helper()
	db, err := sqldb.OpenPostgres(t.Context(), url, sqldb.PostgresOptions{Schema: MetadataSchema, Organizations: true, Listen: true})
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

// patient lets the server wait longer than the service would: on a busy machine the suite's own crowds queue for long.
const patient = "&statement_timeout=60000&lock_timeout=60000&idle_in_transaction_session_timeout=60000"

// PostgresMetadata opens an empty database for the suite, which works across organizations.
func PostgresMetadata(t *testing.T) sqldb.DB {
	t.Helper()
	return Across{OpenPostgres(t, cluster.Prepared(t, func(url string) {
		db, err := sqldb.OpenPostgres(t.Context(), url, sqldb.PostgresOptions{Schema: MetadataSchema})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := sqlstore.Open(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	})+patient)}
}

// Across is a database whose every query sees all organizations.
type Across struct{ sqldb.DB }

func (a Across) Row(ctx context.Context, text string, args []any, dst ...any) error {
	return a.DB.Row(custody.AcrossOrganizations(ctx), text, args, dst...)
}

func (a Across) Each(ctx context.Context, text string, args []any, fn func(func(...any) error) error) error {
	return a.DB.Each(custody.AcrossOrganizations(ctx), text, args, fn)
}

func (a Across) InTx(ctx context.Context, fn func(sqldb.Querier) error) error {
	return a.DB.InTx(custody.AcrossOrganizations(ctx), fn)
}

func (a Across) Migrate(ctx context.Context, files fs.FS, dir string) error {
	return a.DB.Migrate(ctx, files, dir)
}
