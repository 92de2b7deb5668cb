// Package backup copies the metadata and the sealed objects of an embedded installation while it runs, and puts them back.
// The key store is never in such a copy: it has a backup of its own (keys.go), so that a withdrawn document, whose data key is
// destroyed, does not come back with an old copy of everything else. (Architecture, "Bytes".)
//
//	DIR/backup.json    when, how much, and what was left out (Summary)
//	DIR/SHA256SUMS     digest of every other file, as sha256sum -c reads it
//	DIR/metadata.db    the metadata at one moment
//	DIR/objects/…      the sealed objects that this metadata names, by object key
package backup

import (
	"bufio"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // the driver named "sqlite"

	"github.com/accession/accession/internal/crashpoint"
	"github.com/accession/accession/internal/custody"
)

const (
	format      = 1 // of the folder
	summaryFile = "backup.json"
	sumsFile    = "SHA256SUMS"
	metadata    = "metadata.db"
	objects     = "objects"
)

// Source is an installation whose service may be running.
type Source struct {
	Metadata string // metadata.db
	Blobs    string // staging storage; quarantine holds the same ciphertext a second time and is not copied
	// SealedSize is the length in bytes of an object that seals so many bytes of plaintext.
	SealedSize func(plaintext int64) int64
}

// Summary of a backup or of a restore.
type Summary struct {
	Format     int       `json:"format"`
	MadeAt     time.Time `json:"made_at"` // of the metadata
	Objects    int       `json:"objects"`
	Bytes      int64     `json:"bytes"` // of the objects, sealed
	SumsSHA256 string    `json:"sums_sha256"`
	// LeftOut are the objects that were deleted while the backup ran, because their upload was withdrawn, refused or lapsed.
	LeftOut []string `json:"left_out"`
	// Missing are the objects that the metadata names and the storage does not have, or not in their length.
	Missing []string `json:"missing"`
}

// Take writes a backup of from into the new folder dir. It only reads; the service goes on. Objects never change, so the
// metadata at one moment and then the objects that it names are the whole of that moment, but for what was deleted since.
// The folder gets its name once everything in it is durable.
func Take(ctx context.Context, from Source, dir string) (s Summary, err error) {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("%s is there already; a backup makes a folder of its own", dir)
	}
	err = whole(dir, func(root *os.Root) error {
		s, err = take(ctx, from, root)
		return err
	})
	return s, err
}

func take(ctx context.Context, from Source, root *os.Root) (s Summary, err error) {
	s = Summary{Format: format, MadeAt: custody.Now(), LeftOut: []string{}, Missing: []string{}}
	live, err := readOnly(from.Metadata)
	if err != nil {
		return s, err
	}
	defer live.Close()
	if _, err := live.ExecContext(ctx, `VACUUM INTO $1`, filepath.Join(root.Name(), metadata)); err != nil {
		return s, fmt.Errorf("copy metadata: %w", err)
	}
	crashpoint.Hit("backup: metadata copied")
	if err := root.Chmod(metadata, 0o600); err != nil {
		return s, err
	}
	blobs, err := os.OpenRoot(from.Blobs)
	if err != nil {
		return s, fmt.Errorf("open storage: %w", err)
	}
	defer blobs.Close()
	sums, err := newSums(root)
	if err != nil {
		return s, err
	}
	defer sums.file.Close() // a second close after done does nothing of weight
	if err := sums.add(metadata); err != nil {
		return s, err
	}
	moment, err := readOnly(filepath.Join(root.Name(), metadata))
	if err != nil {
		return s, err
	}
	defer moment.Close()
	if err := eachObject(ctx, moment, func(o object) error {
		n, digest, err := copyFile(ctx, blobs, o.key, root, path.Join(objects, o.key))
		if errors.Is(err, fs.ErrNotExist) || err == nil && n != from.SealedSize(o.size) {
			if err == nil {
				err = root.Remove(path.Join(objects, o.key))
			} else {
				err = nil
			}
			still, liveErr := o.stillIn(ctx, live)
			if err = errors.Join(err, liveErr); err != nil {
				return err
			}
			if still {
				s.Missing = append(s.Missing, o.key)
			} else {
				s.LeftOut = append(s.LeftOut, o.key)
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("copy object: %w", err)
		}
		s.Objects++
		s.Bytes += n
		return sums.line(path.Join(objects, o.key), digest)
	}); err != nil {
		return s, err
	}
	if err := moment.Close(); err != nil {
		return s, err
	}
	if s.SumsSHA256, err = sums.done(); err != nil {
		return s, err
	}
	crashpoint.Hit("backup: before summary")
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return s, err
	}
	return s, root.WriteFile(summaryFile, append(text, '\n'), 0o600)
}

// object is one that the metadata names.
type object struct {
	key, uploadID string
	size          int64 // bytes of plaintext
	derived       bool
}

// statuses in which the objects of an upload are in custody: everything else has none, or is about to have none.
const (
	partsKept   = `('INITIATED', 'RECEIVING', 'PROCESSING', 'READY', 'REJECTED', 'FAILED')`
	derivedKept = `('PROCESSING', 'READY', 'FAILED')`
)

