package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/accession/accession/internal/blobstore"
)

// leastRoom is what the folder with the databases must have free, in bytes: a batch of transactions and the growth of the log.
const leastRoom = 4 << 20

// diskUsable tells whether what lies on this machine can be written: there is room for a whole part beside the databases, the file
// systems take writes, and a file can be opened at all.
func (svc *service) diskUsable(context.Context) error {
	folders := map[string]int64{}
	if !svc.settings.shared() {
		folders[svc.settings.Data] = leastRoom
	}
	for _, p := range svc.settings.places() {
		if !blobstore.IsS3(p.value) {
			folders[p.value] = leastRoom + svc.settings.PartSizeBytes
		}
	}
	var err error
	for folder, room := range folders {
		err = errors.Join(err, usable(folder, room))
	}
	return err
}

// usable writes one block to a file of folder that has no name, and so leaves nothing.
func usable(folder string, room int64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(folder, &fs); err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	if free := int64(fs.Bavail) * fs.Bsize; fs.Blocks > 0 && free < room {
		return fmt.Errorf("%s: %d bytes are free, %d are needed", folder, free, room)
	}
	fd, err := unix.Open(folder, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) { // the file system has no such files
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	f := os.NewFile(uintptr(fd), folder)
	_, err = f.Write(make([]byte, 4096))
	return errors.Join(err, f.Close())
}
