// Package s3server is a real S3 service for tests: versitygw over folders of the test.
package s3server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/accession/accession/internal/storetest/port"
)

// Server is a running service, stopped when the test ends.
type Server struct {
	Address   string // HOST:PORT; plain HTTP
	AccessKey string
	SecretKey string
	Folder    string // one folder per bucket, one file per object
	Versions  string // earlier versions; "" when buckets cannot have any
	Client    *minio.Client
	buckets   atomic.Int32
	cmd       *exec.Cmd
	exited    chan struct{}
}

// New starts a service whose buckets may be versioned. The binary comes from scripts/engines.sh --for-tests; without it the test
// fails.
func New(t testing.TB) *Server {
	t.Helper()
	address, free, err := port.Keep() // also while the service is stopped
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(free)
	s := &Server{Address: address, AccessKey: "accession-test", SecretKey: "a-secret-for-tests-only", Folder: t.TempDir(), Versions: t.TempDir()}
	s.Client, err = minio.New(s.Address, &minio.Options{Creds: credentials.NewStaticV4(s.AccessKey, s.SecretKey, ""), Region: "us-east-1", TrailingHeaders: true, MaxRetries: 1})
	if err != nil {
		t.Fatal(err)
	}
	s.Start(t)
	t.Cleanup(s.Stop)
	return s
}

// Start starts the service again after Stop, on the same address and folders.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	s.cmd = exec.Command(versitygw(t), "--port", s.Address, "--quiet", "--keep-alive", "posix", "--versioning-dir", s.Versions, s.Folder)
	s.cmd.Env = []string{"ROOT_ACCESS_KEY=" + s.AccessKey, "ROOT_SECRET_KEY=" + s.SecretKey}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	s.exited = exited
	go func() {
		_ = s.cmd.Wait() // killed, or told below that it ended
		close(exited)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for {
		if _, err := s.Client.ListBuckets(ctx); err == nil {
			return
		} else if ctx.Err() != nil {
			t.Fatalf("the S3 service does not answer: %v", err)
		}
		select {
		case <-exited:
			t.Fatal("the S3 service ended right after its start")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Stop kills the service and returns when it is gone.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill() // it may be gone already
	<-s.exited
}

// Bucket makes a bucket of its own.
func (s *Server) Bucket(t testing.TB, o minio.MakeBucketOptions) string {
	t.Helper()
	name := fmt.Sprintf("bucket-%d", s.buckets.Add(1))
	if err := s.Client.MakeBucket(t.Context(), name, o); err != nil {
		t.Fatal(err)
	}
	return name
}

// VersionedBucket makes a bucket that keeps every version.
func (s *Server) VersionedBucket(t testing.TB) string {
	t.Helper()
	name := s.Bucket(t, minio.MakeBucketOptions{})
	if err := s.Client.EnableVersioning(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	return name
}

// Files are the paths of everything that the service keeps of a bucket, versions and unfinished uploads too.
func (s *Server) Files(t testing.TB, bucket string) (paths []string) {
	t.Helper()
	for _, root := range []string{s.Folder, s.Versions} {
		err := filepath.WalkDir(filepath.Join(root, bucket), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return paths
}

// Env is what gives a service of ours the credentials.
func (s *Server) Env() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + s.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s.SecretKey}
}

// URL is a store's address in a bucket of the service.
func (s *Server) URL(bucket, prefix string) string {
	return strings.TrimSuffix("s3://"+bucket+"/"+prefix, "/") + "?endpoint=http://" + s.Address + "&region=us-east-1&path_style=true"
}

// versitygw is where scripts/engines.sh puts it.
func versitygw(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
	}
	path := filepath.Join(dir, ".cache", "bin", "versitygw")
	if _, err := os.Stat(path); err != nil {
		t.Fatal("versitygw is missing; run scripts/engines.sh --for-tests")
	}
	return path
}
