package main

import (
	"context"
	"path/filepath"

	"github.com/minio/minio-go/v7"

	"github.com/accession/accession/bench/server"
)

// s3Store is the S3 service that the service writes to, and the reference beside it.
type s3Store struct {
	*server.S3
	process // the same, to be measured
}

func startS3(ctx context.Context, work string) (*s3Store, error) {
	s, err := server.StartS3(ctx, filepath.Join(work, "s3"))
	if err != nil {
		return nil, err
	}
	return &s3Store{s, process{cmd: s.Cmd}}, nil
}

// reference is a multipart upload as a client of S3 makes it, whose last step has the service make one object of the parts; and the
// same without that step. Nothing is hashed for a signature, and the wire has no checksum.
func (s *s3Store) reference() reference {
	rows := []comparison{{"the S3 service's own multipart upload", "≥ 0.9"}, {"that multipart upload, until its last part", ""}}
	return reference{rows, func(ctx context.Context, size, part int64) ([]lap, error) {
		bucket, name := s.Buckets[0], "reference"
		var id string
		var parts []minio.CompletePart
		sent, err := s.timed(func() (err error) {
			if id, err = s.Client.NewMultipartUpload(ctx, bucket, name, minio.PutObjectOptions{}); err != nil {
				return err
			}
			return inParts(size, part, func(n int, length int64) error {
				p, err := s.Client.PutObjectPart(ctx, bucket, name, id, n, body(length), length, minio.PutObjectPartOptions{DisableContentSha256: true})
				parts = append(parts, minio.CompletePart{PartNumber: n, ETag: p.ETag})
				return err
			})
		})
		if err != nil {
			return nil, err
		}
		completed, err := s.timed(func() error {
			_, err := s.Client.CompleteMultipartUpload(ctx, bucket, name, id, parts, minio.PutObjectOptions{})
			return err
		})
		if err != nil {
			return nil, err
		}
		whole := lap{sent.took + completed.took, sent.cpu + completed.cpu}
		return []lap{whole, sent}, s.Client.RemoveObject(ctx, bucket, name, minio.RemoveObjectOptions{})
	}}
}
