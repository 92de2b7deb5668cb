package backup

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// ErrBroken: a backup is not what was written: altered, cut short, or of another format.
var ErrBroken = errors.New("the backup is broken")

// Restore makes the data folder of an installation from a backup: metadata.db, blobs and quarantine. Every file is compared with
// its digest on the way, and the folder gets its name once all are right and durable. A folder that holds anything is refused.
// Keys are not in it: RestoreKeys brings them.
func Restore(ctx context.Context, from, data string) (s Summary, err error) {
	switch inside, err := os.ReadDir(data); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return s, err
	case len(inside) > 0:
		return s, fmt.Errorf("%s is not empty; restore into a new folder", data)
	}
	backup, err := os.OpenRoot(from)
	if err != nil {
		return s, err
	}
	defer backup.Close()
	if s, err = readSummary(backup); err != nil {
		return s, err
	}
	return s, whole(data, func(root *os.Root) error { return restore(ctx, backup, s, root) })
}

func readSummary(backup *os.Root) (s Summary, err error) {
	text, err := backup.ReadFile(summaryFile)
	if err != nil {
		return s, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if err := json.Unmarshal(text, &s); err != nil || s.Format != format {
		return s, fmt.Errorf("%w: %s is not of format %d", ErrBroken, summaryFile, format)
	}
	return s, nil
}

func restore(ctx context.Context, backup *os.Root, s Summary, root *os.Root) error {
	list, err := backup.ReadFile(sumsFile)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if sum := sha256.Sum256(list); hex.EncodeToString(sum[:]) != s.SumsSHA256 {
		return fmt.Errorf("%w: %s is not the one that was written", ErrBroken, sumsFile)
	}
	var db *sql.DB
	defer func() {
		if db != nil {
			db.Close()
		}
	}()
	for _, folder := range []string{"blobs", "quarantine"} {
		if err := root.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	for lines := bufio.NewScanner(bytes.NewReader(list)); lines.Scan(); {
		digest, name, _ := strings.Cut(lines.Text(), "  ")
		key, isObject := strings.CutPrefix(name, objects+"/")
		switch {
		case name == metadata && db == nil: // the first line
			if err := copyExact(ctx, backup, name, root, metadata, digest); err != nil {
				return err
			}
			if db, err = readOnly(filepath.Join(root.Name(), metadata)); err != nil {
				return err
			}
			if err := intact(ctx, db); err != nil {
				return err
			}
		case isObject && db != nil:
			if err := copyExact(ctx, backup, name, root, path.Join("blobs", key), digest); err != nil {
				return err
			}
			twice, err := quarantined(ctx, db, key)
			if err != nil {
				return err
			}
			if twice {
				if err := copyExact(ctx, backup, name, root, path.Join("quarantine", key), digest); err != nil {
					return err
				}
			}
		default:
			return fmt.Errorf("%w: %s names what is no part of it", ErrBroken, sumsFile)
		}
	}
	if db == nil {
		return fmt.Errorf("%w: it has no metadata", ErrBroken)
	}
	return nil
}

func copyExact(ctx context.Context, from *os.Root, name string, to *os.Root, as, digest string) error {
	_, got, err := copyFile(ctx, from, name, to, as)
	if errors.Is(err, fs.ErrNotExist) || err == nil && hex.EncodeToString(got) != digest {
		return fmt.Errorf("%w: %s is not the file that was written", ErrBroken, name)
	}
	return err
}

// quarantined tells whether an object lay in quarantine storage too when the metadata was copied.
func quarantined(ctx context.Context, db *sql.DB, objectKey string) (bool, error) {
	segments := strings.Split(objectKey, "/") // uploads/{upload_id}/parts/…
	if len(segments) != 4 || segments[2] != "parts" {
		return false, nil
	}
	var n int
	err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM gates WHERE upload_id = $1 AND name = 'quarantine' AND state = 'passed'`, segments[1]).Scan(&n)
	return n > 0, err
}

// intact asks the engine whether a database is.
func intact(ctx context.Context, db *sql.DB) error {
	var verdict string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check`).Scan(&verdict); err != nil || verdict != "ok" {
		return fmt.Errorf("%w: the database is damaged: %w", ErrBroken, errors.Join(err, errors.New(verdict)))
	}
	return nil
}

// onlyFile opens the folder that a file lies in.
func onlyFile(file string) (*os.Root, string, error) {
	root, err := os.OpenRoot(filepath.Dir(file))
	return root, filepath.Base(file), err
}
