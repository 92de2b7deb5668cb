package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/accession/accession/internal/keystore"
	"github.com/accession/accession/internal/sqldb"
	"github.com/accession/accession/internal/sqlstore"
)

// Two schemas: a dump of the one with the metadata never holds a wrapped key.
const (
	metadataSchema = "accession"
	keysSchema     = "accession_keys"
)

// openDatabases opens the key store, then the metadata: SQLite in the data folder, or PostgreSQL, which replicas share.
func (svc *service) openDatabases(ctx context.Context) error {
	if svc.settings.shared() {
		return svc.openShared(ctx)
	}
	keysPath := filepath.Join(svc.settings.Data, "keys.db")
	_, statErr := os.Stat(keysPath)
	if _, err := os.Stat(filepath.Join(svc.settings.Data, "metadata.db")); err == nil && errors.Is(statErr, fs.ErrNotExist) {
		return fmt.Errorf("%s has metadata and no key store; bring it first: accession restore keys", svc.settings.Data)
	}
	// Wrapped keys without their key file can never be opened again: a new key file would hide that.
	keeper, err := svc.openKeeper(ctx, statErr == nil)
	if err != nil {
		return err
	}
	keysDB, err := svc.openSQLite(keysPath)
	if err != nil {
		return err
	}
	if svc.keys, err = keystore.Open(ctx, svc.observed("keys", sqldb.Misbehave("keys", keysDB)), keeper); err != nil {
		return fmt.Errorf("key store: %w", err)
	}
	metadata, err := svc.openSQLite(filepath.Join(svc.settings.Data, "metadata.db"))
	if err != nil {
		return err
	}
	if svc.store, err = sqlstore.Open(ctx, svc.observed("metadata", sqldb.Misbehave("metadata", metadata))); err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	// The folder's lock is ours: whoever held uploads is dead, and their leases need not run out first.
	if err := svc.store.InTx(ctx, func(tx *sqlstore.Tx) error { return tx.ReleaseAll(ctx) }); err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	return nil
}

// openShared opens PostgreSQL. Other replicas may be at work: their leases are theirs, and their keys must be ours.
func (svc *service) openShared(ctx context.Context) error {
	s := svc.settings
	keysSetting, keysURL := "keys-database", s.KeysDatabase
	if keysURL == "" {
		keysSetting, keysURL = "database", s.Database
	}
	keysDB, err := svc.openPostgres(ctx, keysSetting, keysURL, sqldb.PostgresOptions{
		Schema: keysSchema, Scrubbed: []string{"data_keys", "signing_keys"},
	})
	if err != nil {
		return err
	}
	hasKeys, err := keystore.Migrate(ctx, keysDB)
	if err != nil {
		return fmt.Errorf("key store: %w", err)
	}
	keeper, err := svc.openKeeper(ctx, hasKeys)
	if errors.Is(err, fs.ErrNotExist) && hasKeys {
		return fmt.Errorf("key store: %w", keystore.ErrOtherKeeper)
	}
	if err != nil {
		return err
	}
	if svc.keys, err = keystore.Open(ctx, svc.observed("keys", sqldb.Misbehave("keys", keysDB)), keeper); err != nil {
		return fmt.Errorf("key store: %w", err)
	}
	if err := svc.keys.Agree(ctx); err != nil {
		return fmt.Errorf("key store: %w", err)
	}
	metadata, err := svc.openPostgres(ctx, "database", s.Database, sqldb.PostgresOptions{Schema: metadataSchema, Organizations: true, Listen: true})
	if err != nil {
		return err
	}
	if svc.store, err = sqlstore.Open(ctx, svc.observed("metadata", sqldb.Misbehave("metadata", metadata))); err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	return nil
}

func (svc *service) openPostgres(ctx context.Context, setting, url string, o sqldb.PostgresOptions) (*sqldb.Postgres, error) {
	o.Connections, o.Log = int(svc.settings.Connections), svc.log
	db, err := sqldb.OpenPostgres(ctx, url, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	svc.closers = append(svc.closers, db.Close)
	return db, nil
}

func (svc *service) openSQLite(path string) (*sqldb.SQLite, error) {
	db, err := sqldb.OpenSQLite(path, sqldb.SQLiteOptions{SecureDelete: true})
	if err != nil {
		return nil, err
	}
	svc.closers = append(svc.closers, db.Close)
	return db, nil
}

// openKeeper opens what wraps the keys; a key file is made where it is not there, unless mustExist.
func (svc *service) openKeeper(ctx context.Context, mustExist bool) (keystore.Keeper, error) {
	if service, _ := keystore.IsKeyService(svc.settings.Keys); service {
		keeper, err := keystore.OpenKeyService(ctx, svc.settings.Keys)
		if err == nil {
			svc.closers = append(svc.closers, keeper.Close)
		}
		return keeper, err
	}
	keeper, err := keystore.OpenKeyFile(svc.settings.Keys, mustExist)
	if err == nil {
		svc.closers = append(svc.closers, keeper.Close)
	}
	return keeper, err
}
