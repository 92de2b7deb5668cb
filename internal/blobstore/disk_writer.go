package blobstore

import (
	"errors"
	"fmt"
	"os"
	"path"
	"syscall"
	"unsafe"

	"github.com/accession/accession/internal/crashpoint"
	"github.com/accession/accession/internal/planted"
)

// align is what O_DIRECT asks of memory, offset and length on every file system met.
const align = 4096

// writeMode is how a file is written: past the page cache while the file system and
// the alignment allow it, else through it.
type writeMode uint8

const (
	writeDirect    writeMode = iota // O_DIRECT
	writeDontCache                  // RWF_DONTCACHE: through the page cache, not kept there
	writeBuffered                   // plain
)

var errDeleted = errors.New("object was deleted while it was written")

// diskWriter writes one file.
type diskWriter struct {
	disk *Disk
	key  string
	file *os.File
	mode writeMode
	size int64 // declared
	off  int64 // written
	done bool  // committed, or aborted
}

// prepare reserves the room and chooses the write mode.
func (w *diskWriter) prepare() error {
	if err := allocate(w.file, w.size); err != nil {
		return err
	}
	if w.mode == writeDirect {
		if err := setDirect(w.file, true); err != nil {
			w.mode = writeDontCache // the file system has no O_DIRECT
		}
	}
	return nil
}

// WriteBlock implements Writer.
func (w *diskWriter) WriteBlock(p []byte) error {
	if int64(len(p)) > w.size-w.off {
		return w.disk.fault("write", fmt.Errorf("more than the declared %d bytes", w.size))
	}
	for len(p) > 0 {
		n, err := w.write(p)
		if err != nil {
			return w.disk.fault("write", err)
		}
		w.off += int64(n)
		p = p[n:]
	}
	return nil
}

// write writes some of p. It may write nothing and step down to the next mode.
func (w *diskWriter) write(p []byte) (int, error) {
	switch w.mode {
	case writeDirect:
		whole := len(p) &^ (align - 1)
		if whole == 0 {
			return 0, w.leaveDirect() // the tail
		}
		n, err := w.file.WriteAt(p[:whole], w.off)
		if errors.Is(err, syscall.EINVAL) { // not aligned: a caller's own memory, or a demanding device
			return n, w.leaveDirect()
		}
		return n, err
	case writeDontCache:
		n, err := writeDontCached(w.file, p, w.off)
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
			w.mode = writeBuffered
			return 0, nil
		}
		return n, err
	default:
		return w.file.WriteAt(p, w.off)
	}
}

func (w *diskWriter) leaveDirect() error {
	w.mode = writeDontCache
	return setDirect(w.file, false)
}

// Commit implements Writer: data, then the file's name, then the folders' names.
func (w *diskWriter) Commit() error {
	if w.off != w.size {
		return w.disk.fault("commit", fmt.Errorf("%d of the declared %d bytes were written", w.off, w.size))
	}
	if w.done {
		return w.disk.fault("commit", os.ErrClosed)
	}
	crashpoint.Hit("blobstore: before sync")
	if err := w.sync(); err != nil {
		return w.disk.fault("commit", err)
	}
	crashpoint.Hit("blobstore: after folder sync")
	if err := w.file.Close(); err != nil {
		return w.disk.fault("commit", err)
	}
	w.done = true
	return nil
}

// sync makes the bytes and all names durable, together with other small objects if many are committed.
func (w *diskWriter) sync() error {
	if w.size > maxShared || !w.disk.fsys.holds(w.file) {
		return w.syncByItself()
	}
	if w.disk.fsys.beginAlone() {
		defer w.disk.fsys.endAlone()
		return w.syncByItself()
	}
	if err := flushData(w.file); err != nil {
		return err
	}
	if err := w.disk.fsys.share(w.file); err != nil {
		return err
	}
	return w.stillThere() // then its folders have been there all the time
}

func (w *diskWriter) syncByItself() error {
	if !planted.Bug("object-not-synced") {
		if err := syncData(w.file); err != nil {
			return err
		}
	}
	crashpoint.Hit("blobstore: after sync")
	return w.disk.settle(path.Dir(w.key), w.stillThere)
}

func (w *diskWriter) stillThere() error {
	info, err := w.file.Stat()
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink == 0 {
		return errDeleted
	}
	return nil
}

// Abort implements Writer. The removal is durable on return.
func (w *diskWriter) Abort() error {
	if w.done {
		return nil
	}
	_ = w.file.Close() // of no weight: the bytes go, and Commit may have closed it
	if err := w.disk.remove(w.key); err != nil {
		return w.disk.fault("abort", err)
	}
	w.done = true
	return nil
}

// misalignment is how many bytes p's memory lies past a multiple of align.
func misalignment(p []byte) int {
	return int(uintptr(unsafe.Pointer(unsafe.SliceData(p))) & (align - 1))
}
