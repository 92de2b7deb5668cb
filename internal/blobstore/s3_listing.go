package blobstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// entry is one thing that a bucket holds under a key: a version, a delete marker, or an incomplete multipart upload.
type entry struct {
	key      string // with the store's folder
	version  string
	uploadID string // of an incomplete multipart upload
	size     int64
	at       time.Time
}

type entries = iter.Seq2[entry, error]

// List implements Store. A key is listed once, whatever there is of it. A prefix that ends in "/" is the folder alone.
func (s *S3) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if prefix != "" {
			if err := checkKey(strings.TrimSuffix(prefix, "/")); err != nil {
				yield(Info{}, s.fault(ctx, "list", err))
				return
			}
		}
		last := ""
		for e, err := range s.entriesUnder(ctx, prefix) {
			if err != nil {
				yield(Info{}, s.fault(ctx, "list", err))
				return
			}
			if e.key == last { // versions of a key follow each other
				continue
			}
			last = e.key
			if !yield(Info{Key: strings.TrimPrefix(e.key, s.folder), Size: e.size, ModTime: e.at}, nil) {
				return
			}
		}
	}
}

// entriesUnder are those of the key prefix and of every key below the folder prefix.
func (s *S3) entriesUnder(ctx context.Context, prefix string) entries {
	folder := strings.TrimSuffix(prefix, "/")
	if folder == "" {
		return s.scan(ctx, s.folder, func(string) bool { return true })
	}
	below := s.scan(ctx, s.folder+folder+"/", func(string) bool { return true })
	if folder != prefix {
		return below
	}
	return func(yield func(entry, error) bool) {
		for e, err := range s.entriesOf(ctx, folder) {
			if !yield(e, err) || err != nil {
				return
			}
		}
		below(yield)
	}
}

// entriesOf are those of one key. It sorts before all keys that it begins.
func (s *S3) entriesOf(ctx context.Context, key string) entries {
	return s.scan(ctx, s.folder+key, func(found string) bool { return found == s.folder+key })
}

// scan lists what the bucket holds under prefix until wanted says no.
func (s *S3) scan(ctx context.Context, prefix string, wanted func(key string) bool) entries {
	return func(yield func(entry, error) bool) {
		for e, err := range s.versions(ctx, prefix) {
			if err == nil && !wanted(e.key) {
				break
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		for e, err := range s.multiparts(ctx, prefix) {
			if err == nil && !wanted(e.key) {
				break
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (s *S3) versions(ctx context.Context, prefix string) entries {
	return func(yield func(entry, error) bool) {
		found := false
		for {
			withVersions := !s.unversioned.Load()
			again := false
			for o := range s.client.ListObjectsIter(ctx, s.address.Bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true, WithVersions: withVersions}) {
				if withVersions && !found && isCode(o.Err, minio.NotImplemented, minio.MethodNotAllowed) {
					s.unversioned.Store(true)
					again = true
					break
				}
				found = true
				if !yield(entry{key: o.Key, version: o.VersionID, size: o.Size, at: o.LastModified}, o.Err) || o.Err != nil {
					return
				}
			}
			if !again {
				break
			}
		}
		if err := ctx.Err(); err != nil { // the library's listing just ends then
			yield(entry{}, err)
		}
	}
}

func (s *S3) multiparts(ctx context.Context, prefix string) entries {
	return func(yield func(entry, error) bool) {
		key, id := "", ""
		for {
			page, err := s.core.ListMultipartUploads(ctx, s.address.Bucket, prefix, key, id, "", 1000)
			if err != nil {
				yield(entry{}, err)
				return
			}
			for _, u := range page.Uploads {
				if !yield(entry{key: u.Key, uploadID: u.UploadID, at: u.Initiated}, nil) {
					return
				}
			}
			if !page.IsTruncated {
				return
			}
			if page.NextKeyMarker == key && page.NextUploadIDMarker == id {
				yield(entry{}, errors.New("the listing of multipart uploads does not end"))
				return
			}
			key, id = page.NextKeyMarker, page.NextUploadIDMarker
		}
	}
}

// erase deletes everything that found lists until it lists nothing, twice at most: a write that was under way may have ended in
// between. It goes on past what cannot be deleted. keys counts the keys of which nothing is left.
func (s *S3) erase(ctx context.Context, found func() entries) (keys int, err error) {
	there, firstErr, err := s.eraseOnce(ctx, found)
	if err != nil || len(there) == 0 {
		return 0, err
	}
	left, againErr, err := s.eraseOnce(ctx, found)
	if err != nil {
		return 0, err
	}
	if len(left) > 0 {
		firstErr = cmp.Or(firstErr, againErr)
		if left, err = keysOf(found()); err != nil {
			return 0, err
		}
	}
	if len(left) > 0 {
		return max(0, len(there)-len(left)), fmt.Errorf("%d left: %w", len(left), errors.Join(ErrNotEmpty, s.fault(ctx, "delete", firstErr)))
	}
	return len(there), nil // whatever was answered: nothing is there
}

func keysOf(found entries) (map[string]bool, error) {
	keys := map[string]bool{}
	for e, err := range found {
		if err != nil {
			return nil, err
		}
		keys[e.key] = true
	}
	return keys, nil
}

// eraseOnce deletes what found lists, and returns the keys of it with the first refusal.
func (s *S3) eraseOnce(ctx context.Context, found func() entries) (keys map[string]bool, refusal, err error) {
	keys = map[string]bool{}
	var versions []minio.ObjectInfo
	for e, err := range found() {
		if err != nil {
			return nil, nil, err
		}
		keys[e.key] = true
		if e.uploadID == "" {
			versions = append(versions, minio.ObjectInfo{Key: e.key, VersionID: e.version})
			continue
		}
		if err := s.core.AbortMultipartUpload(ctx, s.address.Bucket, e.key, e.uploadID); err != nil && !isCode(err, "NoSuchUpload") {
			refusal = cmp.Or(refusal, err)
		}
	}
	refusal = cmp.Or(refusal, s.deleteVersions(ctx, versions))
	return keys, refusal, ctx.Err()
}

func (s *S3) deleteVersions(ctx context.Context, versions []minio.ObjectInfo) (err error) {
	switch len(versions) {
	case 0:
		return nil
	case 1:
		return s.client.RemoveObject(ctx, s.address.Bucket, versions[0].Key, minio.RemoveObjectOptions{VersionID: versions[0].VersionID})
	}
	results, err := s.client.RemoveObjectsWithIter(ctx, s.address.Bucket, func(yield func(minio.ObjectInfo) bool) {
		for _, v := range versions {
			if !yield(v) {
				return
			}
		}
	}, minio.RemoveObjectsOptions{})
	if err != nil {
		return err
	}
	for r := range results {
		if r.Err != nil && err == nil {
			err = r.Err
		}
	}
	return err
}
