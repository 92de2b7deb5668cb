package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/accession/accession/internal/crashpoint"
	"github.com/accession/accession/internal/planted"
)

// maxSettled bounds the memory of settled folders; past it they are forgotten and
// synced once more.
const maxSettled = 4096

// Disk is a Store in a folder of a local file system. Folders are 0700 and files
// 0600; symbolic links are never followed out of the folder.
type Disk struct {
	name string
	root *os.Root
	mode writeMode // how writers begin; tests start them lower
	fsys *fileSystem

	// mu keeps the removal of an empty folder apart from the creation of a file in it.
	mu sync.Mutex
	// settled holds folders whose own entry, and every one above it, is durable.
	settled map[string]struct{}
}

// NewDisk opens the store called name in folder root, which it creates when absent,
// durably. Its errors are for the operator and contain the path.
func NewDisk(name, root string) (*Disk, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := MakeFolder(root); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("%s: open folder: %w", name, err)
	}
	fsys, err := fileSystemOf(r)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: look at folder: %w", name, err), r.Close())
	}
	return &Disk{name: name, root: r, fsys: fsys, settled: map[string]struct{}{}}, nil
}

// Name implements Store.
func (d *Disk) Name() string { return d.name }

// Close releases the folder. Open objects and writers stay usable.
func (d *Disk) Close() error { return d.fault("close", d.root.Close()) }

// Create implements Store. The room is allocated at once where the file system can.
func (d *Disk) Create(ctx context.Context, key string, size int64) (Writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, d.fault("create", err)
	}
	if err := checkKey(key); err != nil {
		return nil, d.fault("create", err)
	}
	if size < 0 {
		return nil, d.fault("create", fmt.Errorf("size %d is negative", size))
	}
	f, err := d.createFile(key)
	if errors.Is(err, fs.ErrExist) {
		err = ErrExists
	}
	if err != nil {
		return nil, d.fault("create", err)
	}
	w := &diskWriter{disk: d, key: key, file: f, size: size, mode: d.mode}
	if err := w.prepare(); err != nil {
		return nil, errors.Join(d.fault("create", err), w.Abort())
	}
	return w, nil
}

func (d *Disk) createFile(key string) (*os.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.root.MkdirAll(path.Dir(key), 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = syscall.ENOTDIR // a folder of the key is an object; the key itself is free
		}
		return nil, err
	}
	return d.root.OpenFile(key, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// Open implements Store.
func (d *Disk) Open(ctx context.Context, key string) (Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, d.fault("open", err)
	}
	if err := checkKey(key); err != nil {
		return nil, d.fault("open", err)
	}
	info, err := d.root.Lstat(key) // before opening: opening a fifo would block
	if isAbsent(err) || err == nil && !info.Mode().IsRegular() {
		return nil, d.fault("open", ErrNotFound)
	}
	if err != nil {
		return nil, d.fault("open", err)
	}
	f, err := d.root.Open(key)
	if isAbsent(err) {
		return nil, d.fault("open", ErrNotFound)
	}
	if err != nil {
		return nil, d.fault("open", err)
	}
	if info, err = f.Stat(); err != nil {
		return nil, errors.Join(d.fault("open", err), d.fault("close", f.Close()))
	}
	return &diskObject{disk: d, file: f, size: info.Size()}, nil
}

// Delete implements Store. Folders that this leaves empty are removed as well.
func (d *Disk) Delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return d.fault("delete", err)
	}
	if err := checkKey(key); err != nil {
		return d.fault("delete", err)
	}
	return d.fault("delete", d.remove(key))
}

func (d *Disk) remove(key string) error {
	folder, err := d.root.Open(path.Dir(key))
	if isAbsent(err) {
		return nil // its last entry was synced away before the folder went
	}
	if err != nil {
		return err
	}
	crashpoint.Hit("blobstore: before delete")
	// A folder of that name is no object, so the object is absent.
	if err := unlink(folder, path.Base(key)); err != nil && !isAbsent(err) && !errors.Is(err, syscall.EISDIR) {
		return errors.Join(err, folder.Close())
	}
	crashpoint.Hit("blobstore: after delete")
	// Synced even when absent: whoever unlinked it may have died before the sync.
	switch {
	case !d.fsys.holds(folder):
		err = folder.Sync()
	case d.fsys.beginAlone():
		err = folder.Sync()
		d.fsys.endAlone()
	default:
		err = d.fsys.share(folder)
	}
	if err = errors.Join(err, folder.Close()); err != nil {
		return err
	}
	crashpoint.Hit("blobstore: after delete sync")
	d.removeEmpty(path.Dir(key))
	return nil
}

