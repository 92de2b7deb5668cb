package extract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// room is a private folder in memory for one conversion: a program that only works on files gets its document here, and no disk
// ever sees it. Whoever is in the room may change everything in it, so nothing of it is trusted.
type room struct {
	dir  string
	lock *os.File // held while the room is in use: others are left from a service that died, and are removed
}

const (
	memoryFolder = "/dev/shm"
	roomPrefix   = "accession-room-"
)

// newRoom makes a room, and removes those whose service is dead. It is an error where memoryFolder is no memory file system.
func newRoom() (*room, error) {
	if err := memoryFileSystem(); err != nil {
		return nil, err
	}
	if err := sweepRooms(); err != nil {
		return nil, err
	}
	// Under its name for sweepRooms only once it is locked.
	making, err := os.MkdirTemp(memoryFolder, "accession-making-")
	if err != nil {
		return nil, fmt.Errorf("room in memory: %w", err)
	}
	r := &room{dir: filepath.Join(memoryFolder, roomPrefix+strings.TrimPrefix(filepath.Base(making), "accession-making-"))}
	if r.lock, err = os.Open(making); err == nil {
		if err = unix.Flock(int(r.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			err = os.Rename(making, r.dir)
		}
	}
	for _, folder := range []string{"out", "profile/user"} {
		if err == nil {
			err = os.MkdirAll(filepath.Join(r.dir, folder), 0o700)
		}
	}
	if err == nil {
		return r, nil
	}
	if r.lock != nil {
		r.lock.Close()
	}
	return nil, errors.Join(fmt.Errorf("room in memory: %w", err), os.RemoveAll(making), os.RemoveAll(r.dir))
}

func memoryFileSystem() error {
	var info unix.Statfs_t
	if err := unix.Statfs(memoryFolder, &info); err != nil || info.Type != unix.TMPFS_MAGIC && info.Type != unix.RAMFS_MAGIC {
		return fmt.Errorf("%w: DOC, XLS and PPT need %s to be a memory file system: mount a tmpfs there", ErrEngineMissing, memoryFolder)
	}
	return nil
}

// sweepRooms removes the rooms of this account that nobody holds.
func sweepRooms() error {
	rooms, err := filepath.Glob(filepath.Join(memoryFolder, roomPrefix+"*"))
	if err != nil {
		return err
	}
	var failed error
	for _, dir := range rooms {
		fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // another account's, or gone meanwhile
		}
		lock := os.NewFile(uintptr(fd), dir)
		var info unix.Stat_t
		if unix.Fstat(fd, &info) == nil && int(info.Uid) == os.Geteuid() && unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
			failed = errors.Join(failed, removeAll(dir))
		}
		lock.Close()
	}
	return failed
}

// remove ends the room. Nothing may run in it any more.
func (r *room) remove() error { return errors.Join(removeAll(r.dir), r.lock.Close()) }

// removeAll also removes what was made unreadable.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error { // what stays, RemoveAll names
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// put writes a file that was not there.
func (r *room) put(name string, from io.Reader) error {
	f, err := os.OpenFile(filepath.Join(r.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("room in memory: %w", err)
	}
	if _, err = io.Copy(f, from); err != nil {
		err = fmt.Errorf("room in memory: %w", err)
	}
	return errors.Join(err, f.Close())
}

// take opens a plain file of the room; links lead nowhere. One that is not there, or no file, or longer than most, is a refusal.
func (r *room) take(name string, most int64) (_ *os.File, size int64, err error) {
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return nil, 0, fmt.Errorf("room in memory: %w", err)
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // or a pipe in its place would hold us
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", refuse(CodeBroken), err)
	}
	info, err := f.Stat()
	var own unix.Stat_t
	switch {
	case err != nil:
	case !info.Mode().IsRegular() || unix.Fstat(int(f.Fd()), &own) != nil || own.Nlink != 1:
		err = refuse(CodeBroken)
	case info.Size() > most:
		err = refuse(CodeExpands)
	default:
		return f, info.Size(), nil
	}
	return nil, 0, errors.Join(err, f.Close())
}

// watch calls full when what is in the room is more than most bytes; it returns when ctx ends.
func (r *room) watch(ctx context.Context, most int64, full func()) {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if r.bytes() > most {
			full()
			return
		}
	}
}

func (r *room) bytes() (total int64) {
	_ = filepath.WalkDir(r.dir, func(_ string, d fs.DirEntry, err error) error { // what comes and goes is not counted
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil {
			if s, ok := info.Sys().(*syscall.Stat_t); ok {
				total += s.Blocks * 512
			} else {
				total += info.Size()
			}
			total += 1 << 10 // the entry itself
		}
		return nil
	})
	return total
}
