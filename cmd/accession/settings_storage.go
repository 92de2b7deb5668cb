package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/accession/accession/internal/keystore"
	"github.com/accession/accession/internal/sqldb"
	"github.com/accession/accession/internal/tenant"
)

// storageSettings say where metadata and sealed objects lie.
type storageSettings struct {
	Data         string `setting:"data" usage:"folder of this installation; everything else defaults to places in it"`
	Database     string `setting:"database" secret:"url" usage:"metadata database; default: SQLite in the data folder"`
	KeysDatabase string `setting:"keys-database" secret:"url" usage:"database of the wrapped keys; default: beside the metadata, in a store of its own"`
	Connections  int64  `setting:"database-connections" default:"16" usage:"connections to each PostgreSQL database at most, one or two more for notifications"`
	Blobs        string `setting:"blobs" usage:"staging storage: a folder, or s3://BUCKET/PREFIX?endpoint=…; default: a folder in the data folder"`
	Quarantine   string `setting:"quarantine" usage:"quarantine storage, a second root: a folder, or s3://…; default: a folder in the data folder"`
	Mirrors      string `setting:"mirrors" form:"list" usage:"further storage that gets the sealed copies, with commas; default: none"`
	Cache        string `setting:"cache" usage:"folder for compiled engines; default: the user's cache folder"`
}

func (s *storageSettings) check() (err error) {
	if s.Data == "" {
		return usagef("no data folder: write accession serve --data DIR")
	}
	if s.Data, err = filepath.Abs(s.Data); err != nil {
		return err
	}
	if s.Cache == "" {
		s.Cache = filepath.Join(s.Data, "cache")
		if user, err := os.UserCacheDir(); err == nil {
			s.Cache = filepath.Join(user, "accession")
		}
	}
	if err := s.checkDatabases(); err != nil {
		return err
	}
	return s.checkRoots()
}

// checkDatabases refuses what is no PostgreSQL; which one it is, the server is asked at the start.
func (s *storageSettings) checkDatabases() error {
	for _, d := range []struct{ name, url string }{{"database", s.Database}, {"keys-database", s.KeysDatabase}} {
		if d.url != "" && !sqldb.IsPostgres(d.url) {
			return wrong(d.name, "must be a URL such as postgres://accession@db.example/accession?sslmode=verify-full; leave it out for SQLite in the data folder")
		}
	}
	if s.KeysDatabase != "" && s.Database == "" {
		return wrong("keys-database", "is set without database: keys lie apart from metadata on PostgreSQL alone; set database too, or leave it out")
	}
	if s.Connections < 2 || s.Connections > 1000 {
		return wrong("database-connections", "must be between 2 and 1000")
	}
	return nil
}

// shared tells whether other replicas may use the same installation.
func (s *storageSettings) shared() bool { return s.Database != "" }

func (s *storageSettings) checkRoots() (err error) {
	if s.Blobs, err = checkPlace("blobs", s.Blobs, filepath.Join(s.Data, "blobs")); err != nil {
		return err
	}
	if s.Quarantine, err = checkPlace("quarantine", s.Quarantine, filepath.Join(s.Data, "quarantine")); err != nil {
		return err
	}
	mirrors := s.mirrors()
	for i := range mirrors {
		if mirrors[i], err = checkPlace("mirrors", mirrors[i], ""); err != nil {
			return err
		}
	}
	s.Mirrors = strings.Join(mirrors, ",")
	return s.checkApart()
}

// folder is an absolute path for a path, file:///path, or nothing.
func folder(name, given, fallback string) (string, error) {
	if given == "" {
		return fallback, nil
	}
	path := strings.TrimPrefix(given, "file://")
	if strings.Contains(path, "://") {
		return "", wrong(name, "takes a path, or file:///path, in this version")
	}
	return filepath.Abs(path)
}

// keySettings say who holds the keys. Secrets of others (AWS, Vault) come from their own variables.
type keySettings struct {
	AdminToken       string        `setting:"admin-token" secret:"yes" usage:"the bootstrap admin token, 32 characters or more; default: made, in the data folder"`
	Keys             string        `setting:"keys" usage:"file of the key-encryption key, or URL of a key service (awskms, gcpkms, azurekeyvault, hashivault); default: a file made in the data folder"`
	KeyBackupHorizon time.Duration `setting:"key-backup-horizon" default:"720h" usage:"how long you keep backups of the key store; withdrawal receipts state it"`
}

func (s *keySettings) check() error {
	if s.AdminToken != "" && len(s.AdminToken) < tenant.MinAdminToken {
		return wrong("admin-token", "must have %d characters or more", tenant.MinAdminToken)
	}
	if s.KeyBackupHorizon < 0 || s.KeyBackupHorizon%time.Second != 0 {
		return wrong("key-backup-horizon", "must be a duration in whole seconds, such as 720h, or 0 for no backups")
	}
	if s.Keys == "" {
		return nil // beside the metadata; settings.checkTogether says where
	}
	service, err := keystore.IsKeyService(s.Keys)
	if err != nil {
		return wrong("keys", "cannot be used: %v", err)
	}
	if !service {
		s.Keys, err = folder("keys", s.Keys, "")
	}
	return err
}
