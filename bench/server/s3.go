package server

import (
	"context"
	"os"
	"os/exec"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// The buckets, one for each storage root of the service.
const staging, quarantine = "staging", "quarantine"

const accessKey, secretKey = "accession-bench", "a-secret-for-benches-only"

// S3 is a running versitygw, the S3 service of the tests too, with a bucket for each storage root.
type S3 struct {
	Cmd     *exec.Cmd
	Address string // HOST:PORT; plain HTTP
	Client  *minio.Core
	Buckets []string
}

// StartS3 starts one over folder, which it makes. Stop Cmd.
func StartS3(ctx context.Context, folder string) (*S3, error) {
	program, err := Reference(ctx, "scripts/versitygw.sh")
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	s := &S3{Buckets: []string{staging, quarantine}}
	if s.Address, err = FreeAddress(); err != nil {
		return nil, err
	}
	s.Client, err = minio.NewCore(s.Address, &minio.Options{Creds: credentials.NewStaticV4(accessKey, secretKey, ""), Region: "us-east-1", MaxRetries: 1})
	if err != nil {
		return nil, err
	}
	s.Cmd = exec.CommandContext(ctx, program, "--port", s.Address, "--quiet", "--keep-alive", "posix", folder)
	s.Cmd.Env = []string{"ROOT_ACCESS_KEY=" + accessKey, "ROOT_SECRET_KEY=" + secretKey}
	if err := Launch(ctx, s.Cmd, func() error { _, err := s.Client.ListBuckets(ctx); return err }); err != nil {
		return nil, err
	}
	for _, bucket := range s.Buckets {
		if err := s.Client.MakeBucket(ctx, bucket, minio.MakeBucketOptions{}); err != nil {
			Stop(s.Cmd)
			return nil, err
		}
	}
	return s, nil
}

// Env has a service keep its bytes there. address is the server's own, or of what passes everything on to it.
func (s *S3) Env(address string) []string {
	at := "?endpoint=http://" + address + "&region=us-east-1&path_style=true"
	return []string{"AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=" + secretKey, "ACCESSION_BLOBS=s3://" + staging + at, "ACCESSION_QUARANTINE=s3://" + quarantine + at}
}
