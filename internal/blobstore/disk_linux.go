package blobstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// This file is all that Disk asks of Linux beyond package os.

// fault names the store and drops what package os says about paths.
func (d *Disk) fault(op string, err error) error {
	if err == nil || err == io.EOF {
		return err // io.ReaderAt wants io.EOF bare
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		err = ErrNoSpace
	case disturbed(err):
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %s: %w", d.name, op, err)
}

// disturbed tells that the machine, not the request, is what is wrong, and that it may be mended.
func disturbed(err error) bool {
	for _, cause := range []syscall.Errno{
		syscall.EROFS, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ESTALE, syscall.ENODEV, syscall.ENXIO,
		syscall.EACCES, syscall.EPERM, syscall.ETIMEDOUT,
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// isAbsent: the name, or a folder on the way to it, is not there.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// endOfFolder: the listing is complete, or its folder was removed meanwhile.
func endOfFolder(err error) bool {
	return err == io.EOF || errors.Is(err, fs.ErrNotExist)
}

// allocate reserves size bytes, or nothing on file systems that cannot.
func allocate(f *os.File, size int64) error {
	if size == 0 {
		return nil
	}
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, size)
		switch {
		case err == unix.EINTR: // signals of Go's scheduler
		case errors.Is(err, errors.ErrUnsupported):
			return nil
		default:
			return err
		}
	}
}

func setDirect(f *os.File, on bool) error {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	if on {
		flags |= unix.O_DIRECT
	} else {
		flags &^= unix.O_DIRECT
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags)
	return err
}

func writeDontCached(f *os.File, p []byte, off int64) (int, error) {
	for {
		n, err := unix.Pwritev2(int(f.Fd()), [][]byte{p}, off, unix.RWF_DONTCACHE)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.ErrShortWrite
		default:
			return n, nil
		}
	}
}

// syncData makes the file's bytes and length durable.
func syncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}

// syncFolder makes a folder's entries durable and closes it. It takes what os.Open
// returns.
func syncFolder(folder *os.File, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func unlink(folder *os.File, name string) error {
	return unix.Unlinkat(int(folder.Fd()), name, 0)
}

func rmdir(folder *os.File, name string) error {
	return unix.Unlinkat(int(folder.Fd()), name, unix.AT_REMOVEDIR)
}
