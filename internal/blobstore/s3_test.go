package blobstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/accession/accession/internal/blobstore"
	"github.com/accession/accession/internal/storetest"
	"github.com/accession/accession/internal/storetest/s3server"
)

func TestS3Conforms(t *testing.T) {
	server := s3server.New(t)
	for name, bucket := range map[string]func(*testing.T) string{
		"plain bucket":     func(t *testing.T) string { return server.Bucket(t, minio.MakeBucketOptions{}) },
		"versioned bucket": func(t *testing.T) string { return server.VersionedBucket(t) },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Blobs(t, func(t *testing.T) blobstore.Store {
				return openS3(t, server, server.URL(bucket(t), "some/prefix"))
			})
		})
	}
}

func openS3(t testing.TB, server *s3server.Server, url string) *blobstore.S3 {
	t.Helper()
	address, err := blobstore.ParseS3(url)
	if err != nil {
		t.Fatal(err)
	}
	s, err := blobstore.OpenS3(t.Context(), "staging", address, blobstore.S3Options{AccessKeyID: server.AccessKey, SecretAccessKey: server.SecretKey})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestS3Address(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-central-1")
	for text, want := range map[string]blobstore.S3Address{
		"s3://custody":        {Bucket: "custody", Host: "s3.amazonaws.com", Secure: true, Region: "eu-central-1"},
		"s3://custody/a/b.c/": {Bucket: "custody", Prefix: "a/b.c", Host: "s3.amazonaws.com", Secure: true, Region: "eu-central-1"},
		"s3://custody?endpoint=https://s3.example:9000&region=north&path_style=true":  {Bucket: "custody", Host: "s3.example:9000", Secure: true, Region: "north", Style: "path"},
		"s3://custody?endpoint=http://[::1]:9000/&path_style=false&object_lock=allow": {Bucket: "custody", Host: "[::1]:9000", Region: "eu-central-1", Style: "host", AllowLock: true},
	} {
		if got, err := blobstore.ParseS3(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"s3://", "s3://x", "s3://UPPER", "s3:bucket", "s3://bucket/../x", "s3://bucket/A", "s3://bucket#hush", "s3://hush:hush@bucket", "s3://hush@bucket",
		"s3://bucket?access_key=hush", "s3://bucket?region=a&region=b", "s3://bucket?endpoint=hush", "s3://bucket?endpoint=ftp://hush", "s3://bucket?endpoint=https://hush:hush@host",
		"s3://bucket?endpoint=https://host/hush", "s3://bucket?path_style=hush", "s3://bucket?object_lock=hush", "s3://bucket?%zz",
	} {
		if _, err := blobstore.ParseS3(text); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want a refusal that does not repeat it", text, err)
		}
	}
	for one, other := range map[string]string{ // the same place, written in another way
		"s3://custody/a?endpoint=https://s3.example":          "s3://custody/a/b?endpoint=https://S3.Example.:443/",
		"s3://custody/b?endpoint=http://[::1]":                "s3://custody/b?endpoint=http://[::1]:80",
		"s3://custody?region=eu-central-1":                    "s3://custody/c?endpoint=https://s3.eu-central-1.amazonaws.com",
		"s3://custody/d?endpoint=https://s3.example&region=a": "s3://custody/d?endpoint=https://s3.example:443&region=b",
	} {
		outer, err := blobstore.ParseS3(one)
		inner, innerErr := blobstore.ParseS3(other)
		if err != nil || innerErr != nil || !inner.Within(outer) {
			t.Errorf("%s is not within %s: %v, %v", other, one, err, innerErr)
		}
	}
	if blobstore.IsS3("/srv/s3:/x") || !blobstore.IsS3("s3://x") {
		t.Error("IsS3 is wrong")
	}
	a := blobstore.S3Address{Host: "h", Bucket: "b", Prefix: "x"}
	for other, want := range map[blobstore.S3Address]bool{
		a: true, {Host: "h", Bucket: "b"}: true, {Host: "h", Bucket: "b", Prefix: "x/y"}: false, {Host: "h", Bucket: "b", Prefix: "xy"}: false,
		{Host: "h", Bucket: "c", Prefix: "x"}: false, {Host: "i", Bucket: "b", Prefix: "x"}: false,
	} {
		if got := a.Within(other); got != want {
			t.Errorf("%+v within %+v: %v", a, other, got)
		}
	}
}

func TestS3Examination(t *testing.T) {
	server := s3server.New(t)
	locking := func(byDefault bool) string {
		name := server.Bucket(t, minio.MakeBucketOptions{ObjectLocking: true})
		if byDefault {
			mode, days, unit := minio.Compliance, uint(30), minio.Days
			if err := server.Client.SetObjectLockConfig(t.Context(), name, &mode, &days, &unit); err != nil {
				t.Fatal(err)
			}
		}
		return name
	}
	for name, c := range map[string]struct {
		url   string
		err   error
		warns string // in what it says
	}{
		"plain":               {server.URL(server.Bucket(t, minio.MakeBucketOptions{}), ""), nil, "without TLS"},
		"versioned":           {server.URL(server.VersionedBucket(t), "p"), nil, "keeps versions (enabled)"},
		"may lock":            {server.URL(locking(false), ""), nil, "can lock objects"},
		"locks":               {server.URL(locking(true), ""), blobstore.ErrLocked, ""},
		"locks, and it may":   {server.URL(locking(true), "") + "&object_lock=allow", nil, "locks every object (COMPLIANCE, 30 days)"},
		"there is no bucket":  {server.URL("absent", ""), blobstore.ErrUnavailable, ""},
		"a service elsewhere": {"s3://absent?endpoint=http://127.0.0.1:1", blobstore.ErrUnavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := openS3(t, server, c.url)
			e, err := s.Examine(t.Context())
			if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Fatalf("%+v, %v, want %v", e, err, c.err)
			}
			if err != nil {
				return
			}
			if said := strings.Join(e.Warnings, "\n"); !strings.Contains(said, c.warns) || !strings.Contains(e.Detail, "S3, bucket ") {
				t.Errorf("said %q: %q", e.Detail, said)
			}
			for info, err := range s.List(t.Context(), "") {
				t.Errorf("the trial left %+v, %v", info, err)
			}
		})
	}
}

