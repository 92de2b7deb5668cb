package blobstore

import (
	"math"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// maxShared is the size in bytes up to which an object shares a sync. A larger one has more to write than to wait for.
	maxShared = 1 << 20
	// maxAlone is how many small changes are synced each by itself at the same time. The file system joins so few of them well,
	// and a sync of its own does not wait for what others write to the file system.
	maxAlone = 4
)

// fileSystem makes small changes durable that come at the same time: as long as few come, each by itself, and else all that have
// come by one syncfs, whose cost does not grow with their number.
type fileSystem struct {
	syncAll  func(*os.File) error // syncfs; tests have it fail
	maxAlone int                  // beyond it changes share
	device   uint64               // what lies elsewhere shares nothing; 0: not looked at, in tests

	mu      sync.Mutex
	alone   int        // changes being synced by themselves
	next    *syncRound // the round that gathers; nil: none
	waiting int        // changes that share
	running sync.Mutex // held by the round that runs: one at a time, so that the next one gathers meanwhile
}

// syncRound is one syncfs and those who wait for it.
type syncRound struct {
	done chan struct{} // closed when err is set
	err  error
}

// fileSystems are those of all stores, by device: staging and quarantine often lie in the same.
var fileSystems struct {
	sync.Mutex
	of map[uint64]*fileSystem
}

func fileSystemOf(root *os.Root) (*fileSystem, error) {
	folder, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer folder.Close() // opened for reading: nothing to lose
	var stat unix.Stat_t
	if err := unix.Fstat(int(folder.Fd()), &stat); err != nil {
		return nil, err
	}
	var about unix.Statfs_t
	if err := unix.Fstatfs(int(folder.Fd()), &about); err != nil {
		return nil, err
	}
	fileSystems.Lock()
	defer fileSystems.Unlock()
	if fileSystems.of == nil {
		fileSystems.of = map[uint64]*fileSystem{}
	}
	fsys := fileSystems.of[stat.Dev]
	if fsys == nil {
		fsys = &fileSystem{syncAll: syncFileSystemOf, maxAlone: math.MaxInt, device: stat.Dev}
		if syncfsSuffices(uint32(about.Type)) {
			fsys.maxAlone = maxAlone
		}
		fileSystems.of[stat.Dev] = fsys
	}
	return fsys, nil
}

// syncfsSuffices tells of what kinds of file systems it is known that a syncfs does all that the syncs of single files and folders
// do. FUSE and SMB have fsync reach the server and syncfs not; overlayfs does not pass flushData on; F2FS calls a syncfs that did
// nothing a success.
func syncfsSuffices(kind uint32) bool {
	switch kind {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return true
	}
	return false
}

// holds tells whether f lies in it: something else may be mounted below the folder of a store.
func (s *fileSystem) holds(f *os.File) bool {
	var stat unix.Stat_t
	return s.device == 0 || unix.Fstat(int(f.Fd()), &stat) == nil && stat.Dev == s.device
}

// beginAlone tells whether the caller may make its change durable by itself, with fsync as ever, and then call endAlone. If not, it
// calls share.
func (s *fileSystem) beginAlone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting > 0 || s.alone >= s.maxAlone {
		return false
	}
	s.alone++
	return true
}

func (s *fileSystem) endAlone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alone--
}

// share returns when all that was changed before the call is durable: names, and bytes that flushData has written. One syncfs,
// through the file or folder f of one of them, does for all who wait; if it fails, it fails for all of them.
func (s *fileSystem) share(f *os.File) error {
	s.mu.Lock()
	s.waiting++
	r, leads := s.next, s.next == nil
	if leads {
		r = &syncRound{done: make(chan struct{})}
		s.next = r
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiting--
	}()
	if !leads {
		<-r.done
		return r.err
	}
	s.running.Lock()
	defer s.running.Unlock()
	s.mu.Lock()
	s.next = nil // who comes from here on may come too late for this syncfs
	s.mu.Unlock()
	r.err = s.syncAll(f)
	close(r.done)
	return r.err
}

// flushData has the file's bytes written by the device, which may still hold them in its cache. A syncfs tells of a failed write
// to one caller only, not to the one whose bytes they were: so each asks for its own here, before it.
func flushData(f *os.File) error {
	const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	for {
		if err := unix.SyncFileRange(int(f.Fd()), 0, 0, all); err != unix.EINTR {
			return err
		}
	}
}

// syncFileSystemOf makes everything durable that was written to the file system of f. The fsync after it asks whether the file system
// still works: of one that failed and is read-only since, the kernel calls a syncfs that did nothing a success.
func syncFileSystemOf(f *os.File) error {
	for {
		switch err := unix.Syncfs(int(f.Fd())); err {
		case unix.EINTR:
		case nil:
			return f.Sync()
		default:
			return err
		}
	}
}
