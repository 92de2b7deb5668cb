package move

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/accession/accession/internal/blobstore"
	"github.com/accession/accession/internal/crashpoint"
)

// ErrNotThere: the target lacks what the source holds, so the source must stay.
var ErrNotThere = errors.New("the target lacks it")

// Continues makes sure that the target is the installation that was moved, as it went on since: each chain of the source is the
// beginning of the target's, and each data key is there, unless its upload is gone. Error: ErrNotThere.
func Continues(ctx context.Context, metadata, keys, targetMetadata, targetKeys *sql.DB) error {
	if err := rows(ctx, metadata, `SELECT org_id, audit_position, audit_hash, record_position, record_hash FROM organizations`, nil, func(scan func(...any) error) error {
		var org, auditHash, recordHash string
		var audit, record int64
		if err := scan(&org, &audit, &auditHash, &record, &recordHash); err != nil {
			return err
		}
		for _, chain := range []struct {
			table, column string
			position      int64
			hash          string
		}{{"audit_lines", "line_hash", audit, auditHash}, {"request_records", "record_hash", record, recordHash}} {
			var n int
			err := targetMetadata.QueryRowContext(ctx, `SELECT COUNT(*) FROM organizations WHERE org_id = $1
				AND ($2 = 0 OR EXISTS (SELECT 1 FROM `+chain.table+` WHERE org_id = $3 AND position = $4 AND `+chain.column+` = $5))`,
				org, chain.position, org, chain.position, chain.hash).Scan(&n)
			if err == nil && n != 1 {
				err = fmt.Errorf("%s of organization %q up to position %d: %w", chain.table, org, chain.position, ErrNotThere)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return rows(ctx, keys, `SELECT upload_id FROM data_keys`, nil, func(scan func(...any) error) error {
		var id string
		if err := scan(&id); err != nil {
			return err
		}
		var n int
		if err := targetKeys.QueryRowContext(ctx, `SELECT COUNT(*) FROM data_keys WHERE upload_id = $1`, id).Scan(&n); err != nil || n == 1 {
			return err
		}
		err := targetMetadata.QueryRowContext(ctx, `SELECT COUNT(*) FROM uploads WHERE upload_id = $1 AND status IN `+partsKept, id).Scan(&n)
		if err == nil && n != 0 {
			err = fmt.Errorf("data key of %s: %w", id, ErrNotThere)
		}
		return err
	})
}

// Kept makes sure that every object of from that the metadata still names lies in to with the same bytes. Error: ErrNotThere.
func Kept(ctx context.Context, metadata *sql.DB, from, to blobstore.Store) error {
	for info, err := range from.List(ctx, "") {
		if err != nil {
			return err
		}
		if err := kept(ctx, metadata, from, to, info.Key); err != nil {
			return fmt.Errorf("object %s: %w", info.Key, err)
		}
	}
	return nil
}

func kept(ctx context.Context, metadata *sql.DB, from, to blobstore.Store, key string) error {
	if there, err := named(ctx, metadata, key); err != nil || !there {
		return err
	}
	source, err := from.Open(ctx, key)
	if err != nil {
		return err
	}
	defer source.Close()
	want, err := sumOf(ctx, source, nil)
	if err != nil {
		return err
	}
	same, err := holds(ctx, to, key, want)
	if err != nil && !errors.Is(err, blobstore.ErrNotFound) || same {
		return err
	}
	if there, err := named(ctx, metadata, key); err != nil || !there { // withdrawn meanwhile
		return err
	}
	return ErrNotThere
}

// named tells whether the metadata names an object as one in custody.
func named(ctx context.Context, metadata *sql.DB, key string) (bool, error) {
	segments := strings.Split(key, "/") // uploads/{upload_id}/…
	if len(segments) < 3 {
		return false, nil
	}
	var n int
	err := metadata.QueryRowContext(ctx, `SELECT
		(SELECT COUNT(*) FROM parts JOIN uploads USING (upload_id) WHERE upload_id = $1 AND object_key = $2 AND status IN `+partsKept+`) +
		(SELECT COUNT(*) FROM artifacts JOIN uploads USING (upload_id) WHERE upload_id = $3 AND object_key = $4 AND status IN `+derivedKept+`)`,
		segments[1], key, segments[1], key).Scan(&n)
	return n > 0, err
}

// Clear deletes every object of uploads in a store. It returns how many there were.
func Clear(ctx context.Context, store blobstore.Store) (deleted int64, err error) {
	for info, err := range store.List(ctx, "uploads/") { // whatever else lies there is not ours
		if err != nil {
			return deleted, err
		}
		if err := store.Delete(ctx, info.Key); errors.Is(err, blobstore.ErrKey) {
			continue // no object of ours
		} else if err != nil {
			return deleted, fmt.Errorf("object %s: %w", info.Key, err)
		}
		crashpoint.Hit("move: object gone")
		deleted++
	}
	return deleted, nil
}

// Destroy overwrites a file of SQLite and what belongs to it, and removes them; durable on return. Ones that are not there are gone.
func Destroy(path string) error {
	for _, file := range []string{path + "-wal", path + "-shm", path} {
		if err := overwrite(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		crashpoint.Hit("move: file overwritten")
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return syncFolder(filepath.Dir(path))
}

func overwrite(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	zeros := make([]byte, 1<<20)
	for at := int64(0); err == nil && at < info.Size(); at += int64(len(zeros)) {
		_, err = f.WriteAt(zeros[:min(int64(len(zeros)), info.Size()-at)], at)
	}
	return errors.Join(err, f.Sync(), f.Close())
}
