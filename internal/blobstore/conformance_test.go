package blobstore_test

import (
	"os"
	"testing"

	"github.com/accession/accession/internal/blobstore"
	"github.com/accession/accession/internal/storetest"
)

func TestDiskConforms(t *testing.T) {
	for name, folder := range map[string]func(t *testing.T) string{
		"temporary folder": func(t *testing.T) string { return t.TempDir() },
		"tmpfs":            sharedMemory,
		"shared syncs":     sharedMemory,
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Blobs(t, func(t *testing.T) blobstore.Store {
				disk, err := blobstore.NewDisk("staging", folder(t))
				if err != nil {
					t.Fatal(err)
				}
				if name == "shared syncs" {
					blobstore.ShareAll(disk)
				}
				t.Cleanup(func() {
					if err := disk.Close(); err != nil {
						t.Error(err)
					}
				})
				return disk
			})
		})
	}
}

// sharedMemory is a folder on the tmpfs that every Linux has.
func sharedMemory(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "blobstore")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