func eachObject(ctx context.Context, db *sql.DB, fn func(object) error) error {
	rows, err := db.QueryContext(ctx, `SELECT p.object_key, p.upload_id, p.size_bytes, 0 FROM parts p JOIN uploads u USING (upload_id) WHERE u.status IN `+partsKept+`
		UNION ALL SELECT a.object_key, a.upload_id, a.size_bytes, 1 FROM artifacts a JOIN uploads u USING (upload_id) WHERE u.status IN `+derivedKept)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var o object
		if err := rows.Scan(&o.key, &o.uploadID, &o.size, &o.derived); err != nil {
			return err
		}
		if err := fn(o); err != nil {
			return err
		}
	}
	return rows.Err()
}

// stillIn tells whether db names the object as one in custody: then its absence is a loss, and no deletion.
func (o object) stillIn(ctx context.Context, db *sql.DB) (bool, error) {
	table, kept := "parts", partsKept
	if o.derived {
		table, kept = "artifacts", derivedKept
	}
	var n int
	err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM `+table+` JOIN uploads USING (upload_id)
		WHERE upload_id = $1 AND object_key = $2 AND status IN `+kept, o.uploadID, o.key).Scan(&n)
	return n > 0, err
}

// readOnly opens a database beside the service that writes it.
func readOnly(file string) (*sql.DB, error) {
	if _, err := os.Stat(file); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(10000)")
	if err == nil {
		db.SetMaxOpenConns(2)
	}
	return db, err
}

// whole makes the folder dir by fill, in a folder beside it that gets the name dir once everything is durable.
func whole(dir string, fill func(*os.Root) error) (err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	above := filepath.Dir(dir)
	if err := os.MkdirAll(above, 0o700); err != nil {
		return err
	}
	unnamed, release, err := unfinished(dir)
	if err != nil {
		return err
	}
	defer release()
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(unnamed))
		}
	}()
	root, err := os.OpenRoot(unnamed)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := fill(root); err != nil {
		return err
	}
	crashpoint.Hit("backup: before sync of a folder")
	if err := syncAll(unnamed); err != nil {
		return err
	}
	crashpoint.Hit("backup: before the name of a folder")
	if err := os.Rename(unnamed, dir); err != nil { // over an empty folder it succeeds, over anything else it fails
		return err
	}
	crashpoint.Hit("backup: after the name of a folder")
	return syncAll(above)
}

// unfinished makes a folder (mode 0700) beside what is to be made, held until release, after deleting those of the same name that
// somebody who died left.
func unfinished(name string) (dir string, release func() error, err error) {
	above, prefix := filepath.Dir(name), "."+filepath.Base(name)+".unfinished-"
	left, err := os.ReadDir(above)
	if err != nil {
		return "", nil, err
	}
	for _, l := range left {
		if !l.IsDir() || !strings.HasPrefix(l.Name(), prefix) {
			continue
		}
		held, err := os.Open(filepath.Join(above, l.Name()))
		if err != nil {
			return "", nil, err
		}
		if unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil { // nobody works in it
			err = os.RemoveAll(held.Name())
		}
		if err = errors.Join(err, held.Close()); err != nil {
			return "", nil, err
		}
	}
	if dir, err = os.MkdirTemp(above, prefix); err != nil {
		return "", nil, err
	}
	held, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return dir, held.Close, unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// syncAll makes everything on the file system of dir durable.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}

// copyFile copies a file that must not be there yet; the digest is of what was written. A source that is not there leaves nothing.
func copyFile(ctx context.Context, from *os.Root, name string, to *os.Root, as string) (n int64, digest []byte, err error) {
	in, err := from.Open(name)
	if err != nil {
		return 0, nil, err
	}
	defer in.Close()
	if err := to.MkdirAll(path.Dir(as), 0o700); err != nil {
		return 0, nil, err
	}
	out, err := to.OpenFile(as, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, nil, err
	}
	sum := sha256.New()
	n, err = io.Copy(io.MultiWriter(out, sum), untilDone{ctx, in})
	err = errors.Join(err, out.Close())
	crashpoint.Hit("backup: file copied")
	return n, sum.Sum(nil), err
}

// untilDone is a reader that ends with its context.
type untilDone struct {
	ctx context.Context
	io.Reader
}

func (r untilDone) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// sums writes SHA256SUMS.
type sums struct {
	root *os.Root
	file *os.File
	to   *bufio.Writer
	sum  hash.Hash
}

func newSums(root *os.Root) (*sums, error) {
	f, err := root.OpenFile(sumsFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	return &sums{root, f, bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<16), sum}, nil
}

func (s *sums) add(name string) error {
	f, err := s.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	return s.line(name, sum.Sum(nil))
}

func (s *sums) line(name string, digest []byte) error {
	_, err := fmt.Fprintf(s.to, "%x  %s\n", digest, name)
	return err
}

func (s *sums) done() (digest string, err error) {
	err = errors.Join(s.to.Flush(), s.file.Close())
	return hex.EncodeToString(s.sum.Sum(nil)), err
}
