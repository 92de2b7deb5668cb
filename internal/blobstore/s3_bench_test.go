package blobstore_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/accession/accession/internal/blobstore"
	"github.com/accession/accession/internal/storetest/s3server"
)

// BenchmarkS3Seal measures parts into S3: read, two digests, sealed, sent with a checksum, never overwriting. Beside it runs what the
// library does with the same bytes by itself: one PUT, no digest, no seal. Both take turns at the same service.
func BenchmarkS3Seal(b *testing.B) {
	for _, mib := range []int64{1, 16, 64} {
		b.Run(fmt.Sprintf("%dMiB", mib), func(b *testing.B) {
			server := s3server.New(b)
			bucket := server.Bucket(b, minio.MakeBucketOptions{})
			s, size := openS3(b, server, server.URL(bucket, "p")), mib<<20
			content := bytes.Repeat([]byte("0123456789abcdef"), int(size/16))
			var sealing, bare time.Duration
			b.ReportAllocs()
			for b.Loop() {
				start := time.Now()
				if err := blobstore.Seal(b.Context(), s, "a", dataKey, nil, bytes.NewReader(content), size, sha256.New(), sha256.New()); err != nil {
					b.Fatal(err)
				}
				sealing += time.Since(start)
				if err := s.Delete(b.Context(), "a"); err != nil {
					b.Fatal(err)
				}
				start = time.Now()
				if _, err := server.Client.PutObject(b.Context(), bucket, "bare", struct{ io.Reader }{bytes.NewReader(content)}, size, minio.PutObjectOptions{
					DisableMultipart: true, DisableContentSha256: true, Checksum: minio.ChecksumCRC32C,
				}); err != nil {
					b.Fatal(err)
				}
				bare += time.Since(start)
			}
			total := float64(size) * float64(b.N) / 1e6
			b.ReportMetric(total/sealing.Seconds(), "seal-MB/s")
			b.ReportMetric(total/bare.Seconds(), "bare-MB/s")
		})
	}
}

// BenchmarkS3Read reads a part of 16 MiB from end to end, authenticated.
func BenchmarkS3Read(b *testing.B) {
	server := s3server.New(b)
	s, size := openS3(b, server, server.URL(server.Bucket(b, minio.MakeBucketOptions{}), "p")), int64(16<<20)
	if err := blobstore.Seal(b.Context(), s, "a", dataKey, nil, bytes.NewReader(make([]byte, size)), size); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	for b.Loop() {
		r, err := blobstore.OpenSealed(b.Context(), s, "a", dataKey, nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{io.NewSectionReader(r, 0, r.Size())}); err != nil {
			b.Fatal(err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
