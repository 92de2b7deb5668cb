package blobstore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestMain turns the test binary into a writer that TestCrashLeavesOnlyDebris kills.
func TestMain(m *testing.M) {
	if root := os.Getenv("BLOBSTORE_CRASH_IN"); root != "" {
		crash(root)
	}
	os.Exit(m.Run())
}

// crash commits one object, writes half of another, says so and waits to be killed.
func crash(root string) {
	check := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	disk, err := NewDisk("staging", root)
	check(err)
	for _, key := range []string{"uploads/upl_1/committed", "uploads/upl_1/half"} {
		w, err := disk.Create(context.Background(), key, 2*BlockSize)
		check(err)
		check(w.WriteBlock(make([]byte, BlockSize)))
		if key == "uploads/upl_1/committed" {
			check(w.WriteBlock(make([]byte, BlockSize)))
			check(w.Commit())
		}
	}
	fmt.Println("ready")
	select {}
}

func TestCrashLeavesOnlyDebris(t *testing.T) {
	root := t.TempDir()
	writer := exec.CommandContext(t.Context(), os.Args[0])
	writer.Env = append(os.Environ(), "BLOBSTORE_CRASH_IN="+root)
	out, err := writer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	killErr := writer.Process.Kill()
	_ = writer.Wait() // killed: always an error
	if line != "ready\n" || killErr != nil {
		t.Fatalf("the writer said %q; kill: %v", line, killErr)
	}

	disk, err := NewDisk("staging", root)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	if got := keys(t, disk, ""); !slices.Equal(got, []string{"uploads/upl_1/committed", "uploads/upl_1/half"}) {
		t.Errorf("store holds %q", got)
	}
	if got := content(t, disk, "uploads/upl_1/committed"); len(got) != 2*BlockSize {
		t.Errorf("the committed object has %d bytes", len(got))
	}
	if _, err := disk.Create(t.Context(), "uploads/upl_1/half", 1); !errors.Is(err, ErrExists) {
		t.Errorf("create over debris: %v, want ErrExists", err)
	}
	if n, err := Purge(t.Context(), disk, "uploads/upl_1"); n != 2 || err != nil {
		t.Errorf("purge: %d, %v", n, err)
	}
	w, err := disk.Create(t.Context(), "uploads/upl_1/half", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
}

func TestDiskWritesInEveryMode(t *testing.T) {
	for name, mode := range modes {
		for _, size := range []int{1, align - 1, align, align + 1, BlockSize, 2*BlockSize + 3*align + 7} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				disk, want := newDisk(t), random(size)
				disk.mode = mode
				w, err := disk.Create(t.Context(), "a", int64(size))
				if err != nil {
					t.Fatal(err)
				}
				b := newBlock(BlockSize) // aligned memory, as Seal hands over
				defer b.release()
				for part := range slices.Chunk(want, BlockSize) {
					if err := w.WriteBlock(b.buf[:copy(b.buf, part)]); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.Commit(); err != nil {
					t.Fatal(err)
				}
				if got := content(t, disk, "a"); !bytes.Equal(got, want) {
					t.Error("other bytes")
				}
			})
		}
	}
}

