package blobstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ShareAll has every small change to disk share its sync.
func ShareAll(disk *Disk) { disk.fsys = &fileSystem{syncAll: syncFileSystemOf} } // nobody alone

// awaitSharers returns when n changes wait for a shared sync.
func awaitSharers(t *testing.T, fsys *fileSystem, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		fsys.mu.Lock()
		waiting := fsys.waiting
		fsys.mu.Unlock()
		if waiting == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d wait for a shared sync, want %d", waiting, n)
		}
	}
}

// Small objects that are committed or deleted at once wait for one sync; whoever returns asked before the sync that it counts on
// began; a sync that fails is nobody's success, and holds nobody up.
func TestSmallObjectsShareSyncs(t *testing.T) {
	const n = 32
	disk, syncs, answers := newDisk(t), make(chan struct{}), make(chan error)
	disk.fsys = &fileSystem{syncAll: func(f *os.File) error {
		syncs <- struct{}{}
		return errors.Join(<-answers, syncFileSystemOf(f))
	}}
	key := func(i int) string { return fmt.Sprintf("uploads/%d/a", i) }
	writers := make([]Writer, n)
	write := func(i int) {
		w, err := disk.Create(t.Context(), key(i), int64(len(key(i))))
		if err == nil {
			err = w.WriteBlock([]byte(key(i)))
		}
		if err != nil {
			t.Fatal(err)
		}
		writers[i] = w
	}
	commit := func(i int) error { return writers[i].Commit() }
	remove := func(i int) error { return disk.Delete(t.Context(), key(i)) }

	returned := make(chan error, n)
	wants := func(count int, want error) {
		t.Helper()
		for range count {
			if err := <-returned; !errors.Is(err, want) || want != nil && !errors.Is(err, ErrUnavailable) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		if len(returned) != 0 {
			t.Error("more returned than waited for this sync")
		}
	}
	begins := func() {
		t.Helper()
		select {
		case <-syncs:
		case <-time.After(time.Minute):
			t.Fatal("no sync begins")
		}
	}
	failAllButTheFirst := func(change func(i int) error) {
		t.Helper()
		go func() { returned <- change(0) }()
		begins()
		for i := 1; i < n; i++ { // these come while the first sync runs
			go func() { returned <- change(i) }()
		}
		awaitSharers(t, disk.fsys, n)
		wants(0, nil)
		answers <- nil
		begins()
		wants(1, nil)
		answers <- unix.EIO
		wants(n-1, unix.EIO)
	}
	succeed := func(change func(i int) error) {
		t.Helper()
		for i := 1; i < n; i++ {
			go func() { returned <- change(i) }()
		}
		for open := n - 1; open > 0; {
			select {
			case <-syncs:
				answers <- nil
			case err := <-returned:
				open--
				if err != nil {
					t.Error(err)
				}
			}
		}
	}
	for i := range n {
		write(i)
	}
	failAllButTheFirst(commit)
	succeed(func(i int) error { return writers[i].Abort() })
	for i := 1; i < n; i++ {
		write(i)
	}
	succeed(commit)
	for i := range n {
		if got := content(t, disk, key(i)); string(got) != key(i) {
			t.Errorf("%s holds %q", key(i), got)
		}
	}
	failAllButTheFirst(remove)
	succeed(remove)
	if left := keys(t, disk, ""); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// Few small objects are synced each by itself, and so is a large one whatever else goes on: it waits for nobody's bytes.
func TestFewObjectsAreSyncedByThemselves(t *testing.T) {
	disk := newDisk(t)
	disk.fsys = &fileSystem{maxAlone: 1, syncAll: func(*os.File) error { return errors.New("a sync of everything") }}
	sealTo(t, disk, "uploads/a", random(32), nil, random(10))
	if !disk.fsys.beginAlone() {
		t.Fatal("the first is not alone any more")
	}
	sealTo(t, disk, "uploads/large", random(32), nil, random(maxShared))
	if err := Seal(t.Context(), disk, "uploads/b", random(32), nil, bytes.NewReader(nil), 0); err == nil {
		t.Error("the second did not share")
	}
	disk.fsys.endAlone()
	sealTo(t, disk, "uploads/c", random(32), nil, nil)
}

// Stores in one file system share; whether a folder is in one that makes all durable by syncfs is asked of the kernel.
func TestStoresOfOneFileSystemShare(t *testing.T) {
	one, other := newDisk(t), newDisk(t)
	if one.fsys != other.fsys {
		t.Error("two folders of one file system share nothing")
	}
	memory, err := NewDisk("staging", sharedMemory(t))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	if memory.fsys == one.fsys || memory.fsys.maxAlone != maxAlone {
		t.Errorf("tmpfs: %d alone, want %d", memory.fsys.maxAlone, maxAlone)
	}
	const fuse = 0x65735546
	if syncfsSuffices(fuse) {
		t.Error("syncfs does not reach the server of a FUSE file system")
	}
}

// BenchmarkCommitSmall measures durable objects of 2 KiB, each in a folder of its own, by so many writers at once.
func BenchmarkCommitSmall(b *testing.B) {
	for _, writers := range []int{1, 4, 64} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			disk, object := newDisk(b), random(2048)
			var n atomic.Int64
			var working sync.WaitGroup
			for range writers {
				working.Go(func() {
					for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
						w, err := disk.Create(b.Context(), fmt.Sprintf("uploads/%d/a", i), int64(len(object)))
						if err == nil {
							err = errors.Join(w.WriteBlock(object), w.Commit())
						}
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			working.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "objects/s")
		})
	}
}

// What was unlinked and not synced is not listed any more, and comes back with a power cut: it is no deletion, now or when it is
// tried again.
func TestPurgeIsConfirmedOnceItIsDurable(t *testing.T) {
	disk, broken := newDisk(t), errors.New("broken")
	disk.fsys = &fileSystem{syncAll: func(*os.File) error { return nil }} // nobody alone
	w, err := disk.Create(t.Context(), "uploads/upl_1/parts/000001", 0)
	if err == nil {
		err = w.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	disk.fsys.syncAll = func(*os.File) error { return broken }
	if _, err := Purge(t.Context(), disk, "uploads/upl_1"); !errors.Is(err, broken) {
		t.Errorf("a purge whose sync failed: %v", err)
	}
	if _, err := disk.root.Stat("uploads/upl_1/parts"); err != nil {
		t.Errorf("the folder to be synced is gone: %v", err)
	}
	if n, err := Purge(t.Context(), disk, "uploads/upl_1"); n != 0 || err != nil {
		t.Errorf("tried again: %d, %v", n, err)
	}
	if _, err := disk.root.Stat("uploads/upl_1"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}
