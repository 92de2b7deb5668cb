package blobstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// MakeFolder makes folder and what is missing above it, mode 0700, and has their names survive a power cut. The name of folder
// itself is synced also where it was there already: whoever made it may have died before that. Its errors contain the path.
func MakeFolder(folder string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	unsettled := []string{folder}
	for p := filepath.Dir(folder); p != filepath.Dir(p); p = filepath.Dir(p) {
		if _, err := os.Stat(p); err == nil {
			break
		}
		unsettled = append(unsettled, p)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	for _, p := range unsettled {
		err := syncFolder(os.Open(filepath.Dir(p)))
		if errors.Is(err, fs.ErrPermission) { // a folder above that we may pass and not read
			err = syncFileSystem(p)
		}
		if err != nil {
			return fmt.Errorf("sync folder: %w", err)
		}
	}
	return nil
}

// syncFileSystem makes everything durable that lies in the file system of folder, its name included.
func syncFileSystem(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(syncFileSystemOf(f), f.Close())
}