// settleEmpty makes durable that folder dir has no objects. What was unlinked by a process that died before its sync, or whose sync
// failed, is not listed; its folder is still there, because folders are removed after the sync.
func (d *Disk) settleEmpty(dir string) error {
	folder, err := d.root.Open(dir)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return d.fault("purge", err)
	}
	below, err := folder.ReadDir(-1)
	if err = errors.Join(err, folder.Sync(), folder.Close()); err != nil {
		return d.fault("purge", err)
	}
	for _, entry := range below {
		if entry.IsDir() {
			if err := d.settleEmpty(path.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	d.removeEmpty(dir)
	return nil
}

// removeEmpty removes dir and the folders above it, up to the first that cannot be.
// An empty folder does no harm, so errors only stop it.
func (d *Disk) removeEmpty(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for ; dir != "."; dir = path.Dir(dir) {
		above, err := d.root.Open(path.Dir(dir))
		if err != nil {
			return
		}
		err = rmdir(above, path.Base(dir))
		if errors.Join(err, above.Close()) != nil {
			return
		}
		delete(d.settled, dir)
	}
}

// settle makes the entries of folder dir durable, and the entry of every folder
// above it that is not known to be. stillThere is asked, while no folder can be
// removed, before the folders are remembered.
func (d *Disk) settle(dir string, stillThere func() error) error {
	if !planted.Bug("name-not-synced") {
		if err := syncFolder(d.root.Open(dir)); err != nil {
			return err
		}
	}
	var fresh []string
	for ; dir != "." && !d.isSettled(dir); dir = path.Dir(dir) {
		if err := syncFolder(d.root.Open(path.Dir(dir))); err != nil {
			return err
		}
		fresh = append(fresh, dir)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := stillThere(); err != nil {
		return err
	}
	if len(d.settled)+len(fresh) > maxSettled {
		clear(d.settled)
		return nil // without the folders above, dir alone would claim too much
	}
	for _, dir := range fresh {
		d.settled[dir] = struct{}{}
	}
	return nil
}

func (d *Disk) isSettled(dir string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.settled[dir]
	return ok
}

// List implements Store.
func (d *Disk) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		prefix := strings.TrimSuffix(prefix, "/")
		if prefix == "" {
			d.walk(ctx, ".", yield)
			return
		}
		if err := checkKey(prefix); err != nil {
			yield(Info{}, d.fault("list", err))
			return
		}
		info, err := d.root.Lstat(prefix)
		switch {
		case isAbsent(err):
		case err != nil:
			yield(Info{}, d.fault("list", err))
		case info.IsDir():
			d.walk(ctx, prefix, yield)
		default:
			yield(Info{Key: prefix, Size: info.Size(), ModTime: info.ModTime()}, nil)
		}
	}
}

// walk yields whatever is no folder, also names that are no valid keys: a purge must
// not report empty what is not. It reports whether to go on.
func (d *Disk) walk(ctx context.Context, dir string, yield func(Info, error) bool) bool {
	fail := func(err error) bool {
		yield(Info{}, d.fault("list", err))
		return false
	}
	folder, err := d.root.Open(dir)
	if isAbsent(err) {
		return true // removed meanwhile
	}
	if err != nil {
		return fail(err)
	}
	defer folder.Close() // opened for reading: nothing to lose
	for {
		names, readErr := folder.Readdirnames(256)
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return fail(err)
			}
			key := path.Join(dir, name)
			info, err := d.root.Lstat(key)
			switch {
			case isAbsent(err): // deleted meanwhile
			case err != nil:
				return fail(err)
			case info.IsDir():
				if !d.walk(ctx, key, yield) {
					return false
				}
			case !yield(Info{Key: key, Size: info.Size(), ModTime: info.ModTime()}, nil):
				return false
			}
		}
		if readErr != nil {
			return endOfFolder(readErr) || fail(readErr)
		}
	}
}

// diskObject reads one file.
type diskObject struct {
	disk *Disk
	file *os.File
	size int64
}

func (o *diskObject) Size() int64  { return o.size }
func (o *diskObject) Close() error { return o.disk.fault("close", o.file.Close()) }

func (o *diskObject) ReadAt(p []byte, off int64) (int, error) {
	n, err := o.file.ReadAt(p, off)
	return n, o.disk.fault("read", err)
}