// A caller's own memory, in lengths of its own, is written too.
func TestDiskWritesUnalignedBlocks(t *testing.T) {
	for _, length := range []int{1, 4095, 7001, 2 * align} {
		disk, want := newDisk(t), random(50_001)[1:] // an odd address
		w, err := disk.Create(t.Context(), "a", int64(len(want)))
		if err != nil {
			t.Fatal(err)
		}
		for part := range slices.Chunk(want, length) {
			if err := w.WriteBlock(part); err != nil {
				t.Fatalf("in steps of %d: %v", length, err)
			}
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := content(t, disk, "a"); !bytes.Equal(got, want) {
			t.Errorf("in steps of %d: other bytes", length)
		}
	}
}

func TestBlocksAreAligned(t *testing.T) {
	for _, n := range []int64{0, 1, align, align + 1, 2 * align, segmentSize, segmentSize + 1, BlockSize - 1, BlockSize} {
		for range 20 {
			b := newBlock(n)
			if misalignment(b.buf) != 0 || int64(len(b.buf)) < n || int64(len(b.buf)) >= max(align+1, 2*n) || len(b.buf) > BlockSize {
				t.Fatalf("a block for %d bytes has %d and lies %d bytes off", n, len(b.buf), misalignment(b.buf))
			}
		}
	}
}

// tmpfs refuses a file larger than itself before it takes any memory.
func TestDiskSaysEarlyThatItIsFull(t *testing.T) {
	root := sharedMemory(t)
	disk, err := NewDisk("staging", root)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	var stat syscall.Statfs_t
	if err := syscall.Statfs(root, &stat); err != nil || stat.Blocks == 0 {
		t.Fatalf("statfs: %v, %d blocks; want a tmpfs with a limit on /dev/shm", err, stat.Blocks)
	}
	size := int64(stat.Blocks)*stat.Bsize + 1<<20
	if _, err := disk.Create(t.Context(), "uploads/a", size); !errors.Is(err, ErrNoSpace) {
		t.Errorf("create: %v, want ErrNoSpace", err)
	}
	body := readerFunc(func([]byte) (int, error) { t.Error("the body was read"); return 0, errReader })
	if err := Seal(t.Context(), disk, "uploads/b", random(32), nil, body, size); !errors.Is(err, ErrNoSpace) {
		t.Errorf("seal: %v, want ErrNoSpace", err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDiskErrorsSpeakOfTheStoreAlone(t *testing.T) {
	disk := newDisk(t)
	for err, want := range map[error]error{
		&fs.PathError{Op: "write", Path: "/srv/secret", Err: syscall.ENOSPC}: ErrNoSpace,
		&fs.PathError{Op: "write", Path: "/srv/secret", Err: syscall.EDQUOT}: ErrNoSpace,
		&fs.PathError{Op: "write", Path: "/srv/secret", Err: syscall.EIO}:    syscall.EIO,
	} {
		got := disk.fault("write", err)
		if !errors.Is(got, want) || !strings.HasPrefix(got.Error(), "staging: write: ") || strings.Contains(got.Error(), "secret") {
			t.Errorf("%v became %q", err, got)
		}
	}
	if _, err := disk.Open(t.Context(), "no/such"); !errors.Is(err, ErrNotFound) || strings.Contains(err.Error(), disk.root.Name()) || strings.Contains(err.Error(), "such") {
		t.Errorf("open: %v", err)
	}
}

func TestDiskKeepsOthersOut(t *testing.T) {
	root := filepath.Join(t.TempDir(), "new", "store")
	disk, err := NewDisk("staging", root)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	sealTo(t, disk, "uploads/upl_1/a", random(32), nil, random(10))
	for name, want := range map[string]fs.FileMode{
		"": fs.ModeDir | 0o700, "uploads": fs.ModeDir | 0o700, "uploads/upl_1": fs.ModeDir | 0o700, "uploads/upl_1/a": 0o600,
	} {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Mode() != want {
			t.Errorf("%q: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := disk.Open(t.Context(), "link/file"); err == nil {
		t.Error("a symbolic link led out of the store")
	}
	if err := disk.Delete(t.Context(), "link/file"); err == nil {
		t.Error("a deletion through a symbolic link succeeded")
	}
	if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
		t.Error("a file outside is gone:", err)
	}
}

func TestNewDiskRefusesAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{file, filepath.Join(file, "below")} {
		if disk, err := NewDisk("staging", root); err == nil {
			t.Errorf("opened %v", disk)
		}
	}
}

func TestDeleteRemovesEmptyFolders(t *testing.T) {
	disk := newDisk(t)
	for _, key := range []string{"uploads/upl_1/parts/1", "uploads/upl_1/parts/2", "uploads/upl_2/parts/1"} {
		sealTo(t, disk, key, random(32), nil, nil)
	}
	for _, step := range []struct{ delete, gone, stays string }{
		{"uploads/upl_1/parts/1", "uploads/upl_1/parts/1", "uploads/upl_1/parts"},
		{"uploads/upl_1/parts/2", "uploads/upl_1", "uploads/upl_2/parts"},
		{"uploads/upl_2/parts/1", "uploads", "."},
	} {
		if err := disk.Delete(t.Context(), step.delete); err != nil {
			t.Fatal(err)
		}
		if _, err := disk.root.Stat(step.gone); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after %s: %s is there (%v)", step.delete, step.gone, err)
		}
		if _, err := disk.root.Stat(step.stays); err != nil {
			t.Errorf("after %s: %v", step.delete, err)
		}
	}
	if len(disk.settled) != 0 {
		t.Errorf("removed folders are remembered: %v", disk.settled)
	}
}

// Removing an empty folder must not pull it from under a new object's feet. On tmpfs
// there is no disk to wait for, so that many attempts meet.
func TestFoldersVanishOnlyBetweenObjects(t *testing.T) {
	disk, err := NewDisk("staging", sharedMemory(t))
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for range 2000 {
				w, err := disk.Create(t.Context(), fmt.Sprintf("busy/folder/%d", i), 0)
				if err == nil {
					err = w.Abort()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
}

func TestCommitFailsWhenTheObjectWasDeleted(t *testing.T) {
	disk := newDisk(t)
	w, err := disk.Create(t.Context(), "x/a", 0)
	if err != nil {
		t.Fatal(err)
	}
	keepFolder, err := disk.Create(t.Context(), "x/b", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := disk.Delete(t.Context(), "x/a"); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); !errors.Is(err, errDeleted) {
		t.Errorf("commit: %v, want errDeleted", err)
	}
	if err := errors.Join(w.Abort(), keepFolder.Commit()); err != nil {
		t.Error(err)
	}
}

func TestPurgeReadsBack(t *testing.T) {
	disk := newDisk(t)
	for _, key := range []string{"u/a", "u/b"} {
		sealTo(t, disk, key, random(32), nil, nil)
	}
	stuck := &faultyStore{Store: disk, del: errReader}
	if n, err := Purge(t.Context(), stuck, "u"); n != 0 || !errors.Is(err, ErrNotEmpty) || !errors.Is(err, errReader) {
		t.Errorf("purge that cannot delete: %d, %v", n, err)
	}
	if n, err := Purge(t.Context(), lying{disk}, "u"); n != 2 || !errors.Is(err, ErrNotEmpty) {
		t.Errorf("purge of a store that only says it deletes: %d, %v", n, err)
	}
	// What is no key of ours cannot be deleted by key, and is not passed over.
	if err := disk.root.WriteFile("u/Foreign", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := Purge(t.Context(), disk, "u"); n != 2 || !errors.Is(err, ErrNotEmpty) || !errors.Is(err, ErrKey) {
		t.Errorf("purge beside a foreign file: %d, %v", n, err)
	}
}

// lying says that it deleted.
type lying struct{ Store }

func (lying) Delete(context.Context, string) error { return nil }

// sharedMemory is a folder on the tmpfs that every Linux has.
func sharedMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "blobstore")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
