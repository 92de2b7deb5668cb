package scanner

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	scratchPrefix = "accession-clamd-"

	// scratchRoom is what clamd may need at once: the longest stream and what is unpacked from it.
	scratchRoom = 4 << 30

	adviceScratch = "no memory file system with 4 GiB free: clamd writes what it scans in clear into the data folder while it scans; give /dev/shm more room, or encrypt that disk"
)

// Scratch says where a managed clamd writes what it scans, in clear, until it has answered.
type Scratch struct {
	Memory bool   // on a memory file system: no disk holds it, unless it is swapped out
	Folder string // the file system's folder; empty where Memory is false
	Advice string // what the operator should do; empty where Memory is true
}

// InspectScratch finds a memory file system with 4 GiB free: /dev/shm, or $XDG_RUNTIME_DIR where that is one.
func InspectScratch() Scratch { return findMemory("/dev/shm", os.Getenv("XDG_RUNTIME_DIR")) }

func findMemory(folders ...string) Scratch {
	for _, folder := range folders {
		var fs unix.Statfs_t
		if !filepath.IsAbs(folder) || unix.Statfs(folder, &fs) != nil || unix.Access(folder, unix.W_OK|unix.X_OK) != nil {
			continue
		}
		if fs.Type == unix.TMPFS_MAGIC && fs.Bavail*uint64(fs.Bsize) >= scratchRoom {
			return Scratch{Memory: true, Folder: folder}
		}
	}
	return Scratch{Advice: adviceScratch}
}

// scratches are the scratch folders of one clamd's folder: one for each run of it.
type scratches struct {
	dir    string  // of clamd, where scratch files lie when no memory is there
	memory Scratch // looked for once
	owner  string  // stands in the names in memory
}

// scratchesOf looks for memory.
func scratchesOf(dir string, folder *os.File) (scratches, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(folder.Fd()), &stat); err != nil {
		return scratches{}, fmt.Errorf("look at folder of clamd: %w", err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d", stat.Dev, stat.Ino))
	return scratches{dir, InspectScratch(), hex.EncodeToString(sum[:8])}, nil
}

// open makes an empty private folder, opened; folders of earlier runs are removed first. The caller closes it and clears.
func (s scratches) open(as *syscall.Credential) (*os.File, error) {
	if err := s.clear(as); err != nil {
		return nil, err
	}
	if s.memory.Memory {
		return s.openMemory(as)
	}
	path := filepath.Join(s.dir, scratchName)
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, fmt.Errorf("make scratch folder of clamd: %w", err)
	}
	folder, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open scratch folder of clamd: %w", err)
	}
	return given(folder, as)
}

// openMemory makes the folder in memory. It is locked for as long as this process or clamd has it open, and has its name only
// then: what has the name and no lock is left from a service that was killed.
func (s scratches) openMemory(as *syscall.Credential) (*os.File, error) {
	making, err := os.MkdirTemp(s.memory.Folder, "accession-making-*") // mode 0700
	if err != nil {
		return nil, fmt.Errorf("make scratch folder of clamd: %w", err)
	}
	folder, err := os.Open(making)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open scratch folder of clamd: %w", err), os.Remove(making))
	}
	err = unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		named := scratchPrefix + s.owner + "-" + strings.TrimPrefix(filepath.Base(making), "accession-making-")
		err = os.Rename(making, filepath.Join(s.memory.Folder, named))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make scratch folder of clamd: %w", err), folder.Close(), os.Remove(making))
	}
	return given(folder, as)
}

// given gives an open folder to the account that clamd runs as.
func given(folder *os.File, as *syscall.Credential) (*os.File, error) {
	if as == nil {
		return folder, nil
	}
	if err := folder.Chown(int(as.Uid), int(as.Gid)); err != nil {
		return nil, errors.Join(fmt.Errorf("give scratch folder of clamd to %s: %w", unprivileged, err), folder.Close())
	}
	return folder, nil
}

// clear removes the scratch folders that nobody has open: this clamd's once it has ended, and those that killed services left,
// wherever their data was. Links are not followed, and what belongs to a stranger is left alone: anybody may write to /dev/shm.
func (s scratches) clear(as *syscall.Credential) error {
	err := os.RemoveAll(filepath.Join(s.dir, scratchName))
	if s.memory.Memory {
		found, _ := filepath.Glob(filepath.Join(s.memory.Folder, scratchPrefix+"*")) // the pattern is well formed
		for _, path := range found {
			fd, openErr := unix.Open(path, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if openErr != nil {
				continue // another account's, a link, or gone meanwhile
			}
			var stat unix.Stat_t
			ours := unix.Fstat(fd, &stat) == nil && (int(stat.Uid) == os.Geteuid() || as != nil && stat.Uid == as.Uid)
			if ours && unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
				err = errors.Join(err, os.RemoveAll(path))
			}
			unix.Close(fd)
		}
	}
	if err != nil {
		return fmt.Errorf("clear scratch folder of clamd: %w", err)
	}
	return nil
}
