package scanner

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// scratchFolders lists the folders in memory that belong to the clamd of dir.
func scratchFolders(t *testing.T, dir string) []string {
	t.Helper()
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	s, err := scratchesOf(dir, folder)
	if err != nil || !s.memory.Memory {
		t.Fatalf("this test needs memory: %+v, %v", s.memory, err)
	}
	found, err := filepath.Glob(filepath.Join(s.memory.Folder, scratchPrefix+s.owner+"-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// holding lists the files below root that hold the mark.
func holding(t *testing.T, root string, mark []byte) (found []string) {
	t.Helper()
	_ = filepath.WalkDir(root, func(path string, _ os.DirEntry, _ error) error { // clamd works in there
		if content, err := os.ReadFile(path); err == nil && bytes.Contains(content, mark) {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// clamd writes what it scans in clear: into memory, never into its folder, and nothing of it stays.
func TestScratchIsInMemory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "clamd")
	m := start(t, ManagedConfig{Dir: dir})
	if err := m.WaitReady(soon(t)); err != nil {
		t.Fatal(err)
	}
	folders := scratchFolders(t, dir)
	if len(folders) != 1 {
		t.Fatalf("scratch folders %q, want one", folders)
	}
	info, err := os.Stat(folders[0])
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v, want 0700", info.Mode(), err)
	}
	mark, seen := []byte("scratch-marker-7f31"), 0
	content := readerAt(func(p []byte, at int64) (int, error) {
		clear(p)
		copy(p, mark)
		if at >= 32<<20 && seen == 0 { // more than sockets hold: clamd has written the beginning
			seen = len(holding(t, folders[0], mark))
			if on := holding(t, dir, mark); len(on) > 0 {
				t.Errorf("content in clear in %q", on)
			}
		}
		return len(p), nil
	})
	if _, err := m.Scan(soon(t), content, 48<<20); err != nil {
		t.Fatal(err)
	}
	if seen == 0 {
		t.Error("clamd wrote nothing into its scratch folder: this proves nothing")
	}
	for done := soon(t); len(holding(t, folders[0], mark)) > 0; { // clamd deletes after it has answered
		if done.Err() != nil {
			t.Fatalf("after the scan: %q", holding(t, folders[0], mark))
		}
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if left := scratchFolders(t, dir); len(left) > 0 {
		t.Errorf("after the end: %q", left)
	}
}

func TestMemoryIsMemoryWithRoom(t *testing.T) {
	disk := t.TempDir()
	if got := findMemory("", "dev/shm", filepath.Join(disk, "absent"), "/proc"); got.Memory || !strings.Contains(got.Advice, "/dev/shm") {
		t.Errorf("no memory anywhere: %+v", got)
	}
	if got := findMemory(filepath.Join(disk, "absent"), "/dev/shm"); !got.Memory || got.Folder != "/dev/shm" || got.Advice != "" {
		t.Errorf("/dev/shm: %+v", got)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(disk, &fs); err != nil {
		t.Fatal(err)
	}
	if got := findMemory(disk); got.Memory != (fs.Type == unix.TMPFS_MAGIC) {
		t.Errorf("%s: %+v", disk, got)
	}
}

// Without memory clamd works in its own folder, and that is cleared too.
func TestScratchOnDisk(t *testing.T) {
	dir := t.TempDir()
	s := scratches{dir: dir, memory: findMemory()}
	for range 2 { // the second finds what the first left
		folder, err := s.open(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, scratchName, "left"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if names, err := folder.Readdirnames(-1); err != nil || len(names) != 1 {
			t.Errorf("%q, %v", names, err)
		}
		folder.Close()
	}
	if err := s.clear(nil); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// Anybody may write to /dev/shm: neither a link nor a stranger's folder leads anywhere.
func TestClearFollowsNoLink(t *testing.T) {
	memory, kept := t.TempDir(), t.TempDir()
	s := scratches{dir: t.TempDir(), memory: Scratch{Memory: true, Folder: memory}, owner: "me"}
	if err := os.WriteFile(filepath.Join(kept, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(kept, filepath.Join(memory, scratchPrefix+"me-1")); err != nil {
		t.Fatal(err)
	}
	other, err := scratches{memory: s.memory, owner: "other"}.open(nil) // somebody works in there
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := s.clear(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(kept, "file")); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(memory); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
	other.Close()
	if err := s.clear(nil); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(memory); err != nil || len(left) != 1 { // the link
		t.Errorf("%v, %v", left, err)
	}
}
