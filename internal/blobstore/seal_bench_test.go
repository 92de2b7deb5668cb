package blobstore

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkSeal measures durable parts: read, two digests, sealed, synced. Beside it
// runs what a bare handler does: read, one digest, buffered write, fsync of the file.
// The two take turns on the same disk, so that its moods touch both alike.
func BenchmarkSeal(b *testing.B) {
	for _, mib := range []int64{8, 64} {
		b.Run(fmt.Sprintf("%dMiB", mib), func(b *testing.B) {
			disk, folder, dataKey := newDisk(b), b.TempDir(), random(32)
			size := mib << 20
			sealTo(b, disk, "uploads/neighbour", dataKey, nil, nil) // keeps the folder
			var sealing, bare time.Duration
			b.ReportAllocs()
			for b.Loop() {
				start := time.Now()
				if err := Seal(b.Context(), disk, "uploads/a", dataKey, nil, io.LimitReader(zeros{}, size), size, sha256.New(), sha256.New()); err != nil {
					b.Fatal(err)
				}
				sealing += time.Since(start)
				if err := disk.Delete(b.Context(), "uploads/a"); err != nil {
					b.Fatal(err)
				}
				name := filepath.Join(folder, "a")
				start = time.Now()
				bareWrite(b, name, io.LimitReader(zeros{}, size))
				bare += time.Since(start)
				if err := os.Remove(name); err != nil {
					b.Fatal(err)
				}
			}
			total := float64(size) * float64(b.N) / 1e6
			b.ReportMetric(total/sealing.Seconds(), "seal-MB/s")
			b.ReportMetric(total/bare.Seconds(), "bare-MB/s")
		})
	}
}

// BenchmarkSealShort seals and reads back a short text: what counts is the memory.
func BenchmarkSealShort(b *testing.B) {
	disk, dataKey, text := newDisk(b), random(32), random(4<<10)
	sealTo(b, disk, "uploads/neighbour", dataKey, nil, nil) // keeps the folder
	b.ReportAllocs()
	for b.Loop() {
		sealTo(b, disk, "uploads/a", dataKey, nil, text)
		r, err := OpenSealed(b.Context(), disk, "uploads/a", dataKey, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(r.Close(), disk.Delete(b.Context(), "uploads/a")); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSealWithoutDisk is the share of digests and cipher.
func BenchmarkSealWithoutDisk(b *testing.B) {
	const size = 64 << 20
	dataKey := random(32)
	b.SetBytes(size)
	for b.Loop() {
		if err := Seal(b.Context(), discard{}, "a", dataKey, nil, io.LimitReader(zeros{}, size), size, sha256.New(), sha256.New()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadThrough reads a file of four 16 MiB parts in steps of 32 KiB.
func BenchmarkReadThrough(b *testing.B) {
	disk, dataKey := newDisk(b), random(32)
	parts := sealParts(b, disk, dataKey, random(64<<20), 16<<20)
	b.SetBytes(64 << 20)
	for b.Loop() {
		file, err := Concat(b.Context(), disk, dataKey, parts...)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{io.NewSectionReader(file, 0, file.Size())}); err != nil {
			b.Fatal(err)
		}
		if err := file.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func bareWrite(b *testing.B, name string, r io.Reader) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	digest, buf := sha256.New(), make([]byte, BlockSize)
	for {
		n, readErr := io.ReadFull(r, buf)
		digest.Write(buf[:n])
		if _, err := f.Write(buf[:n]); err != nil {
			b.Fatal(err)
		}
		if readErr != nil {
			break
		}
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}