// What lies under a key besides its latest version goes with it, and is listed before.
func TestS3DeletesEveryVersionAndDebris(t *testing.T) {
	server := s3server.New(t)
	bucket := server.VersionedBucket(t)
	s, core := openS3(t, server, server.URL(bucket, "p")), minio.Core{Client: server.Client}
	for _, key := range []string{"p/a/b", "p/a/b", "p/a/b", "p/a/bc", "p/a/c"} { // three versions of the first
		if _, err := server.Client.PutObject(t.Context(), bucket, key, strings.NewReader("x"), 1, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"p/a/c"} { // hidden, not gone
		if err := server.Client.RemoveObject(t.Context(), bucket, key, minio.RemoveObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"p/a/b", "p/a/debris"} {
		if _, err := core.NewMultipartUpload(t.Context(), bucket, key, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	listed := map[string]bool{}
	for info, err := range s.List(t.Context(), "a") {
		if err != nil {
			t.Fatal(err)
		}
		listed[info.Key] = true
	}
	for _, key := range []string{"a/b", "a/bc", "a/c", "a/debris"} {
		if !listed[key] {
			t.Errorf("%s is not listed", key)
		}
	}
	if err := s.Delete(t.Context(), "a/b"); err != nil {
		t.Fatal(err)
	}
	if left := server.Files(t, bucket); slices.ContainsFunc(left, func(path string) bool { return strings.HasSuffix(path, "/a/b") }) {
		t.Errorf("files: %q", left)
	}
	if n, err := blobstore.Purge(t.Context(), s, "a"); n != 3 || err != nil {
		t.Errorf("purge: %d, %v; want a/bc, a/c and the debris", n, err)
	}
	if left := server.Files(t, bucket); len(left) > 0 {
		t.Errorf("files: %q", left)
	}
}

// More than one page of a listing, and more than one batch of deletions.
func TestS3PurgesThousands(t *testing.T) {
	server := s3server.New(t)
	bucket := server.VersionedBucket(t)
	s := openS3(t, server, server.URL(bucket, ""))
	var writers sync.WaitGroup
	const each = 130
	for w := range 8 {
		writers.Go(func() {
			for i := range each {
				if _, err := server.Client.PutObject(t.Context(), bucket, fmt.Sprintf("uploads/upl_1/%d-%d", w, i), strings.NewReader("x"), 1, minio.PutObjectOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	if n, err := blobstore.Purge(t.Context(), s, "uploads/upl_1/"); n != 8*each || err != nil {
		t.Errorf("purge: %d, %v", n, err)
	}
	if left := server.Files(t, bucket); len(left) > 0 {
		t.Errorf("%d files are left", len(left))
	}
}

func TestS3CopiesByItself(t *testing.T) {
	server := s3server.New(t)
	from := openS3(t, server, server.URL(server.Bucket(t, minio.MakeBucketOptions{}), "staging"))
	to := openS3(t, server, server.URL(server.VersionedBucket(t), "quarantine"))
	key, content := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte("0123456789abcdef"), 1<<17)
	if err := blobstore.Seal(t.Context(), from, "uploads/a", key, nil, bytes.NewReader(content), int64(len(content))); err != nil {
		t.Fatal(err)
	}
	if done, err := to.CopyFrom(t.Context(), from, "uploads/a"); !done || err != nil {
		t.Fatal(done, err)
	}
	r, err := blobstore.OpenSealed(t.Context(), to, "uploads/a", key, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size())); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%v, or other bytes", err)
	}
	if _, err := to.CopyFrom(t.Context(), from, "uploads/absent"); !errors.Is(err, blobstore.ErrNotFound) {
		t.Errorf("copy of nothing: %v", err)
	}
	disk, err := blobstore.NewDisk("staging", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	if done, err := to.CopyFrom(t.Context(), disk, "uploads/a"); done || err != nil {
		t.Errorf("copy from a disk: %v, %v", done, err)
	}
}
