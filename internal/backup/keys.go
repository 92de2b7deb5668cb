package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/accession/accession/internal/crashpoint"
	"github.com/accession/accession/internal/custody"
)

// ErrPastHorizon: a copy of the key store is older than it was to become.
var ErrPastHorizon = errors.New("this copy of the key store is past its horizon")

const keyStore = "keys.db"

// TakeKeys writes a copy of the key store at one moment, its keys still wrapped, into the new file out. It brings back what is
// withdrawn after it, so it says until when it may be used: horizon from now. Delete it then.
func TakeKeys(ctx context.Context, keysDB, out string, horizon time.Duration) (until time.Time, err error) {
	until = custody.Now().Add(horizon)
	return until, newFile(out, func(unnamed string) error {
		db, err := readOnly(keysDB)
		if err != nil {
			return err
		}
		_, err = db.ExecContext(ctx, `VACUUM INTO $1`, unnamed)
		if err = errors.Join(err, db.Close()); err != nil {
			return fmt.Errorf("copy key store: %w", err)
		}
		crashpoint.Hit("backup: keys copied")
		return change(ctx, unnamed, `CREATE TABLE key_store_backup (horizon_at BIGINT NOT NULL)`,
			fmt.Sprintf(`INSERT INTO key_store_backup VALUES (%d)`, until.UnixMilli()))
	})
}

// RestoreKeys puts a copy of the key store into a data folder that has none. ErrPastHorizon after the horizon, unless pastHorizon.
func RestoreKeys(ctx context.Context, from, data string, pastHorizon bool) (until time.Time, err error) {
	db, err := readOnly(from)
	if err != nil {
		return until, err
	}
	var millis int64
	err = db.QueryRowContext(ctx, `SELECT horizon_at FROM key_store_backup`).Scan(&millis)
	if err != nil {
		err = fmt.Errorf("%w: it is no copy of a key store: %w", ErrBroken, err)
	} else {
		err = intact(ctx, db)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return until, err
	}
	until = time.UnixMilli(millis).UTC()
	if custody.Now().After(until) && !pastHorizon {
		return until, fmt.Errorf("%w: %s", ErrPastHorizon, until.Format(time.RFC3339))
	}
	return until, newFile(filepath.Join(data, keyStore), func(unnamed string) error {
		source, name, err := onlyFile(from)
		if err != nil {
			return err
		}
		defer source.Close()
		target, as, err := onlyFile(unnamed)
		if err != nil {
			return err
		}
		defer target.Close()
		if _, _, err := copyFile(ctx, source, name, target, as); err != nil {
			return err
		}
		return change(ctx, unnamed, `DROP TABLE key_store_backup`)
	})
}

// newFile makes a file by fill under another name, and gives it its own once it is durable; one that is there is not replaced.
func newFile(file string, fill func(unnamed string) error) (err error) {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already; it is not replaced", file)
	}
	dir, release, err := unfinished(file)
	if err != nil {
		return err
	}
	defer release()
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	unnamed := filepath.Join(dir, filepath.Base(file))
	if err := fill(unnamed); err != nil {
		return err
	}
	crashpoint.Hit("backup: before sync of a file")
	if err := errors.Join(os.Chmod(unnamed, 0o600), syncAll(dir)); err != nil {
		return err
	}
	crashpoint.Hit("backup: before the name of a file")
	if err := os.Link(unnamed, file); err != nil { // unlike a rename it fails where file exists
		return err
	}
	crashpoint.Hit("backup: after the name of a file")
	return syncAll(filepath.Dir(file))
}

// change runs statements on a database that nobody else has open, and leaves it in one file.
func change(ctx context.Context, file string, statements ...string) error {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?_pragma=secure_delete(1)")
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return errors.Join(err, db.Close())
		}
	}
	return db.Close()
}
