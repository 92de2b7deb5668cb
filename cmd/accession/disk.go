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

// diskUsable tells whether what lies on this machine can be written: the file systems take writes, a file can be opened at all, and the
// databases have room. A storage root without room is no reason to send anybody elsewhere: reading goes on, and withdrawals make room.
func (svc *service) diskUsable(context.Context) (err error) {
	if !svc.settings.shared() {
		err = errors.Join(roomIn(svc.settings.Data, leastRoom), writable(svc.settings.Data))
	}
	for _, root := range svc.localRoots() {
		if failure := writable(root); !errors.Is(failure, unix.ENOSPC) {
			err = errors.Join(err, failure)
		}
	}
	return err
}

// diskRoom tells whether each storage root on this machine has room for a whole part.
func (svc *service) diskRoom(context.Context) (err error) {
	for _, root := range svc.localRoots() {
		err = errors.Join(err, roomIn(root, leastRoom+svc.settings.PartSizeBytes))
	}
	return err
}

func (svc *service) localRoots() (folders []string) {
	for _, p := range svc.settings.places() {
		if !blobstore.IsS3(p.value) {
			folders = append(folders, p.value)
		}
	}
	return folders
}

func roomIn(folder string, room int64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(folder, &fs); err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	if free := int64(fs.Bavail) * fs.Bsize; fs.Blocks > 0 && free < room {
		return fmt.Errorf("%s: %d bytes are free, %d are needed", folder, free, room)
	}
	return nil
}

// writable writes one block to a file of folder that has no name, and so leaves nothing.
func writable(folder string) error {
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
