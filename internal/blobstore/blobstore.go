// Package blobstore keeps the bytes in custody as immutable ciphertext objects.
//
// Two layers, one on the other:
//
//	Seal, OpenSealed, Concat   plaintext ⇄ authenticated segments   (seal.go, sealed_reader.go, sealed_file.go)
//	Store: Disk, S3            ciphertext objects by key             (disk.go, s3.go)
//
// An object is created once, written front to back, committed, and from then on
// only read or deleted. Nothing is renamed: a committed object is published by the
// row that the caller writes after Commit has returned. Whatever no row names is
// debris of a crash or an abandoned attempt, found with List and removed with Delete.
//
// Order that survives a crash: bytes durable → folder entries durable → row → answer.
package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

// BlockSize is the length in bytes of the blocks that Seal hands to a Writer; only
// the last block of an object is shorter.
const BlockSize = 1 << 20

const (
	maxKeyLen     = 1024 // S3 allows no longer key
	maxSegmentLen = 255  // nor Linux a longer file name
)

var (
	// ErrExists: Create met an object (or a folder of objects) of that key.
	ErrExists = errors.New("object exists already")
	// ErrNotFound: Open met no object of that key.
	ErrNotFound = errors.New("object not found")
	// ErrNoSpace: the store is full or its quota is used up.
	ErrNoSpace = errors.New("no space left in store")
	// ErrKey: the key or prefix is malformed; see Store.
	ErrKey = errors.New("malformed key: want segments of [a-z0-9_.-] joined by '/', without \"..\"")
	// ErrNotEmpty: Purge still found objects under the prefix when it read back.
	ErrNotEmpty = errors.New("objects remain after deletion")
	// ErrUnavailable: the store does not answer, not in time, or refuses for now. What it
	// was asked for may or may not have been done; ask again later.
	ErrUnavailable = errors.New("store is not available")
	// ErrShortBody: the body ended before the declared size.
	ErrShortBody = errors.New("body is shorter than declared")
	// ErrLongBody: the body goes on after the declared size.
	ErrLongBody = errors.New("body is longer than declared")
	// ErrCorrupt: stored bytes failed authentication: altered, reordered, cut,
	// extended, or opened with a key or associated data that are not theirs.
	ErrCorrupt = errors.New("stored object is corrupt")
)

// Store holds immutable ciphertext objects by key (architecture, "Bytes").
//
// A key is at most 1024 bytes: segments of 1 to 255 characters of [a-z0-9_.-]
// joined by '/', no segment ".", no ".." anywhere; anything else is ErrKey. No key
// may be the folder of another ("a" beside "a/b"). A Store is safe for concurrent
// use. Its errors name the store, never a path or a key.
type Store interface {
	// Name is the word for receipts, logs and gate details, such as "staging" or
	// "quarantine".
	Name() string
	// Create starts an object of exactly size bytes and reserves the room for it
	// where the store can: ErrNoSpace comes before the first byte. ErrExists when the
	// key is taken, on disk also by an attempt that was never committed. ctx governs
	// the writer until Commit or Abort, one of which must follow.
	Create(ctx context.Context, key string, size int64) (Writer, error)
	// Open gives random access to a committed object; ErrNotFound when there is none.
	// ctx may govern the reads made through the object, so it must outlive them.
	Open(ctx context.Context, key string) (Object, error)
	// Delete removes every version of an object; an absent object counts as deleted.
	// On return the deletion is durable.
	Delete(ctx context.Context, key string) error
	// List yields, in no particular order, the object of key prefix and every object
	// below the folder prefix ("" is all of them; "a/b" never matches "a/bc"; "a/b/" need
	// not be asked for an object "a/b"). Objects not committed are listed too. Listing ends
	// with the first error.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]
}

// Writer writes one object front to back. It is not safe for concurrent use.
type Writer interface {
	// WriteBlock appends p, which it does not keep. ErrNoSpace when the store is full.
	// Blocks of BlockSize whose memory is page-aligned are written fastest.
	WriteBlock(p []byte) error
	// Commit makes the object and its name durable. It fails when fewer bytes than
	// declared were written, and with ErrExists in a store that learns only now that
	// the key is taken. After an error call Abort, for the object may be there.
	Commit() error
	// Abort removes the object. It can be called any number of times and does
	// nothing after a Commit that succeeded.
	Abort() error
}

// Object is an open object. ReadAt is safe for concurrent use.
type Object interface {
	io.ReaderAt
	io.Closer
	// Size is the length in bytes.
	Size() int64
}

// Info describes one listed object.
type Info struct {
	Key     string
	Size    int64 // bytes
	ModTime time.Time
}

func checkKey(key string) error {
	if key == "" || len(key) > maxKeyLen || strings.Contains(key, "..") {
		return ErrKey
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment == "." || len(segment) > maxSegmentLen {
			return ErrKey
		}
		for _, c := range []byte(segment) {
			switch {
			case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '.', c == '-':
			default:
				return ErrKey
			}
		}
	}
	return nil
}

// Purge deletes every object that List finds under prefix, goes on past objects it
// cannot delete, then lists again: ErrNotEmpty unless that listing is empty. deleted
// counts the deletions that succeeded. An empty prefix is ErrKey: a whole store is
// never purged.
func Purge(ctx context.Context, s Store, prefix string) (deleted int, err error) {
	if err := checkKey(strings.TrimSuffix(prefix, "/")); err != nil {
		return 0, fmt.Errorf("%s: purge: %w", s.Name(), err)
	}
	if s, ok := s.(interface {
		purge(ctx context.Context, prefix string) (deleted int, err error)
	}); ok {
		return s.purge(ctx, prefix)
	}
	var firstErr error
	for info, err := range s.List(ctx, prefix) {
		if err != nil {
			return deleted, fmt.Errorf("%s: purge: %w", s.Name(), err)
		}
		if err := s.Delete(ctx, info.Key); err != nil {
			if ctx.Err() != nil {
				return deleted, fmt.Errorf("%s: purge: %w", s.Name(), err)
			}
			if firstErr == nil {
				firstErr = err
			}
			continue
		}
		deleted++
	}
	remaining := 0
	for _, err := range s.List(ctx, prefix) {
		if err != nil {
			return deleted, fmt.Errorf("%s: purge: read back: %w", s.Name(), err)
		}
		remaining++
	}
	if remaining > 0 {
		return deleted, fmt.Errorf("%s: purge: %d left: %w", s.Name(), remaining, errors.Join(ErrNotEmpty, firstErr))
	}
	if s, ok := s.(interface{ settleEmpty(prefix string) error }); ok && firstErr == nil {
		firstErr = s.settleEmpty(strings.TrimSuffix(prefix, "/"))
	}
	if firstErr != nil { // not listed any more, and perhaps back after a power cut
		return deleted, fmt.Errorf("%s: purge: %w", s.Name(), firstErr)
	}
	return deleted, nil
}
